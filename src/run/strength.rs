//! Strength after an epoch: error rates on solved positions if the game has an exact solver, otherwise a match.

use crate::backend::Placement;
use crate::batch::AnyGame;
use crate::config::Config;
use crate::error::Result;
use crate::eval::arena::{
    Contestant, MatchPlan, MatchProgress, ROWS, SearchSetup, evaluate_positions, play_match,
};
use crate::eval::positions::{self, SolvedPosition, random_error_rates};
use crate::net::Network;
use crate::report::metrics::Strength;
use crate::report::progress::Progress;
use crate::run::memory::check_search;
use crate::search::SearchParams;
use crate::stop::Stop;
use std::path::Path;
use std::sync::Arc;

/// Measures the strength of a network, in the same way after every epoch.
pub struct StrengthMeter {
    game: Arc<dyn AnyGame>,
    setup: SearchSetup,
    task: Task,
}

enum Task {
    Positions(Vec<SolvedPosition>),
    Match { opponent: String, determinisations: usize, plan: MatchPlan },
}

impl StrengthMeter {
    /// The measurement of `config.eval`.
    ///
    /// # Errors
    /// [`crate::Error::Config`] for an unknown opponent, [`crate::Error::Unsupported`] for a search that does not fit into
    /// memory.
    pub fn new(config: &Config, game: &Arc<dyn AnyGame>, threads: usize) -> Result<Self> {
        let mut params = SearchParams::new(&config.search, &game.sizes());
        let placement = Placement::of_run(config).on_first_device();
        params.rule = config.eval.algorithm;
        params.simulations = config.eval.simulations;
        params.leaves = 1;
        let hidden = game.sizes().hidden_information;
        let determinisations = if hidden { config.eval_determinisations() } else { 1 };
        if config.eval.every > 0 {
            check_search(game.as_ref(), params, placement, ROWS * determinisations)?;
        }
        let task = match known_positions(game, config.eval.positions)? {
            Some(positions) => Task::Positions(positions),
            None => {
                let opponent = config.eval.opponent.clone();
                Contestant::named(game.as_ref(), &opponent, "eval.opponent", 1)?;
                let plan =
                    MatchPlan { games: config.eval.match_games, opening_plies: 0, seed: config.run.seed };
                Task::Match { opponent, determinisations, plan }
            }
        };
        Ok(Self { game: game.clone(), setup: SearchSetup { params, placement, threads }, task })
    }

    /// The strength of `network`. Shows its progress.
    ///
    /// # Errors
    /// Those of the network; [`crate::Error::Stopped`] once `stop` is requested.
    pub fn measure(&self, network: &dyn Network, stop: &Stop, progress: &mut Progress) -> Result<Strength> {
        match &self.task {
            Task::Positions(positions) => {
                progress.start("evaluation", positions.len() as u64, "positions");
                let report = &mut |done| progress.set(done);
                let (_, summary) =
                    evaluate_positions(&self.game, network, self.setup, positions, stop, report)?;
                Ok(Strength {
                    search_outcome_error: Some(summary.search_outcome_error),
                    policy_outcome_error: Some(summary.policy_outcome_error),
                    search_exact_error: Some(summary.search_exact_error),
                    policy_exact_error: Some(summary.policy_exact_error),
                    ..Strength::default()
                })
            }
            Task::Match { opponent, determinisations, plan } => {
                progress.start("evaluation", plan.games as u64, "games");
                let report = &mut |so_far: MatchProgress| {
                    let result = so_far.result;
                    progress.set_with(result.games(), so_far.fraction, result.score_so_far());
                };
                let game = self.game.as_ref();
                let SearchSetup { params, placement, threads } = self.setup;
                let own = Contestant::search(game, network, params, placement, *determinisations, threads)?;
                let other = Contestant::named(game, opponent, "eval.opponent", threads)?;
                let (mut own, mut other) = (own.stopped_by(stop), other.stopped_by(stop));
                let outcome = play_match(&self.game, &mut own, &mut other, *plan, report)?;
                Ok(Strength {
                    match_score: Some(outcome.result.score()),
                    match_elo: outcome.result.elo().difference,
                    ..Strength::default()
                })
            }
        }
    }

    /// Fraction of the solved positions where uniformly random play changes the outcome; None for a match.
    pub fn random_outcome_error(&self) -> Option<f64> {
        match &self.task {
            Task::Positions(positions) => Some(random_error_rates(positions).outcome_error),
            Task::Match { .. } => None,
        }
    }
}

/// The embedded solved positions of this game, at most `wanted`, evenly spaced.
fn known_positions(game: &Arc<dyn AnyGame>, wanted: usize) -> Result<Option<Vec<SolvedPosition>>> {
    let Some(text) = game.solved_positions() else { return Ok(None) };
    let all = positions::parse_lines(text, Path::new("the positions inside the program"), game)?;
    let step = (all.len() as f64 / wanted.max(1) as f64).max(1.0);
    let chosen = (0..wanted.min(all.len())).map(|i| all[(i as f64 * step) as usize].clone());
    Ok(Some(chosen.collect()))
}
