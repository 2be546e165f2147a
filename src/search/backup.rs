//! Carrying a value from a leaf to the root of ONE row, and proofs with it.
//!
//! Values are vectors over players and absolute; every edge adds the entry of the player who moves at its node, so nothing
//! is flipped by depth. Every node has proven bounds of its value, as in score-bounded search (Cazenave, Saffidine 2010): a
//! decision is worth at least the best lower bound among its children and at most the best upper bound, an edge never taken
//! being able to be worth 1. Where the bounds meet the node is proven, as in MCTS-Solver (Winands, Bjornsson, Saito 2008): its
//! edge then counts with its exact value, and an edge proven lost is never taken again.

use crate::tree::{Kind, NO_NODE, REFUTED, RowMut};

/// Whether a leaf's visits were counted, and a loss laid on its path, when it was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualLoss {
    /// Not yet: the only leaf of its row.
    None,
    /// Yes: one of several leaves in virtual_loss.
    Applied,
}

/// The loss laid on the path of a leaf in virtual_loss, so that other leaves of the pass look elsewhere.
const VIRTUAL_LOSS: f32 = 1.0;

/// The most players a game has.
pub const MAX_PLAYERS: usize = 8;

/// Counts a visit and lays a virtual loss on the path to `leaf`.
#[inline(always)]
pub fn apply_virtual_loss(row: &mut RowMut<'_>, leaf: i32) {
    row.nodes[leaf as usize].visits += 1;
    let mut n = leaf;
    loop {
        let Step { parent, edge } = up(row, n);
        if parent == NO_NODE {
            return;
        }
        row.nodes[parent as usize].visits += 1;
        let decides = row.nodes[parent as usize].kind() == Kind::Decision;
        let (visits, value_sum) = row.edge_mut(parent, edge);
        *visits += 1;
        if decides {
            *value_sum -= VIRTUAL_LOSS;
        }
        n = parent;
    }
}

/// The way up from a node.
struct Step {
    parent: i32,
    edge: usize,
}

#[inline(always)]
fn up(row: &RowMut<'_>, n: i32) -> Step {
    let node = &row.nodes[n as usize];
    Step { parent: node.parent, edge: usize::from(node.parent_edge) }
}

/// Carries the value of `leaf` up to the root and adds it to `root_sum [P]`.
#[inline(always)]
pub fn backup(row: &mut RowMut<'_>, leaf: i32, virtual_loss: VirtualLoss, root_sum: &mut [f32]) {
    let players = row.shape.players;
    let mut value = [0.0f32; MAX_PLAYERS];
    value[..players].copy_from_slice(row.value(leaf));
    let (visit, undo) = match virtual_loss {
        VirtualLoss::None => (1, 0.0),
        VirtualLoss::Applied => (0, VIRTUAL_LOSS),
    };
    let node = &mut row.nodes[leaf as usize];
    node.visits += visit;
    node.value_sum += value[usize::from(node.player)];
    let mut n = leaf;
    loop {
        let Step { parent, edge } = up(row, n);
        if parent == NO_NODE {
            break;
        }
        let child_proven = row.nodes[n as usize].is_proven();
        if child_proven {
            // Another leaf of the pass may have proven it after this one was selected below it.
            value[..players].copy_from_slice(row.value(n));
        }
        let mover = usize::from(row.nodes[parent as usize].player);
        let decides = row.nodes[parent as usize].kind() == Kind::Decision;
        let (visits, value_sum) = row.edge_mut(parent, edge);
        *visits += visit;
        if decides {
            if child_proven && *value_sum != REFUTED {
                *value_sum = value[mover] * *visits as f32;
            } else {
                *value_sum += undo + value[mover];
            }
            if row.nodes[n as usize].is_bounds_dirty() {
                propagate_bounds(row, n, parent, edge, &mut value);
            }
        }
        let node = &mut row.nodes[parent as usize];
        node.visits += visit;
        node.value_sum += value[mover];
        n = parent;
    }
    for (sum, v) in root_sum.iter_mut().zip(value) {
        *sum += v;
    }
}

/// Tells a decision node that the bounds of `child` behind `edge` have changed, and narrows its own. Where they meet, `value`
/// becomes the node's proven value. Said twice, nothing more comes of it. Rare, so it is kept out of the loop.
#[inline(never)]
fn propagate_bounds(
    row: &mut RowMut<'_>,
    child: i32,
    parent: i32,
    edge: usize,
    value: &mut [f32; MAX_PLAYERS],
) {
    row.nodes[child as usize].clear_bounds_dirty();
    let node = row.nodes[parent as usize];
    let (least, most) = row.nodes[child as usize].bounds_for(node.player);
    if most <= -1.0 {
        row.edges_mut(parent).value_sum[edge] = REFUTED;
    }
    let lower = node.lower.max(least);
    let upper = node.upper.min(most_of_edges(row, parent));
    if lower == node.lower && upper == node.upper {
        return;
    }
    row.nodes[parent as usize].set_bounds(lower, upper);
    if lower >= upper {
        let mover = usize::from(node.player);
        value[mover] = lower;
        value[1 - mover] = -lower;
        row.value_mut(parent).copy_from_slice(&value[..2]);
    }
}

/// The most that any edge of `node` can be worth to its mover, of what it has been told.
#[inline(always)]
fn most_of_edges(row: &RowMut<'_>, node: i32) -> f32 {
    let scalars = &row.nodes[node as usize];
    let edges = row.edges(node);
    let mut most = -1.0;
    for edge in 0..usize::from(scalars.num_edges) {
        let child = edges.child[edge];
        if edges.value_sum[edge] == REFUTED {
            continue;
        }
        if child == NO_NODE || row.nodes[child as usize].is_bounds_dirty() {
            return 1.0;
        }
        let (_, upper) = row.nodes[child as usize].bounds_for(scalars.player);
        if upper >= 1.0 {
            return 1.0;
        }
        most = if upper > most { upper } else { most };
    }
    most
}
