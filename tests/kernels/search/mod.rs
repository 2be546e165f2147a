//! Search on kernels against the CPU engine: whole games' searches must agree to the last visit and the last bit, trees
//! included. The kernels are compiled as host C++ and run by an emulator that shuffles threads.

mod barriers;
mod resident;
mod double_buffer;
mod networks;
mod scenario;
pub mod selfplay;
mod shared;
pub mod split;

use crate::host_device::HostDevice;
use crate::selection::{GUMBEL, GUMBEL_AND_PUCT, PUCT, Selection};
use scenario::{Limit, Scenario, both, compare};
use vecaz::Error;
use vecaz::backend::TreeRows;
use vecaz::backend::gpu::KernelBackend;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::config::{Algorithm, SearchConfig};
use vecaz::registry::any_game;
use vecaz::search::SearchParams;
use vecaz::search::root::Exploration::{Noisy, Plain};

/// Games with their settings and the plies at which they are searched.
const GAMES: [(&str, &str, &[usize]); 12] = [
    ("tic_tac_toe", "", &[0, 3, 5]),
    ("connect_four", "", &[0, 9, 22]),
    ("othello", "size = 6", &[0, 11, 25]),
    ("hex", "size = 5", &[0, 1, 12]),
    ("gomoku", "size = 7", &[0, 6]),
    ("go", "size = 5\nmax_plies = 60", &[2, 31, 44]),
    ("chess", "", &[0, 21]),
    ("clique", "n = 5\nk = 3\nmode = \"avoid_clique\"", &[0, 2, 5]),
    ("backgammon", "", &[2, 9, 40]),
    ("blob", "players = 3\ncards = 4", &[14, 19, 24]),
    ("blob", "players = 5\nseated = 3\ncards = 2\nfull = true", &[9, 13, 22]),
    ("clique", "n = 5\nk = 3\nmode = \"ramsey\"", &[1, 2, 5]),
];

/// Selections that between them use every rule: searches on emulated kernels are slow.
const BOTH_RULES: [Selection; 2] = [PUCT, GUMBEL_AND_PUCT];

/// A search with the solver.
fn config((algorithm, puct_visits): Selection, simulations: u32, leaves: u32) -> SearchConfig {
    SearchConfig {
        algorithm,
        puct_visits,
        simulations,
        leaves,
        solver: true,
        min_simulations: 4,
        ..SearchConfig::default()
    }
}

fn scenario(game: (&'static str, &'static str, &'static [usize]), config: SearchConfig) -> Scenario {
    let (name, settings, plies) = game;
    Scenario { name, settings, plies, config, exploration: Noisy, limit: Limit::None, searches: 3 }
}

#[test]
fn kernels_and_rust_agree_on_every_game() {
    for game in GAMES {
        for selection in BOTH_RULES {
            for (leaves, solver) in [(1, true), (4, true), (4, false)] {
                let simulations = if leaves == 1 { 25 } else { 40 };
                let base = scenario(game, SearchConfig { solver, ..config(selection, simulations, leaves) });
                let limit = if solver { Limit::None } else { Limit::Nodes(9) };
                compare(&Scenario { limit, ..base });
            }
        }
    }
}

/// Row r begins after r mod `period` plies.
const fn plies_of_rows<const ROWS: usize>(period: usize) -> [usize; ROWS] {
    let mut plies = [0; ROWS];
    let mut row = 0;
    while row < ROWS {
        plies[row] = row % period;
        row += 1;
    }
    plies
}

/// Enough for several warps, and for more rows than are counted at once.
#[test]
fn they_agree_on_as_many_rows_as_there_are() {
    static PLIES: [usize; 600] = plies_of_rows(5);
    for rows in [33, 600] {
        let base = scenario(("tic_tac_toe", "", &PLIES[..rows]), config(PUCT, 8, 2));
        compare(&Scenario { searches: 1, ..base });
    }
}

#[test]
fn they_agree_where_searches_are_deep_and_full_of_proofs() {
    for selection in BOTH_RULES {
        for (leaves, solver) in [(1, true), (1, false), (3, true), (17, true)] {
            let base = scenario(
                ("tic_tac_toe", "", &[0, 2, 4]),
                SearchConfig { solver, ..config(selection, 300, leaves) },
            );
            compare(&Scenario { searches: 4, ..base });
            let late = scenario(
                ("connect_four", "", &[20, 27, 30]),
                SearchConfig { solver, ..config(selection, 150, leaves) },
            );
            compare(&Scenario { exploration: Plain, limit: Limit::Nodes(40), ..late });
        }
    }
}

#[test]
fn they_agree_with_every_constant() {
    for fpu_reduction in [0.0, 0.2, 2.0] {
        let base = SearchConfig {
            fpu_reduction,
            c_init: 2.5,
            c_base: 40.0,
            dirichlet_alpha: 0.3,
            ..SearchConfig::default()
        };
        let puct = SearchConfig { algorithm: Algorithm::Puct, simulations: 50, leaves: 2, ..base };
        compare(&scenario(("backgammon", "", &[2, 33]), puct.clone()));
        compare(&scenario(("othello", "size = 6", &[14, 3]), puct));
    }
    for (max_num_considered_actions, c_visit, c_scale) in
        [(2, 50.0, 1.0), (3, 0.0, 0.1), (7, 10.0, 0.0), (1000, 5.0, 0.3)]
    {
        let base = config(GUMBEL, 50, 2);
        let gumbel = SearchConfig { max_num_considered_actions, c_visit, c_scale, ..base };
        compare(&scenario(("backgammon", "", &[2, 33]), gumbel.clone()));
        compare(&scenario(("connect_four", "", &[8, 25]), gumbel));
    }
}

#[test]
fn they_agree_where_the_tree_is_full() {
    for selection in BOTH_RULES {
        for leaves in [1, 5] {
            let config = config(selection, 70, leaves);
            for game in [("connect_four", "", &[4usize, 21] as &[usize]), ("backgammon", "", &[2, 12])] {
                let base = scenario(game, config.clone());
                compare(&Scenario { limit: Limit::Full(19), ..base });
            }
        }
    }
}

/// Trimming takes children that prove draws away, and the few visits of a small search may all be on moves that it refutes.
#[test]
fn they_agree_where_proofs_are_lost_and_nothing_visited_is_left() {
    static PLIES: [usize; 128] = plies_of_rows(6);
    for (simulations, kept, searches) in [(60, 1, 5), (2, 20, 3), (3, 20, 3)] {
        let base = scenario(("tic_tac_toe", "", &PLIES), config(PUCT, simulations, 1));
        compare(&Scenario { limit: Limit::Nodes(kept), searches, ..base });
    }
}

#[test]
fn the_emulator_needs_no_assembly() {
    let scenario = scenario(GAMES[1], config(GUMBEL, 30, 4));
    let [right, found] = both(&scenario, HostDevice::new(4).with_define("EMULATOR_PORTABLE", 1));
    assert!(found == right);
}

#[test]
fn trees_that_do_not_fit_are_refused_with_the_numbers() {
    let game = any_game("connect_four", &toml::Table::new()).expect("registered");
    let params = SearchParams::new(&SearchConfig::default(), &game.sizes());
    let make = |rows: usize| {
        let plan = BackendPlan { rows, nodes: 5000, params, reuse: Reuse::Keep };
        let device = HostDevice::new(1).with_free_bytes(100 << 20);
        KernelBackend::new(device, game.as_ref(), plan).map(|_| ())
    };
    let refused = make(1000).expect_err("too much");
    let row = 5000 * (32 + 8 * 18 + 8 + 24 + 4) + 4 + 32 + 40 + 64 + 8 + 8 + 8 + 32;
    let row = row + 4 * (84 + 7 + 2) + 16 + 8 + 22 * 8;
    let decisions = row * 1000 / 8; // more than 64 MiB and less than a GiB
    let slots = 1000 * (32 + 24 + 200)
        + decisions / (2 * 1000 * 216) * (2 * 1000 * 216)
        + (1000usize * 48).next_power_of_two();
    let Error::Memory { largest_games, .. } = refused else { panic!("{refused}") };
    let expected = format!(
        "the plan needs {} MiB (on the device: 1000 trees of 5000 nodes at {row} bytes each, games {} MiB), more than the \
         100 MiB allowed (free on the device); the largest selfplay.games that fits is {largest_games}",
        (row * 1000usize + slots).div_ceil(1 << 20),
        slots.div_ceil(1 << 20),
    );
    assert_eq!(refused.to_string(), expected);
    let largest = largest_games as usize;
    assert!(largest > 30 && make(largest).is_ok() && make(largest + 1).is_err(), "{largest}");
}

#[test]
fn a_failing_device_is_reported_by_the_next_pass() {
    let game = any_game("connect_four", &toml::Table::new()).expect("registered");
    let params = SearchParams::new(&SearchConfig::default(), &game.sizes());
    let plan = BackendPlan { rows: 2, nodes: 70, params, reuse: Reuse::Drop };
    let broken = HostDevice::new(1).with_define("VZ_TREE_EDGES", "no_such_number");
    let refused =
        KernelBackend::new(broken, game.as_ref(), plan).err().expect("does not compile").to_string();
    assert!(
        refused.starts_with("device host: connect_four: ") && refused.contains("no_such_number"),
        "{refused}"
    );

    let mut backend = KernelBackend::new(HostDevice::new(1), game.as_ref(), plan).expect("compiles");
    let refused = backend.set_root(0, &game.init(), &[7; 5]);
    let refused = refused.expect_err("a history of a game that keeps none").to_string();
    assert_eq!(refused, "history keys of a root: found 5, expected at most 0");
}
