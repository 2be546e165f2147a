//! The kernels' sources as host C++ against Rust: the mathematics, the random numbers, and every game, equal to the bit.
//!
//! A game with kernels needs one line in the table below: its name and the options, as TOML, that change its rules or sizes.

mod batch;
mod entry;
mod play;
mod twins;

use crate::typed_games::{GameVisitor, dispatch};
use vecaz::game::Game;
use vecaz::registry::Registry;
use vecaz::registry::any_game;

/// A test for each game that plays it with every options text.
macro_rules! games {
    ($($game:ident: $($options:literal),+;)+) => {
        const COVERED: &[&str] = &[$(stringify!($game)),+];
        $(#[test]
        fn $game() {
            for options in [$($options),+] {
                play(stringify!($game), options);
            }
        })+
    };
}

games! {
    tic_tac_toe: "";
    connect_four:
        "",
        "rows = 5\ncolumns = 6\nconnect = 3",
        "rows = 7\ncolumns = 8\nconnect = 5",
        "rows = 2\ncolumns = 12\nconnect = 2",
        "rows = 12\ncolumns = 4",
        "network_sees = 'threats'",
        "rows = 5\ncolumns = 8\nconnect = 5\nnetwork_sees = 'threats'";
    othello:
        "",
        "size = 6",
        "size = 6\nend = 'two_passes'",
        "end = 'two_passes'",
        "network_sees = 'moves'",
        "size = 6\nend = 'two_passes'\nnetwork_sees = 'moves'";
    hex: "", "size = 3", "size = 4\nswap = true", "size = 13", "size = 19\nswap = true", "network_sees = 'links'",
        "size = 6\nswap = true\nnetwork_sees = 'links'",
        "size = 19\nnetwork_sees = 'links'";
    gomoku:
        "",
        "size = 5",
        "size = 6\nrule = 'exact'",
        "size = 9\nrule = 'exact'\nopening = 'swap2'",
        "size = 6\nopening = 'swap2'",
        "size = 19",
        "network_sees = 'threats'",
        "size = 7\nopening = 'swap2'\nnetwork_sees = 'threats'",
        "size = 19\nnetwork_sees = 'threats'";
    go:
        "size = 5\nmax_plies = 500",
        "size = 7\nkomi = 7.0",
        "size = 9",
        "size = 13\nkomi = -6.5",
        "network_sees = 'liberties'",
        "size = 19\nkomi = -0.5\nmax_plies = 1500\nnetwork_sees = 'liberties'";
    chess:
        "",
        "fen = 'r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1'\nmax_plies = 700",
        "fen = '8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1'",
        "fen = 'n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1'\nnetwork_sees = 'attacks'",
        "fen = '8/8/8/3k4/8/3K4/8/RNBQ4 b - - 80 60'",
        "network_sees = 'attacks'";
    clique:
        "",
        "n = 3\nk = 3",
        "n = 5\nk = 3\nmode = 'asymmetric'\nnetwork_sees = 'cliques'",
        "n = 7\nk = 4\nmode = 'avoid_clique'",
        "n = 6\nk = 4\nmode = 'ramsey'",
        "n = 12\nk = 5\nnetwork_sees = 'cliques'",
        "n = 14\nk = 6\nmode = 'avoid_clique'",
        "n = 17\nk = 4\nmode = 'avoid_clique'\nnetwork_sees = 'cliques'",
        "n = 17\nk = 3\nmode = 'asymmetric'",
        "n = 8\nk = 4\nnetwork_sees = 'cliques'";
    backgammon:
        "",
        "simple_doubles = true",
        "short_game = true\nply_limit = 120",
        "network_sees = 'features'";
    blob:
        "",
        "players = 3\ncards = 13\ntrump = 'none'",
        "players = 4\ncards = 3\ntrump = 'hearts'\nfull = true\ndealer = 3",
        "players = 5\ncards = 10\ntrump = 'clubs'",
        "players = 7\ncards = 2\ntrump = 'diamonds'\nfull = true\ndealer = 6",
        "players = 8\ncards = 6",
        "network_sees = 'deal'",
        "players = 3\ncards = 13\ntrump = 'none'\nnetwork_sees = 'deal'",
        "players = 4\ncards = 3\ntrump = 'hearts'\nfull = true\ndealer = 3\nnetwork_sees = 'deal'",
        "players = 8\ncards = 9\nseated = 0\nfull = true\nnetwork_sees = 'deal'",
        "players = 6\ncards = 4\nseated = 4\nfull = true\ndealer = 3";
}

fn play(name: &str, options: &str) {
    struct Play;
    impl GameVisitor for Play {
        type Out = u64;
        fn visit<G: Game>(self, game: G) -> u64 {
            let games = play::play_side_by_side(&game);
            batch::play_batches(&game);
            games
        }
    }
    let table: toml::Table =
        options.parse().unwrap_or_else(|e| panic!("options of {name}: {options:?}: {e}"));
    println!("{name} with {options:?}");
    let games = dispatch(name, &table, Play).unwrap_or_else(|e| panic!("{name}: {options:?}: {e}"));
    println!("{games} games");
}

#[test]
fn every_game_with_kernels_is_compared() {
    let with_kernels: Vec<&str> = Registry::built_in()
        .names()
        .into_iter()
        .filter(|name| any_game(name, &toml::Table::new()).is_ok_and(|game| game.cuda_source().is_some()))
        .collect();
    assert_eq!(COVERED, with_kernels, "one line per game that has kernels, in the order of the registry");
}
