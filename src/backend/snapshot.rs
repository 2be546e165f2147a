//! Trees apart from any backend.

use crate::tree::{ROOT, Tree};
use std::cmp::Ordering;

/// One tree with its states.
pub struct TreeSnapshot {
    /// The tree, of one row.
    pub tree: Tree,
    /// `[nodes in use, state bytes]`
    pub states: Vec<u8>,
    /// Keys of the positions before the root.
    pub history: Vec<u64>,
}

impl TreeSnapshot {
    /// The root's state.
    pub fn root_state(&self) -> &[u8] {
        &self.states[..self.states.len() / self.tree.count(0)]
    }

    /// Leaves the root only those of its edges whose actions are among `actions`. The root must not be evaluated yet, so that its priors will be
    /// a distribution over what is left.
    pub fn restrict_root(&mut self, actions: &[u16]) {
        let mut row = self.tree.row_mut(0);
        let legal = usize::from(row.nodes[ROOT as usize].num_edges);
        let all = row.actions_mut(ROOT);
        let mut kept = 0;
        for edge in 0..legal {
            if actions.contains(&all[edge]) {
                all[kept] = all[edge];
                kept += 1;
            }
        }
        row.init_edges(ROOT, kept);
        // Kernels read all padded edges.
        row.clear_unused_edges();
    }

    fn compare(&self, state: &[u8], history: &[u64]) -> Ordering {
        (self.root_state(), self.history.as_slice()).cmp(&(state, history))
    }
}

/// A tree that new games start from.
pub struct CachedTree {
    /// The tree.
    pub snapshot: TreeSnapshot,
    /// Visits that a game inherits: those of the root's edges, as far as they count against its budget.
    pub inherited: u32,
}

/// The trees that new games start from.
#[derive(Default)]
pub struct RootCache {
    /// By the root's state and history.
    trees: Vec<CachedTree>,
    simulations: u64,
}

impl RootCache {
    /// A cache of these trees, no two of which have the same root, without those whose root is proven by a child that trimming removed: a
    /// game would begin with no search and no action that is known to reach the value. `simulations` were made to build them; of a root's
    /// visits at most `max_inherited` count in a game.
    pub fn new(trees: Vec<TreeSnapshot>, simulations: u64, max_inherited: u32) -> Self {
        let cached = |mut snapshot: TreeSnapshot| {
            let visits = snapshot.tree.row_mut(0).used_edges(ROOT).visits.iter().sum::<i32>() as u32;
            CachedTree { snapshot, inherited: visits.min(max_inherited) }
        };
        let stands = |snapshot: &mut TreeSnapshot| snapshot.tree.row_mut(0).restore_root_bound();
        let standing = trees.into_iter().filter_map(|mut snapshot| stands(&mut snapshot).then_some(snapshot));
        let mut trees: Vec<CachedTree> = standing.map(cached).collect();
        trees.sort_unstable_by(|CachedTree { snapshot: a, .. }, CachedTree { snapshot: b, .. }| {
            a.compare(b.root_state(), &b.history)
        });
        Self { trees, simulations }
    }

    /// The trees, in a fixed order.
    pub fn trees(&self) -> &[CachedTree] {
        &self.trees
    }

    /// Simulations that were made to build them.
    pub fn simulations(&self) -> u64 {
        self.simulations
    }

    /// The tree of the position with this state and these keys of the positions before it.
    pub fn find(&self, state: &[u8], history: &[u64]) -> Option<&CachedTree> {
        let index = self.trees.binary_search_by(|tree| tree.snapshot.compare(state, history));
        index.ok().map(|index| &self.trees[index])
    }
}
