//! Exact figures of some strategies, as `tests/oracles/poker.py figures` prints them: computed in fractions on OpenSpiel's rules, and equal to
//! OpenSpiel's `nash_conv`. Those of `UNIFORM` and `FIRST`, and that of the equilibria, are in OpenSpiel's `exploitability_test.py` too.

use crate::tree::InfoState;

/// A strategy with its figures in chips.
pub struct ReferenceFigures {
    /// What it is called in `poker.py`.
    pub title: &'static str,
    /// The probabilities of the legal actions.
    pub strategy: fn(&InfoState) -> Vec<f64>,
    /// What player 0 wins.
    pub value: f64,
    /// NashConv.
    pub nash_conv: f64,
}

/// Figures of Kuhn poker.
pub const KUHN: [ReferenceFigures; 7] = [
    ReferenceFigures { title: "uniform", strategy: uniform, value: 1.0 / 8.0, nash_conv: 11.0 / 12.0 },
    ReferenceFigures { title: "first", strategy: first, value: 0.0, nash_conv: 2.0 },
    ReferenceFigures { title: "last", strategy: last, value: 0.0, nash_conv: 2.0 / 3.0 },
    ReferenceFigures {
        title: "hashed",
        strategy: hashed,
        value: -481.0 / 11_088.0,
        nash_conv: 5_135.0 / 5_544.0,
    },
    ReferenceFigures { title: "equilibrium 0", strategy: |info| equilibrium(info, 0.0), ..EQUILIBRIUM },
    ReferenceFigures { title: "equilibrium 1/5", strategy: |info| equilibrium(info, 0.2), ..EQUILIBRIUM },
    ReferenceFigures {
        title: "equilibrium 1/3",
        strategy: |info| equilibrium(info, 1.0 / 3.0),
        ..EQUILIBRIUM
    },
];

/// Figures of Leduc poker.
pub const LEDUC: [ReferenceFigures; 4] = [
    ReferenceFigures { title: "uniform", strategy: uniform, value: -5.0 / 64.0, nash_conv: 1_709.0 / 360.0 },
    ReferenceFigures { title: "first", strategy: first, value: 0.0, nash_conv: 2.0 },
    ReferenceFigures { title: "last", strategy: last, value: 0.0, nash_conv: 71.0 / 15.0 },
    ReferenceFigures {
        title: "hashed",
        strategy: hashed,
        value: 0.167_362_556_322,
        nash_conv: 4.983_344_920_427,
    },
];

const EQUILIBRIUM: ReferenceFigures =
    ReferenceFigures { title: "equilibrium", strategy: uniform, value: -1.0 / 18.0, nash_conv: 0.0 };

/// Equal probabilities of all legal actions.
pub fn uniform(info: &InfoState) -> Vec<f64> {
    vec![1.0 / info.legal.len() as f64; info.legal.len()]
}

fn only(info: &InfoState, index: usize) -> Vec<f64> {
    (0..info.legal.len()).map(|i| if i == index { 1.0 } else { 0.0 }).collect()
}

/// The first legal action: folding or passing where possible, otherwise calling.
fn first(info: &InfoState) -> Vec<f64> {
    only(info, 0)
}

/// The last legal action: betting or raising where possible, otherwise calling.
fn last(info: &InfoState) -> Vec<f64> {
    only(info, info.legal.len() - 1)
}

/// Probabilities that depend on the whole observation: sevenths of a hash, normalised.
fn hashed(info: &InfoState) -> Vec<f64> {
    let ones =
        (1..).zip(&info.observation).filter(|&(_, &x)| x == 1.0).map(|(number, _): (u64, _)| number.pow(2));
    let ones: u64 = ones.sum();
    let weight = |&action: &u16| (1 + (ones * (u64::from(action) + 2) + u64::from(action)) % 7) as f64;
    let weights: Vec<f64> = info.legal.iter().map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The equilibria of Kuhn poker (Kuhn 1950), one for each probability `alpha` in [0, 1/3] of player 0's bet with the lowest card.
fn equilibrium(info: &InfoState, alpha: f64) -> Vec<f64> {
    let card = info.observation[2..5].iter().position(|&x| x == 1.0).expect("a card");
    // What was done after the deal.
    let bets = match (&info.actions[2..], card) {
        ([], 0) => alpha,
        ([], 2) => 3.0 * alpha,
        ([0], 0) | ([1], 1) => 1.0 / 3.0,
        ([0, 1], 1) => alpha + 1.0 / 3.0,
        (_, 2) => 1.0,
        _ => 0.0,
    };
    vec![1.0 - bets, bets]
}
