//! Trees that are kept from ply to ply stay trees, and their proofs stay true.

use super::random::{minimax, random_game};
use super::support::{finish, plan};
use super::tree_game::TreeNode;
use super::{SELECTIONS, config};
use vecaz::backend::cpu::CpuBackend;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::backend::{PlyPlan, TreeRows};
use vecaz::batch::Playthrough;
use vecaz::config::SearchConfig;
use vecaz::game::backgammon::Backgammon;
use vecaz::game::connect_four::ConnectFour;
use vecaz::game::{Game, Turn};
use vecaz::net::{HashNet, IoShape};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::tree::{NO_NODE, NodeKind, Tree};

/// The history of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grown {
    /// No node was removed.
    Whole,
    /// Only the most visited were kept at some time.
    Trimmed,
}

pub fn check_tree(tree: &mut Tree, grown: Grown) {
    let count = tree.count(0) as i32;
    let row = tree.row_mut(0);
    assert_eq!(row.nodes[0].parent, NO_NODE);
    for n in 0..count {
        let node = &row.nodes[n as usize];
        let edges = row.edges(n);
        let num_edges = usize::from(node.num_edges);
        if n > 0 {
            assert!(node.parent >= 0 && node.parent < n, "parent {} of {n}", node.parent);
            assert_eq!(
                row.edges(node.parent).child[usize::from(node.parent_edge)],
                n,
                "closed under parents"
            );
        }
        let below: i32 = edges.visits[..num_edges].iter().sum();
        match node.kind() {
            NodeKind::Decision if !node.is_proven() => assert_eq!(node.visits, 1 + below, "node {n}"),
            NodeKind::Decision => assert!(node.visits > below, "node {n}"),
            NodeKind::Chance => assert_eq!(node.visits, below, "node {n}"),
            NodeKind::Terminal | NodeKind::Horizon => assert!(node.visits > 0, "node {n}"),
            NodeKind::Unevaluated => panic!("node {n} was never evaluated"),
        }
        for edge in 0..num_edges {
            let (child, visits) = (edges.child[edge], edges.visits[edge]);
            if child == NO_NODE {
                assert!(visits == 0 || grown == Grown::Trimmed, "node {n} edge {edge} lost its child");
                continue;
            }
            assert!(child > n && child < count);
            let reached = row.nodes[child as usize].visits;
            assert!(
                reached == visits || (grown == Grown::Trimmed && reached < visits),
                "node {n} edge {edge}"
            );
        }
    }
}

fn play_on<G: Game>(game: G, config: &SearchConfig, spare: usize) {
    let sizes = game.sizes();
    let ply = plan(config, &sizes, 1);
    let grown = if spare >= ply.nodes { Grown::Whole } else { Grown::Trimmed };
    let plan = BackendPlan { rows: 3, nodes: ply.nodes + spare, reuse: Reuse::Keep, ..ply };
    let mut backend = CpuBackend::new(game.clone(), plan);
    let mut network = HashNet(IoShape::of(&sizes));
    let mut play = Playthrough::new(any_game(G::NAME, &game.options()).expect("registered"));
    let mut inherited = 0;
    let deal = |play: &mut Playthrough, ply: u64| {
        while play.turn() == Turn::Chance {
            let outcomes = play.legal();
            let outcome = outcomes[Key::new(ply, Purpose::Chance).stream().below(outcomes.len())];
            play.step(outcome).expect("legal");
        }
    };
    deal(&mut play, 99);
    backend.set_root(2, play.state(), &[]).expect("on the CPU");
    for ply in 0..9 {
        let key = RowKey { ply, ..RowKey::default() };
        let plan = PlyPlan { simulations: config.simulations, exploration: Exploration::Noisy, key };
        backend.begin(2, plan).expect("on the CPU");
        finish(&mut backend, &mut network);
        let mut summary = RootSummary::default();
        backend.summarise(2, &mut summary).expect("on the CPU");
        inherited += summary.visits.iter().sum::<i32>() - summary.new_visits.iter().sum::<i32>();
        if play.turn() == Turn::Over {
            break;
        }
        assert_eq!(backend.root_state(2).expect("on the CPU"), play.state());
        // A snapshot of everything changes nothing.
        check_tree(&mut backend.snapshot(2, usize::MAX).expect("on the CPU").tree, grown);
        let before = play.actions().len();
        play.step(summary.actions[summary.best]).expect("legal");
        deal(&mut play, ply);
        let played = &play.actions()[before..];
        backend.advance(2, played, play.state(), play.history()).expect("on the CPU");
    }
    assert!(inherited > 0, "nothing was ever kept");
}

#[test]
fn kept_subtrees_stay_trees() {
    for selection in SELECTIONS {
        for (leaves, spare) in [(1, 1000), (3, 1000), (1, 11), (4, 7)] {
            let config = SearchConfig { leaves, ..config(selection, 60) };
            play_on(ConnectFour::from_options(&toml::Table::new()).expect("defaults"), &config, spare);
            play_on(Backgammon::from_options(&toml::Table::new()).expect("defaults"), &config, spare);
        }
    }
}

#[test]
fn trimmed_trees_prove_nothing_false() {
    for selection in SELECTIONS {
        let mut num_proven = 0;
        for seed in 0..120 {
            let game = random_game(seed, 2, 7);
            let config = config(selection, 24 + seed as u32 % 17);
            let ply = plan(&config, &game.sizes(), 2);
            let plan = BackendPlan { nodes: ply.nodes + 5, reuse: Reuse::Keep, ..ply };
            let mut backend = CpuBackend::new(game.clone(), plan);
            let mut network = HashNet(IoShape::of(&game.sizes()));
            let mut state = game.init();
            backend.set_root(1, bytemuck::bytes_of(&state), &[]).expect("on the CPU");
            for ply in 0.. {
                let TreeNode::Moves(mover, next) = &game.nodes[state as usize] else { break };
                let key = RowKey { ply, ..RowKey::default() };
                let exploration = Exploration::Noisy;
                let plan = PlyPlan { simulations: config.simulations, exploration, key };
                backend.begin(1, plan).expect("on the CPU");
                finish(&mut backend, &mut network);
                let mut found = RootSummary::default();
                backend.summarise(1, &mut found).expect("on the CPU");
                let exact = minimax(&game, state as usize);
                if found.proven {
                    num_proven += 1;
                    assert_eq!(found.value, [exact, -exact], "{selection:?} {seed} {ply} {found:?}");
                    let is_lost = if *mover == 0 { exact == -1.0 } else { exact == 1.0 };
                    assert!(
                        is_lost || minimax(&game, next[found.best]) == exact,
                        "{selection:?} {seed} {ply}"
                    );
                }
                state = next[found.best] as u64;
                let played = [found.actions[found.best]];
                backend.advance(1, &played, bytemuck::bytes_of(&state), &[]).expect("on the CPU");
                let mut kept = backend.snapshot(1, usize::MAX).expect("on the CPU").tree;
                let (root, row) = (kept.row_mut(0).nodes[0], kept.row_mut(0));
                let held = (0..usize::from(root.num_edges)).any(|e| row.edge_bounds(0, e).0 >= root.lower);
                assert!(
                    held || root.lower <= -1.0 || root.kind() != NodeKind::Decision,
                    "{selection:?} {seed} {ply}: no edge has the root's lower bound {}",
                    root.lower
                );
            }
        }
        assert!(num_proven > 100, "{selection:?} {num_proven}");
    }
}
