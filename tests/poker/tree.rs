//! All positions of a small game for two players whose chips sum to 0, and exact figures of strategies in it.
//!
//! The positions are listed level by level, a level being those after equally many plies. Figures are in chips ([`Game::scores`]).

use std::collections::HashMap;
use std::ops::Range;
use vecaz::game::{Game, History, Turn};

/// Positions that the player to move cannot distinguish.
pub struct InfoState {
    /// The player to move.
    pub player: u8,
    /// What the player observes in each of them. `[F]`
    pub observation: Vec<f32>,
    /// The legal actions, ascending.
    pub legal: Vec<u16>,
    /// The actions and outcomes of chance that lead to one of them.
    pub actions: Vec<u16>,
    /// The player's last decision.
    last: LastDecision,
}

/// A player's last decision, if there was one: the number of its information state, and the action.
type LastDecision = Option<(usize, u16)>;

/// A behaviour strategy of both players: the probabilities of the legal actions in each information state.
/// `[information states][legal actions]`
pub type Strategy = Vec<Vec<f64>>;

/// Who decides in a position, and by what.
enum Decider {
    /// Nobody: the game is over, and player 0 has won these chips.
    End(f64),
    /// Chance, with these probabilities of the children.
    Chance(Vec<f64>),
    /// A player, in the information state of this number.
    InfoState(usize),
}

struct Node {
    decider: Decider,
    /// The positions after each action or outcome, in order.
    children: Range<usize>,
}

/// The positions of a game.
pub struct GameTree {
    nodes: Vec<Node>,
    levels: Vec<Range<usize>>,
    info_states: Vec<InfoState>,
}

/// Exact figures of a strategy, in chips a game.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// What player 0 wins where both play it.
    pub value: f64,
    /// What each player gains by the best response to it. `[2]`
    pub gains: [f64; 2],
}

impl Figures {
    /// The sum of what both players gain.
    pub fn nash_conv(&self) -> f64 {
        self.gains[0] + self.gains[1]
    }

    /// Half of it: what a best response wins on average over both seats. 0 for an equilibrium alone.
    pub fn exploitability(&self) -> f64 {
        self.nash_conv() / 2.0
    }
}

impl GameTree {
    /// The positions of `game`.
    ///
    /// # Panics
    /// If a player does not remember the own earlier decisions, or positions of one information state differ in their plies or legal actions.
    pub fn new<G: Game>(game: &G) -> Self {
        let (mut nodes, mut levels) = (Vec::new(), Vec::new());
        let mut info_states = InfoStates::default();
        let mut level = vec![Reached { state: game.init(), actions: Vec::new(), last: [None; 2] }];
        while !level.is_empty() {
            let (first, below) = (nodes.len(), nodes.len() + level.len());
            let mut next = Vec::new();
            for reached in &level {
                let (legal, start) = (reached.legal(game), below + next.len());
                let decider = info_states.decider(game, reached, &legal);
                next.extend(legal.iter().map(|&action| reached.after(game, &decider, action)));
                nodes.push(Node { decider, children: start..below + next.len() });
            }
            levels.push(first..below);
            level = next;
        }
        Self { nodes, levels, info_states: info_states.list }
    }

    /// The information states.
    pub fn info_states(&self) -> &[InfoState] {
        &self.info_states
    }

    /// The strategy with the probabilities that `of` gives for the legal actions of an information state.
    ///
    /// # Panics
    /// If they are not probabilities.
    pub fn strategy(&self, of: impl FnMut(&InfoState) -> Vec<f64>) -> Strategy {
        let strategy: Strategy = self.info_states.iter().map(of).collect();
        for (probs, info) in strategy.iter().zip(&self.info_states) {
            let are_probs = probs.len() == info.legal.len() && probs.iter().all(|&p| p >= 0.0);
            assert!(are_probs && (probs.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{probs:?}");
        }
        strategy
    }

    /// The exact figures of `strategy`.
    pub fn figures(&self, strategy: &Strategy) -> Figures {
        let value = self.value(strategy);
        let [first, second] = [0, 1].map(|player| self.best_response(strategy, player));
        Figures { value, gains: [first - value, second + value] }
    }

    /// What player 0 wins where both play `strategy`.
    pub fn value(&self, strategy: &Strategy) -> f64 {
        let mut values = vec![0.0; self.nodes.len()];
        for node in (0..self.nodes.len()).rev() {
            values[node] = self.mean(node, strategy, &values);
        }
        values[0]
    }

    /// What `player` wins by the best response to `strategy`.
    pub fn best_response(&self, strategy: &Strategy, player: u8) -> f64 {
        let reach = self.reach(strategy, player);
        // Of player 0. [nodes]
        let mut values = vec![0.0; self.nodes.len()];
        for level in self.levels.iter().rev() {
            let responses = self.responses(level, player, &reach, &values);
            for node in level.clone() {
                values[node] = match (self.responder(node, player), &self.nodes[node]) {
                    (Some(number), Node { children, .. }) => values[children.start + responses[&number]],
                    (None, _) => self.mean(node, strategy, &values),
                };
            }
        }
        sign(player) * values[0]
    }

    /// The index of the best action in each information state of `player` on `level`, whose children have these `values` for player 0.
    fn responses(
        &self,
        level: &Range<usize>,
        player: u8,
        reach: &[f64],
        values: &[f64],
    ) -> HashMap<usize, usize> {
        let mut totals: HashMap<usize, Vec<f64>> = HashMap::new();
        for node in level.clone() {
            let Some(number) = self.responder(node, player) else { continue };
            let children = &self.nodes[node].children;
            let of_actions = totals.entry(number).or_insert_with(|| vec![0.0; children.len()]);
            for (total, value) in of_actions.iter_mut().zip(&values[children.clone()]) {
                *total += sign(player) * reach[node] * value;
            }
        }
        let best = |totals: Vec<f64>| (0..totals.len()).max_by(|&a, &b| totals[a].total_cmp(&totals[b]));
        totals.into_iter().map(|(number, totals)| (number, best(totals).expect("an action"))).collect()
    }

    /// The information state of a node where `player` decides.
    fn responder(&self, node: usize, player: u8) -> Option<usize> {
        match self.nodes[node].decider {
            Decider::InfoState(number) if self.info_states[number].player == player => Some(number),
            _ => None,
        }
    }

    /// The probability of each node where `player` does all to reach it, and chance and the other decide as in `strategy`. `[nodes]`
    fn reach(&self, strategy: &Strategy, player: u8) -> Vec<f64> {
        let mut reach = vec![1.0; self.nodes.len()];
        for node in 0..self.nodes.len() {
            let is_responder = self.responder(node, player).is_some();
            for (child, &prob) in self.nodes[node].children.clone().zip(self.probs(node, strategy)) {
                reach[child] = if is_responder { reach[node] } else { reach[node] * prob };
            }
        }
        reach
    }

    /// The value of a node for player 0, of those of its children. `values [nodes]`
    fn mean(&self, node: usize, strategy: &Strategy, values: &[f64]) -> f64 {
        let Node { decider, children } = &self.nodes[node];
        match decider {
            Decider::End(chips) => *chips,
            Decider::Chance(_) | Decider::InfoState(_) => {
                let probs = self.probs(node, strategy);
                probs.iter().zip(&values[children.clone()]).map(|(prob, value)| prob * value).sum()
            }
        }
    }

    /// The probabilities of a node's children.
    fn probs<'a>(&'a self, node: usize, strategy: &'a Strategy) -> &'a [f64] {
        match &self.nodes[node].decider {
            Decider::End(_) => &[],
            Decider::Chance(probs) => probs,
            Decider::InfoState(number) => &strategy[*number],
        }
    }
}

/// 1 for player 0, -1 for player 1.
fn sign(player: u8) -> f64 {
    1.0 - 2.0 * f64::from(player)
}

/// A position with the way to it.
struct Reached<S> {
    state: S,
    actions: Vec<u16>,
    last: [LastDecision; 2],
}

impl<S: Copy> Reached<S> {
    fn legal<G: Game<State = S>>(&self, game: &G) -> Vec<u16> {
        if game.turn(&self.state) == Turn::Over {
            return Vec::new();
        }
        let mut legal = vec![0; game.sizes().num_edges()];
        let count = game.legal(&self.state, History::default(), &mut legal);
        legal.truncate(count);
        legal
    }

    fn after<G: Game<State = S>>(&self, game: &G, decider: &Decider, action: u16) -> Self {
        let mut after = Self { actions: self.actions.clone(), ..*self };
        game.step(&mut after.state, action, History::default());
        after.actions.push(action);
        if let (Turn::Player(player), Decider::InfoState(number)) = (game.turn(&self.state), decider) {
            after.last[usize::from(player)] = Some((*number, action));
        }
        after
    }
}

/// The information states found so far.
#[derive(Default)]
struct InfoStates {
    list: Vec<InfoState>,
    /// Their numbers, by the player to move and the bits of the observation.
    numbers: HashMap<(u8, Vec<u32>), usize>,
}

impl InfoStates {
    fn decider<G: Game>(&mut self, game: &G, reached: &Reached<G::State>, legal: &[u16]) -> Decider {
        match game.turn(&reached.state) {
            Turn::Over => Decider::End(f64::from(game.scores(&reached.state)[0])),
            Turn::Chance => {
                let mut probs = vec![0.0; legal.len()];
                game.chance_probs(&reached.state, legal, &mut probs);
                Decider::Chance(normalised(&probs))
            }
            Turn::Player(player) => Decider::InfoState(self.number(game, reached, player, legal)),
        }
    }

    fn number<G: Game>(&mut self, game: &G, reached: &Reached<G::State>, player: u8, legal: &[u16]) -> usize {
        let mut observation = vec![0.0; game.sizes().obs.len()];
        game.observe(&reached.state, player, &mut observation);
        let key = (player, observation.iter().map(|x| x.to_bits()).collect());
        let (actions, last) = (reached.actions.clone(), reached.last[usize::from(player)]);
        let number = *self.numbers.entry(key).or_insert(self.list.len());
        if number == self.list.len() {
            self.list.push(InfoState { player, observation, legal: legal.to_vec(), actions, last });
        } else {
            let first = &self.list[number];
            assert_eq!(first.actions.len(), actions.len(), "plies of {:?} and {actions:?}", first.actions);
            assert_eq!((&first.legal[..], first.last), (legal, last), "{:?} and {actions:?}", first.actions);
        }
        number
    }
}

/// Probabilities in f64, which sum to 1 where those in f32 do but for rounding.
pub fn normalised(probs: &[f32]) -> Vec<f64> {
    let sum: f64 = probs.iter().map(|&p| f64::from(p)).sum();
    probs.iter().map(|&p| f64::from(p) / sum).collect()
}
