//! Passes, whole or in two parts.

use super::buffers::PassBuffers;
use super::metrics::{PassMetrics, StageTimer};
use crate::backend::{Backend, HeadsRead, RowBudget};
use crate::error::Result;
use crate::game::Sizes;
use crate::net::Network;
use crate::search::PassStats;

/// Makes `passes` passes over all rows, without a return to the host between them where the backend can. Returns the number of leaves; 0
/// means that every row is done.
///
/// # Errors
/// Those of the network and the backend.
pub fn simulate_many(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    metrics: &mut PassMetrics,
    passes: u32,
) -> Result<usize> {
    if let Some(stats) = unstaged_passes(backend, network, buffers, metrics, passes)? {
        return Ok(stats.leaves);
    }
    let mut leaves = 0;
    for _ in 0..passes {
        leaves += staged_pass(backend, network, buffers, metrics, RowBudget::ALL)?.leaves;
    }
    Ok(leaves)
}

/// Makes one pass over the rows of `budget`; a backend that cannot visit a part of its rows visits all. Returns the counts of its selection.
///
/// # Errors
/// As [`simulate_many`].
pub fn simulate_within(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    metrics: &mut PassMetrics,
    budget: RowBudget,
) -> Result<PassStats> {
    match unstaged_passes(backend, network, buffers, metrics, 1)? {
        Some(stats) => Ok(stats),
        None => staged_pass(backend, network, buffers, metrics, budget),
    }
}

/// One pass, stage after stage.
fn staged_pass(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    metrics: &mut PassMetrics,
    budget: RowBudget,
) -> Result<PassStats> {
    let sizes = *backend.sizes();
    let mut timer = StageTimer::start();
    let stats = backend.select(budget)?;
    let m = stats.evaluations;
    let obs = &mut buffers.obs[..m * sizes.obs.len()];
    if network.needs_observations() {
        backend.observe(obs)?;
    }
    metrics.select += timer.lap();
    let logits = &mut buffers.logits[..m * sizes.num_actions];
    let values = &mut buffers.values[..m * sizes.num_players];
    if m > 0 {
        match backend.heads_read() {
            HeadsRead::All => network.forward(obs, logits, values)?,
            HeadsRead::Values => network.values(obs, logits, values)?,
        }
    }
    metrics.forward += timer.lap();
    end_pass(backend, &stats, (logits, values), metrics, &mut timer)?;
    if let Some(device) = backend.device() {
        device.act()?;
    }
    Ok(stats)
}

/// All passes in one call, where the backend has the resident network or the network has one output for all leaves; None
/// elsewhere.
fn unstaged_passes(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    metrics: &mut PassMetrics,
    passes: u32,
) -> Result<Option<PassStats>> {
    let mut timer = StageTimer::start();
    let sizes = *backend.sizes();
    let Some(device) = backend.device() else { return Ok(None) };
    let stats = match device.simulate_resident(passes)? {
        None if !network.needs_observations() => {
            let (logits, values) = constant_output(&sizes, network, buffers)?;
            Some(device.simulate_constant_net(logits, values, passes)?)
        }
        stats => stats,
    };
    if let Some(stats) = &stats {
        metrics.select += timer.lap();
        metrics.count(stats, passes);
    }
    Ok(stats)
}

/// The output of a network that has one output for all leaves: logits `[A]`, values `[P]`.
fn constant_output<'b>(
    sizes: &Sizes,
    network: &mut dyn Network,
    buffers: &'b mut PassBuffers,
) -> Result<(&'b [f32], &'b [f32])> {
    let logits = &mut buffers.logits[..sizes.num_actions];
    let values = &mut buffers.values[..sizes.num_players];
    network.forward(&buffers.obs[..sizes.obs.len()], logits, values)?;
    Ok((logits, values))
}

/// Launches `passes` passes in the game slots attached to `backend`, without waiting for them. False where it cannot make whole passes
/// with this network.
///
/// # Errors
/// As [`simulate_many`].
pub fn launch_passes(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    passes: u32,
) -> Result<bool> {
    let sizes = *backend.sizes();
    let Some(device) = backend.device() else { return Ok(false) };
    if device.launch_passes(None, passes)? {
        return Ok(true);
    }
    if network.needs_observations() {
        return Ok(false);
    }
    let output = constant_output(&sizes, network, buffers)?;
    device.launch_passes(Some(output), passes)
}

/// Selects in all rows: the first half of a pass whose leaves are evaluated together with those of other backends.
///
/// # Errors
/// Those of the backend.
pub fn begin_pass(backend: &mut dyn Backend, metrics: &mut PassMetrics) -> Result<PassStats> {
    let mut timer = StageTimer::start();
    let stats = backend.select(RowBudget::ALL)?;
    metrics.select += timer.lap();
    Ok(stats)
}

/// Expands and backs up the leaves that a selection found, with the network's outputs `logits [M, A]` and `values [M, P]`. The time of
/// expansion starts at `timer`'s last reading.
///
/// # Errors
/// Those of the backend.
pub fn end_pass(
    backend: &mut dyn Backend,
    stats: &PassStats,
    (logits, values): (&[f32], &[f32]),
    metrics: &mut PassMetrics,
    timer: &mut StageTimer,
) -> Result<()> {
    backend.expand(logits, values)?;
    metrics.expand += timer.lap();
    backend.backup()?;
    metrics.backup += timer.lap();
    metrics.count(stats, 1);
    Ok(())
}
