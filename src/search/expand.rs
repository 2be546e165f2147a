//! Writing the network's answer into ONE new node.

use crate::math;
use crate::tree::{Kind, RowMut};

/// Turns seats relative to the observer into players: `relative [P]` -> `absolute [P]`.
#[inline(always)]
pub fn seat_values(relative: &[f32], observer: u8, absolute: &mut [f32]) {
    let p = relative.len();
    for (seat, &value) in relative.iter().enumerate() {
        absolute[(usize::from(observer) + seat) % p] = value;
    }
}

/// Gives node `n`, whose edges and actions are there, its priors (softmax of the logits over legal edges) and its value.
///
/// # Shapes
/// `logits [A]`, `values [P]` in seats relative to the player who moves at `n`.
#[inline(always)]
pub fn expand(row: &mut RowMut<'_>, n: i32, logits: &[f32], values: &[f32]) {
    let node = row.nodes[n as usize];
    let num_edges = usize::from(node.num_edges);
    seat_values(values, node.player, row.value_mut(n));
    let mut actions = [0u16; 8];
    for start in (0..num_edges).step_by(8) {
        let len = (num_edges - start).min(8);
        actions[..len].copy_from_slice(&row.actions(n)[start..start + len]);
        let prior = &mut row.edges_mut(n).prior[start..start + len];
        for (p, &action) in prior.iter_mut().zip(&actions) {
            *p = logits[usize::from(action)];
        }
    }
    math::softmax(&mut row.edges_mut(n).prior[..num_edges]);
    row.nodes[n as usize].set_kind(Kind::Decision);
}
