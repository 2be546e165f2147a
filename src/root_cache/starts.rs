//! The positions in which games begin, and the share of games that begin in each.

use crate::backend::AnyGame;
use crate::game::{History, Turn};
use crate::play::PlayPlan;
use std::collections::BTreeMap;

/// The distribution of the number of random opening plies.
#[derive(Clone, Copy, Debug)]
pub struct Openings {
    /// Maximum number of random plies.
    pub max_plies: u32,
    /// The share of games without random plies.
    pub none: f64,
}

impl Openings {
    /// The openings of self-play.
    pub fn new(plan: &PlayPlan) -> Self {
        let none = if plan.opening_plies == 0 { 1.0 } else { f64::from(plan.opening_none) };
        Self { max_plies: plan.opening_plies, none }
    }

    /// The share of games with exactly `plies` random plies.
    fn share(&self, plies: u32) -> f64 {
        match plies {
            0 => self.none,
            _ => (1.0 - self.none) / f64::from(self.max_plies),
        }
    }

    /// The share of games with more than `plies` random plies.
    fn share_beyond(&self, plies: u32) -> f64 {
        f64::from(self.max_plies - plies) * self.share(self.max_plies)
    }
}

/// A position in which games begin; a player is to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The state.
    pub state: Vec<u8>,
    /// Keys of the positions before it.
    pub history: Vec<u64>,
    /// The share of games that begin here.
    pub share: f64,
}

/// A state with the keys of the positions before it.
type KeyedState = (Vec<u8>, Vec<u64>);
/// The share of games that pass through each position.
type Shares = BTreeMap<KeyedState, f64>;

/// The positions in which at least the share `min_share` of all games begins, the most frequent first.
///
/// Paths of a smaller share are not followed, so a position that is reached only by many rare paths is not found. Openings that end a game
/// are drawn again in self-play but counted here, so the shares are too low by their share.
pub fn starts(game: &dyn AnyGame, openings: Openings, min_share: f64) -> Vec<Start> {
    let mut found = Shares::new();
    let mut reached = deal(game, Shares::from([((game.init(), Vec::new()), 1.0)]), min_share);
    for plies in 0..=openings.max_plies {
        for (position, share) in &reached {
            *found.entry(position.clone()).or_default() += share * openings.share(plies);
        }
        let min_share = min_share / openings.share_beyond(plies);
        reached = deal(game, play_at_random(game, &reached, min_share), min_share);
        if reached.is_empty() {
            break;
        }
    }
    let starts = found.into_iter().filter(|(_, share)| *share >= min_share);
    let mut starts: Vec<Start> =
        starts.map(|((state, history), share)| Start { state, history, share }).collect();
    // Stable: equal shares stay in the order of their states.
    starts.sort_by(|a, b| b.share.total_cmp(&a.share));
    starts
}

/// The positions after one more random ply, without those of a share below `min_share`.
fn play_at_random(game: &dyn AnyGame, positions: &Shares, min_share: f64) -> Shares {
    let mut next = Shares::new();
    for (position, share) in positions {
        let legal = game.legal(&position.0, History { played: &position.1, path: &[] });
        let share = share / legal.len() as f64;
        if share >= min_share {
            for action in legal {
                *next.entry(step(game, position, action)).or_default() += share;
            }
        }
    }
    next
}

/// The positions, of a share of at least `min_share`, in which a player is to move once chance has dealt.
fn deal(game: &dyn AnyGame, mut open: Shares, min_share: f64) -> Shares {
    let mut dealt = Shares::new();
    while let Some((position, share)) = open.pop_first() {
        match game.turn(&position.0) {
            Turn::Player(_) => *dealt.entry(position).or_default() += share,
            Turn::Over => {}
            Turn::Chance => {
                let outcomes = game.legal(&position.0, History { played: &position.1, path: &[] });
                let probs = game.chance_probs(&position.0, &outcomes);
                for (outcome, prob) in outcomes.into_iter().zip(probs) {
                    let share = share * f64::from(prob);
                    if share >= min_share {
                        *open.entry(step(game, &position, outcome)).or_default() += share;
                    }
                }
            }
        }
    }
    dealt
}

fn step(game: &dyn AnyGame, (state, history): &KeyedState, action: u16) -> KeyedState {
    let (mut next, mut keys) = (state.clone(), history.clone());
    game.step(&mut next, action, History { played: history, path: &[] });
    if game.sizes().uses_history {
        keys.push(game.history_key(state));
    }
    (next, keys)
}
