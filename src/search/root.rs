//! Root arrays outside the trees (noise, budgets, sequential-halving schedules) and the summary of a finished search.
//!
//! Noise is never written into the tree, so a kept subtree or a cloned root cache holds the network's own priors. Inherited
//! visits are counted apart from new ones.

use super::SearchParams;
use super::select::{CompletedQ, RootView, gumbel_scores};
use crate::config::Algorithm;
use crate::device_struct::device_struct;
use crate::isa::prefetch;
use crate::math;
use crate::rng::{Key, Purpose};
use crate::simd::Portable;
use crate::tree::{NodeKind, REFUTED, ROOT, RowMut, TreeShape};
use bytemuck::{Pod, Zeroable};

device_struct! {
    /// The game, determinisation and ply of a row's search: the counters that key all its random numbers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct RowKey {
        /// The run's seed.
        pub seed: u64,
        /// Index of the game slot, over all devices of the run.
        pub slot: u64,
        /// Number of games that the slot finished before this one.
        pub game: u64,
        /// Index of the determinisation of the game.
        pub determinisation: u64,
        /// Index of the ply.
        pub ply: u64,
    }
}

impl RowKey {
    /// The key of the random numbers for one purpose.
    pub fn key(&self, purpose: Purpose) -> Key {
        Key::new(self.seed, purpose).with(self.slot).with(self.game).with(self.determinisation).with(self.ply)
    }
}

/// Whether noise is applied at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exploration {
    /// With noise: self-play.
    Noisy,
    /// Without noise: evaluation.
    Plain,
}

/// The considered visits of sequential halving: for each number of considered actions and each simulation, the number of new
/// visits that an action must have to be selected (the table of mctx, from algorithm 1 of Danihelka et al. 2022).
#[derive(Clone, Debug)]
pub struct SequentialHalvingSchedule {
    budget: u32,
    /// `[num_considered][budget]`
    tables: Vec<Vec<u32>>,
}

impl SequentialHalvingSchedule {
    /// The schedule of `budget` simulations for up to `num_considered` actions.
    pub fn new(budget: u32, num_considered: usize) -> Self {
        let tables = (0..=num_considered).map(|m| Self::table(budget as usize, m)).collect();
        Self { budget, tables }
    }

    fn table(budget: usize, num_considered: usize) -> Vec<u32> {
        if num_considered <= 1 {
            return (0..budget as u32).collect();
        }
        let rounds = num_considered.next_power_of_two().trailing_zeros() as usize;
        let mut sequence = Vec::with_capacity(budget + num_considered);
        let mut visits = vec![0u32; num_considered];
        let mut left = num_considered;
        while sequence.len() < budget {
            for _ in 0..(budget / (rounds * left)).max(1) {
                sequence.extend_from_slice(&visits[..left]);
                visits[..left].iter_mut().for_each(|v| *v += 1);
            }
            left = (left / 2).max(2);
        }
        sequence.truncate(budget);
        sequence
    }

    /// The table for each number of considered actions. `[num_considered + 1][budget]`
    pub fn tables(&self) -> &[Vec<u32>] {
        &self.tables
    }

    /// New visits that an action must have to be selected by simulation number `simulation`.
    #[inline(always)]
    pub fn visits(&self, num_considered: usize, simulation: u32) -> i32 {
        let table = &self.tables[num_considered.min(self.tables.len() - 1)];
        table.get(simulation as usize).map_or(i32::MAX, |&visits| visits as i32)
    }
}

/// Schedules beside those that rows have.
const SPARE_SCHEDULES: usize = 4;

/// The root arrays of all rows.
pub struct Roots {
    padded: usize,
    players: usize,
    zero_sum_pair: bool,
    /// PUCT: Dirichlet draws; Gumbel: Gumbel variates. `[B, Ep]`
    noise: Vec<f32>,
    /// Weight of the noise in the priors (PUCT). `[B]`
    dirichlet_epsilon: Vec<f32>,
    /// Visits of the root's edges at the start of the ply. `[B, Ep]`
    base_visits: Vec<i32>,
    /// Sum of all values backed up to the root. `[B, P]`
    value_sum: Vec<f32>,
    /// New simulations of the ply that have not started. `[B]`
    simulations_left: Vec<u32>,
    /// New simulations of the ply in total. `[B]`
    budget: Vec<u32>,
    /// Index into `schedules`. `[B]`
    schedule: Vec<u16>,
    schedules: Vec<SequentialHalvingSchedule>,
}

impl Roots {
    /// Arrays for trees of this shape.
    pub fn new(shape: TreeShape) -> Self {
        let (b, ep) = (shape.rows, shape.padded());
        Self {
            padded: ep,
            players: shape.players,
            zero_sum_pair: shape.zero_sum_pair,
            noise: vec![0.0; b * ep],
            dirichlet_epsilon: vec![0.0; b],
            base_visits: vec![0; b * ep],
            value_sum: vec![0.0; b * shape.players],
            simulations_left: vec![0; b],
            budget: vec![0; b],
            schedule: vec![0; b],
            schedules: Vec::new(),
        }
    }

    /// Bytes of one row.
    pub fn row_bytes(shape: TreeShape) -> usize {
        let per_edge = size_of::<f32>() + size_of::<i32>(); // noise, base_visits
        let per_row = size_of::<f32>() + 2 * size_of::<u32>() + size_of::<u16>(); // epsilon; simulations_left, budget; schedule
        shape.padded() * per_edge + shape.players * size_of::<f32>() + per_row
    }

    /// New simulations of row `b`'s ply that have not started.
    #[inline(always)]
    pub fn simulations_left(&self, b: usize) -> u32 {
        self.simulations_left[b]
    }

    /// True if any row has no simulations left in its ply.
    pub fn any_done(&self) -> bool {
        self.simulations_left.contains(&0)
    }

    /// Counts the start of one simulation of row `b`.
    #[inline(always)]
    pub fn start_simulation(&mut self, b: usize) {
        self.simulations_left[b] -= 1;
    }

    /// Ends row `b`'s ply early and reduces its budget to the simulations already started: its root is proven.
    #[inline(always)]
    pub fn end_ply(&mut self, b: usize) {
        self.budget[b] -= self.simulations_left[b];
        self.simulations_left[b] = 0;
    }

    /// Row `b`'s value sum. `[P]`
    #[inline(always)]
    pub fn value_sum_mut(&mut self, b: usize) -> &mut [f32] {
        &mut self.value_sum[b * self.players..(b + 1) * self.players]
    }

    /// Prefetches the root arrays that selection reads in row `b`.
    #[inline(always)]
    pub fn prefetch(&self, b: usize) {
        prefetch(&self.noise, b * self.padded);
        prefetch(&self.base_visits, b * self.padded);
    }

    /// The root arrays that the next simulation's selection reads in row `b`.
    #[inline(always)]
    pub fn view(&self, b: usize, num_edges: usize, params: &SearchParams) -> RootView<'_> {
        let at = b * self.padded..(b + 1) * self.padded;
        let considered_visits = match params.algorithm {
            Algorithm::Puct | Algorithm::Afterstate => 0,
            Algorithm::Gumbel => {
                let num_considered = num_edges.min(params.max_num_considered_actions as usize);
                self.schedules[usize::from(self.schedule[b])]
                    .visits(num_considered, self.budget[b] - self.simulations_left[b])
            }
        };
        RootView {
            noise: &self.noise[at.clone()],
            dirichlet_epsilon: self.dirichlet_epsilon[b],
            base_visits: &self.base_visits[at],
            considered_visits,
        }
    }

    /// Begins a ply in row `b`: sets budget, inherited visits and noise.
    pub fn begin(
        &mut self,
        b: usize,
        row: &mut RowMut<'_>,
        params: &SearchParams,
        simulations: u32,
        exploration: Exploration,
        key: RowKey,
    ) {
        let at = b * self.padded..(b + 1) * self.padded;
        let fresh = row.nodes[ROOT as usize].kind() == NodeKind::Unevaluated;
        let base = &mut self.base_visits[at.clone()];
        base.fill(0);
        if !fresh {
            let visits = row.used_edges(ROOT).visits;
            base[..visits.len()].copy_from_slice(visits);
        }
        let inherited = base.iter().sum::<i32>() as u32;
        self.budget[b] = match params.algorithm {
            Algorithm::Gumbel => simulations,
            Algorithm::Puct | Algorithm::Afterstate => {
                let counted = inherited.min((params.inherit_cap * simulations as f32) as u32);
                simulations.saturating_sub(counted).max(params.min_simulations.min(simulations))
            }
        };
        self.simulations_left[b] = self.budget[b];
        self.schedule[b] = self.schedule_for(simulations, params);
        self.reset_value_sum(b, row);
        let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
        let noise = &mut self.noise[at];
        noise.fill(0.0);
        self.dirichlet_epsilon[b] = 0.0;
        if exploration == Exploration::Noisy {
            match params.algorithm {
                Algorithm::Gumbel => {
                    let mut stream = key.key(Purpose::Gumbel).stream();
                    noise[..num_edges].fill_with(|| stream.gumbel());
                }
                Algorithm::Puct | Algorithm::Afterstate => {
                    let alpha = if params.dirichlet_alpha > 0.0 {
                        params.dirichlet_alpha
                    } else {
                        10.0 / num_edges.max(1) as f32
                    };
                    key.key(Purpose::RootNoise).stream().dirichlet(alpha, &mut noise[..num_edges]);
                    self.dirichlet_epsilon[b] = params.dirichlet_epsilon;
                }
            }
        }
        if row.nodes[ROOT as usize].is_proven() {
            self.end_ply(b);
        }
    }

    /// Index of the schedule for this budget, which is built on first use, beyond some in place of one that no row has.
    fn schedule_for(&mut self, simulations: u32, params: &SearchParams) -> u16 {
        if params.algorithm != Algorithm::Gumbel {
            return 0;
        }
        if let Some(index) = self.schedules.iter().position(|s| s.budget == simulations) {
            return index as u16;
        }
        let new = SequentialHalvingSchedule::new(simulations, params.max_num_considered_actions as usize);
        let rows_have = |index: usize| self.schedule.iter().any(|&of_row| usize::from(of_row) == index);
        let index = match self.schedules.len() < self.schedule.len() + SPARE_SCHEDULES {
            true => self.schedules.len(),
            false => (0..self.schedules.len()).find(|&index| !rows_have(index)).unwrap_or(0),
        };
        match self.schedules.get_mut(index) {
            Some(old) => *old = new,
            None => self.schedules.push(new),
        }
        index as u16
    }

    /// Derives a kept subtree's root value sum from the sum for its player to move. Exact in a two-player zero-sum game;
    /// otherwise the other players get the root's own evaluation times its visits.
    fn reset_value_sum(&mut self, b: usize, row: &RowMut<'_>) {
        let node = &row.nodes[ROOT as usize];
        let mover = usize::from(node.player);
        let sum = &mut self.value_sum[b * self.players..(b + 1) * self.players];
        for (player, s) in sum.iter_mut().enumerate() {
            *s = match (node.visits, player == mover, self.zero_sum_pair) {
                (0, _, _) => 0.0,
                (_, true, _) => node.value_sum,
                (_, false, true) => -node.value_sum,
                _ => row.value(ROOT)[player] * node.visits as f32,
            };
        }
    }

    /// Writes the search result of row `b` to `out`.
    pub fn summarise(&self, b: usize, row: &RowMut<'_>, params: &SearchParams, out: &mut RootSummary) {
        let node = &row.nodes[ROOT as usize];
        let (e, mover) = (usize::from(node.num_edges), usize::from(node.player));
        let edges = row.edges(ROOT);
        let base = &self.base_visits[b * self.padded..(b + 1) * self.padded];
        out.actions.clear();
        out.actions.extend_from_slice(&row.actions(ROOT)[..e]);
        out.visits.clear();
        out.visits.extend_from_slice(&edges.visits[..e]);
        out.new_visits.clear();
        out.new_visits.extend(edges.visits[..e].iter().zip(base).map(|(n, b)| n - b));
        out.prior.clear();
        out.prior.extend_from_slice(&edges.prior[..e]);
        out.q.clear();
        out.q.extend((0..e).map(|i| match (edges.visits[i], edges.value_sum[i]) {
            (_, REFUTED) => -1.0,
            (0, _) => node.mean(),
            (n, w) => w / n as f32,
        }));
        out.player = node.player;
        out.proven = node.is_proven();
        out.value.clear();
        if out.proven {
            out.value.extend_from_slice(row.value(ROOT));
        } else {
            let sum = &self.value_sum[b * self.players..(b + 1) * self.players];
            out.value.extend(sum.iter().map(|s| s / node.visits.max(1) as f32));
        }
        out.policy.clear();
        if out.proven {
            proven_policy(row, out.value[mover], out);
        } else {
            match params.algorithm {
                Algorithm::Puct | Algorithm::Afterstate => self.visit_policy(b, row, params, out),
                Algorithm::Gumbel => self.improved_policy(b, row, params, out),
            }
        }
    }

    /// PUCT's policy target: new visits plus inherited visits of capped weight; 0 for refuted edges, [`open_priors`] without any.
    fn visit_policy(&self, b: usize, row: &RowMut<'_>, params: &SearchParams, out: &mut RootSummary) {
        let edges = row.edges(ROOT);
        let e = out.actions.len();
        let inherited: i32 = out.visits.iter().zip(&out.new_visits).map(|(n, new)| n - new).sum();
        let cap = params.inherit_cap * (self.budget[b].max(1)) as f32;
        let weight = if inherited as f32 > cap { cap / inherited as f32 } else { 1.0 };
        out.policy.extend((0..e).map(|i| {
            let counted = out.new_visits[i] as f32 + weight * (out.visits[i] - out.new_visits[i]) as f32;
            if edges.value_sum[i] == REFUTED { 0.0 } else { counted }
        }));
        if normalise(&mut out.policy).is_none() {
            open_priors(edges.value_sum, out);
        }
        out.best = argmax(&out.policy);
    }

    /// Gumbel's policy target, the improved policy (equation 11). The best action is that of the best score among the most
    /// visited.
    fn improved_policy(&self, b: usize, row: &RowMut<'_>, params: &SearchParams, out: &mut RootSummary) {
        let edges = row.used_edges(ROOT);
        let e = out.actions.len();
        let own = row.value(ROOT)[usize::from(out.player)];
        let improved = CompletedQ::of::<Portable>(&edges, own, params);
        out.scratch.resize(self.padded, 0.0);
        improved.weights::<Portable>(&edges, &mut out.scratch);
        out.policy.extend_from_slice(&out.scratch[..e]);
        if normalise(&mut out.policy).is_none() {
            open_priors(edges.value_sum, out);
        }
        let view = RootView {
            noise: &self.noise[b * self.padded..(b + 1) * self.padded],
            dirichlet_epsilon: 0.0,
            base_visits: &self.base_visits[b * self.padded..(b + 1) * self.padded],
            considered_visits: 0,
        };
        gumbel_scores::<Portable>(row, &view, params, &mut out.scratch);
        let max =
            (0..e).filter(|&i| edges.value_sum[i] != REFUTED).map(|i| out.new_visits[i]).max().unwrap_or(0);
        for i in 0..e {
            if out.new_visits[i] != max {
                out.scratch[i] = f32::NEG_INFINITY;
            }
        }
        out.best = argmax(&out.scratch[..e]);
    }
}

/// The result of a search at its root. Vectors are `[legal actions]`, in the order of the legal list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RootSummary {
    /// The legal actions.
    pub actions: Vec<u16>,
    /// Visits, inherited ones included.
    pub visits: Vec<i32>,
    /// Visits by this ply's simulations.
    pub new_visits: Vec<i32>,
    /// The network's priors.
    pub prior: Vec<f32>,
    /// Mean value for the player to move; the root's mean for edges without visits.
    pub q: Vec<f32>,
    /// The policy target. Sums to 1.
    pub policy: Vec<f32>,
    /// Mean value of the root for every player, or its proven value. `[P]` After a kept subtree, in a game that is not one of two players
    /// whose returns sum to 0, inherited visits count with the network's own value for all but the player to move.
    pub value: Vec<f32>,
    /// Index of the best action.
    pub best: usize,
    /// The player to move.
    pub player: u8,
    /// True if `value` is proven.
    pub proven: bool,
    scratch: Vec<f32>,
}

/// The policy of a root that is not proven, where no edge that may be played has weight: the priors of the edges that are not refuted, all
/// alike where even these vanish.
fn open_priors(value_sum: &[f32], out: &mut RootSummary) {
    let is_open = |i: usize| value_sum[i] != REFUTED;
    for (i, (weight, prior)) in out.policy.iter_mut().zip(&out.prior).enumerate() {
        *weight = if is_open(i) { *prior } else { 0.0 };
    }
    if normalise(&mut out.policy).is_none() {
        out.policy.iter_mut().enumerate().for_each(|(i, weight)| *weight = f32::from(u8::from(is_open(i))));
        normalise(&mut out.policy);
    }
}

/// The policy of a proven root: proportional to visits over the edges that reach the proven value. A lost root gets its
/// priors, since all its edges are equally bad.
fn proven_policy(row: &RowMut<'_>, value: f32, out: &mut RootSummary) {
    let edges = row.edges(ROOT);
    let e = out.actions.len();
    out.policy.extend((0..e).map(|i| {
        let reaches = value > -1.0 && row.edge_bounds(ROOT, i).0 >= value;
        if reaches { edges.visits[i].max(1) as f32 } else { 0.0 }
    }));
    if normalise(&mut out.policy).is_some() {
        out.best = argmax(&out.policy);
        return;
    }
    out.policy.copy_from_slice(&out.prior);
    out.best = (0..e).fold(0, |best, i| if out.visits[i] > out.visits[best] { i } else { best });
}

/// Scales `weights` to sum to 1. Returns None and changes nothing if their sum is not positive and finite.
pub fn normalise(weights: &mut [f32]) -> Option<()> {
    let total = math::sum(weights.iter().copied());
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    weights.iter_mut().for_each(|w| *w /= total);
    Some(())
}

/// The index of the largest entry, the lowest on ties; 0 for an empty slice.
pub fn argmax(scores: &[f32]) -> usize {
    (0..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_count_beyond_65_536_visits() {
        let schedule = SequentialHalvingSchedule::new(200_000, 2);
        assert_eq!(schedule.visits(1, 199_999), 199_999);
        assert_eq!([199_997, 199_998, 199_999].map(|i| schedule.visits(2, i)), [99_998, 99_999, 99_999]);
        assert_eq!(schedule.visits(2, 200_000), i32::MAX, "beyond the budget");
    }
}
