//! Backup of a leaf's value and of proven bounds to the root of ONE row.
//!
//! Values are absolute vectors over players. Each edge adds the entry of the player who moves at its node, so no sign depends
//! on depth. Every node has proven bounds of its value, as in score-bounded search (Cazenave, Saffidine 2010): the lower bound
//! of a decision node is the largest lower bound of its children, the upper bound the largest upper bound. An edge that was
//! never taken has upper bound 1. A node whose bounds meet is proven, as in MCTS-Solver (Winands, Bjornsson, Saito 2008): its
//! edge then has the exact value, and an edge proven lost is never selected again.

use crate::device_struct::{device_constants, device_enum};
use crate::game::MAX_PLAYERS;
use crate::tree::{NO_NODE, NodeKind, REFUTED, RowMut};

device_enum! {
    /// Whether selection has already counted the leaf's visits and applied a virtual loss to its path.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum VirtualLoss: u32 {
        /// No: the leaf is the only one of its row in this pass.
        None,
        /// Yes: the row has several leaves in this pass.
        Applied,
    }
}

device_constants! {
    fn device_constants;
    /// The loss subtracted from each edge on the path of a pending leaf, so that the next leaves of the pass take other paths.
    pub const VIRTUAL_LOSS: f32 = 1.0;
}

/// Counts a visit of every node on the path to `leaf` and subtracts a virtual loss from the path's decision edges.
#[inline(always)]
pub fn apply_virtual_loss(row: &mut RowMut<'_>, leaf: i32) {
    row.nodes[leaf as usize].visits += 1;
    let mut n = leaf;
    loop {
        let ParentEdge { parent, edge } = parent_edge(row, n);
        if parent == NO_NODE {
            return;
        }
        row.nodes[parent as usize].visits += 1;
        let decides = row.nodes[parent as usize].kind() == NodeKind::Decision;
        let (visits, value_sum) = row.edge_mut(parent, edge);
        *visits += 1;
        if decides {
            *value_sum -= VIRTUAL_LOSS;
        }
        n = parent;
    }
}

/// A node's parent and the parent's edge that leads to the node.
struct ParentEdge {
    parent: i32,
    edge: usize,
}

#[inline(always)]
fn parent_edge(row: &RowMut<'_>, n: i32) -> ParentEdge {
    let node = &row.nodes[n as usize];
    ParentEdge { parent: node.parent, edge: usize::from(node.parent_edge) }
}

/// Adds the value of `leaf` to every node and edge on its path to the root, and to `root_sum [P]`.
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
        let ParentEdge { parent, edge } = parent_edge(row, n);
        if parent == NO_NODE {
            break;
        }
        let child_proven = row.nodes[n as usize].is_proven();
        if child_proven {
            // Another leaf of the same pass may have proven `n` after this leaf was selected below it.
            value[..players].copy_from_slice(row.value(n));
        }
        let mover = usize::from(row.nodes[parent as usize].player);
        let decides = row.nodes[parent as usize].kind() == NodeKind::Decision;
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

/// Propagates the changed bounds of `child`, which `edge` leads to, to its parent, a decision node. If the parent's bounds meet, `value`
/// becomes its proven value. Idempotent. Cold, since bounds change rarely.
#[cold]
#[inline]
fn propagate_bounds(
    row: &mut RowMut<'_>,
    child: i32,
    parent: i32,
    edge: usize,
    value: &mut [f32; MAX_PLAYERS],
) {
    row.nodes[child as usize].clear_bounds_dirty();
    let node = row.nodes[parent as usize];
    let (child_lower, child_upper) = row.nodes[child as usize].bounds_for(node.player);
    if child_upper <= -1.0 {
        row.edges_mut(parent).value_sum[edge] = REFUTED;
    }
    let lower = node.lower.max(child_lower);
    let upper = node.upper.min(max_upper_bound(row, parent));
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

/// The largest upper bound of any edge of `node` for its player, counting only bounds that have been propagated to it.
#[inline(always)]
fn max_upper_bound(row: &RowMut<'_>, node: i32) -> f32 {
    let scalars = &row.nodes[node as usize];
    let edges = row.edges(node);
    let mut max = -1.0;
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
        max = if upper > max { upper } else { max };
    }
    max
}
