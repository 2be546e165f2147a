//! Subtree reuse in ONE row: a stable in-place compaction.

use crate::tree::{NO_NODE, ROOT, RowMut};

/// Workspace of [`keep_subtree`], `[T]` per array, allocated once.
#[derive(Clone, Debug, Default)]
pub struct ReuseScratch {
    /// New index of each node, or [`NO_NODE`].
    target: Vec<i32>,
    /// Visits of the subtree's nodes, from which the visit threshold is found.
    visits: Vec<i32>,
    /// Nodes in use before the last compaction.
    count: usize,
}

impl ReuseScratch {
    /// The new index of each node of the last compaction, [`NO_NODE`] for dropped nodes. A new index never exceeds the old.
    pub fn targets(&self) -> &[i32] {
        &self.target[..self.count]
    }

    /// Workspace for rows of T = `nodes`.
    pub fn new(nodes: usize) -> Self {
        Self { target: vec![NO_NODE; nodes], visits: Vec::with_capacity(nodes), count: 0 }
    }
}

/// Makes the child of root edge `edge` the new root and drops all nodes outside its subtree. If the subtree has more than
/// `limit` nodes, the most visited ones stay (ties: lower index first); this set is closed under parents. Returns false and
/// leaves the row unchanged if the edge has no child.
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

/// Assigns new indices, in index order, to `top` and all its descendants.
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

/// Renumbers the marked nodes so that only the `limit` most visited remain.
fn trim(row: &RowMut<'_>, count: usize, limit: usize, scratch: &mut ReuseScratch) {
    let rank = scratch.visits.len() - limit;
    let (_, &mut threshold, above) = scratch.visits.select_nth_unstable(rank);
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
