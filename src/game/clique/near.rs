//! What a network sees with `network_sees = "cliques"`: the free edges that lack in cliques of k vertices.

use super::edges::EdgeSet;

/// Cliques that lack one edge more, at which their plane has its largest value.
const MANY: u32 = 8;

/// Writes for each of the edges `free` of K_n 1 if it completes a clique of `k` vertices with edges of `own` in the first plane, and in the
/// second the number of those that lack it and one free edge more, divided by [`MANY`] and at most 1. Other edges have 0. `planes` is `[2, E]`.
pub(super) fn write(own: EdgeSet, free: EdgeSet, n: usize, k: usize, planes: &mut [f32]) {
    let [own, empty] = [own, free].map(|set| set.all_neighbours(n));
    let (complete, near) = planes.split_at_mut(planes.len() / 2);
    let ends = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    for (edge, (i, j)) in ends.enumerate() {
        let common = own[i] & own[j];
        let is_free = empty[i] >> j & 1 == 1;
        complete[edge] = if is_free && cliques(&own, common, k - 2) > 0 { 1.0 } else { 0.0 };
        let lacking = if is_free { num_lacking(&own, &empty, (i, j), k - 2) } else { 0 };
        near[edge] = lacking.min(MANY) as f32 / MANY as f32;
    }
}

/// The cliques of the ends of a free edge and `size` vertices more that lack it and one free edge more.
fn num_lacking(own: &[u32], empty: &[u32], (i, j): (usize, usize), size: usize) -> u32 {
    let common = own[i] & own[j];
    // The other edge begins at an end of the first.
    let at_ends = own[i] & empty[j] | empty[i] & own[j];
    let mut sum: u32 = vertices(at_ends).map(|v| cliques(own, common & own[v], size - 1)).sum();
    // Or it lies between two of the other vertices.
    if size >= 2 {
        for v in vertices(common) {
            let between = vertices(common & empty[v]).take_while(|&w| w < v);
            sum += between.map(|w| cliques(own, common & own[v] & own[w], size - 2)).sum::<u32>();
        }
    }
    sum
}

/// The cliques of `size` of the `candidates`.
fn cliques(own: &[u32], mut candidates: u32, size: usize) -> u32 {
    match size {
        0 => return 1,
        1 => return candidates.count_ones(),
        _ => {}
    }
    let mut sum = 0;
    while candidates != 0 {
        let v = candidates.trailing_zeros() as usize;
        candidates &= candidates - 1;
        sum += cliques(own, candidates & own[v], size - 1);
    }
    sum
}

fn vertices(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (set != 0).then(|| {
            let v = set.trailing_zeros() as usize;
            set &= set - 1;
            v
        })
    })
}
