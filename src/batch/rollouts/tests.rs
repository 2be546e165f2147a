//! Rollout search on games given by their trees, and on tic-tac-toe.

use super::*;
use crate::eval::positions::{self, error_rates};
use crate::game::ObsShape;
use crate::game::blob::Blob;
use crate::registry::any_game;
use crate::rng::Purpose;
use bytemuck::{Pod, Zeroable};
use std::path::Path;

/// A node of a game given by its tree.
#[derive(Clone, Copy)]
enum TreeNode {
    /// The player to move, and the node after each action.
    Decide(u8, &'static [u32]),
    /// The probability of each outcome, and the node after it.
    Deal(&'static [(f32, u32)]),
    /// The returns of three players.
    End([f32; 3]),
}
use TreeNode::{Deal, Decide, End};

/// A game for three players given by its tree. All players have equal observations at the nodes `alike`.
#[derive(Clone)]
struct Written {
    tree: &'static [TreeNode],
    alike: &'static [u32],
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct At {
    node: u32,
}

impl Game for Written {
    type State = At;
    const NAME: &'static str = "written";

    fn from_options(_options: &toml::Table) -> Result<Self> {
        Ok(Self { tree: &[End([0.0; 3])], alike: &[] })
    }

    fn options(&self) -> toml::Table {
        toml::Table::new()
    }

    fn aim(&self, player: u8) -> String {
        format!("player {player} reaches the end with its highest value")
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_players: 3,
            num_actions: 3,
            max_legal: 3,
            num_chance: 2,
            max_chance_run: 2,
            obs: ObsShape { channels: 1, height: 1, width: 1 },
            max_plies: 8,
            zero_sum: false,
            hidden_information: !self.alike.is_empty(),
            ..Sizes::default()
        }
    }

    fn init(&self) -> At {
        At { node: 0 }
    }

    fn turn(&self, state: &At) -> Turn {
        match self.tree[state.node as usize] {
            Decide(player, _) => Turn::Player(player),
            Deal(_) => Turn::Chance,
            End(_) => Turn::Over,
        }
    }

    fn legal(&self, state: &At, _history: History<'_>, out: &mut [u16]) -> usize {
        let n = match self.tree[state.node as usize] {
            Decide(_, next) => next.len(),
            Deal(next) => next.len(),
            End(_) => 0,
        };
        (0..n).for_each(|i| out[i] = i as u16);
        n
    }

    fn step(&self, state: &mut At, action: u16, _history: History<'_>) {
        state.node = match self.tree[state.node as usize] {
            Decide(_, next) => next[usize::from(action)],
            Deal(next) => next[usize::from(action)].1,
            End(_) => state.node,
        };
    }

    fn observe(&self, _state: &At, _player: u8, out: &mut [f32]) {
        out[0] = 0.0;
    }

    fn returns(&self, state: &At, out: &mut [f32]) {
        if let End(values) = self.tree[state.node as usize] {
            out.copy_from_slice(&values);
        }
    }

    fn chance_probs(&self, state: &At, outcomes: &[u16], out: &mut [f32]) {
        if let Deal(next) = self.tree[state.node as usize] {
            outcomes.iter().zip(out).for_each(|(&o, p)| *p = next[usize::from(o)].0);
        }
    }

    fn determinise(&self, state: &At, _player: u8, rng: &mut RngStream) -> At {
        match self.alike.contains(&state.node) {
            true => At { node: self.alike[rng.below(self.alike.len())] },
            false => *state,
        }
    }

    fn action_name(&self, _state: &At, action: u16) -> String {
        action.to_string()
    }
}

/// Action searched most at `node`, with its mean.
fn searched(tree: &'static [TreeNode], alike: &'static [u32], node: u32) -> (u16, f32) {
    let mut player = RolloutPlayer::new(Written { tree, alike }, RolloutSettings::new(4000));
    let summary = player.search(&At { node }, &[], Key::new(1, Purpose::Rollout));
    assert_eq!(summary.iter().map(|s| s.1).sum::<u32>(), 4000, "every simulation is counted");
    let best = summary.iter().max_by_key(|s| s.1).unwrap();
    (best.0, best.2 / best.1 as f32)
}

#[test]
fn chance_is_averaged_by_its_probabilities() {
    // Action 1 wins with probability 0.25 and loses otherwise: -0.5. Action 0 has the value -0.3.
    const UNLIKELY: &[TreeNode] = &[
        Decide(0, &[1, 2]),
        End([-0.3, 0.0, 0.0]),
        Deal(&[(0.25, 3), (0.75, 4)]),
        End([1.0, 0.0, 0.0]),
        End([-1.0, 0.0, 0.0]),
    ];
    let (action, mean) = searched(UNLIKELY, &[], 0);
    assert_eq!(action, 0);
    assert!((mean + 0.3).abs() < 1e-4, "{mean}");
    // Two deals in a row, 0.9 each: wins with probability 0.81, value 0.62.
    const LIKELY: &[TreeNode] = &[
        Decide(0, &[1, 2]),
        End([-0.3, 0.0, 0.0]),
        Deal(&[(0.9, 5), (0.1, 4)]),
        End([1.0, 0.0, 0.0]),
        End([-1.0, 0.0, 0.0]),
        Deal(&[(0.9, 3), (0.1, 4)]),
    ];
    let (action, mean) = searched(LIKELY, &[], 0);
    assert_eq!(action, 1);
    assert!((mean - 0.62).abs() < 0.05, "{mean}");
}

#[test]
fn each_player_seeks_its_own_return() {
    // After action 0 player 2 takes the end with its higher return, 0.3, where player 0 gets -0.8. The returns of player 1 have no
    // effect. After action 1 player 0 moves again and takes the end with 0.4.
    const TREE: &[TreeNode] = &[
        Decide(0, &[1, 2]),
        Decide(2, &[3, 4]),
        Decide(0, &[5, 6]),
        End([1.0, -1.0, 0.1]),
        End([-0.8, 0.5, 0.3]),
        End([0.4, 0.9, -1.0]),
        End([-1.0, 0.0, 1.0]),
    ];
    let (action, mean) = searched(TREE, &[], 0);
    assert_eq!(action, 1);
    assert!((mean - 0.4).abs() < 0.1, "{mean}");
}

#[test]
fn hidden_information_is_not_used() {
    // Nodes 0 and 1 have equal observations. At node 0 action 0 wins, at node 1 it loses; action 1 has the value 0.2 at both.
    const TREE: &[TreeNode] = &[
        Decide(0, &[2, 3]),
        Decide(0, &[4, 3]),
        End([1.0, 0.0, 0.0]),
        End([0.2, 0.0, 0.0]),
        End([-1.0, 0.0, 0.0]),
    ];
    let visits = |node, alike| {
        let mut player = RolloutPlayer::new(Written { tree: TREE, alike }, RolloutSettings::new(4000));
        player.search(&At { node }, &[], Key::new(3, Purpose::Rollout))
    };
    let draws = visits(0, &[0, 1]);
    assert_eq!(draws, visits(1, &[0, 1]), "the search depends on hidden information");
    assert_ne!(visits(0, &[])[0], visits(1, &[])[0]);
    assert_eq!(draws.iter().map(|d| d.1).sum::<u32>(), 4000);
}

#[test]
fn the_key_alone_decides_the_search() {
    let game = any_game("connect_four", &toml::Table::new()).unwrap();
    let start = Playthrough::new(game.clone());
    let choose = |seed| {
        let mut player = game.rollout_player(RolloutSettings::new(50));
        let chosen: Vec<u16> = (0..40)
            .map(|i| player.choose(&start, Key::new(seed, Purpose::Rollout).with(i)).unwrap())
            .collect();
        chosen
    };
    assert_eq!(choose(1), choose(1));
    assert_ne!(choose(1), choose(2));
}

#[test]
fn tic_tac_toe_is_played_nearly_without_error() {
    let game = any_game("tic_tac_toe", &toml::Table::new()).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/positions/tic_tac_toe.jsonl");
    let set = positions::read(&path, &game).unwrap();
    let rates = |player: &mut dyn Player| {
        let chosen: Vec<u16> = set
            .iter()
            .enumerate()
            .map(|(i, solved)| {
                let position = positions::replay(solved, &game).unwrap();
                player.choose(&position, Key::new(1, Purpose::Rollout).with(i as u64)).unwrap()
            })
            .collect();
        error_rates(&set, &chosen).unwrap()
    };
    let search = rates(&mut *game.rollout_player(RolloutSettings::new(400)));
    assert!(search.outcome_error < 0.03, "{search:?}");
    let random = rates(&mut RandomPlayer);
    let expected = positions::random_error_rates(&set);
    assert!((random.outcome_error - expected.outcome_error).abs() < 0.06, "{random:?} {expected:?}");
    assert!((random.exact_error - expected.exact_error).abs() < 0.06, "{random:?} {expected:?}");
}

/// In whole games of Blob rollouts and the tree end with the round.
#[test]
fn rollouts_end_at_a_horizon() {
    let options = "players = 3\ncards = 2\nfull = true".parse().expect("TOML");
    let game = Blob::from_options(&options).expect("valid");
    let mut play = Playthrough::new(any_game("blob", &options).expect("registered"));
    let mut player = RolloutPlayer::new(game.clone(), RolloutSettings::new(60));
    let (key, mut horizons) = (Key::new(3, Purpose::Evaluation), 0);
    while play.turn() != Turn::Over {
        let key = key.with(play.actions().len() as u64);
        let action = match play.turn() {
            Turn::Chance => play.legal()[key.stream().below(play.legal().len())],
            Turn::Player(_) | Turn::Over => {
                let action = player.choose(&play, key).expect("an action");
                let root = player.nodes[0].state.round;
                for node in &player.nodes {
                    let is_horizon = node.state.round > root;
                    horizons += usize::from(is_horizon);
                    assert!(!is_horizon || (game.is_horizon(&node.state) && node.num_edges == 0));
                }
                action
            }
        };
        play.step(action).expect("legal");
    }
    assert!(horizons > 0);
}
