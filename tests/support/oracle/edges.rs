//! One node's edges and the formulas over them.

use vecaz::math;
use vecaz::search::SearchParams;

/// An edge of a node.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) action: u16,
    /// The network's prior, or the probability of the chance outcome.
    pub(super) prior: f32,
    pub(super) visits: i32,
    /// Sum of values for the player to move.
    pub(super) value_sum: f32,
    /// Proven bounds for the player to move, as of the last simulation that passed here.
    pub(super) bounds: ProvenBounds,
    pub(super) child: Option<usize>,
}

impl Edge {
    pub(super) fn new(action: u16, prior: f32) -> Self {
        Self { action, prior, visits: 0, value_sum: 0.0, bounds: ProvenBounds::OPEN, child: None }
    }

    /// True if the edge is proven lost; selection then skips it.
    pub(super) fn is_lost(&self) -> bool {
        self.bounds.upper <= -1.0
    }

    pub(super) fn unless_lost(&self, score: f32) -> Option<f32> {
        (!self.is_lost()).then_some(score)
    }

    /// Q; None if the edge was never taken.
    pub(super) fn mean(&self) -> Option<f32> {
        (self.visits > 0).then(|| self.value_sum / self.visits as f32)
    }

    fn prior_if_taken(&self) -> f32 {
        if self.visits > 0 { self.prior } else { 0.0 }
    }

    /// True if the edge is proven to reach `value` and `value` is not a loss.
    pub(super) fn reaches(&self, value: f32) -> bool {
        value > -1.0 && self.bounds.lower >= value
    }

    /// The edge's weight in the policy of a root whose proven value is `value`.
    pub(super) fn proven_weight(&self, value: f32) -> f32 {
        if self.reaches(value) { self.visits as f32 } else { 0.0 }
    }
}

/// The policy where no edge that may be played has weight: the priors of the edges that are not lost, all alike where these vanish.
pub(super) fn open_priors(edges: &[Edge]) -> Vec<f32> {
    let shares = |weight: &dyn Fn(&Edge) -> f32| {
        let weights: Vec<f32> = edges.iter().map(|e| if e.is_lost() { 0.0 } else { weight(e) }).collect();
        let mass = math::sum(weights.iter().copied());
        (mass > 0.0).then(|| weights.iter().map(|w| w / mass).collect())
    };
    shares(&|e| e.prior).or_else(|| shares(&|_| 1.0)).expect("an edge that is not lost")
}

/// Index of the first of the largest scores; 0 if there is none.
pub(super) fn argmax(scores: impl Iterator<Item = Option<f32>>) -> usize {
    let mut best: Option<(usize, f32)> = None;
    for (i, score) in scores.enumerate() {
        if let Some(score) = score
            && best.is_none_or(|(_, max)| score > max)
        {
            best = Some((i, score));
        }
    }
    best.map_or(0, |(i, _)| i)
}

/// Proven bounds of a value, for one player of a two-player zero-sum game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProvenBounds {
    pub(super) lower: f32,
    pub(super) upper: f32,
}

impl ProvenBounds {
    /// Nothing is proven.
    pub(super) const OPEN: Self = Self { lower: -1.0, upper: 1.0 };

    /// The bounds of a known value.
    pub(super) fn exact(value: f32) -> Self {
        Self { lower: value, upper: value }
    }

    /// The bounds for the other player.
    pub(super) fn opposite(self) -> Self {
        Self { lower: -self.upper, upper: -self.lower }
    }

    pub(super) fn is_exact(self) -> bool {
        self.lower >= self.upper
    }

    /// The bounds of a player who chooses among `edges`: the largest lower and the largest upper bound.
    pub(super) fn of_choice(edges: &[Edge]) -> Self {
        edges.iter().fold(Self::exact(-1.0), |best, Edge { bounds, .. }| Self {
            lower: best.lower.max(bounds.lower),
            upper: best.upper.max(bounds.upper),
        })
    }
}

/// Q of edges without visits, at a node whose mean value is `mean`.
pub(super) fn first_play_urgency(edges: &[Edge], mean: f32, params: &SearchParams) -> f32 {
    let mass = math::sum(edges.iter().map(Edge::prior_if_taken));
    (mean - params.fpu_reduction * mass.sqrt()).max(-1.0)
}

/// Completed Q and the improved policy of Danihelka et al. 2022.
pub(super) struct CompletedQ {
    /// Sum of the edges' visits.
    pub(super) visits: f32,
    scale: f32,
    mixed: f32,
}

impl CompletedQ {
    /// Computes the mixed value v_mix = (v + sum N * (sum of pi q over visited edges / sum of pi over them)) / (1 + sum N),
    /// equation 33, and the scale of sigma, (c_visit + max N) c_scale, halved because Q spans [-1, 1] instead of [0, 1].
    pub(super) fn of(edges: &[Edge], own_value: f32, params: &SearchParams) -> Self {
        let visits = edges.iter().map(|edge| edge.visits).sum::<i32>() as f32;
        let max_visits = edges.iter().map(|edge| edge.visits).max().unwrap_or(0) as f32;
        let mass = math::sum(edges.iter().map(Edge::prior_if_taken));
        let weighted = math::sum(edges.iter().map(|edge| match edge.mean() {
            Some(_) if edge.is_lost() => -edge.prior,
            Some(q) => edge.prior * q.max(-1.0),
            None => 0.0,
        }));
        let mean = if mass > 0.0 { weighted / mass } else { own_value };
        Self {
            visits,
            scale: (params.c_visit + max_visits) * params.c_scale * 0.5,
            mixed: (own_value + visits * mean) / (1.0 + visits),
        }
    }

    /// sigma of the completed Q, equation 10: Q of visited edges, the mixed value of the others.
    pub(super) fn sigma(&self, edge: &Edge) -> f32 {
        self.scale * edge.mean().unwrap_or(self.mixed)
    }

    /// The improved policy of equation 11 before normalisation: prior x exp(sigma - max sigma), 0 for lost edges.
    pub(super) fn weights(&self, edges: &[Edge]) -> Vec<f32> {
        let open = edges.iter().filter(|edge| !edge.is_lost());
        let max = open.map(|edge| self.sigma(edge)).fold(f32::NEG_INFINITY, f32::max);
        edges
            .iter()
            .map(|edge| if edge.is_lost() { 0.0 } else { edge.prior * math::exp(self.sigma(edge) - max) })
            .collect()
    }
}
