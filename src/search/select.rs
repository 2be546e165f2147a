//! Selection of edges in ONE row. Pure functions on a row's arrays.
//!
//! PUCT: AlphaZero (Silver et al. 2018), Q + C(s) P sqrt(N) / (1 + n) with C(s) = ln((1 + N + c_base) / c_base) + c_init,
//! where N includes the node's own evaluation. Gumbel: Danihelka et al. 2022, sequential halving at the root (section 3) and
//! the deterministic rule of equation 14 below it, with completed Q (equation 10) and the mixed value (appendix D, equation
//! 33). Nodes with many visits select by PUCT, since the improved policy hardly tries what has a low prior. Ties go to the lowest
//! edge. All functions are `inline(always)`, so that they are compiled for the caller's instruction set.

use super::SearchParams;
use crate::config::Algorithm;
use crate::device_struct::device_constants;
use crate::math;
use crate::rng::Key;
use crate::simd::{Argmax, F8, I8, LANES, Simd};
use crate::tree::{NodeEdges, NodeKind, REFUTED, ROOT, RowMut};

/// The root's arrays outside the tree that selection reads. All slices are `[Ep]`.
#[derive(Clone, Copy, Debug)]
pub struct RootView<'a> {
    /// PUCT: a Dirichlet draw; Gumbel: one Gumbel variate per edge; 0 without noise.
    pub noise: &'a [f32],
    /// PUCT: weight of the noise in the priors; 0 without noise.
    pub dirichlet_epsilon: f32,
    /// Visits of each edge when the ply began.
    pub base_visits: &'a [i32],
    /// Gumbel: new visits that an edge must have to be considered by the next simulation.
    pub considered_visits: i32,
}

/// A slice `[Ep]` as SIMD vectors.
#[inline(always)]
fn lanes<T>(slice: &[T]) -> &[[T; LANES]] {
    slice.as_chunks().0
}

/// Prior, visits and value sum of the edges, one SIMD vector of each at a time.
#[inline(always)]
fn vectors<S: Simd>(edges: &NodeEdges<'_>) -> impl Iterator<Item = (F8<S>, I8<S>, F8<S>)> {
    let fields = lanes(edges.prior).iter().zip(lanes(edges.visits)).zip(lanes(edges.value_sum));
    fields.map(|((&p, &n), &w)| (F8::of(p), I8::of(n), F8::of(w)))
}

/// Q of edges: the mean value, `unvisited` for edges without visits, -inf for refuted edges.
#[inline(always)]
fn q<S: Simd>(visits: I8<S>, value_sum: F8<S>, unvisited: f32) -> F8<S> {
    let taken = value_sum / visits.max(I8::splat(1)).to_f32();
    visits.select_gt(0, taken, F8::splat(unvisited) + value_sum)
}

/// How a descent continues at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescentStep {
    /// Through this edge.
    Edge(usize),
    /// It ends here: the node's value is known (terminal, proven, or a horizon).
    End,
    /// It is abandoned: the node's evaluation is pending for another simulation of the same pass.
    Collision,
}

/// Selects the edge that a descent takes at `node`.
///
/// `root` is given if `node` is the root. `scratch` is `[Ep]`. `chance_draw` returns a number in [0, 1) for a chance node with so many
/// visits: see [`chance_number`].
#[inline(always)]
pub fn choose_edge<S: Simd>(
    row: &RowMut<'_>,
    root: Option<&RootView<'_>>,
    params: &SearchParams,
    puct_table: &PuctTable,
    node: i32,
    scratch: &mut [f32],
    chance_draw: impl FnOnce(i32) -> f32,
) -> DescentStep {
    let scalars = &row.nodes[node as usize];
    DescentStep::Edge(match scalars.kind() {
        NodeKind::Unevaluated => return DescentStep::Collision,
        NodeKind::Terminal | NodeKind::Horizon => return DescentStep::End,
        NodeKind::Decision | NodeKind::Chance if scalars.is_proven() => return DescentStep::End,
        NodeKind::Chance => chance_edge(row, node, chance_draw(scalars.visits)),
        NodeKind::Decision => match (root, params.algorithm) {
            (Some(root), _) => root_edge::<S>(row, root, params, puct_table, scratch),
            (None, Algorithm::Gumbel) if (scalars.visits as u32) < params.puct_visits => {
                gumbel_edge::<S>(row, node, params, scratch)
            }
            (None, _) => puct_edge::<S>(row, node, params, puct_table, None),
        },
    })
}

#[inline(always)]
fn root_edge<S: Simd>(
    row: &RowMut<'_>,
    root: &RootView<'_>,
    params: &SearchParams,
    puct_table: &PuctTable,
    scratch: &mut [f32],
) -> usize {
    match params.algorithm {
        Algorithm::Puct if root.dirichlet_epsilon > 0.0 => {
            puct_edge::<S>(row, ROOT, params, puct_table, Some(root))
        }
        Algorithm::Puct | Algorithm::Afterstate => puct_edge::<S>(row, ROOT, params, puct_table, None),
        Algorithm::Gumbel => gumbel_root_edge::<S>(row, root, params, scratch),
    }
}

/// AlphaZero's exploration factor at a node with N = `visits`: C(s) sqrt(N).
#[inline(always)]
pub fn exploration(params: &SearchParams, visits: i32) -> f32 {
    let n = visits as f32;
    (math::ln((1.0 + n + params.c_base) / params.c_base) + params.c_init) * n.sqrt()
}

/// Precomputed [`exploration`] for small visit counts.
#[derive(Clone, Debug)]
pub struct PuctTable(Vec<f32>);

impl PuctTable {
    /// Maximum number of entries: 16 KiB.
    const MAX_ENTRIES: usize = 4096;

    /// The table for trees of T = `nodes`; empty if no edge is selected by PUCT.
    pub fn new(params: &SearchParams, nodes: usize) -> Self {
        let by_puct = params.algorithm != Algorithm::Gumbel || nodes >= params.puct_visits as usize;
        let entries = if by_puct { (nodes + 1).min(Self::MAX_ENTRIES) } else { 0 };
        Self((0..entries as i32).map(|visits| exploration(params, visits)).collect())
    }

    #[inline(always)]
    fn at(&self, params: &SearchParams, visits: i32) -> f32 {
        self.0.get(visits as usize).copied().unwrap_or_else(|| exploration(params, visits))
    }
}

/// The Q of an edge of `node` without visits.
#[inline(always)]
fn first_play_urgency<S: Simd>(row: &RowMut<'_>, node: i32, params: &SearchParams) -> f32 {
    let mut mass = F8::<S>::splat(0.0);
    for (p, n, _) in vectors(&row.used_edges(node)) {
        mass = mass + n.select_gt(0, p, F8::splat(0.0));
    }
    (row.nodes[node as usize].mean() - params.fpu_reduction * mass.reduce_sum().sqrt()).max(-1.0)
}

/// The edge that PUCT selects at a decision node. `root` is given if its noise is to be mixed into the priors.
#[inline(always)]
fn puct_edge<S: Simd>(
    row: &RowMut<'_>,
    node: i32,
    params: &SearchParams,
    puct_table: &PuctTable,
    root: Option<&RootView<'_>>,
) -> usize {
    let exploration_factor = puct_table.at(params, row.nodes[node as usize].visits);
    let unvisited = first_play_urgency::<S>(row, node, params);
    match row.single_vector(node) {
        Some(edges) => argmax_puct::<S>(&edges, exploration_factor, unvisited, root),
        None => argmax_puct::<S>(&row.used_edges(node), exploration_factor, unvisited, root),
    }
}

/// The argmax of the PUCT score. `exploration_factor` is C(s) sqrt(N), `unvisited` the Q of edges without visits.
#[inline(always)]
fn argmax_puct<S: Simd>(
    edges: &NodeEdges<'_>,
    exploration_factor: f32,
    unvisited: f32,
    root: Option<&RootView<'_>>,
) -> usize {
    let exploration_factor = F8::<S>::splat(exploration_factor);
    let mut best = Argmax::default();
    for (group, (mut p, n, w)) in vectors(edges).enumerate() {
        if let Some(root) = root {
            let share = root.dirichlet_epsilon;
            p = F8::splat(1.0 - share) * p + F8::splat(share) * F8::of(lanes(root.noise)[group]);
        }
        let score = q(n, w, unvisited) + exploration_factor * p / (n + I8::splat(1)).to_f32();
        if edges.prior.len() == LANES {
            return Argmax::of(score).unwrap_or(0);
        }
        best.update(group, score);
    }
    best.index().unwrap_or(0)
}

/// Completed Q and the improved policy of one decision node (equations 10, 11 and 33).
#[derive(Clone, Copy, Debug)]
pub struct CompletedQ {
    /// Sum of the edges' visits.
    pub visits: f32,
    /// The factor of Q in sigma.
    pub scale: f32,
    /// The mixed value, used as the Q of edges without visits.
    pub mixed: f32,
}

device_constants! {
    fn device_constants;
    /// Minimum scale of completed Q values. Never 0: the value sum -inf of a refuted edge stays -inf.
    pub(super) const MIN_SCALE: f32 = 1e-30;
    /// Minimum score, that of a node without a legal edge.
    pub(super) const MIN_SCORE: f32 = -1e30;
}

impl CompletedQ {
    /// Computes the completed Q of a node from its edges and its own evaluation.
    #[inline(always)]
    pub fn of<S: Simd>(edges: &NodeEdges<'_>, own_value: f32, params: &SearchParams) -> Self {
        let zero = F8::<S>::splat(0.0);
        let (mut mass, mut weighted) = (zero, zero);
        let (mut sum, mut max_visits) = (I8::splat(0), I8::splat(0));
        for (p, n, w) in vectors(edges) {
            let mean = q(n, w, 0.0).max(F8::splat(-1.0));
            mass = mass + n.select_gt(0, p, zero);
            weighted = weighted + n.select_gt(0, p * mean, zero);
            sum = sum + n;
            max_visits = max_visits.max(n);
        }
        let (visits, max_visits) = (sum.reduce_sum() as f32, max_visits.reduce_max() as f32);
        let mass = mass.reduce_sum();
        let mean = if mass > 0.0 { weighted.reduce_sum() / mass } else { own_value };
        Self {
            visits,
            scale: ((params.c_visit + max_visits) * params.c_scale * 0.5).max(MIN_SCALE),
            mixed: (own_value + visits * mean) / (1.0 + visits),
        }
    }

    /// sigma of the completed Q of edges; -inf for refuted edges.
    #[inline(always)]
    fn sigma<S: Simd>(&self, visits: I8<S>, value_sum: F8<S>) -> F8<S> {
        F8::splat(self.scale) * q(visits, value_sum, self.mixed)
    }

    /// Writes prior x exp(sigma - max) to `out [Ep]` and returns the sum.
    #[inline(always)]
    pub fn weights<S: Simd>(&self, edges: &NodeEdges<'_>, out: &mut [f32]) -> f32 {
        let out = out.as_chunks_mut::<LANES>().0;
        let mut max = F8::<S>::splat(f32::NEG_INFINITY);
        for ((_, n, w), out) in vectors(edges).zip(out.iter_mut()) {
            let sigma = self.sigma(n, w);
            *out = sigma.0;
            max = max.max(sigma);
        }
        let max = F8::<S>::splat(max.reduce_max().max(MIN_SCORE));
        let mut sum = F8::splat(0.0);
        for (&p, out) in lanes(edges.prior).iter().zip(out) {
            let weight = F8::of(p) * (F8::of(*out) - max).exp();
            *out = weight.0;
            sum = sum + weight;
        }
        sum.reduce_sum()
    }
}

/// The edge that Gumbel search selects below the root: argmax of pi'(a) - N(a) / (1 + sum N), equation 14.
#[inline(always)]
fn gumbel_edge<S: Simd>(row: &RowMut<'_>, node: i32, params: &SearchParams, scratch: &mut [f32]) -> usize {
    let own = row.value(node)[usize::from(row.nodes[node as usize].player)];
    match row.single_vector(node) {
        // One vector: its length is a compile-time constant, so all values stay in registers.
        Some(edges) => argmax_improved::<S>(&edges, own, params, &mut [0.0; LANES]),
        None => argmax_improved::<S>(&row.used_edges(node), own, params, scratch),
    }
}

/// [`gumbel_edge`] of these edges, at a node whose own evaluation for the player to move is `own`.
#[inline(always)]
fn argmax_improved<S: Simd>(
    edges: &NodeEdges<'_>,
    own: f32,
    params: &SearchParams,
    scratch: &mut [f32],
) -> usize {
    let improved = CompletedQ::of::<S>(edges, own, params);
    let total = improved.weights::<S>(edges, scratch);
    // If all edges that are not refuted have prior 0, the least visited one is taken.
    let inverse = F8::<S>::splat(if total > 0.0 { 1.0 / total } else { 0.0 });
    let share = F8::splat(1.0 / (1.0 + improved.visits));
    let refuted = F8::splat(REFUTED);
    let mut best = Argmax::default();
    for (group, ((_, n, w), &pi)) in vectors(edges).zip(lanes(scratch)).enumerate() {
        let score = w.select_eq(REFUTED, refuted, F8::of(pi) * inverse - n.to_f32() * share);
        if edges.prior.len() == LANES {
            return Argmax::of(score).unwrap_or(0);
        }
        best.update(group, score);
    }
    best.index().unwrap_or(0)
}

/// Writes g + logit + sigma of every root edge in use to `out [Ep]`; -inf for refuted edges and padding.
#[inline(always)]
pub fn gumbel_scores<S: Simd>(row: &RowMut<'_>, root: &RootView<'_>, params: &SearchParams, out: &mut [f32]) {
    let own = row.value(ROOT)[usize::from(row.nodes[ROOT as usize].player)];
    let edges = row.used_edges(ROOT);
    let improved = CompletedQ::of::<S>(&edges, own, params);
    let noise = lanes(root.noise);
    let out = out.as_chunks_mut::<LANES>().0;
    for (((p, n, w), &g), out) in vectors::<S>(&edges).zip(noise).zip(out) {
        *out = (F8::of(g) + p.ln() + improved.sigma(n, w)).0;
    }
}

/// The edge that sequential halving selects: the best score among the edges with the scheduled number of new visits. If there
/// is none (edges were refuted after the ply began), the best score of all edges.
#[inline(always)]
fn gumbel_root_edge<S: Simd>(
    row: &RowMut<'_>,
    root: &RootView<'_>,
    params: &SearchParams,
    scratch: &mut [f32],
) -> usize {
    gumbel_scores::<S>(row, root, params, scratch);
    let visits = row.used_edges(ROOT).visits;
    let (mut scheduled, mut any) = (Argmax::<S>::default(), Argmax::<S>::default());
    let fields = lanes(scratch).iter().zip(lanes(visits)).zip(lanes(root.base_visits));
    for (group, ((&score, &n), &base)) in fields.enumerate() {
        let score = F8::of(score);
        let new_visits = I8::of(n) - I8::of(base);
        scheduled
            .update(group, new_visits.select_eq(root.considered_visits, score, F8::splat(f32::NEG_INFINITY)));
        any.update(group, score);
    }
    match scheduled.index() {
        Some(edge) => edge,
        None => any.index().unwrap_or(0),
    }
}

/// The number in [0, 1) that chooses the outcome at the chance node `node` with so many visits: one draw for each node, then evenly spread,
/// which has less variance than a draw in every visit. `key` is that of the row's ply.
#[inline]
pub fn chance_number(key: Key, node: i32, visits: i32) -> f32 {
    key.with(node as u64).spaced(visits as u32)
}

/// The outcome of a chance node that holds the number `x` in [0, 1), if each has its probability's part of it in the order of the list.
#[inline(always)]
fn chance_edge(row: &RowMut<'_>, node: i32, mut x: f32) -> usize {
    let num_edges = usize::from(row.nodes[node as usize].num_edges);
    for (edge, &p) in row.used_edges(node).prior[..num_edges].iter().enumerate() {
        x -= p;
        if x < 0.0 {
            return edge;
        }
    }
    num_edges - 1
}
