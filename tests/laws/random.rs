//! Random trees: chance with one outcome equals no chance, edge visits add up, proven values are exact.

use super::kept::{Grown, check_tree};
use super::support::{plan, search};
use super::tree_game::{TreeGame, TreeNode};
use super::{SELECTIONS, config, selection, solve};
use proptest::prelude::*;
use vecaz::backend::TreeRows;
use vecaz::backend::cpu::CpuBackend;
use vecaz::config::SearchConfig;
use vecaz::game::Game;
use vecaz::net::{HashNet, IoShape};
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::search::root::Exploration;
use vecaz::searcher::SearchRequest;

/// Grows a random game below a new node and returns its number. Real nodes come first in `nodes`, so that
/// adding chance later leaves their numbers, and with them a [`HashNet`]'s outputs, as they are.
fn random_node(rng: &mut RngStream, players: usize, depth: usize, nodes: &mut Vec<TreeNode>) -> usize {
    let here = nodes.len();
    nodes.push(TreeNode::Ends(Vec::new()));
    if depth == 0 || (nodes.len() > 1 && rng.uniform() < 0.2) {
        let value = [-1.0, -0.5, 0.0, 0.5, 1.0][rng.below(5)];
        let others = -value / (players - 1) as f32;
        let winner = rng.below(players);
        nodes[here] =
            TreeNode::Ends((0..players).map(|p| if p == winner { value } else { others }).collect());
    } else {
        let mover = rng.below(players) as u8;
        let next = (0..2 + rng.below(3)).map(|_| random_node(rng, players, depth - 1, nodes)).collect();
        nodes[here] = TreeNode::Moves(mover, next);
    }
    here
}

pub fn random_game(seed: u64, players: usize, depth: usize) -> TreeGame {
    let mut nodes = Vec::new();
    random_node(&mut Key::new(seed, Purpose::Evaluation).stream(), players, depth, &mut nodes);
    TreeGame { players, nodes }
}

/// The same game with a chance node of one outcome before every node below the root.
fn with_certain_chance(game: &TreeGame) -> TreeGame {
    let mut nodes = game.nodes.clone();
    for node in &game.nodes {
        let TreeNode::Moves(..) = node else { continue };
        for_each_next(node, |_, next| nodes.push(TreeNode::Deals(vec![(1.0, next)])));
    }
    let mut chance = game.nodes.len();
    for node in &mut nodes[..game.nodes.len()] {
        if let TreeNode::Moves(_, next) = node {
            next.iter_mut().for_each(|next| {
                *next = chance;
                chance += 1;
            });
        }
    }
    TreeGame { nodes, ..game.clone() }
}

fn for_each_next(node: &TreeNode, mut f: impl FnMut(usize, usize)) {
    if let TreeNode::Moves(_, next) = node {
        next.iter().enumerate().for_each(|(i, &n)| f(i, n));
    }
}

/// The exact value for player 0 of a two-player game.
pub fn minimax(game: &TreeGame, at: usize) -> f32 {
    match &game.nodes[at] {
        TreeNode::Ends(returns) => returns[0],
        TreeNode::Moves(0, next) => next.iter().map(|&n| minimax(game, n)).fold(-1.0, f32::max),
        TreeNode::Moves(_, next) => next.iter().map(|&n| minimax(game, n)).fold(1.0, f32::min),
        TreeNode::Deals(next) => next.iter().map(|&(p, n)| p * minimax(game, n)).sum(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn a_chance_node_of_one_outcome_is_none(seed in 0u64..1000, selection in selection(), leaves in 1u32..6, players in 2usize..5) {
        let game = random_game(seed, players, 4);
        let config = SearchConfig { solver: false, leaves, ..config(selection, 70) };
        let mut network = HashNet(IoShape::of(&game.sizes()));
        let plain = solve(&game, &config, &mut network);
        let dealt = solve(&with_certain_chance(&game), &config, &mut network);
        prop_assert_eq!(plain, dealt);
    }

    #[test]
    fn edge_visits_add_up(seed in 0u64..1000, selection in selection(), leaves in 1u32..6, simulations in 1u32..200, players in 2usize..5) {
        let game = random_game(seed, players, 4);
        let config = SearchConfig { solver: false, leaves, ..config(selection, simulations) };
        let plan = plan(&config, &game.sizes(), 2);
        let mut backend = CpuBackend::new(game.clone(), plan);
        let mut network = HashNet(IoShape::of(&game.sizes()));
        let positions = [0, 0].map(|s: u64| SearchRequest { state: s.to_ne_bytes().to_vec(), ..SearchRequest::default() });
        let out = search(&mut backend, &mut network, &positions, simulations, Exploration::Noisy);
        prop_assert_eq!(out[1].visits.iter().sum::<i32>(), simulations as i32);
        prop_assert_eq!(&out[1].visits, &out[1].new_visits);
        check_tree(&mut backend.snapshot(1, usize::MAX).expect("on the CPU").tree, Grown::Whole);
    }
}

#[test]
fn what_the_solver_proves_is_the_exact_value() {
    for selection in SELECTIONS {
        let mut num_proven = 0;
        for seed in 0..150 {
            let game = random_game(seed, 2, 4);
            let TreeNode::Moves(mover, next) = &game.nodes[0] else { panic!("the root is a decision") };
            let config = SearchConfig { leaves: 1 + seed as u32 % 7, ..config(selection, 600) };
            let found = solve(&game, &config, &mut HashNet(IoShape::of(&game.sizes())));
            if !found.proven {
                continue;
            }
            num_proven += 1;
            let exact = minimax(&game, 0);
            assert_eq!(found.value, [exact, -exact], "{selection:?} {seed} {found:?}");
            let is_lost = if *mover == 0 { exact == -1.0 } else { exact == 1.0 };
            assert!(is_lost || minimax(&game, next[found.best]) == exact, "{selection:?} {seed} {found:?}");
        }
        assert!(num_proven > 50, "{selection:?} {num_proven}");
    }
}
