use super::*;
use crate::rng::{Key, Purpose};
use serde::Deserialize;

/// Ratios of other programs, by `tests/oracles/sprt.py`.
const ORACLE: &str = include_str!("../../../tests/fixtures/sprt.jsonl");

#[derive(Deserialize)]
struct OracleLine {
    elo0: f64,
    elo1: f64,
    pairs: [u64; 5],
    llr: f64,
    source: String,
}

#[test]
fn ratios_are_those_of_fishtest_and_scipy() {
    let lines: Vec<OracleLine> =
        ORACLE.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 22);
    for OracleLine { elo0, elo1, pairs, llr, source } in lines {
        let ours = Sprt { elo0, elo1 }.llr(pairs);
        // Published ratios have two decimals.
        let margin = if source.starts_with("fishtest") { 0.0051 } else { 1e-6 * llr.abs().max(1.0) };
        assert!((ours - llr).abs() < margin, "{source}: {pairs:?} {ours} {llr}");
    }
}

#[test]
fn two_differences_in_their_order_are_a_test() {
    assert_eq!(Sprt::parse("0,20").expect("valid"), Sprt { elo0: 0.0, elo1: 20.0 });
    assert_eq!(Sprt::parse(" -2.5, 0").expect("valid"), Sprt { elo0: -2.5, elo1: 0.0 });
    for text in ["", "0", "0,", ",20", "20,0", "5,5", "0,20,30", "a,b", "nan,20", "0,inf", "0,1001", "-1e9,0"]
    {
        let error = Sprt::parse(text).expect_err(text).to_string();
        assert!(error.starts_with(&format!("--sprt: got {text}, expected two Elo differences")), "{error}");
    }
}

#[test]
fn the_scores_of_pairs_are_counted_and_a_decision_stays() {
    let mut state = SprtState::new(Sprt { elo0: 0.0, elo1: 20.0 });
    for pair in [[-1.0, -1.0], [0.0, -1.0], [1.0, -1.0], [0.0, 0.0], [-1.0, 1.0], [0.5, 0.0], [0.1, 1.0]] {
        state.add(pair);
    }
    assert_eq!((state.pairs, state.accepted), ([1, 1, 3, 1, 1], None));
    for _ in 0..200 {
        state.add([1.0, 1.0]);
    }
    assert_eq!(state.accepted, Some(Hypothesis::H1));
    let [lower, upper] = Sprt::bounds();
    assert!((upper - 2.944_439).abs() < 1e-6 && lower == -upper);
    let before = state.pairs;
    assert!(
        state.llr >= upper
            && state.test.llr([before[0], before[1], before[2], before[3], before[4] - 1]) < upper
    );
    state.add([-1.0, -1.0]);
    assert_eq!(state.pairs, before, "the test is over");
}

/// The fraction of tests between -20 and 20 Elo that accept H1, where the pairs of openings with an advantage for a seat have this true
/// difference, and the mean number of pairs.
fn accepted(true_elo: f64, trials: u64) -> (f64, f64) {
    let mut rng = Key::new(7, Purpose::Evaluation).stream();
    let (mut accepted, mut pairs) = (0, 0);
    // A game is drawn with this probability; in half of the openings the first seat scores more.
    let (draw, advantage) = (0.3, 0.25);
    for _ in 0..trials {
        let mut state = SprtState::new(Sprt { elo0: -20.0, elo1: 20.0 });
        while state.accepted.is_none() {
            let bias = if rng.uniform() < 0.5 { advantage } else { 0.0 };
            let mut play = |bias: f64| {
                let (win, u) = (score_of(true_elo) + bias - 0.5 * draw, f64::from(rng.uniform()));
                if u < win {
                    1.0
                } else if u < win + draw {
                    0.0
                } else {
                    -1.0
                }
            };
            state.add([play(bias), play(-bias)]);
        }
        accepted += u64::from(state.accepted == Some(Hypothesis::H1));
        pairs += state.num_pairs();
    }
    (accepted as f64 / trials as f64, pairs as f64 / trials as f64)
}

/// Both error rates are 5 % or less, up to the statistical error of 400 tests (2.2 % is twice its standard deviation), and not far below
/// it: the test would then take more games than it needs.
#[test]
fn each_error_has_its_probability() {
    let (first, first_pairs) = accepted(-20.0, 400);
    let (second, second_pairs) = accepted(20.0, 400);
    assert!((0.015..0.072).contains(&first), "{first}");
    assert!((0.015..0.072).contains(&(1.0 - second)), "{second}");
    let (between, _) = accepted(0.0, 400);
    assert!((0.4..0.6).contains(&between), "{between}");
    // A test of fixed length with these error rates needs (2 z95 sigma / difference)^2 = 4.4 times the variance of a pair's score over the
    // square of the difference of 0.1148, in units of a pair: about 90 pairs with a variance of 0.1.
    assert!(first_pairs < 160.0 && second_pairs < 160.0, "{first_pairs} {second_pairs}");
}
