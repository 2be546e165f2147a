//! The trees of one thread, and its passes.

use super::limit::Clock;
use crate::backend::RowBudget;
use crate::error::Result;
use crate::searcher::Searcher;

/// Visits of a tree for each leaf of a pass, if the engine chooses: with fewer, virtual loss would determine the selection.
const VISITS_PER_LEAF: u64 = 16;

/// Trees that one searcher holds, in its first rows.
pub(super) struct Shard {
    pub searcher: Searcher,
    /// The number of trees.
    pub rows: usize,
    /// Visits of their roots.
    pub visits: u64,
}

/// How the passes of one call are made.
#[derive(Clone, Copy)]
pub(super) struct PassPlan<'a> {
    pub clock: &'a Clock<'a>,
    /// The most passes: 1 where there is one shard, since only other shards' threads would wait.
    pub passes: usize,
    /// L, 0 for as many as the visits allow.
    pub leaves: u32,
    /// Nodes that a tree has room for, and that one pass can add to it.
    pub room: usize,
    pub pass_nodes: usize,
}

/// What keeps a shard, or all shards, from another pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// The simulations that were begun are made.
    #[default]
    Done,
    /// The visits of the limit are reached.
    Limit,
    /// A tree has no room.
    Full,
    /// Nothing but the end of the call.
    Open,
}

/// What the passes of one call did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    pub simulations: u64,
    pub evaluations: u64,
    /// True if a tree was left out of a pass: its root may be proven.
    pub is_partial: bool,
    /// That of the shard that is farthest from its end.
    pub standing: Standing,
}

impl Made {
    /// Of two shards.
    pub fn and(self, other: Self) -> Self {
        Self {
            simulations: self.simulations + other.simulations,
            evaluations: self.evaluations + other.evaluations,
            is_partial: self.is_partial || other.is_partial,
            standing: self.standing.max(other.standing),
        }
    }
}

impl Shard {
    /// Makes passes until something keeps it from more. What it does depends on its own trees alone, so that slices of a search do what one
    /// search does.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn pass(&mut self, plan: PassPlan<'_>) -> Result<Made> {
        let mut made = Made::default();
        for _ in 0..plan.passes {
            if self.visits > 0 {
                if plan.clock.reaches(self.mean_visits()) {
                    return Ok(Made { standing: Standing::Limit, ..made });
                }
                if plan.clock.is_over() {
                    break;
                }
            }
            if self.largest()? + plan.pass_nodes > plan.room {
                return Ok(Made { standing: Standing::Full, ..made });
            }
            let leaves = match plan.leaves {
                0 => (self.mean_visits() / VISITS_PER_LEAF).max(1) as usize,
                leaves => leaves as usize,
            };
            let stats = self.searcher.pass(RowBudget { leaves, ..RowBudget::ALL })?;
            made.simulations += stats.simulations as u64;
            made.evaluations += stats.evaluations as u64;
            made.is_partial |= stats.rows < self.rows;
            self.visits += stats.simulations as u64;
            if stats.leaves == 0 {
                return Ok(made);
            }
        }
        Ok(Made { standing: Standing::Open, ..made })
    }

    /// Mean visits of a tree.
    pub fn mean_visits(&self) -> u64 {
        self.visits / self.rows as u64
    }

    /// Nodes of the largest tree.
    pub fn largest(&mut self) -> Result<usize> {
        (0..self.rows).try_fold(0, |largest, row| Ok(largest.max(self.searcher.backend.num_nodes(row)?)))
    }
}
