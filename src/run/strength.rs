//! Strength of a network: error rates on solved positions if the game has an exact solver, otherwise a match. Items (a position, a game
//! of the match) are measured independently, so that several processes can share a measurement.

use crate::backend::AnyGame;
use crate::batch::ErasedRules;
use crate::config::Config;
use crate::engine::Settings;
use crate::error::{Error, Result};
use crate::eval::arena::{Contestant, ROWS};
use crate::eval::choices::{PositionChoice, choices, summarise};
use crate::eval::elo::{Mean, share_interval};
use crate::eval::matches::{MatchOutcome, MatchPlan, check_game, play_part};
use crate::eval::opponent::{Opponent, Rung};
use crate::eval::positions::{self, SolvedPosition, random_error_rates};
use crate::game::Sizes;
use crate::net::Network;
use crate::report::metrics::{MeanScore, PointsLead, Strength};
use crate::run::memory::{check_search, searches};
use crate::stop::Stop;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Random plies at the start of a game against an own earlier network: two searches without noise would repeat one game.
const OWN_OPENING_PLIES: u32 = 4;

/// Measures the strength of a network.
pub struct StrengthMeter {
    game: Arc<dyn AnyGame>,
    settings: Settings,
    task: Task,
}

enum Task {
    Positions(Vec<SolvedPosition>),
    Match(MatchTask),
}

struct MatchTask {
    setup: MatchSetup,
    /// The opponent's network, if it is an earlier one of the run.
    network: Option<Box<dyn Network>>,
    seed: u64,
}

/// The opponent and the size of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchSetup {
    /// The opponent.
    pub rung: Rung,
    /// The number of games.
    pub games: usize,
}

/// The results of some items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EvalResult {
    /// The choices on solved positions.
    Positions(Vec<PositionChoice>),
    /// The actions of games of the match, chance outcomes included.
    Games(Vec<Vec<u16>>),
}

/// The progress of a measurement.
pub struct ItemProgress {
    /// Finished items.
    pub done: u64,
    /// Estimated fraction of the work; None if it is the fraction of items, or is not known yet.
    pub fraction: Option<f64>,
    /// A result so far, as text.
    pub detail: String,
}

impl StrengthMeter {
    /// The measurement of `config.eval`.
    ///
    /// # Errors
    /// [`crate::Error::Config`] for an unknown opponent, [`crate::Error::Unsupported`] for a search that does not fit into
    /// memory.
    pub fn new(config: &Config, game: &Arc<dyn AnyGame>, threads: usize) -> Result<Self> {
        let settings = Settings { threads, ..Settings::new(config, &game.sizes()) };
        let rung = Rung::first(&config.eval.opponent)?;
        let task = match known_positions(game, config.eval.positions)? {
            Some(positions) => Task::Positions(positions),
            None => {
                let setup = MatchSetup { rung, games: match_games(config, game.as_ref()) };
                Task::Match(MatchTask { setup, network: None, seed: config.run.seed })
            }
        };
        if config.eval.every > 0 {
            check_search(game.as_ref(), settings, searches(config, game.as_ref()) * ROWS)?;
        }
        Ok(Self { game: game.clone(), settings, task })
    }

    /// The number of items.
    pub fn items(&self) -> usize {
        match &self.task {
            Task::Positions(positions) => positions.len(),
            Task::Match(task) => task.setup.games,
        }
    }

    /// The opponent and the size of the match; None for solved positions.
    pub fn match_setup(&self) -> Option<MatchSetup> {
        match &self.task {
            Task::Positions(_) => None,
            Task::Match(task) => Some(task.setup),
        }
    }

    /// Sets the match of the next measurement, with the opponent's `network` if it is an earlier one of the run. Has no effect on
    /// solved positions.
    pub fn set_match(&mut self, setup: MatchSetup, network: Option<Box<dyn Network>>) {
        if let Task::Match(task) = &mut self.task {
            (task.setup, task.network) = (setup, network);
        }
    }

    /// The name of the items.
    pub fn unit(&self) -> &'static str {
        match &self.task {
            Task::Positions(_) => "positions",
            Task::Match(_) => "games",
        }
    }

    /// Measures the items that have these `numbers`. An item's result does not depend on the other items measured with it.
    ///
    /// # Errors
    /// Those of the network; [`crate::Error::Stopped`] once `stop` is requested.
    pub fn measure(
        &self,
        network: &dyn Network,
        numbers: Range<usize>,
        stop: &Stop,
        report: &mut dyn FnMut(ItemProgress),
    ) -> Result<EvalResult> {
        match &self.task {
            Task::Positions(positions) => {
                let report = &mut |done| report(ItemProgress { done, fraction: None, detail: String::new() });
                let choices = choices(&self.game, network, self.settings, positions, numbers, stop, report)?;
                Ok(EvalResult::Positions(choices))
            }
            Task::Match(task) => {
                let game = self.game.as_ref();
                let mut own = Contestant::search(game, network, self.settings)?.stopped_by(stop);
                let other = match (task.setup.rung.opponent, &task.network) {
                    (Opponent::Epoch(_), Some(earlier)) => {
                        Contestant::search(game, earlier.as_ref(), self.settings)?
                    }
                    (named, _) => {
                        Contestant::named(game, &named.to_string(), "eval.opponent", self.settings.threads)?
                    }
                };
                let (mut other, plan) = (other.stopped_by(stop), task.plan(&game.sizes()));
                let records = play_part(&self.game, &mut own, &mut other, plan, numbers, &mut |so_far| {
                    let (result, fraction) = (so_far.result, so_far.fraction);
                    let detail = result.score_so_far();
                    report(ItemProgress { done: so_far.games, fraction, detail });
                })?;
                Ok(EvalResult::Games(records))
            }
        }
    }

    /// Checks that `measured`, from another process, is a possible result of the items with these `numbers`: choices are legal; games
    /// follow the rules to their end, with the openings and the chance outcomes of this match.
    ///
    /// # Errors
    /// A description of the defect.
    pub fn check(&self, numbers: Range<usize>, measured: &EvalResult) -> std::result::Result<(), String> {
        let found = match measured {
            EvalResult::Positions(choices) => choices.len(),
            EvalResult::Games(records) => records.len(),
        };
        if found != numbers.len() {
            return Err(format!("{found} {}, expected {}", self.unit(), numbers.len()));
        }
        match (&self.task, measured) {
            (Task::Positions(positions), EvalResult::Positions(choices)) => {
                numbers.zip(choices).try_for_each(|(number, choice)| check_choice(number, positions, choice))
            }
            (Task::Match(task), EvalResult::Games(records)) => {
                let plan = task.plan(&self.game.sizes());
                numbers
                    .zip(records)
                    .try_for_each(|(number, actions)| check_game(&self.game, plan, number, actions))
            }
            _ => Err(format!("results of another kind, expected {}", self.unit())),
        }
    }

    /// Upper bound on the serialised size of the results of so many items, in bytes.
    pub fn max_bytes(&self, items: usize) -> usize {
        /// Bytes of a choice, or of the lengths of lists.
        const CHOICE: usize = 24;
        /// Bytes of an action.
        const ACTION: usize = 3;
        items.saturating_mul(CHOICE + ACTION * self.game.sizes().max_plies)
    }

    /// The strength, from the results of all items in their order.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if items are missing, or belong to another measurement.
    pub fn strength(&self, all: Vec<EvalResult>) -> Result<Strength> {
        let wrong = |what: String| Error::unsupported("the results of an evaluation", what);
        let (mut choices, mut records) = (Vec::new(), Vec::new());
        for measured in all {
            match measured {
                EvalResult::Positions(more) => choices.extend(more),
                EvalResult::Games(more) => records.extend(more),
            }
        }
        match &self.task {
            Task::Positions(positions) => {
                let summary = summarise(positions, &choices)?;
                let error = summary.search_outcome_error;
                Ok(Strength {
                    search_outcome_error: Some(error),
                    search_outcome_interval: Some(share_interval(error, positions.len() as f64)),
                    policy_outcome_error: Some(summary.policy_outcome_error),
                    search_exact_error: Some(summary.search_exact_error),
                    policy_exact_error: Some(summary.policy_exact_error),
                    ..Strength::default()
                })
            }
            Task::Match(task) => {
                let MatchSetup { rung, games } = task.setup;
                if records.len() != games {
                    return Err(wrong(format!("{} games, expected {games}", records.len())));
                }
                let sizes = self.game.sizes();
                let outcome =
                    MatchOutcome::of_records(&self.game, task.plan(&sizes), &records).map_err(wrong)?;
                Ok(Strength { rung: Some(rung), ..match_strength(&outcome, sizes.num_players) })
            }
        }
    }

    /// Fraction of the solved positions where uniformly random play changes the outcome; None for a match.
    pub fn random_outcome_error(&self) -> Option<f64> {
        match &self.task {
            Task::Positions(positions) => Some(random_error_rates(positions).outcome_error),
            Task::Match(_) => None,
        }
    }
}

impl MatchTask {
    /// The plan of the match in a game of these `sizes`. The mean scores of one player are compared whoever the opponent was, so games for one
    /// player begin alike against all: without random plies where chance makes them differ.
    fn plan(&self, sizes: &Sizes) -> MatchPlan<'static> {
        let MatchSetup { rung, games } = self.setup;
        let opening_plies = match rung.opponent {
            _ if sizes.num_players == 1 && sizes.num_chance > 0 => 0,
            _ if sizes.num_players == 1 => OWN_OPENING_PLIES,
            Opponent::Epoch(_) => OWN_OPENING_PLIES,
            Opponent::Random | Opponent::Rollouts(_) => 0,
        };
        MatchPlan { games, opening_plies, seed: self.seed, ..MatchPlan::default() }
    }
}

/// Fraction of the solved positions of `game`, of which a measurement by `config` takes some, where uniformly random play changes the
/// outcome; None for a game without such positions.
///
/// # Errors
/// Those of the embedded positions.
pub fn random_outcome_error(config: &Config, game: &Arc<dyn AnyGame>) -> Result<Option<f64>> {
    let positions = known_positions(game, config.eval.positions)?;
    Ok(positions.map(|positions| random_error_rates(&positions).outcome_error))
}

/// The full number of games of a match.
pub fn match_games(config: &Config, game: &dyn ErasedRules) -> usize {
    let plan = MatchPlan { games: config.eval.match_games, ..MatchPlan::default() };
    plan.for_game(game).games
}

/// The strength that the outcome of a match shows. The score of players who share an aim is their return.
fn match_strength(outcome: &MatchOutcome, players: usize) -> Strength {
    let mean_score =
        |mean: Mean| MeanScore { mean: mean.mean, interval: mean.interval().unwrap_or([mean.mean; 2]) };
    if outcome.is_for_one_player {
        return Strength {
            match_score: Some(outcome.better_pairs().score()),
            match_games: Some(2 * outcome.scores.len() as u64),
            mean_score: outcome.points().map(mean_score),
            ..Strength::default()
        };
    }
    if outcome.is_cooperative {
        return Strength {
            match_games: Some(outcome.returns.len() as u64),
            mean_score: Some(mean_score(Mean::of_groups(&outcome.returns, outcome.group))),
            ..Strength::default()
        };
    }
    let lead =
        outcome.points().zip(outcome.lead()).filter(|_| players > 2).map(|(points, lead)| PointsLead {
            points: points.mean,
            mean: lead.mean,
            interval: lead.interval().unwrap_or([lead.mean; 2]),
        });
    Strength {
        match_score: Some(outcome.result.score()),
        match_interval: Some(outcome.result.score_interval()),
        match_elo: (players == 2).then(|| outcome.result.elo().difference).flatten(),
        match_games: Some(outcome.result.games()),
        lead,
        ..Strength::default()
    }
}

fn check_choice(
    number: usize,
    positions: &[SolvedPosition],
    choice: &PositionChoice,
) -> std::result::Result<(), String> {
    let PositionChoice { index, policy_action, search_action, value } = *choice;
    let is_legal =
        |action: u16| positions[number].scores.get(usize::from(action)).is_some_and(Option::is_some);
    if index != number || !is_legal(policy_action) || !is_legal(search_action) || !value.is_finite() {
        return Err(format!(
            "the choice {choice:?}, expected legal actions of position {number} and a finite value"
        ));
    }
    Ok(())
}

/// The embedded solved positions of this game, at most `wanted`, evenly spaced.
fn known_positions(game: &Arc<dyn AnyGame>, wanted: usize) -> Result<Option<Vec<SolvedPosition>>> {
    let Some(text) = game.solved_positions() else { return Ok(None) };
    let all = positions::parse_lines(text, Path::new("the embedded positions"), game)?;
    let step = (all.len() as f64 / wanted.max(1) as f64).max(1.0);
    let chosen = (0..wanted.min(all.len())).map(|i| all[(i as f64 * step) as usize].clone());
    Ok(Some(chosen.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_with_one_aim_are_measured_by_their_mean_return() {
        let returns = vec![-0.5, 0.0, 1.0, 0.5];
        let outcome = MatchOutcome { is_cooperative: true, returns, group: 2, ..MatchOutcome::default() };
        let strength = match_strength(&outcome, 2);
        assert_eq!((strength.match_score, strength.match_elo), (None, None), "nobody wins");
        assert_eq!((strength.match_games, strength.rank()), (Some(4), Some(-0.25)));
        let interval = strength.mean_score.expect("a mean return").interval;
        assert!(interval[0] < 0.25 && 0.25 < interval[1], "{interval:?}");
    }

    #[test]
    fn games_for_one_player_begin_alike_against_all_opponents() {
        let plies = |num_players, num_chance| {
            let sizes = Sizes { num_players, num_chance, ..Sizes::default() };
            [Opponent::Random, Opponent::Rollouts(100), Opponent::Epoch(3)].map(|opponent| {
                let setup = MatchSetup { rung: Rung { opponent, number: 0 }, games: 8 };
                MatchTask { setup, network: None, seed: 1 }.plan(&sizes).opening_plies
            })
        };
        assert_eq!(plies(1, 6), [0; 3]);
        assert_eq!(plies(1, 0), [OWN_OPENING_PLIES; 3]);
        assert_eq!(plies(2, 0), [0, 0, OWN_OPENING_PLIES]);
    }
}
