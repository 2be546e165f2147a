//! Games written down as trees, small enough to search by hand.

use vecaz::game::{Game, History, ObsShape, Sizes, Turn};

/// A position: who decides, and what follows.
#[derive(Clone, Debug)]
pub enum TreeNode {
    /// This player moves; action i leads to the i-th node.
    Moves(u8, Vec<usize>),
    /// Outcome i, with its probability, leads to its node.
    Deals(Vec<(f32, usize)>),
    /// The game is over with these returns.
    Ends(Vec<f32>),
}

/// A game of `players` players that starts at `nodes[0]`.
#[derive(Clone, Debug)]
pub struct TreeGame {
    pub players: usize,
    pub nodes: Vec<TreeNode>,
}

const OBS: usize = 3;

impl Game for TreeGame {
    /// The node's number.
    type State = u64;
    const NAME: &'static str = "tree_game";

    fn from_options(_: &toml::Table) -> vecaz::Result<Self> {
        Err(vecaz::Error::unsupported("tree_game by options", "it is written down as a tree"))
    }

    fn options(&self) -> toml::Table {
        toml::Table::new()
    }

    fn aim(&self, player: u8) -> String {
        format!("player {player} reaches the place with its highest value")
    }

    fn sizes(&self) -> Sizes {
        let lens = self.nodes.iter().map(|node| match node {
            TreeNode::Moves(_, next) => (next.len(), 0),
            TreeNode::Deals(next) => (0, next.len()),
            TreeNode::Ends(_) => (0, 0),
        });
        let (max_legal, num_chance) = lens.fold((0, 0), |(a, b), (c, d)| (a.max(c), b.max(d)));
        Sizes {
            num_players: self.players,
            num_actions: max_legal,
            max_legal,
            num_chance,
            max_chance_run: usize::from(num_chance > 0),
            obs: ObsShape { channels: OBS, height: 1, width: 1 },
            max_plies: self.nodes.len(),
            zero_sum: self.players == 2,
            ..Sizes::default()
        }
    }

    fn init(&self) -> u64 {
        0
    }

    fn turn(&self, &s: &u64) -> Turn {
        match &self.nodes[s as usize] {
            TreeNode::Moves(player, _) => Turn::Player(*player),
            TreeNode::Deals(_) => Turn::Chance,
            TreeNode::Ends(_) => Turn::Over,
        }
    }

    fn legal(&self, &s: &u64, _: History<'_>, out: &mut [u16]) -> usize {
        let n = match &self.nodes[s as usize] {
            TreeNode::Moves(_, next) => next.len(),
            TreeNode::Deals(next) => next.len(),
            TreeNode::Ends(_) => 0,
        };
        out[..n].iter_mut().zip(0..).for_each(|(o, i)| *o = i);
        n
    }

    fn step(&self, s: &mut u64, action: u16, _: History<'_>) {
        let action = usize::from(action);
        *s = match &self.nodes[*s as usize] {
            TreeNode::Moves(_, next) => next[action],
            TreeNode::Deals(next) => next[action].1,
            TreeNode::Ends(_) => unreachable!("no action is legal"),
        } as u64;
    }

    fn chance_probs(&self, &s: &u64, outcomes: &[u16], out: &mut [f32]) {
        if let TreeNode::Deals(next) = &self.nodes[s as usize] {
            for (o, &outcome) in out.iter_mut().zip(outcomes) {
                *o = next[usize::from(outcome)].0;
            }
        }
    }

    fn observe(&self, &s: &u64, player: u8, out: &mut [f32]) {
        out.copy_from_slice(&[s as f32, f32::from(player), 1.0]);
    }

    fn returns(&self, &s: &u64, out: &mut [f32]) {
        if let TreeNode::Ends(returns) = &self.nodes[s as usize] {
            out.copy_from_slice(returns);
        }
    }

    fn action_name(&self, _: &u64, action: u16) -> String {
        action.to_string()
    }
}
