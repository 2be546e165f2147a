//! The laws that every search keeps, on small games written down as trees and on the real ones.

mod dealt;
mod kept;
mod random;
mod rows;
mod written;

#[path = "../support/oracle/mod.rs"]
mod oracle;
#[path = "../support/selection.rs"]
mod selections;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tree_game.rs"]
mod tree_game;

use oracle::ReferenceBackend;
use proptest::prelude::*;
use selections::{GUMBEL, GUMBEL_AND_PUCT, PUCT, SELECTIONS, Selection};
use support::{plan, search};
use tree_game::{TreeGame, TreeNode};
use vecaz::backend::cpu::CpuBackend;
use vecaz::config::SearchConfig;
use vecaz::game::Game;
use vecaz::net::{IoShape, Network, UniformNet};
use vecaz::search::root::{Exploration, RootSummary};
use vecaz::searcher::SearchRequest;

fn config((algorithm, puct_visits): Selection, simulations: u32) -> SearchConfig {
    SearchConfig { algorithm, puct_visits, simulations, ..SearchConfig::default() }
}

/// Both engines' outputs at the start of a game, which must be one.
fn solve(game: &TreeGame, config: &SearchConfig, network: &mut dyn Network) -> RootSummary {
    let plan = plan(config, &game.sizes(), 3);
    let start =
        SearchRequest { state: bytemuck::bytes_of(&game.init()).to_vec(), ..SearchRequest::default() };
    let positions = [start];
    let mut batched = CpuBackend::new(game.clone(), plan);
    let mut reference = ReferenceBackend::new(game.clone(), plan);
    let out = search(&mut batched, network, &positions, config.simulations, Exploration::Noisy);
    let again = search(&mut reference, network, &positions, config.simulations, Exploration::Noisy);
    assert_eq!(out[0].visits, again[0].visits, "{game:?} {config:?}");
    assert_eq!((&out[0].value, &out[0].policy), (&again[0].value, &again[0].policy), "{game:?} {config:?}");
    out.into_iter().next().expect("one")
}

fn uniform(game: &TreeGame) -> UniformNet {
    UniformNet(IoShape::of(&game.sizes()))
}

fn ends(value: f32) -> TreeNode {
    TreeNode::Ends(vec![value, -value])
}

fn selection() -> impl Strategy<Value = Selection> {
    prop_oneof![Just(PUCT), Just(GUMBEL), Just(GUMBEL_AND_PUCT)]
}
