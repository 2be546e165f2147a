//! Selection of edges.

use super::ReferenceSearch;
use super::edges::{self, CompletedQ, argmax};
use vecaz::config::Algorithm;
use vecaz::game::Game;
use vecaz::math;
use vecaz::rng::Purpose;
use vecaz::tree::NodeKind;

impl<G: Game> ReferenceSearch<G> {
    pub(super) fn choose(&self, at: usize) -> usize {
        match (self.nodes[at].kind, self.params.algorithm) {
            (NodeKind::Chance, _) => self.choose_outcome(at),
            (_, Algorithm::Puct) => self.choose_puct(at),
            (_, Algorithm::Gumbel) if at == 0 => self.choose_gumbel_root(),
            (_, Algorithm::Gumbel) if self.nodes[at].visits >= self.params.puct_visits as i32 => {
                self.choose_puct(at)
            }
            (_, Algorithm::Gumbel) => self.choose_gumbel(at),
            (_, Algorithm::Afterstate) => panic!("afterstate has no tree"),
        }
    }

    /// argmax of Q(s, a) + C(s) P(s, a) sqrt(N(s)) / (1 + N(s, a)).
    fn choose_puct(&self, at: usize) -> usize {
        let node = &self.nodes[at];
        let n = node.visits as f32;
        let c_base = self.params.c_base;
        let exploration_factor = (math::ln((1.0 + n + c_base) / c_base) + self.params.c_init) * n.sqrt();
        let urgency = edges::first_play_urgency(&node.edges, node.mean(), &self.params);
        let share = if at == 0 { self.ply.dirichlet_epsilon } else { 0.0 };
        argmax(node.edges.iter().enumerate().map(|(i, edge)| {
            let prior =
                if share > 0.0 { (1.0 - share) * edge.prior + share * self.ply.noise[i] } else { edge.prior };
            let q = edge.mean().unwrap_or(urgency);
            edge.unless_lost(q + exploration_factor * prior / (1 + edge.visits) as f32)
        }))
    }

    /// Below the root: argmax of pi'(a) - N(a) / (1 + sum N), equation 14.
    fn choose_gumbel(&self, at: usize) -> usize {
        let node = &self.nodes[at];
        let improved = CompletedQ::of(&node.edges, node.own_value(), &self.params);
        let weights = improved.weights(&node.edges);
        let total = math::sum(weights.iter().copied());
        let inverse = if total > 0.0 { 1.0 / total } else { 0.0 };
        let share = 1.0 / (1.0 + improved.visits);
        argmax(
            node.edges
                .iter()
                .zip(weights)
                .map(|(edge, weight)| edge.unless_lost(weight * inverse - edge.visits as f32 * share)),
        )
    }

    /// At the root: the best g + logit + sigma among the edges with the number of visits that sequential halving schedules. If
    /// all of those are lost, the best of all edges.
    fn choose_gumbel_root(&self) -> usize {
        let root = &self.nodes[0];
        let scores = self.gumbel_scores();
        let num_considered = root.edges.len().min(self.params.max_num_considered_actions as usize);
        let due = halving_visits(self.ply.simulations as usize, num_considered, self.ply.run as usize) as i32;
        let scheduled =
            || root.edges.iter().zip(&scores).map(|(e, &s)| if e.visits == due { s } else { None });
        if scheduled().any(|score| score.is_some()) {
            argmax(scheduled())
        } else {
            argmax(scores.into_iter())
        }
    }

    /// g + logit + sigma of every root edge; None for lost edges.
    pub(super) fn gumbel_scores(&self) -> Vec<Option<f32>> {
        let root = &self.nodes[0];
        let improved = CompletedQ::of(&root.edges, root.own_value(), &self.params);
        let scored = root.edges.iter().zip(&self.ply.noise);
        scored
            .map(|(edge, gumbel)| edge.unless_lost(gumbel + math::ln(edge.prior) + improved.sigma(edge)))
            .collect()
    }

    /// The outcome at a number that is drawn for the node, and in each further visit a golden ratio, as 32 bits, after that before.
    fn choose_outcome(&self, at: usize) -> usize {
        let node = &self.nodes[at];
        let key = self.ply.key.key(Purpose::SearchChance);
        let mut number = key.with(at as u64).stream().next_u64() / (1 << 32);
        for _ in 0..node.visits {
            number = (number + 2_654_435_769) % (1 << 32);
        }
        let mut x = (number / 256) as f32 / 16_777_216.0;
        for (i, edge) in node.edges.iter().enumerate() {
            x -= edge.prior;
            if x < 0.0 {
                return i;
            }
        }
        node.edges.len() - 1
    }
}

/// The visits of the actions among which sequential halving selects in simulation number `simulation` of `budget` (algorithm 1
/// of Danihelka et al. 2022). `num_considered` actions share the budget in log2(num_considered) equal rounds. After each round the
/// better half remains, at least two, and the last round lasts until the budget is spent.
fn halving_visits(budget: usize, num_considered: usize, simulation: usize) -> usize {
    if num_considered < 2 {
        return simulation;
    }
    let mut rounds = 0;
    while 1 << rounds < num_considered {
        rounds += 1;
    }
    let (mut survivors, mut visits, mut left) = (num_considered, 0, simulation);
    loop {
        let sweeps = (budget / (rounds * survivors)).max(1);
        if left < sweeps * survivors {
            return visits + left / survivors;
        }
        left -= sweeps * survivors;
        visits += sweeps;
        survivors = (survivors / 2).max(2);
    }
}
