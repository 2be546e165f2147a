//! Opponents without a network: uniformly random, and Monte Carlo tree search with random rollouts.
//!
//! The search is UCT (Kocsis and Szepesvári 2006, <https://doi.org/10.1007/11871842_29>): UCB1 over the mean return of the
//! player to move (max^n with more than two players), and one random rollout to the end of the game per simulation. Chance
//! outcomes are sampled. Hidden information is sampled at the root, [`DETERMINISATIONS`] times, and the root visits are summed.

use super::Playthrough;
use crate::error::Result;
use crate::game::{Game, History, MAX_PLAYERS, Sizes, Turn};
use crate::math;
use crate::rng::{Key, RngStream};
use crate::stop::Stop;

/// Determinisations among which a search divides its simulations.
pub const DETERMINISATIONS: usize = 16;

/// A player without a network.
pub trait Player: Send {
    /// Chooses a legal action for the player to move. Equal `position` and `key` give equal actions, except for external
    /// programs.
    ///
    /// # Errors
    /// Those of an external program; [`crate::Error::Stopped`] after [`Player::stop_by`].
    fn choose(&mut self, position: &Playthrough, key: Key) -> Result<u16>;

    /// [`Player::choose`], or the resignation of a player that can resign.
    ///
    /// # Errors
    /// Those of [`Player::choose`].
    fn decide(&mut self, position: &Playthrough, key: Key) -> Result<Decision> {
        self.choose(position, key).map(Decision::Play)
    }

    /// Sets a request that ends long choices.
    fn stop_by(&mut self, _stop: &Stop) {}
}

/// What a player does with its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It plays this action.
    Play(u16),
    /// It gives the game up.
    Resign,
}

/// Plays every legal action with the same probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomPlayer;

impl Player for RandomPlayer {
    fn choose(&mut self, position: &Playthrough, key: Key) -> Result<u16> {
        let legal = position.legal();
        Ok(legal[key.stream().below(legal.len())])
    }
}

/// The search parameters of a rollout player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RolloutSettings {
    /// Simulations per move, at least 1.
    pub simulations: usize,
    /// Factor of the confidence bound in UCB1, for returns in [-1, 1].
    pub exploration: f32,
}

impl RolloutSettings {
    /// The default exploration factor with this number of simulations.
    pub fn new(simulations: usize) -> Self {
        Self { simulations, exploration: 2.0 }
    }
}

/// One node of the search tree; its edges are `edges[first_edge..][..num_edges]`.
struct Node<S> {
    state: S,
    turn: Turn,
    first_edge: usize,
    num_edges: usize,
    visits: u32,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    action: u16,
    visits: u32,
    /// Sum of the returns for the player to move at the node.
    value_sum: f32,
    /// Index of the child; `NO_NODE` before the first visit.
    child: usize,
}

const NO_NODE: usize = usize::MAX;

/// A UCT player of `G`. Its buffers are reused from move to move.
pub struct RolloutPlayer<G: Game> {
    game: G,
    sizes: Sizes,
    settings: RolloutSettings,
    nodes: Vec<Node<G::State>>,
    edges: Vec<Edge>,
    /// Edges from the root to the leaf, with the players who took them; without chance edges.
    path: Vec<(usize, u8)>,
    /// History keys of the positions on the path, from the root on.
    keys: Vec<u64>,
    /// `[E]`
    legal: Vec<u16>,
    /// `[E]`
    probs: Vec<f32>,
    stop: Stop,
}

impl<G: Game> RolloutPlayer<G> {
    /// A player with empty buffers.
    pub fn new(game: G, settings: RolloutSettings) -> Self {
        let sizes = game.sizes();
        Self {
            legal: vec![0; sizes.num_edges()],
            probs: vec![0.0; sizes.num_edges()],
            game,
            sizes,
            settings,
            nodes: Vec::new(),
            edges: Vec::new(),
            path: Vec::new(),
            keys: Vec::new(),
            stop: Stop::default(),
        }
    }

    /// Searches a position and returns (action, visits, sum of returns for the player to move) of each legal action, in the
    /// order of the legal list. There are fewer simulations if a stop is requested.
    pub fn search(&mut self, state: &G::State, played: &[u64], key: Key) -> Vec<(u16, u32, f32)> {
        let Turn::Player(player) = self.game.turn(state) else { return Vec::new() };
        let draws = if self.sizes.hidden_information { DETERMINISATIONS } else { 1 };
        let mut summary: Vec<(u16, u32, f32)> = Vec::new();
        for draw in 0..draws {
            let mut rng = key.with(draw as u64).stream();
            let root = if draws > 1 { self.game.determinise(state, player, &mut rng) } else { *state };
            // Rounded so that the draws' simulations sum to the whole budget.
            let simulations =
                (draw + 1) * self.settings.simulations / draws - draw * self.settings.simulations / draws;
            self.search_tree(root, played, simulations, &mut rng);
            let root_edges = &self.edges[..self.nodes[0].num_edges];
            if summary.is_empty() {
                summary = root_edges.iter().map(|edge| (edge.action, 0, 0.0)).collect();
            }
            for (sum, edge) in summary.iter_mut().zip(root_edges) {
                sum.1 += edge.visits;
                sum.2 += edge.value_sum;
            }
        }
        summary
    }

    /// Searches `root` in a new tree, whose node 0 is the root.
    fn search_tree(&mut self, root: G::State, played: &[u64], simulations: usize, rng: &mut RngStream) {
        self.nodes.clear();
        self.edges.clear();
        self.keys.clear();
        self.add_node(root, played);
        for _ in 0..simulations {
            if self.stop.cause().is_some() {
                return;
            }
            self.simulate(played, rng);
        }
    }

    fn simulate(&mut self, played: &[u64], rng: &mut RngStream) {
        self.path.clear();
        self.keys.clear();
        let leaf = self.descend(played, rng);
        let mut returns = [0.0; MAX_PLAYERS];
        self.roll_out(self.nodes[leaf].state, played, rng, &mut returns);
        for &(edge, player) in &self.path {
            self.edges[edge].visits += 1;
            self.edges[edge].value_sum += returns[usize::from(player)];
        }
    }

    /// Descends from the root to a finished game, a horizon or a new node, which it adds; returns the node.
    fn descend(&mut self, played: &[u64], rng: &mut RngStream) -> usize {
        let mut at = 0;
        loop {
            self.nodes[at].visits += 1;
            let edge = match self.nodes[at].turn {
                Turn::Over => return at,
                Turn::Chance => self.draw_outcome(at, rng),
                Turn::Player(player) => {
                    let edge = self.select(at, rng);
                    self.path.push((edge, player));
                    edge
                }
            };
            if self.edges[edge].child != NO_NODE {
                self.push_key(&self.nodes[at].state.clone());
                at = self.edges[edge].child;
                continue;
            }
            let child = self.expand(at, edge, played);
            // A new chance node is not a leaf: the descent continues through it.
            if self.nodes[child].turn != Turn::Chance {
                self.nodes[child].visits += 1;
                return child;
            }
            at = child;
        }
    }

    /// Selects an edge by UCB1. Edges without visits come first, in random order.
    fn select(&self, at: usize, rng: &mut RngStream) -> usize {
        let node = &self.nodes[at];
        let edges = &self.edges[node.first_edge..node.first_edge + node.num_edges];
        let untried = edges.iter().filter(|edge| edge.visits == 0).count();
        if untried > 0 {
            let nth = rng.below(untried);
            let index = (0..edges.len()).filter(|&i| edges[i].visits == 0).nth(nth);
            return node.first_edge + index.unwrap_or(0);
        }
        let log_visits = math::ln(node.visits as f32);
        let mut best = (f32::NEG_INFINITY, 0);
        for (index, edge) in edges.iter().enumerate() {
            let visits = edge.visits as f32;
            let score = edge.value_sum / visits + self.settings.exploration * (log_visits / visits).sqrt();
            if score > best.0 {
                best = (score, index);
            }
        }
        node.first_edge + best.1
    }

    fn draw_outcome(&mut self, at: usize, rng: &mut RngStream) -> usize {
        let node = &self.nodes[at];
        let edges = &self.edges[node.first_edge..node.first_edge + node.num_edges];
        for (outcome, edge) in self.legal.iter_mut().zip(edges) {
            *outcome = edge.action;
        }
        let probs = &mut self.probs[..edges.len()];
        self.game.chance_probs(&node.state, &self.legal[..edges.len()], probs);
        node.first_edge + rng.weighted(probs)
    }

    fn expand(&mut self, at: usize, edge: usize, played: &[u64]) -> usize {
        let mut state = self.nodes[at].state;
        let history = History { played, path: &self.keys };
        self.game.step(&mut state, self.edges[edge].action, history);
        self.push_key(&self.nodes[at].state.clone());
        let child = self.add_node(state, played);
        self.edges[edge].child = child;
        child
    }

    fn add_node(&mut self, state: G::State, played: &[u64]) -> usize {
        let turn = match self.game.turn(&state) {
            Turn::Chance if self.game.is_horizon(&state) => Turn::Over,
            turn => turn,
        };
        let num_edges = match turn {
            Turn::Over => 0,
            Turn::Player(_) | Turn::Chance => {
                self.game.legal(&state, History { played, path: &self.keys }, &mut self.legal)
            }
        };
        let first_edge = self.edges.len();
        let edge = |&action| Edge { action, visits: 0, value_sum: 0.0, child: NO_NODE };
        self.edges.extend(self.legal[..num_edges].iter().map(edge));
        self.nodes.push(Node { state, turn, first_edge, num_edges, visits: 0 });
        self.nodes.len() - 1
    }

    /// Plays random actions to the end of the game, or to a horizon, and writes the result there, `[P]`.
    fn roll_out(
        &mut self,
        mut state: G::State,
        played: &[u64],
        rng: &mut RngStream,
        returns: &mut [f32; MAX_PLAYERS],
    ) {
        loop {
            let turn = self.game.turn(&state);
            if turn == Turn::Over || (turn == Turn::Chance && self.game.is_horizon(&state)) {
                self.game.stage_returns(&state, &mut returns[..self.sizes.num_players]);
                return;
            }
            let history = History { played, path: &self.keys };
            let n = self.game.legal(&state, history, &mut self.legal);
            let index = if turn == Turn::Chance {
                self.game.chance_probs(&state, &self.legal[..n], &mut self.probs[..n]);
                rng.weighted(&self.probs[..n])
            } else {
                rng.below(n)
            };
            let before = state;
            self.game.step(&mut state, self.legal[index], history);
            self.push_key(&before);
        }
    }

    fn push_key(&mut self, state: &G::State) {
        if self.sizes.uses_history {
            self.keys.push(self.game.history_key(state));
        }
    }
}

impl<G: Game> Player for RolloutPlayer<G> {
    /// Chooses the most visited action; ties go to the higher mean, then to the lower action.
    fn choose(&mut self, position: &Playthrough, key: Key) -> Result<u16> {
        let state = bytemuck::pod_read_unaligned(position.state());
        let summary = self.search(&state, position.history(), key);
        self.stop.check()?;
        let mean = |&(_, visits, sum): &(u16, u32, f32)| sum / visits.max(1) as f32;
        let better = |a: &(u16, u32, f32), b: &(u16, u32, f32)| {
            a.1.cmp(&b.1).then(mean(a).total_cmp(&mean(b))).then(b.0.cmp(&a.0))
        };
        Ok(summary.into_iter().max_by(better).map_or(0, |(action, ..)| action))
    }

    fn stop_by(&mut self, stop: &Stop) {
        self.stop = stop.clone();
    }
}

#[cfg(test)]
mod tests;
