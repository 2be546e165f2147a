//! Carrying a value from a leaf to the root of ONE row, and proofs with it.
//!
//! Values are vectors over players and absolute; every edge adds the entry of the player who moves at its node, so nothing
//! is flipped by depth. Proven values follow MCTS-Solver (Winands, Bjornsson, Saito 2008): a node is proven when some child
//! is proven won for its mover or all children are proven; a proven child's edge counts with its exact value, and an edge
//! proven lost is never taken again.

use crate::tree::{Kind, NO_NODE, REFUTED, RowMut};

/// Whether a leaf's visits were counted, and a loss laid on its path, when it was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flight {
    /// Not yet: the only leaf of its row.
    Alone,
    /// Yes: one of several leaves in flight.
    Counted,
}

/// The loss laid on the path of a leaf in flight, so that other leaves of the pass look elsewhere.
const VIRTUAL_LOSS: f32 = 1.0;

/// The most players a game has.
pub const MAX_PLAYERS: usize = 8;

/// Counts a visit and lays a virtual loss on the path to `leaf`.
#[inline(always)]
pub fn take_off(row: &mut RowMut<'_>, leaf: i32) {
    row.nodes[leaf as usize].visits += 1;
    let mut n = leaf;
    loop {
        let Step { parent, edge } = up(row, n);
        if parent == NO_NODE {
            return;
        }
        row.nodes[parent as usize].visits += 1;
        let decides = row.nodes[parent as usize].kind() == Kind::Decision;
        let edges = row.edges_mut(parent);
        edges.visits[edge] += 1;
        if decides {
            edges.value_sum[edge] -= VIRTUAL_LOSS;
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
pub fn backup(row: &mut RowMut<'_>, leaf: i32, flight: Flight, root_sum: &mut [f32]) {
    let players = row.shape.players;
    let mut value = [0.0f32; MAX_PLAYERS];
    value[..players].copy_from_slice(row.value(leaf));
    let (visit, undo) = match flight {
        Flight::Alone => (1, 0.0),
        Flight::Counted => (0, VIRTUAL_LOSS),
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
        let edges = row.edges_mut(parent);
        edges.visits[edge] += visit;
        if decides {
            if child_proven && edges.value_sum[edge] != REFUTED {
                edges.value_sum[edge] = value[mover] * edges.visits[edge] as f32;
            } else {
                edges.value_sum[edge] += undo + value[mover];
            }
            if child_proven {
                tell(row, n, parent, edge, &mut value);
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

/// Tells a decision node, once, that `child` behind `edge` is proven with `value`; where that proves the node itself, `value`
/// becomes the node's own.
///
/// Never inlined: inlined into the loop above, a build by rustc 1.95 with 16 codegen units had no store that remembers that the
/// node has been told, and `tests/laws.rs` saw false proofs. Why the store was missing is not known.
#[inline(never)]
fn tell(row: &mut RowMut<'_>, child: i32, parent: i32, edge: usize, value: &mut [f32; MAX_PLAYERS]) {
    if !row.nodes[child as usize].take_news() {
        return;
    }
    let mover = usize::from(row.nodes[parent as usize].player);
    let exact = value[mover];
    if exact <= -1.0 {
        row.edges_mut(parent).value_sum[edge] = REFUTED;
    }
    let node = &mut row.nodes[parent as usize];
    node.num_open -= 1;
    node.best_proven = node.best_proven.max(exact);
    if node.is_proven() || (exact < 1.0 && node.num_open > 0) {
        return;
    }
    node.set_proven();
    let best = node.best_proven;
    value[mover] = best;
    value[1 - mover] = -best;
    row.value_mut(parent).copy_from_slice(&value[..2]);
}
