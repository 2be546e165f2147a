//! Double-buffered passes: while the network, on another device, evaluates the batch of one group of shards, all threads work on
//! the trees of the other group.

use super::polls::PollEnd;
use super::shard::Shard;
use crate::backend::RootCache;
use crate::error::Result;
use crate::net::DoubleBufferedNetwork;
use crate::net::double_buffer::{NetOutputs, ObsBuffer};
use rayon::prelude::*;
use std::time::Instant;

/// Up to `passes` passes in every shard: none begins after `is_over`.
///
/// # Errors
/// Those of the network and of the backends.
pub(super) fn poll(
    shards: &mut [Shard],
    network: &mut dyn DoubleBufferedNetwork,
    cache: &RootCache,
    passes: u32,
    is_over: &dyn Fn() -> bool,
) -> Result<PollEnd> {
    let before = network.copied();
    let (first, second) = shards.split_at_mut(shards.len() / 2);
    let (mut first, mut second) = (ShardGroup::new(0, first), ShardGroup::new(1, second));
    let mut poll_end = PollEnd::Passes;
    for pass in 0..passes {
        if pass == 0 {
            first.begin(network)?;
        }
        second.begin(network)?;
        first.end(network, cache)?;
        if pass + 1 < passes && is_over() {
            poll_end = PollEnd::Time;
        } else if pass + 1 < passes {
            first.begin(network)?;
        }
        second.end(network, cache)?;
        if poll_end == PollEnd::Time {
            break;
        }
    }
    // All of these copies are within passes.
    let bytes = network.copied() - before;
    let copied = &mut shards[0].searcher.metrics.copied;
    (copied.inside, copied.total) = (copied.inside + bytes, copied.total + bytes);
    Ok(poll_end)
}

/// The shards whose leaves are evaluated as one batch.
struct ShardGroup<'a> {
    batch: usize,
    shards: &'a mut [Shard],
    /// M: leaves that the network evaluates.
    num_evals: usize,
}

impl<'a> ShardGroup<'a> {
    fn new(batch: usize, shards: &'a mut [Shard]) -> Self {
        Self { batch, shards, num_evals: 0 }
    }

    /// Selects in all shards and starts the evaluation of their leaves.
    fn begin(&mut self, network: &mut dyn DoubleBufferedNetwork) -> Result<()> {
        let counts = self.shards.par_iter_mut().map(|shard| shard.searcher.begin_pass());
        self.num_evals = counts.sum::<Result<usize>>()?;
        if self.num_evals == 0 {
            return Ok(());
        }
        observe(self.shards, network.input_buffer(self.batch, self.num_evals)?)?;
        network.start(self.batch)
    }

    /// Waits for the evaluations, and expands, backs up and plays in all shards.
    fn end(&mut self, network: &mut dyn DoubleBufferedNetwork, cache: &RootCache) -> Result<()> {
        if self.num_evals == 0 {
            return end(self.shards, NetOutputs { logits: &[], values: &[] }, cache);
        }
        let start = Instant::now();
        let outputs = network.finish(self.batch)?;
        // All threads are idle during the wait.
        let waited = start.elapsed().as_secs_f64() * rayon::current_num_threads() as f64;
        self.shards[0].searcher.metrics.forward += waited;
        end(self.shards, outputs, cache)
    }
}

/// Leaves of all shards that need an evaluation.
fn num_evals(shards: &[Shard]) -> usize {
    shards.iter().map(|shard| shard.searcher.num_evaluations()).sum()
}

/// Writes the observations of all shards into `buffer`, one shard after the other.
fn observe(shards: &mut [Shard], buffer: ObsBuffer<'_>) -> Result<()> {
    if let [shard] = shards {
        return shard.searcher.observe(buffer);
    }
    let (left, right) = shards.split_at_mut(shards.len() / 2);
    let obs_len = left[0].game.sizes().obs.len();
    let (left_buffer, right_buffer) = buffer.split_at(num_evals(left) * obs_len);
    let (first, second) = rayon::join(|| observe(left, left_buffer), || observe(right, right_buffer));
    first.and(second)
}

/// Ends the pass in all shards with their evaluations, one shard after the other.
fn end(shards: &mut [Shard], outputs: NetOutputs<'_>, cache: &RootCache) -> Result<()> {
    if let [shard] = shards {
        shard.searcher.end_pass(outputs)?;
        return shard.after_pass(cache);
    }
    let (left, right) = shards.split_at_mut(shards.len() / 2);
    let sizes = left[0].game.sizes();
    let leaves = num_evals(left);
    let (left_logits, right_logits) = outputs.logits.split_at(leaves * sizes.num_actions);
    let (left_values, right_values) = outputs.values.split_at(leaves * sizes.num_players);
    let (first, second) = rayon::join(
        || end(left, NetOutputs { logits: left_logits, values: left_values }, cache),
        || end(right, NetOutputs { logits: right_logits, values: right_values }, cache),
    );
    first.and(second)
}
