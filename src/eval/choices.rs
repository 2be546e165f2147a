//! The choices of a network, and of a search with it, on solved positions.

use super::arena::ROWS;
use super::positions::{ErrorRates, PositionSummary, SolvedPosition, error_rates, replay};
use crate::backend::AnyGame;
use crate::engine::{PositionBatch, Settings, determinised};
use crate::error::{Error, Result};
use crate::net::Network;
use crate::search::root::{RowKey, argmax};
use crate::searcher::{SearchRequest, raw_policies};
use crate::stop::Stop;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// The choices of a network and its search on one solved position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionChoice {
    /// Index of the position.
    pub index: usize,
    /// The action with the highest prior.
    pub policy_action: u16,
    /// The action chosen by the search.
    pub search_action: u16,
    /// The search's value for the player to move.
    pub value: f32,
}

/// The choices of the raw policy and the search on the solved positions that have these `numbers`. Passes the number of positions done to
/// `report`. A choice does not depend on the other positions.
///
/// # Errors
/// Those of the network; [`Error::Stopped`] once `stop` is requested; [`Error::IllegalAction`] for an impossible position;
/// [`Error::Unsupported`] for a game with hidden information, since the network must not observe the true state.
pub fn choices(
    game: &Arc<dyn AnyGame>,
    network: &dyn Network,
    settings: Settings,
    positions: &[SolvedPosition],
    numbers: Range<usize>,
    stop: &Stop,
    report: &mut dyn FnMut(u64),
) -> Result<Vec<PositionChoice>> {
    if game.sizes().hidden_information {
        let why = "the best action depends on hidden information; measure strength by matches instead";
        return Err(Error::unsupported(format!("solved positions of {}", game.name()), why));
    }
    let mut batch = PositionBatch::new(game.as_ref(), network, settings, ROWS)?;
    batch.stop_by(stop);
    let mut policy = network.fork();
    let mut found = Vec::with_capacity(numbers.len());
    let numbers: Vec<usize> = numbers.collect();
    for numbers in numbers.chunks(ROWS) {
        let plays = numbers.iter().map(|&i| replay(&positions[i], game)).collect::<Result<Vec<_>>>()?;
        let keys: Vec<RowKey> =
            numbers.iter().map(|&i| RowKey { slot: i as u64, ..RowKey::default() }).collect();
        let at: Vec<SearchRequest> =
            plays.iter().zip(&keys).flat_map(|(play, key)| determinised(play, *key, 1)).collect();
        let raw = raw_policies(game.as_ref(), policy.as_mut(), &at)?;
        let searched = batch.search(&plays.iter().collect::<Vec<_>>(), &keys)?;
        for (&index, ((priors, _), summary)) in numbers.iter().zip(raw.iter().zip(&searched)) {
            found.push(PositionChoice {
                index,
                policy_action: summary.actions[argmax(priors)],
                search_action: summary.actions[summary.best],
                value: summary.value[usize::from(summary.player)],
            });
        }
        report(found.len() as u64);
    }
    Ok(found)
}

/// The error rates of choices on all `positions`.
///
/// # Errors
/// Those of [`error_rates`].
pub fn summarise(positions: &[SolvedPosition], choices: &[PositionChoice]) -> Result<PositionSummary> {
    let rates = |of: fn(&PositionChoice) -> u16| -> Result<ErrorRates> {
        error_rates(positions, &choices.iter().map(of).collect::<Vec<_>>())
    };
    Ok(PositionSummary::new(rates(|c| c.policy_action)?, rates(|c| c.search_action)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::eval::positions::parse_lines;
    use crate::net::{HashNet, IoShape};
    use crate::registry::any_game;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A network that keeps the largest number of observations of a batch.
    struct Widest(HashNet, Arc<AtomicUsize>);

    impl Network for Widest {
        fn shape(&self) -> IoShape {
            self.0.shape()
        }

        fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
            self.1.fetch_max(obs.len() / self.shape().obs_len, Ordering::Relaxed);
            self.0.forward(obs, logits, values)
        }

        fn fork(&self) -> Box<dyn Network> {
            Box::new(Self(self.0.clone(), self.1.clone()))
        }
    }

    /// However many positions a file has, as many are evaluated at once as are searched, and each has the choice that it has alone.
    #[test]
    fn positions_are_evaluated_in_batches() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let text = game.solved_positions().expect("embedded");
        let known = parse_lines(text, Path::new("positions"), &game).expect("valid");
        let positions: Vec<SolvedPosition> = known.into_iter().cycle().take(2 * ROWS + 5).collect();
        let sizes = game.sizes();
        let widest = Arc::new(AtomicUsize::new(0));
        let network = Widest(HashNet(IoShape::of(&sizes)), widest.clone());
        let mut settings = Settings { threads: 1, ..Settings::new(&Config::default(), &sizes) };
        settings.params.simulations = 4;
        let chosen = |numbers: Range<usize>| {
            let mut reports = Vec::new();
            let report = &mut |done: u64| reports.push(done);
            let stop = Stop::default();
            let found = choices(&game, &network, settings, &positions, numbers, &stop, report);
            (found.expect("legal"), reports)
        };
        let (all, reports) = chosen(0..positions.len());
        assert_eq!(reports, [ROWS, 2 * ROWS, 2 * ROWS + 5].map(|done| done as u64));
        assert_eq!(widest.load(Ordering::Relaxed), ROWS);
        let part = ROWS - 2..ROWS + 3;
        assert_eq!(chosen(part.clone()).0, all[part]);
    }
}
