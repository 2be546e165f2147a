//! The kernels' sources as host C++ against Rust: the mathematics, the random numbers, and every game, equal to the bit.
//!
//! A new game needs one line in the table below: its name and the options, as TOML, that change its rules or sizes.

mod compile;
mod entry;
mod play;
mod twins;

use vecaz::backend::kernels::source;
use vecaz::game::{self, Game, GameVisitor};

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
        "rows = 12\ncolumns = 4";
}

fn play(name: &str, options: &str) {
    struct Play;
    impl GameVisitor for Play {
        type Out = u64;
        fn visit<G: Game>(self, game: G) -> u64 {
            play::play_side_by_side(&game)
        }
    }
    let table: toml::Table =
        options.parse().unwrap_or_else(|e| panic!("options of {name}: {options:?}: {e}"));
    println!("{name} with {options:?}");
    let games = game::dispatch(name, &table, Play).unwrap_or_else(|e| panic!("{name}: {options:?}: {e}"));
    println!("{games} games");
}

#[test]
fn every_game_with_kernels_is_covered() {
    let with_kernels: Vec<&str> = game::NAMES.iter().copied().filter(|name| source::has_game(name)).collect();
    assert_eq!(COVERED, with_kernels, "one line per game, in the order of the registry");
}
