//! Self-play in the slots of one partition.

use super::super::worker::Worker;
use crate::config::{Config, SearchConfig, SelfPlayConfig};
use crate::error::Result;
use crate::net::Network;
use crate::play::GameSlot;
use crate::search::eval_cache::EvalCache;
use crate::selfplay::SelfPlay;
use std::sync::Arc;

/// Self-play in the `slots` of a partition. All partitions of a `worker` share its cache of `evaluations`.
///
/// # Errors
/// Those of [`SelfPlay::new`].
pub(super) fn new_selfplay(
    worker: &Worker,
    network: &dyn Network,
    slots: Vec<GameSlot>,
    threads: usize,
    evaluations: Option<&Arc<EvalCache>>,
) -> Result<SelfPlay> {
    let Worker { config, game, .. } = worker;
    let selfplay = SelfPlayConfig { games: slots.len(), ..config.selfplay.clone() };
    let search = SearchConfig { cache_entries: 0, ..config.search.clone() };
    let config = Config { selfplay, search, ..config.clone() };
    let mut selfplay = SelfPlay::new(game, &config, network, slots, threads)?;
    if let Some(evaluations) = evaluations {
        selfplay.share_evaluations(evaluations)?;
    }
    Ok(selfplay)
}
