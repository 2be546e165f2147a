//! The luck of finished games: what the outcomes of chance gave a side beyond their mean, by a network's values of the positions after them.
//!
//! A result minus the luck in it has the same mean whatever the network is, since the luck of a fair outcome is 0 on average, and varies the
//! less the better the values are (the advantage-sum estimator: Zinkevich, Bowling, Bard, Kan and Billings, AAAI 2006).

use super::arena::ROWS;
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::engine::{PositionBatch, Settings};
use crate::error::Result;
use crate::game::Turn;
use crate::net::Network;
use crate::search::root::RowKey;
use crate::stop::Stop;

/// Estimates luck by a network.
pub struct LuckEstimate {
    batch: PositionBatch,
}

/// Draws whose outcomes are evaluated together. Each outcome is a copy of the game so far, so that more would take much memory in a long one.
const DRAWS_AT_ONCE: usize = 64;

/// The outcomes that were possible at one ply, and the one that came.
struct Draw {
    /// The position after each outcome. `[outcomes]`
    after: Vec<Playthrough>,
    /// Their probabilities. `[outcomes]`
    probs: Vec<f32>,
    drawn: usize,
}

impl LuckEstimate {
    /// The estimate by `network`, one evaluation or one whole turn for each outcome, by `settings`. None for games without chance, with
    /// hidden information, or of other than two players of whom one wins what the other loses.
    ///
    /// # Errors
    /// Those of [`PositionBatch::new`].
    pub fn new(game: &dyn AnyGame, network: &dyn Network, mut settings: Settings) -> Result<Option<Self>> {
        let sizes = game.sizes();
        if sizes.num_chance == 0 || sizes.hidden_information || !sizes.is_zero_sum_pair() {
            return Ok(None);
        }
        (settings.params.simulations, settings.params.turns) = (1, 1);
        Ok(Some(Self { batch: PositionBatch::new(game, network, settings, ROWS)? }))
    }

    /// From now on estimates fail with [`crate::Error::Stopped`] once `stop` is requested.
    pub fn stop_by(&mut self, stop: &Stop) {
        self.batch.stop_by(stop);
    }

    /// The luck of `seat` in `play` after its first `opening` actions, in the unit of results. An outcome that another one follows at once
    /// has none.
    ///
    /// # Errors
    /// Those of the rules, the network and the device.
    pub fn luck(&mut self, play: &Playthrough, opening: usize, seat: u8) -> Result<f64> {
        let (mut sum, mut draws) = (0.0, Vec::with_capacity(DRAWS_AT_ONCE));
        let mut at = play.after(opening);
        for &action in &play.actions()[opening..] {
            if at.turn() == Turn::Chance {
                draws.extend(Draw::of(&at, action)?);
            }
            at.step(action)?;
            if draws.len() == DRAWS_AT_ONCE {
                sum = self.add_luck(sum, &draws, seat)?;
                draws.clear();
            }
        }
        self.add_luck(sum, &draws, seat)
    }

    /// `sum` and the luck of `seat` in these draws.
    fn add_luck(&mut self, sum: f64, draws: &[Draw], seat: u8) -> Result<f64> {
        let is_open = |after: &&Playthrough| matches!(after.turn(), Turn::Player(_));
        let open: Vec<&Playthrough> = draws.iter().flat_map(|draw| &draw.after).filter(is_open).collect();
        let found = self.batch.search(&open, &vec![RowKey::default(); open.len()])?;
        let mut found = found.iter();
        let mut value = |after: &Playthrough| {
            let value = match after.turn() {
                Turn::Over => after.game().returns(after.state())[usize::from(seat)],
                Turn::Player(_) | Turn::Chance => {
                    found.next().map_or(0.0, |root| root.value[usize::from(seat)])
                }
            };
            f64::from(value)
        };
        let luck = |draw: &Draw| {
            let values: Vec<f64> = draw.after.iter().map(&mut value).collect();
            let mean: f64 = values.iter().zip(&draw.probs).map(|(value, &p)| value * f64::from(p)).sum();
            values[draw.drawn] - mean
        };
        Ok(draws.iter().map(luck).fold(sum, |sum, luck| sum + luck))
    }
}

impl Draw {
    /// The draw of `outcome` in `at`; None before another draw.
    fn of(at: &Playthrough, outcome: u16) -> Result<Option<Self>> {
        let outcomes = at.legal();
        let probs = at.game().chance_probs(at.state(), &outcomes);
        let after = |&outcome: &u16| {
            let mut after = at.clone();
            after.step(outcome).map(|()| after)
        };
        let after = outcomes.iter().map(after).collect::<Result<Vec<_>>>()?;
        let drawn = outcomes.binary_search(&outcome).unwrap_or_default();
        let is_followed = after.iter().any(|after| after.turn() == Turn::Chance);
        Ok((!is_followed).then_some(Self { after, probs, drawn }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Algorithm, Config};
    use crate::eval::plan::random_step;
    use crate::net::{HashNet, IoShape};
    use crate::registry::any_game;
    use crate::rng::{Key, Purpose};
    use std::sync::Arc;

    fn game(name: &str, options: &str) -> Arc<dyn AnyGame> {
        any_game(name, &options.parse().expect("TOML")).expect("registered")
    }

    fn estimate(game: &Arc<dyn AnyGame>, algorithm: Algorithm) -> Option<LuckEstimate> {
        let sizes = game.sizes();
        let mut settings = Settings::new(&Config::default(), &sizes);
        settings.params.algorithm = algorithm;
        LuckEstimate::new(game.as_ref(), &HashNet(IoShape::of(&sizes)), settings).expect("made")
    }

    /// Whatever the values, the outcomes of a ply have no luck on average, and what one player gains the other loses.
    #[test]
    fn luck_is_fair() {
        let game = game("backgammon", "");
        for (algorithm, seed) in [(Algorithm::Afterstate, 1), (Algorithm::Gumbel, 2)] {
            let mut estimate = estimate(&game, algorithm).expect("dice");
            let mut rng = Key::new(seed, Purpose::Chance).stream();
            let mut play = Playthrough::new(game.clone());
            for _ in 0..30 {
                random_step(&mut play, &mut rng).expect("not over");
            }
            while play.turn() != Turn::Chance {
                random_step(&mut play, &mut rng).expect("not over");
            }
            let before = [0, 1].map(|seat| estimate.luck(&play, 4, seat).expect("estimated"));
            assert!(before[0].abs() > 1e-3 && (before[0] + before[1]).abs() < 1e-5, "{before:?}");
            let outcomes = play.legal();
            let probs = game.chance_probs(play.state(), &outcomes);
            let after = outcomes.iter().map(|&outcome| {
                let mut after = play.clone();
                after.step(outcome).expect("possible");
                estimate.luck(&after, 4, 1).expect("estimated")
            });
            let after: Vec<f64> = after.collect();
            let mean: f64 = after.iter().zip(&probs).map(|(luck, &p)| luck * f64::from(p)).sum();
            assert!((mean - before[1]).abs() < 1e-5, "{algorithm:?}: {mean}, {before:?}");
            let differs = after.iter().any(|luck| (luck - before[1]).abs() > 1e-3);
            assert!(differs, "{algorithm:?}: {after:?}");
        }
    }

    /// Only rolls after the opening count.
    #[test]
    fn an_opening_has_no_luck() {
        let game = game("backgammon", "");
        let mut estimate = estimate(&game, Algorithm::Afterstate).expect("dice");
        let mut rng = Key::new(3, Purpose::Chance).stream();
        let mut play = Playthrough::new(game);
        (0..40).for_each(|_| random_step(&mut play, &mut rng).expect("not over"));
        let mut luck = |from| estimate.luck(&play, from, 0).expect("estimated");
        let (whole, later, none) = (luck(0), luck(20), luck(40));
        assert_eq!(none, 0.0);
        let early = estimate.luck(&play.after(20), 0, 0).expect("estimated");
        assert!((whole - later - early).abs() < 1e-5 && early != 0.0, "{whole} {later} {early}");
    }

    #[test]
    fn games_without_dice_and_with_hidden_hands_have_no_estimate() {
        for (name, options) in [("hex", ""), ("blob", "players = 3\ncards = 2")] {
            assert!(estimate(&game(name, options), Algorithm::Gumbel).is_none(), "{name}");
        }
    }
}
