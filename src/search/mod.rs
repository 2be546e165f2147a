//! Search: one simulation is select -> evaluate -> expand -> backup, for all rows at once.
//!
//! [`simulate`] is the whole of it. Sees only trees and a network's outputs; which game it is, and where the arrays live,
//! is the [`Backend`]'s business. The rules, in the files below:
//!
//! - [`select`]: PUCT and Gumbel on the way down one row.
//! - [`expand`]: priors and values into a new node.
//! - [`backup`]: values and proofs on the way up.
//! - [`root`]: noise, budgets, sequential halving, policy targets.
//! - [`reuse`]: keeping the played subtree, trimming to T nodes.
//! - [`eval_cache`]: no position evaluated twice.
//! - [`mod@reference`]: all of it once more, plain and slow, to check the others.

pub mod select;
pub mod expand;
pub mod backup;
pub mod root;
pub mod reuse;
pub mod eval_cache;
pub mod reference;

use crate::backend::device_selfplay::Copied;
use crate::backend::{Backend, PassStats, RowBudget};
use crate::config::{Algorithm, ChanceRule, Devices, Fpu, SearchConfig, SearchEngine};
use crate::error::Result;
use crate::game::Sizes;
use crate::net::Network;
use std::time::Instant;

/// How edges are chosen; see [`Algorithm`].
pub type Rule = Algorithm;

/// What a search needs to know of the configuration, resolved for one game.
#[derive(Clone, Copy, Debug)]
pub struct SearchParams {
    /// Where games and trees are.
    pub devices: Devices,
    /// Which implementation searches, on the CPU.
    pub engine: SearchEngine,
    /// PUCT or Gumbel.
    pub rule: Rule,
    /// S.
    pub simulations: u32,
    /// L.
    pub leaves: usize,
    /// c_init of PUCT.
    pub c_init: f32,
    /// c_base of PUCT.
    pub c_base: f32,
    /// First-play urgency of PUCT.
    pub fpu: Fpu,
    /// Its reduction.
    pub fpu_reduction: f32,
    /// Share of Dirichlet noise.
    pub dirichlet_epsilon: f32,
    /// Dirichlet alpha, 0 = 10 / legal actions.
    pub dirichlet_alpha: f32,
    /// The most actions that sequential halving considers.
    pub max_num_considered_actions: usize,
    /// c_visit of Gumbel.
    pub c_visit: f32,
    /// c_scale of Gumbel, for Q mapped to [0, 1].
    pub c_scale: f32,
    /// Whether proofs are backed up.
    pub solver: Solver,
    /// Share of `simulations` up to which inherited visits count.
    pub inherit_cap: f32,
    /// Fewest new simulations a ply.
    pub min_simulations: u32,
    /// How descents pass chance nodes.
    pub chance: ChanceRule,
}

/// Whether proven values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// MCTS-Solver: two players, zero-sum, no chance, nothing hidden.
    On,
    /// Every value is an estimate.
    Off,
}

impl SearchParams {
    /// The parameters of a configuration for a game of these sizes, on the CPU. The solver is on where it is asked for and the game
    /// allows it.
    pub fn new(config: &SearchConfig, sizes: &Sizes) -> Self {
        let solvable =
            sizes.num_players == 2 && sizes.zero_sum && sizes.num_chance == 0 && !sizes.hidden_information;
        Self {
            devices: Devices::default(),
            engine: config.engine,
            rule: config.algorithm,
            simulations: config.simulations,
            leaves: config.leaves as usize,
            c_init: config.c_init,
            c_base: config.c_base,
            fpu: config.fpu,
            fpu_reduction: config.fpu_reduction,
            dirichlet_epsilon: config.dirichlet_epsilon,
            dirichlet_alpha: config.dirichlet_alpha,
            max_num_considered_actions: (config.max_num_considered_actions as usize).min(sizes.tree_edges()),
            c_visit: config.c_visit,
            c_scale: config.c_scale,
            solver: if config.solver && solvable { Solver::On } else { Solver::Off },
            inherit_cap: config.inherit_cap,
            min_simulations: config.min_simulations,
            chance: config.chance,
        }
    }
}

/// Where the time of passes went, in seconds, and what they did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassClock {
    /// Selection, new states and observations.
    pub select: f64,
    /// The network.
    pub forward: f64,
    /// Priors and values into new nodes.
    pub expand: f64,
    /// Backups.
    pub backup: f64,
    /// Passes.
    pub passes: u64,
    /// Simulations finished (new ones, in all rows).
    pub simulations: u64,
    /// Positions the network evaluated.
    pub evaluations: u64,
    /// Leaves answered without the network: by the evaluation cache, or by another leaf of the same pass.
    pub cached: u64,
    /// Sum over passes of the rows that they went through.
    pub visited_rows: u64,
    /// Sum over passes of those that had nothing to do.
    pub idle_rows: u64,
    /// Plies decided by a search.
    pub plies: u64,
    /// Sum over simulations of the leaf's depth.
    pub depth_sum: u64,
    /// Deepest leaf.
    pub depth_max: u64,
    /// Bytes copied between host and device, both ways.
    pub copied: Copied,
}

impl PassClock {
    /// Share of the leaves that need an evaluation which were answered without the network; None before the first.
    pub fn cache_hit_rate(&self) -> Option<f64> {
        let asked = self.evaluations + self.cached;
        (asked > 0).then(|| self.cached as f64 / asked as f64)
    }

    /// Counts `passes` passes.
    fn count(&mut self, selected: &PassStats, passes: u32) {
        self.passes += u64::from(passes);
        self.evaluations += selected.evaluations as u64;
        self.cached += selected.cached as u64;
        self.visited_rows += selected.visited as u64;
        self.idle_rows += (selected.visited - selected.rows) as u64;
        self.simulations += selected.simulations as u64;
        self.depth_sum += selected.depth_sum;
        self.depth_max = self.depth_max.max(selected.depth_max);
    }

    /// Adds another clock's counts.
    pub fn add(&mut self, other: &Self) {
        self.select += other.select;
        self.forward += other.forward;
        self.expand += other.expand;
        self.backup += other.backup;
        self.passes += other.passes;
        self.simulations += other.simulations;
        self.evaluations += other.evaluations;
        self.cached += other.cached;
        self.visited_rows += other.visited_rows;
        self.idle_rows += other.idle_rows;
        self.plies += other.plies;
        self.depth_sum += other.depth_sum;
        self.depth_max = self.depth_max.max(other.depth_max);
        self.copied.inside += other.copied.inside;
        self.copied.total += other.copied.total;
    }
}

/// A watch whose every reading ends one part of a pass and begins the next: reading a clock takes as long as much of a simulation.
pub struct Laps(Instant);

impl Laps {
    /// The first part begins.
    pub fn begin() -> Self {
        Self(Instant::now())
    }

    /// The seconds of the part that ends.
    fn end(&mut self) -> f64 {
        let began = std::mem::replace(&mut self.0, Instant::now());
        (self.0 - began).as_secs_f64()
    }
}

/// The network's input and output of one pass, grown once and kept.
#[derive(Clone, Debug, Default)]
pub struct PassBuffers {
    /// The most leaves there is room for.
    pub(crate) most: usize,
    /// `[M, F]`
    pub(crate) obs: Vec<f32>,
    /// `[M, A]`
    logits: Vec<f32>,
    /// `[M, P]`
    values: Vec<f32>,
}

impl PassBuffers {
    /// Room for `most` leaves.
    pub fn new(sizes: &Sizes, most: usize) -> Self {
        Self {
            most,
            obs: vec![0.0; most * sizes.obs.len()],
            logits: vec![0.0; most * sizes.num_actions],
            values: vec![0.0; most * sizes.num_players],
        }
    }

    /// Bytes for `most` leaves.
    pub fn bytes(sizes: &Sizes, most: usize) -> usize {
        4 * most * (sizes.obs.len() + sizes.num_actions + sizes.num_players)
    }
}

/// One pass: every row that has simulations left makes up to L of them. Returns how many leaves there were; 0 means that
/// every row is done.
///
/// # Errors
/// What the network or the backend says.
pub fn simulate(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    clock: &mut PassClock,
) -> Result<usize> {
    simulate_many(backend, network, buffers, clock, 1)
}

/// `passes` passes, without a word between them where the backend can. Returns how many leaves there were.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_many(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    clock: &mut PassClock,
    passes: u32,
) -> Result<usize> {
    if let Some(selected) = at_once(backend, network, buffers, clock, passes)? {
        return Ok(selected.leaves);
    }
    let mut leaves = 0;
    for _ in 0..passes {
        leaves += staged_pass(backend, network, buffers, clock, RowBudget::ALL)?.leaves;
    }
    Ok(leaves)
}

/// One pass as far as `reach` says, where the backend can go less far than through all rows; what it selected.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_within(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    clock: &mut PassClock,
    reach: RowBudget,
) -> Result<PassStats> {
    match at_once(backend, network, buffers, clock, 1)? {
        Some(selected) => Ok(selected),
        None => staged_pass(backend, network, buffers, clock, reach),
    }
}

/// All passes in one call, where the backend has a network or this one gives everything the same answer.
fn at_once(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    clock: &mut PassClock,
    passes: u32,
) -> Result<Option<PassStats>> {
    let mut laps = Laps::begin();
    let selected = match backend.simulate_resident(passes)? {
        None if !network.needs_observations() => same_answer(backend, network, buffers, passes)?,
        selected => selected,
    };
    if let Some(selected) = &selected {
        clock.select += laps.end();
        clock.count(selected, passes);
    }
    Ok(selected)
}

/// The same with a network that gives everything the same answer.
fn same_answer(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    passes: u32,
) -> Result<Option<PassStats>> {
    let sizes = *backend.sizes();
    let logits = &mut buffers.logits[..sizes.num_actions];
    let values = &mut buffers.values[..sizes.num_players];
    network.forward(&buffers.obs[..sizes.obs.len()], logits, values)?;
    backend.simulate_constant_net(logits, values, passes)
}

/// The beginning of a pass that is led through its parts: what was selected.
pub fn begin_pass(backend: &mut dyn Backend, clock: &mut PassClock) -> PassStats {
    let mut laps = Laps::begin();
    let selected = backend.select(RowBudget::ALL);
    clock.select += laps.end();
    selected
}

/// The end of a pass that `selected` so much, with the network's answers: `logits [M, A]`, `values [M, P]`. It begins where
/// `laps` was read last.
///
/// # Errors
/// What the backend says.
pub fn end_pass(
    backend: &mut dyn Backend,
    selected: &PassStats,
    (logits, values): (&[f32], &[f32]),
    clock: &mut PassClock,
    laps: &mut Laps,
) -> Result<()> {
    backend.expand(logits, values);
    clock.expand += laps.end();
    backend.backup();
    backend.check()?;
    clock.backup += laps.end();
    clock.count(selected, 1);
    Ok(())
}

/// One pass led through its parts.
fn staged_pass(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    buffers: &mut PassBuffers,
    clock: &mut PassClock,
    reach: RowBudget,
) -> Result<PassStats> {
    let sizes = *backend.sizes();
    let mut laps = Laps::begin();
    let selected = backend.select(reach);
    let m = selected.evaluations;
    let obs = &mut buffers.obs[..m * sizes.obs.len()];
    if network.needs_observations() {
        backend.observe(obs);
    }
    clock.select += laps.end();
    let logits = &mut buffers.logits[..m * sizes.num_actions];
    let values = &mut buffers.values[..m * sizes.num_players];
    if m > 0 {
        network.forward(obs, logits, values)?;
    }
    clock.forward += laps.end();
    end_pass(backend, &selected, (logits, values), clock, &mut laps)?;
    backend.act()?;
    Ok(selected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_nothing_to_do_are_counted() {
        let mut clock = PassClock::default();
        clock.count(&PassStats { visited: 7, rows: 5, ..PassStats::default() }, 1);
        clock.count(&PassStats { visited: 20, rows: 20, ..PassStats::default() }, 2);
        let mut sum = clock;
        sum.add(&clock);
        assert_eq!((clock.passes, clock.visited_rows, clock.idle_rows), (3, 27, 2));
        assert_eq!((sum.visited_rows, sum.idle_rows), (54, 4));
    }
}
