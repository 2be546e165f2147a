//! Choosing edges on the way down ONE row. Pure functions on a row's arrays.
//!
//! PUCT: AlphaZero (Silver et al. 2018), Q + C(s) P sqrt(N) / (1 + n) with C(s) = ln((1 + N + c_base) / c_base) + c_init,
//! where N counts the node's own evaluation too. Gumbel: Danihelka et al. 2022, sequential halving at the root (section 3)
//! and the deterministic rule of equation 14 below it, with completed Q (equation 10) and the mixed value (appendix D,
//! equation 33). Ties go to the lowest edge. Everything is `inline(always)` so that it is compiled for the caller's
//! instruction set.

#![allow(clippy::needless_range_loop)] // loops over lanes are written so that they become one vector instruction

use super::{Rule, SearchParams};
use crate::config::{ChanceRule, Fpu};
use crate::math;
use crate::tree::{Edges, Kind, LANES, NO_NODE, REFUTED, ROOT, RowMut};

/// Where a descent stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descent {
    /// At an edge without a child: the leaf to make.
    Leaf {
        /// The parent to be.
        node: i32,
        /// Its edge.
        edge: usize,
    },
    /// At a node whose value is known: over, proven, a horizon, or there is no room below it.
    End {
        /// That node.
        node: i32,
    },
    /// At a leaf that is being evaluated for another simulation of the same pass.
    Collision {
        /// That leaf.
        node: i32,
    },
}

/// What selection at the root knows beside the tree. All slices are `[Ep]`.
#[derive(Clone, Copy, Debug)]
pub struct RootView<'a> {
    /// PUCT: a Dirichlet draw; Gumbel: a Gumbel number for each edge (0 without noise).
    pub noise: &'a [f32],
    /// PUCT: share of the noise in the priors; 0 without noise.
    pub noise_fraction: f32,
    /// Visits of each edge when the ply began.
    pub base_visits: &'a [i32],
    /// Gumbel: new visits of the edges that are considered by the next simulation.
    pub considered_visits: i32,
}

/// A running maximum over lanes; the lowest index wins ties.
struct Best {
    score: [f32; LANES],
    place: [u32; LANES],
}

impl Best {
    #[inline(always)]
    fn new() -> Self {
        Self { score: [f32::NEG_INFINITY; LANES], place: [u32::MAX; LANES] }
    }

    #[inline(always)]
    fn offer(&mut self, chunk: usize, scores: [f32; LANES]) {
        for lane in 0..LANES {
            let better = scores[lane] > self.score[lane];
            self.score[lane] = if better { scores[lane] } else { self.score[lane] };
            let place = (chunk * LANES + lane) as u32;
            self.place[lane] = if better { place } else { self.place[lane] };
        }
    }

    /// The best place, or None where every score was -inf.
    #[inline(always)]
    fn place(&self) -> Option<usize> {
        let mut best = (f32::NEG_INFINITY, u32::MAX);
        for lane in 0..LANES {
            let (score, place) = (self.score[lane], self.place[lane]);
            if score > best.0 || (score == best.0 && place < best.1) {
                best = (score, place);
            }
        }
        (best.1 != u32::MAX).then_some(best.1 as usize)
    }
}

#[inline(always)]
fn lanes<T: Copy>(slice: &[T], chunk: usize) -> [T; LANES] {
    let mut out = [slice[0]; LANES];
    out.copy_from_slice(&slice[chunk * LANES..(chunk + 1) * LANES]);
    out
}

/// Q of an edge: the mean of its values, `unvisited` where it has none; -inf where it is refuted.
#[inline(always)]
fn q(visits: i32, value_sum: f32, unvisited: f32) -> f32 {
    let taken = value_sum / (if visits > 0 { visits } else { 1 }) as f32;
    if visits > 0 { taken } else { unvisited + value_sum }
}

/// Goes down from `start` until there is something to do.
///
/// `scratch` is `[Ep]`. `chance_draw(node)` is a uniform number in [0, 1) for a chance node that is sampled.
#[inline(always)]
pub fn descend(
    row: &RowMut<'_>,
    root: &RootView<'_>,
    params: &SearchParams,
    start: i32,
    scratch: &mut [f32],
    mut chance_draw: impl FnMut(i32) -> f32,
) -> Descent {
    let mut node = start;
    loop {
        let scalars = &row.nodes[node as usize];
        match scalars.kind() {
            Kind::New => return Descent::Collision { node },
            Kind::Terminal | Kind::Horizon => return Descent::End { node },
            Kind::Decision | Kind::Chance if scalars.is_proven() => return Descent::End { node },
            Kind::Decision | Kind::Chance => {}
        }
        let edge = if scalars.kind() == Kind::Chance {
            chance_edge(row, node, params.chance, &mut chance_draw)
        } else if node == ROOT {
            root_edge(row, root, params, scratch)
        } else {
            match params.rule {
                Rule::Puct => puct_edge(row, node, params, None),
                Rule::Gumbel => gumbel_edge(row, node, params, scratch),
            }
        };
        let child = row.edges(node).child[edge];
        if child == NO_NODE {
            if row.is_full() {
                return Descent::End { node };
            }
            return Descent::Leaf { node, edge };
        }
        node = child;
    }
}

#[inline(always)]
fn root_edge(row: &RowMut<'_>, root: &RootView<'_>, params: &SearchParams, scratch: &mut [f32]) -> usize {
    match params.rule {
        Rule::Puct if root.noise_fraction > 0.0 => puct_edge(row, ROOT, params, Some(root)),
        Rule::Puct => puct_edge(row, ROOT, params, None),
        Rule::Gumbel => gumbel_root_edge(row, root, params, scratch),
    }
}

/// AlphaZero's exploration rate times sqrt(N).
#[inline(always)]
pub fn exploration(params: &SearchParams, visits: i32) -> f32 {
    let n = visits as f32;
    (math::ln((1.0 + n + params.c_base) / params.c_base) + params.c_init) * n.sqrt()
}

#[inline(always)]
fn first_play_urgency(row: &RowMut<'_>, node: i32, params: &SearchParams) -> f32 {
    let scalars = &row.nodes[node as usize];
    match params.fpu {
        Fpu::Zero => 0.0,
        Fpu::Loss => -1.0,
        Fpu::Parent => scalars.mean(),
        Fpu::Reduced => {
            let edges = row.edges(node);
            let mut mass = [0.0f32; LANES];
            for chunk in 0..row.padded() / LANES {
                let (p, n) = (lanes(edges.prior, chunk), lanes(edges.visits, chunk));
                for lane in 0..LANES {
                    mass[lane] += if n[lane] > 0 { p[lane] } else { 0.0 };
                }
            }
            (scalars.mean() - params.fpu_reduction * math::fold(mass).sqrt()).max(-1.0)
        }
    }
}

/// The edge that PUCT takes at a decision node; `root` where noise is mixed into the priors.
#[inline(always)]
fn puct_edge(row: &RowMut<'_>, node: i32, params: &SearchParams, root: Option<&RootView<'_>>) -> usize {
    let edges = row.edges(node);
    let rate = exploration(params, row.nodes[node as usize].visits);
    let unvisited = first_play_urgency(row, node, params);
    let mut best = Best::new();
    for chunk in 0..row.padded() / LANES {
        let (mut p, n, w) =
            (lanes(edges.prior, chunk), lanes(edges.visits, chunk), lanes(edges.value_sum, chunk));
        if let Some(root) = root {
            let noise = lanes(root.noise, chunk);
            for lane in 0..LANES {
                p[lane] = (1.0 - root.noise_fraction) * p[lane] + root.noise_fraction * noise[lane];
            }
        }
        let mut scores = [0.0; LANES];
        for lane in 0..LANES {
            scores[lane] = q(n[lane], w[lane], unvisited) + rate * p[lane] / (1 + n[lane]) as f32;
        }
        best.offer(chunk, scores);
    }
    best.place().unwrap_or(0)
}

/// Completed Q and the improved policy of one decision node (equations 10, 11 and 33), to be reused by the caller.
#[derive(Clone, Copy, Debug)]
pub struct Improved {
    /// Sum of the edges' visits.
    pub visits: f32,
    /// The factor of Q in the monotone transformation.
    pub scale: f32,
    /// The mixed value that stands in for the Q of edges never taken.
    pub mixed: f32,
}

/// What stands in for a scale of 0.
const LEAST_SCALE: f32 = 1e-30;

impl Improved {
    /// Sums over the node's edges.
    #[inline(always)]
    pub fn of(edges: &Edges<'_>, own_value: f32, params: &SearchParams) -> Self {
        let mut mass = [0.0f32; LANES];
        let mut weighted = [0.0f32; LANES];
        let mut sum = [0i32; LANES];
        let mut most = [0i32; LANES];
        for chunk in 0..edges.prior.len() / LANES {
            let (p, n, w) =
                (lanes(edges.prior, chunk), lanes(edges.visits, chunk), lanes(edges.value_sum, chunk));
            for lane in 0..LANES {
                let mean = q(n[lane], w[lane], 0.0);
                let mean = if mean < -1.0 { -1.0 } else { mean };
                mass[lane] += if n[lane] > 0 { p[lane] } else { 0.0 };
                weighted[lane] += if n[lane] > 0 { p[lane] * mean } else { 0.0 };
                sum[lane] += n[lane];
                most[lane] = most[lane].max(n[lane]);
            }
        }
        let visits = sum.iter().sum::<i32>() as f32;
        let most = most.iter().fold(0, |a, &b| a.max(b)) as f32;
        let mass = math::fold(mass);
        let mean = if mass > 0.0 { math::fold(weighted) / mass } else { own_value };
        Self {
            visits,
            // Never 0: a refuted edge's -inf must stay what it is.
            scale: ((params.c_visit + most) * params.c_scale * 0.5).max(LEAST_SCALE),
            mixed: (own_value + visits * mean) / (1.0 + visits),
        }
    }

    /// The transformed completed Q of one edge; -inf where it is refuted.
    #[inline(always)]
    pub fn sigma(&self, visits: i32, value_sum: f32) -> f32 {
        self.scale * q(visits, value_sum, self.mixed)
    }

    /// Writes prior x exp(sigma - max) to `out [Ep]` and returns the sum.
    #[inline(always)]
    pub fn weights(&self, edges: &Edges<'_>, out: &mut [f32]) -> f32 {
        let mut most = [f32::NEG_INFINITY; LANES];
        for chunk in 0..edges.prior.len() / LANES {
            let (n, w) = (lanes(edges.visits, chunk), lanes(edges.value_sum, chunk));
            let out = &mut out[chunk * LANES..(chunk + 1) * LANES];
            for lane in 0..LANES {
                let sigma = self.sigma(n[lane], w[lane]);
                out[lane] = sigma;
                most[lane] = if sigma > most[lane] { sigma } else { most[lane] };
            }
        }
        let most = most.iter().fold(-1e30f32, |a, &b| if b > a { b } else { a });
        let mut sum = [0.0f32; LANES];
        for chunk in 0..edges.prior.len() / LANES {
            let p = lanes(edges.prior, chunk);
            let out = &mut out[chunk * LANES..(chunk + 1) * LANES];
            for lane in 0..LANES {
                out[lane] = p[lane] * math::exp(out[lane] - most);
                sum[lane] += out[lane];
            }
        }
        math::fold(sum)
    }
}

/// The edge that Gumbel search takes below the root: argmax of the improved policy less the share of visits (eq. 14).
#[inline(always)]
fn gumbel_edge(row: &RowMut<'_>, node: i32, params: &SearchParams, scratch: &mut [f32]) -> usize {
    let edges = row.edges(node);
    let own = row.value(node)[usize::from(row.nodes[node as usize].player)];
    let improved = Improved::of(&edges, own, params);
    let total = improved.weights(&edges, scratch);
    // Where only edges of prior 0 are left, the least visited one is taken.
    let inverse = if total > 0.0 { 1.0 / total } else { 0.0 };
    let share = 1.0 / (1.0 + improved.visits);
    let mut best = Best::new();
    for chunk in 0..row.padded() / LANES {
        let (pi, n, w) = (lanes(scratch, chunk), lanes(edges.visits, chunk), lanes(edges.value_sum, chunk));
        let mut scores = [0.0; LANES];
        for lane in 0..LANES {
            let score = pi[lane] * inverse - n[lane] as f32 * share;
            scores[lane] = if w[lane] == REFUTED { REFUTED } else { score };
        }
        best.offer(chunk, scores);
    }
    best.place().unwrap_or(0)
}

/// Writes g + logit + sigma of every root edge to `out [Ep]`; -inf where it is refuted or no edge.
#[inline(always)]
pub fn gumbel_scores(row: &RowMut<'_>, root: &RootView<'_>, params: &SearchParams, out: &mut [f32]) {
    let edges = row.edges(ROOT);
    let own = row.value(ROOT)[usize::from(row.nodes[ROOT as usize].player)];
    let improved = Improved::of(&edges, own, params);
    for edge in 0..row.padded() {
        let sigma = improved.sigma(edges.visits[edge], edges.value_sum[edge]);
        out[edge] = root.noise[edge] + math::ln(edges.prior[edge]) + sigma;
    }
}

/// The edge that sequential halving takes: among those with the scheduled number of new visits, the best score. Where none
/// has it (edges refuted since the schedule was made), the best score of all.
#[inline(always)]
fn gumbel_root_edge(
    row: &RowMut<'_>,
    root: &RootView<'_>,
    params: &SearchParams,
    scratch: &mut [f32],
) -> usize {
    gumbel_scores(row, root, params, scratch);
    let visits = row.edges(ROOT).visits;
    let (mut scheduled, mut any) = (Best::new(), Best::new());
    for chunk in 0..row.padded() / LANES {
        let (score, n, base) = (lanes(scratch, chunk), lanes(visits, chunk), lanes(root.base_visits, chunk));
        let mut due = [0.0; LANES];
        for lane in 0..LANES {
            let is_due = n[lane] - base[lane] == root.considered_visits;
            due[lane] = if is_due { score[lane] } else { f32::NEG_INFINITY };
        }
        scheduled.offer(chunk, due);
        any.offer(chunk, score);
    }
    scheduled.place().or(any.place()).unwrap_or(0)
}

/// The outcome that a descent follows at a chance node.
#[inline(always)]
fn chance_edge(
    row: &RowMut<'_>,
    node: i32,
    rule: ChanceRule,
    chance_draw: &mut impl FnMut(i32) -> f32,
) -> usize {
    let edges = row.edges(node);
    let num_edges = usize::from(row.nodes[node as usize].num_edges);
    match rule {
        ChanceRule::Stratified => {
            let total = (row.nodes[node as usize].visits + 1) as f32;
            let mut best = Best::new();
            for chunk in 0..row.padded() / LANES {
                let (p, n, w) =
                    (lanes(edges.prior, chunk), lanes(edges.visits, chunk), lanes(edges.value_sum, chunk));
                let mut behind = [0.0; LANES];
                for lane in 0..LANES {
                    behind[lane] = p[lane] * total - n[lane] as f32 + w[lane].min(0.0);
                }
                best.offer(chunk, behind);
            }
            best.place().unwrap_or(0)
        }
        ChanceRule::Sample => {
            let mut x = chance_draw(node);
            for (edge, &p) in edges.prior[..num_edges].iter().enumerate() {
                x -= p;
                if x < 0.0 {
                    return edge;
                }
            }
            num_edges - 1
        }
    }
}
