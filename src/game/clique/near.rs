//! What a network sees with `network_sees = "cliques"`: the free edges that are missing in cliques of k vertices.

use super::edges::EdgeSet;

/// Cliques that miss a second edge: with this number of them or more, the plane has its largest value.
const MANY: u32 = 8;

/// Writes two planes for each of `players`, whose edges of K_n these are. The first has 1 for free edges that complete a clique of `k`
/// vertices. The second has for each free edge the number of cliques that miss it and one other free edge, divided by [`MANY`] and at most 1.
/// Edges that are taken have 0. `planes` is `[2 * 2, E]`.
pub(super) fn write(players: [EdgeSet; 2], free: EdgeSet, n: usize, k: usize, planes: &mut [f32]) {
    let empty = free.all_neighbours(n);
    let len = planes.len() / 2;
    for (own, planes) in players.into_iter().zip(planes.chunks_exact_mut(len)) {
        let own = own.all_neighbours(n);
        planes.fill(0.0);
        let (complete, near) = planes.split_at_mut(planes.len() / 2);
        let ends = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        for (edge, (i, j)) in ends.enumerate().filter(|&(_, (i, j))| empty[i] >> j & 1 == 1) {
            complete[edge] = f32::from(u8::from(cliques(&own, own[i] & own[j], k - 2) > 0));
            near[edge] = num_missing_two(&own, &empty, (i, j), k - 2).min(MANY) as f32 / MANY as f32;
        }
    }
}

/// The number of cliques of the ends of a free edge and `size` vertices more that miss it and one other free edge.
fn num_missing_two(own: &[u32], empty: &[u32], (i, j): (usize, usize), size: usize) -> u32 {
    let common = own[i] & own[j];
    // The other edge shares an end with the first.
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

/// The number of cliques of `size` of the `candidates`.
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
