//! The choices of a network, and of a search with it, on solved positions.

use super::arena::ROWS;
use super::positions::{ErrorRates, PositionSummary, SolvedPosition, error_rates, replay};
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::engine::{PositionBatch, Settings, determinised};
use crate::error::{Error, Result};
use crate::net::Network;
use crate::search::root::{RootSummary, RowKey, argmax};
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
    let plays = numbers.clone().map(|i| replay(&positions[i], game)).collect::<Result<Vec<_>>>()?;
    let keys: Vec<RowKey> = numbers.clone().map(|i| RowKey { slot: i as u64, ..RowKey::default() }).collect();
    let at: Vec<SearchRequest> =
        plays.iter().zip(&keys).flat_map(|(play, key)| determinised(play, *key, 1)).collect();
    let raw = raw_policies(game.as_ref(), network.fork().as_mut(), &at)?;
    let mut batch = PositionBatch::new(game.as_ref(), network, settings, ROWS)?;
    batch.stop_by(stop);
    let mut found = Vec::with_capacity(at.len());
    let plays: Vec<&Playthrough> = plays.iter().collect();
    for (plays, keys) in plays.chunks(ROWS).zip(keys.chunks(ROWS)) {
        found.extend(batch.search(plays, keys)?);
        report(found.len() as u64);
    }
    let choice = |(index, ((priors, _), summary)): (usize, (&(Vec<f32>, _), &RootSummary))| PositionChoice {
        index,
        policy_action: summary.actions[argmax(priors)],
        search_action: summary.actions[summary.best],
        value: summary.value[usize::from(summary.player)],
    };
    Ok(numbers.zip(raw.iter().zip(&found)).map(choice).collect())
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
