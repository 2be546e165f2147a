//! The trees of one thread, and its passes.

use super::limit::Clock;
use crate::backend::plan::BackendPlan;
use crate::backend::{AnyGame, Placement, PlyPlan, RowBudget, make};
use crate::config::Algorithm;
use crate::error::{Error, Result};
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::searcher::{SearchRequest, Searcher};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Visits of a tree for each leaf of a pass, if the engine chooses: with fewer, virtual loss would determine the selection.
const VISITS_PER_LEAF: u64 = 16;
/// Simulations of PUCT that are begun at once: more than any tree has.
const UNLIMITED: u32 = 1 << 30;
/// Simulations of the first sequential halving, if the end is not known or far. Each further one has as many as all before it.
const FIRST_HALVING: u64 = 64;
/// Maximum number of simulations of one sequential halving.
const LARGEST_HALVING: u64 = 1 << 14;
/// How much larger a full tree becomes.
const GROWTH: usize = 4;
/// Maximum number of nodes of a tree.
const MAX_NODES: usize = 1 << 28;
/// Maximum number of visits of a root, beyond which f32 sums of values lose what a visit adds.
const MAX_VISITS: u64 = 1 << 24;
/// Bytes a second of larger trees that are made, before the first ones are.
const GROWN_PER_SECOND: f64 = 5e8;

/// A tree of a shard.
#[derive(Clone)]
struct Row {
    /// The key of its random numbers.
    key: RowKey,
    /// Sums of values that arrays which grew do not hold. `[P]`
    carried: Vec<f32>,
}

/// Trees that one searcher holds, in its first rows.
pub(super) struct Shard {
    pub searcher: Searcher,
    game: Arc<dyn AnyGame>,
    placement: Placement,
    /// The arrays.
    plan: BackendPlan,
    rows: Vec<Row>,
    /// Visits of the roots.
    visits: u64,
    /// Where the trees stand in their simulations.
    budget: BudgetState,
    /// Bytes a second of the last trees that were made in place of smaller ones.
    grown_per_second: f64,
}

/// Where trees stand in the simulations that are begun at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetState {
    /// Their roots are new.
    New,
    /// Some that were begun are left.
    Running,
    /// None is left.
    Spent,
}

/// How the passes of one call are made.
#[derive(Clone, Copy)]
pub(super) struct PassPlan<'a> {
    pub clock: &'a Clock<'a>,
    /// The time after which no further pass is made; the first one of a call in any case.
    pub until: Option<Instant>,
    /// L, 0 for as many as the visits allow.
    pub leaves: u32,
    /// Nodes that the memory limit allows a tree, with those of the old arrays and of their copy while it grows.
    pub max_nodes: usize,
}

impl PassPlan<'_> {
    /// True after the time until which passes are made.
    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Why a shard, or all shards, make no further pass. Of two shards the greater counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PassBlocker {
    /// All that the algorithm looks at is evaluated, or a root is proven.
    #[default]
    Done,
    /// The visits of the limit are reached.
    Limit,
    /// A tree has as many nodes as the memory limit allows, or [`MAX_VISITS`].
    Memory,
    /// The time would be over before a tree has become larger.
    Time,
    /// Nothing but the end of the call.
    Open,
}

/// What the passes of one call did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PassCounts {
    pub simulations: u64,
    pub evaluations: u64,
    /// True if the root of the only tree is proven.
    pub is_proven: bool,
    /// That of the shard that is farthest from its end.
    pub blocker: PassBlocker,
}

impl PassCounts {
    /// Of two shards.
    pub fn and(self, other: Self) -> Self {
        Self {
            simulations: self.simulations + other.simulations,
            evaluations: self.evaluations + other.evaluations,
            is_proven: self.is_proven || other.is_proven,
            blocker: self.blocker.max(other.blocker),
        }
    }
}

impl Shard {
    /// `rows` trees without roots in the arrays of `plan`.
    pub fn new(
        game: &Arc<dyn AnyGame>,
        searcher: Searcher,
        placement: Placement,
        plan: BackendPlan,
        rows: usize,
    ) -> Self {
        let row = Row { key: RowKey::default(), carried: vec![0.0; game.sizes().num_players] };
        let rows = vec![row; rows];
        let (budget, grown_per_second) = (BudgetState::New, GROWN_PER_SECOND);
        Self { searcher, game: game.clone(), placement, plan, rows, visits: 0, budget, grown_per_second }
    }

    /// Begins a new tree.
    ///
    /// # Errors
    /// Those of the device.
    pub fn set_root(&mut self, row: usize, position: &SearchRequest) -> Result<()> {
        self.searcher.backend.set_root(row, &position.state, &position.history)
    }

    /// Restricts a root, which was just set, to some of its actions.
    ///
    /// # Errors
    /// Those of the device.
    pub fn restrict_root(&mut self, row: usize, actions: &[u16]) -> Result<()> {
        let backend = self.searcher.backend.as_mut();
        let mut root = backend.snapshot(row, 1)?;
        root.restrict_root(actions);
        backend.set_root_tree(row, &root)
    }

    /// Moves a root along `actions` to `position` and keeps the tree below it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn advance(&mut self, row: usize, actions: &[u16], position: &SearchRequest) -> Result<()> {
        self.searcher.backend.advance(row, actions, &position.state, &position.history)
    }

    /// The random numbers of a tree with a new root.
    pub fn set_key(&mut self, row: usize, key: RowKey) {
        let of = &mut self.rows[row];
        of.key = key;
        of.carried.fill(0.0);
        self.budget = BudgetState::New;
    }

    /// Makes passes until something keeps it from more; the first of a tree without visits in any case. What it does depends on its own
    /// trees alone, so that slices of a search do what one search does.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn search(&mut self, plan: PassPlan<'_>) -> Result<PassCounts> {
        let mut made = PassCounts::default();
        let mut is_first = true;
        if self.visits > 0 && matches!(self.budget, BudgetState::New) && !self.is_by_turns() {
            // Where no pass follows, the value and the inherited visits are those of the kept tree's root all the same.
            self.begin(0)?;
        }
        loop {
            if self.visits > 0 || !is_first {
                // A turn is decided as a whole.
                if !self.is_by_turns() && plan.clock.reaches(self.mean_visits()) {
                    return Ok(PassCounts { blocker: PassBlocker::Limit, ..made });
                }
                if plan.clock.is_over() || (!is_first && plan.is_late()) {
                    return Ok(PassCounts { blocker: PassBlocker::Open, ..made });
                }
                if self.mean_visits() >= MAX_VISITS {
                    return Ok(PassCounts { blocker: PassBlocker::Memory, ..made });
                }
            }
            if let Some(blocker) = self.make_room(&plan)? {
                return Ok(PassCounts { blocker, ..made });
            }
            let simulations = self.next_simulations(plan.clock);
            match self.budget {
                BudgetState::Running => {}
                BudgetState::Spent if self.loses_values() => {
                    self.carry_values(|shard| shard.begin(simulations))?
                }
                BudgetState::New | BudgetState::Spent => self.begin(simulations)?,
            }
            self.budget = BudgetState::Running;
            let leaves = match plan.leaves {
                0 => (self.mean_visits() / VISITS_PER_LEAF).max(1) as usize,
                leaves => leaves as usize,
            };
            is_first = false;
            let stats = self.searcher.pass(RowBudget { leaves, ..RowBudget::ALL })?;
            made.simulations += stats.simulations as u64;
            made.evaluations += stats.evaluations as u64;
            self.visits += stats.simulations as u64;
            if stats.rows < self.rows.len() && self.is_proven()? {
                return Ok(PassCounts { is_proven: true, ..made });
            }
            if stats.leaves == 0 {
                self.budget = BudgetState::Spent;
                if self.is_by_turns() {
                    return Ok(made);
                }
            }
        }
    }

    /// True where rows have no trees.
    fn is_by_turns(&self) -> bool {
        self.plan.params.algorithm == Algorithm::Afterstate
    }

    /// True where a backend that begins again at the same roots knows the value sum of the player to move alone.
    fn loses_values(&self) -> bool {
        let sizes = self.game.sizes();
        !self.is_by_turns() && sizes.num_players > 1 && !sizes.is_zero_sum_pair()
    }

    /// Begins `simulations` more simulations in every tree.
    fn begin(&mut self, simulations: u32) -> Result<()> {
        for (index, row) in self.rows.iter().enumerate() {
            let plan = PlyPlan { simulations, exploration: Exploration::Plain, key: row.key };
            self.searcher.backend.begin(index, plan)?;
        }
        Ok(())
    }

    /// The simulations of each tree that are begun next.
    fn next_simulations(&self, clock: &Clock<'_>) -> u32 {
        if self.plan.params.algorithm != Algorithm::Gumbel {
            return UNLIMITED;
        }
        let visits = self.mean_visits();
        // A GPU keeps the schedule of every number of simulations: kept trees have powers of two there.
        let is_any = visits == 0 || self.placement.devices.is_cpu();
        match clock.known_visits(visits) {
            Some(left) if is_any && left <= LARGEST_HALVING => left.max(1) as u32,
            _ => visits.next_power_of_two().clamp(FIRST_HALVING, LARGEST_HALVING) as u32,
        }
    }

    /// True if the root is proven: that of a position's only tree, as [`crate::search::SearchParams`] has no bounds for deals of hidden
    /// cards.
    fn is_proven(&mut self) -> Result<bool> {
        let mut summary = RootSummary::default();
        self.searcher.backend.summarise(0, &mut summary)?;
        Ok(summary.proven)
    }

    /// Makes room for the next pass, or returns why there is none.
    fn make_room(&mut self, plan: &PassPlan<'_>) -> Result<Option<PassBlocker>> {
        let mut needed = 0;
        for row in 0..self.rows.len() {
            needed = needed.max(self.searcher.backend.num_nodes(row)?);
        }
        let nodes_for = |leaves| BackendPlan::nodes_for(leaves, self.searcher.backend.sizes());
        // A tree that grew in a sequential halving would begin it again.
        let is_known = plan.clock.known_visits(self.mean_visits()).is_some();
        let halving = match (self.budget, self.plan.params.algorithm) {
            (BudgetState::New | BudgetState::Spent, Algorithm::Gumbel) if is_known => {
                self.next_simulations(plan.clock)
            }
            _ => 0,
        };
        let wanted = needed + nodes_for(self.plan.params.leaves + halving);
        needed += nodes_for(self.plan.params.leaves);
        // While trees grow, the old ones and a copy of them exist besides the new ones.
        let limit = plan.max_nodes.saturating_sub(2 * self.plan.nodes).min(MAX_NODES);
        if wanted <= limit {
            needed = wanted;
        }
        if needed <= self.plan.nodes {
            return Ok(None);
        }
        if needed > limit {
            return Ok(Some(PassBlocker::Memory));
        }
        let next = (GROWTH * self.plan.nodes).min(limit);
        // Where the step after the next one would be cut short, a tree grows to the limit at once.
        let sizes = if (GROWTH + 2) * next > plan.max_nodes { [limit, next] } else { [next; 2] };
        let growths = sizes.map(|nodes| sized(self.plan, needed.max(nodes), &*self.game));
        let bytes_of =
            |plan: &BackendPlan| plan.row_bytes(&self.game.sizes(), self.game.state_size()) * self.rows.len();
        let is_in_time = |growth: &BackendPlan| {
            let seconds = bytes_of(growth) as f64 / self.grown_per_second;
            !plan.clock.ends_within(Duration::from_secs_f64(seconds))
        };
        let Some(larger) = growths.into_iter().find(is_in_time) else { return Ok(Some(PassBlocker::Time)) };
        let (bytes, started) = (bytes_of(&larger), Instant::now());
        let blocker = self.enlarge(larger, plan)?;
        if blocker.is_none() {
            self.grown_per_second = bytes as f64 / started.elapsed().as_secs_f64().max(1e-6);
        }
        Ok(blocker)
    }

    /// Gives every tree the arrays of `larger`, or leaves all as they are if the search is over in between.
    fn enlarge(&mut self, larger: BackendPlan, plan: &PassPlan<'_>) -> Result<Option<PassBlocker>> {
        let rows = 0..self.rows.len();
        let mut snapshots = Vec::new();
        for row in rows.clone() {
            if plan.clock.is_over() {
                return Ok(Some(PassBlocker::Open));
            }
            snapshots.push(self.searcher.backend.snapshot(row, self.plan.nodes)?);
        }
        let mut backend = match make(self.game.as_ref(), larger, self.placement, 1) {
            Err(Error::Memory { .. }) => return Ok(Some(PassBlocker::Memory)),
            made => made?,
        };
        for (row, snapshot) in rows.zip(&snapshots) {
            if plan.clock.is_over() {
                return Ok(Some(PassBlocker::Open));
            }
            backend.set_root_tree(row, snapshot)?;
        }
        let exchange = |shard: &mut Self| {
            shard.searcher.set_backend(backend)?;
            shard.plan = larger;
            shard.begin(0)
        };
        let exchanged = match self.budget {
            BudgetState::Running | BudgetState::Spent if self.loses_values() => self.carry_values(exchange),
            _ => exchange(self),
        };
        match exchanged {
            // The network does not fit beside the larger trees, and the smaller ones stay.
            Err(Error::Memory { .. }) => return Ok(Some(PassBlocker::Memory)),
            exchanged => exchanged?,
        }
        self.budget = BudgetState::Spent;
        Ok(None)
    }

    /// Does what begins further simulations at the same roots, and keeps the values that are [lost](Self::loses_values) by it.
    fn carry_values(&mut self, begin: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let before = self.values()?;
        begin(self)?;
        let after = self.values()?;
        for (row, (before, after)) in self.rows.iter_mut().zip(before.iter().zip(&after)) {
            row.carried
                .iter_mut()
                .zip(before.iter().zip(after))
                .for_each(|(sum, (old, new))| *sum += old - new);
        }
        Ok(())
    }

    /// The sum of the values backed up to each root, without what is carried. `[rows][P]`
    fn values(&mut self) -> Result<Vec<Vec<f32>>> {
        let mut summary = RootSummary::default();
        let value_of = |row| {
            self.searcher.backend.summarise(row, &mut summary)?;
            let visits = if summary.proven { 0.0 } else { node_visits(&summary) };
            Ok(summary.value.iter().map(|value| value * visits).collect())
        };
        (0..self.rows.len()).map(value_of).collect()
    }

    /// Nodes of all trees.
    ///
    /// # Errors
    /// Those of the device.
    pub fn nodes(&mut self) -> Result<usize> {
        (0..self.rows.len()).try_fold(0, |sum, row| Ok(sum + self.searcher.backend.num_nodes(row)?))
    }

    /// Reads the visits of the roots.
    ///
    /// # Errors
    /// Those of the device.
    pub fn read_visits(&mut self) -> Result<()> {
        let parts = self.parts()?;
        self.visits = parts.iter().flat_map(|part| &part.visits).map(|&visits| visits as u64).sum();
        Ok(())
    }

    /// Mean visits of a tree.
    fn mean_visits(&self) -> u64 {
        self.visits / self.rows.len() as u64
    }

    /// The result of every tree. `[rows]`
    ///
    /// # Errors
    /// Those of the device.
    pub fn parts(&mut self) -> Result<Vec<RootSummary>> {
        let mut parts = vec![RootSummary::default(); self.rows.len()];
        for (index, (row, part)) in self.rows.iter().zip(&mut parts).enumerate() {
            self.searcher.backend.summarise(index, part)?;
            if !part.proven {
                let visits = node_visits(part);
                part.value.iter_mut().zip(&row.carried).for_each(|(value, sum)| *value += sum / visits);
            }
        }
        Ok(parts)
    }
}

/// `plan` with T = `nodes`, a quarter of which is free after a move: kept trees are trimmed to the rest.
pub(super) fn sized(plan: BackendPlan, nodes: usize, game: &dyn AnyGame) -> BackendPlan {
    let mut plan = BackendPlan { nodes, ..plan };
    plan.params.simulations = (nodes / 4 / (1 + game.sizes().max_chance_run)) as u32;
    plan
}

/// The visits of a root, its own evaluation included.
fn node_visits(summary: &RootSummary) -> f32 {
    1.0 + summary.visits.iter().sum::<i32>() as f32
}
