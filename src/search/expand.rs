//! Writing the network's output into ONE new node.

use crate::simd::{F8, LANES, Simd};
use crate::tree::{NodeKind, RowMut};

/// Converts values in seats relative to the observer, one of `seated` players, to values per player: `relative [P]` -> `absolute [P]`, 0 for
/// seats without a player.
#[inline(always)]
pub fn seat_values(relative: &[f32], observer: u8, seated: usize, absolute: &mut [f32]) {
    absolute[seated..].fill(0.0);
    for (seat, &value) in relative[..seated].iter().enumerate() {
        let player = usize::from(observer) + seat;
        absolute[if player < seated { player } else { player - seated }] = value;
    }
}

/// Sets the priors (softmax of the logits over legal edges) and the value of node `n`, whose edges and actions are set.
///
/// # Shapes
/// `logits [A]`, `values [P]` in seats relative to the player to move at `n`, one of `seated` players.
#[inline(always)]
pub fn expand<S: Simd>(row: &mut RowMut<'_>, n: i32, seated: usize, logits: &[f32], values: &[f32]) {
    let node = row.nodes[n as usize];
    let num_edges = usize::from(node.num_edges);
    seat_values(values, node.player, seated, row.value_mut(n));
    let prior = gather(row, n, logits, num_edges);
    match <&mut [f32; LANES]>::try_from(&mut *prior) {
        // One vector: its length is a compile-time constant.
        Ok(group) => softmax::<S>(group),
        Err(_) => softmax::<S>(prior),
    }
    row.nodes[n as usize].set_kind(NodeKind::Decision);
}

/// Softmax of `logits [Ep]` in place, to the bit as [`crate::math::softmax`].
#[inline(always)]
fn softmax<S: Simd>(logits: &mut [f32]) {
    let prior = logits.as_chunks_mut::<LANES>().0;
    let max = prior.iter().fold(F8::<S>::splat(f32::NEG_INFINITY), |max, &group| max.max(F8::of(group)));
    let max = F8::<S>::splat(max.reduce_max());
    let mut sum = F8::splat(0.0);
    for group in prior.iter_mut() {
        let weight = (F8::of(*group) - max).exp();
        *group = weight.0;
        sum = sum + weight;
    }
    let inverse = F8::<S>::splat(1.0 / sum.reduce_sum());
    for group in prior {
        *group = (F8::of(*group) * inverse).0;
    }
}

/// Writes the logits of node `n`'s edges to its priors, padded with -inf (whose softmax is 0) to a multiple of [`LANES`].
#[inline(always)]
fn gather<'a>(row: &'a mut RowMut<'_>, n: i32, logits: &[f32], num_edges: usize) -> &'a mut [f32] {
    let (actions, prior) = row.actions_and_priors(n);
    for (p, &action) in prior[..num_edges].iter_mut().zip(actions) {
        *p = logits[usize::from(action)];
    }
    let used = &mut prior[..num_edges.next_multiple_of(LANES)];
    used[num_edges..].fill(f32::NEG_INFINITY);
    used
}
