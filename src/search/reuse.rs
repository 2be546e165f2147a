//! Keeping the played subtree of ONE row: a stable compaction in place.

use crate::tree::{NO_NODE, ROOT, RowMut};

/// Work space of [`keep_subtree`], `[T]` each, made once.
#[derive(Clone, Debug, Default)]
pub struct ReuseScratch {
    /// New index of each node, or [`NO_NODE`].
    target: Vec<i32>,
    /// Visits of the subtree's nodes, for finding the threshold.
    visits: Vec<i32>,
    /// Nodes in use before the last compaction.
    count: usize,
}

impl ReuseScratch {
    /// Where the last compaction put each node that was in use before it; [`NO_NODE`] for those dropped. Targets are never
    /// above their sources.
    pub fn targets(&self) -> &[i32] {
        &self.target[..self.count]
    }

    /// Work space for rows of `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self { target: vec![NO_NODE; nodes], visits: Vec::with_capacity(nodes), count: 0 }
    }
}

/// Makes the child behind root edge `edge` the new root and drops everything outside its subtree. Where the subtree has
/// more than `limit` nodes, the most visited stay (then the lowest index): that set is closed under parents. Returns false,
/// with the row unchanged, where the edge has no child.
pub fn keep_subtree(row: &mut RowMut<'_>, edge: usize, limit: usize, scratch: &mut ReuseScratch) -> bool {
    let child = row.edges(ROOT).child[edge];
    if child == NO_NODE || limit == 0 {
        return false;
    }
    let count = *row.count as usize;
    mark_subtree(row, child, count, scratch);
    if scratch.visits.len() > limit {
        trim(row, count, limit, scratch);
    }
    compact(row, child as usize, count, &scratch.target);
    true
}

/// Keeps the most visited `limit` nodes of the whole row.
pub fn keep_most_visited(row: &mut RowMut<'_>, limit: usize, scratch: &mut ReuseScratch) {
    let count = *row.count as usize;
    mark_subtree(row, ROOT, count, scratch);
    if count > limit {
        trim(row, count, limit, scratch);
    }
    compact(row, 0, count, &scratch.target);
}

/// Numbers the nodes below `top` (itself included) in index order.
fn mark_subtree(row: &RowMut<'_>, top: i32, count: usize, scratch: &mut ReuseScratch) {
    let top = top as usize;
    scratch.count = count;
    scratch.visits.clear();
    scratch.target[..count].fill(NO_NODE);
    for n in top..count {
        let parent = row.nodes[n].parent;
        if n == top || (parent != NO_NODE && scratch.target[parent as usize] != NO_NODE) {
            scratch.target[n] = scratch.visits.len() as i32;
            scratch.visits.push(row.nodes[n].visits);
        }
    }
}

/// Renumbers so that only the `limit` most visited of the marked nodes remain.
fn trim(row: &RowMut<'_>, count: usize, limit: usize, scratch: &mut ReuseScratch) {
    let place = scratch.visits.len() - limit;
    let (_, &mut threshold, above) = scratch.visits.select_nth_unstable(place);
    let mut at_threshold = limit - above.iter().filter(|&&v| v > threshold).count();
    let mut next = 0;
    for n in 0..count {
        if scratch.target[n] == NO_NODE {
            continue;
        }
        let visits = row.nodes[n].visits;
        let keep = visits > threshold || (visits == threshold && at_threshold > 0);
        at_threshold -= usize::from(keep && visits == threshold);
        scratch.target[n] = if keep { next } else { NO_NODE };
        next += i32::from(keep);
    }
}

fn compact(row: &mut RowMut<'_>, top: usize, count: usize, target: &[i32]) {
    let mut kept = 0;
    for n in top..count {
        let to = target[n];
        if to == NO_NODE {
            continue;
        }
        let num_edges = usize::from(row.nodes[n].num_edges);
        for child in &mut row.edges_mut(n as i32).child[..num_edges] {
            *child = if *child == NO_NODE { NO_NODE } else { target[*child as usize] };
        }
        let parent = row.nodes[n].parent;
        row.nodes[n].parent = if n == top { NO_NODE } else { target[parent as usize] };
        row.relocate(n as i32, to);
        kept += 1;
    }
    *row.count = kept;
}
