//! The contract of `trait Game`, checked for every registered game by random play.
//!
//! A new game needs one line in the table below: its name and the options, as TOML, that change its rules or sizes. The
//! laws are in `laws.rs`, random play in `walk.rs`.

mod laws;
mod walk;

use vecaz::game::{self, Game, GameVisitor};

/// For each game a module with one test per law, which checks the law with every options text.
macro_rules! contract {
    ($($game:ident: $($options:literal),+;)+) => {
        const COVERED: &[&str] = &[$(stringify!($game)),+];
        $(mod $game {
            const OPTIONS: &[&str] = &[$($options),+];
            contract! { @laws stringify!($game);
                sizes_are_consistent, options_make_the_same_game, unknown_options_are_refused, play_is_legal_and_ends,
                chance_is_a_distribution, returns_are_bounded, symmetries_are_distinct_bijections,
                symmetries_commute_with_play, observations_are_finite_and_complete, hidden_draws_keep_what_is_seen,
                canonical_states_share_an_evaluation, history_keys_follow_the_position, names_are_read_back,
                erased_play_is_the_same, batches_keep_finished_games,
            }
        })+
    };
    (@laws $game:expr; $($law:ident),+ $(,)?) => {
        $(#[test]
        fn $law() {
            struct Check;
            impl vecaz::game::GameVisitor for Check {
                type Out = ();
                fn visit<G: vecaz::game::Game>(self, game: G) {
                    crate::laws::$law(&game);
                }
            }
            for options in OPTIONS {
                crate::with_game($game, options, Check);
            }
        })+
    };
}

contract! {
    tic_tac_toe: "";
    connect_four:
        "",
        "rows = 5\ncolumns = 6\nconnect = 3",
        "rows = 7\ncolumns = 8\nconnect = 5",
        "rows = 2\ncolumns = 12\nconnect = 2",
        "rows = 12\ncolumns = 4";
    othello: "", "size = 6", "size = 6\nend = 'two_passes'", "size = 8\nend = 'no_move'";
    hex: "", "size = 3", "size = 4\nswap = true", "size = 13", "size = 19";
    gomoku: "", "size = 7", "size = 9\nrule = 'exact'", "size = 15\nopening = 'swap2'";
    go: "size = 5", "size = 9", "size = 13\nkomi = 0.5\nmax_plies = 300", "";
    chess: "", "max_plies = 40";
    clique:
        "",
        "n = 5\nk = 3\nmode = 'asymmetric'",
        "n = 7\nk = 4\nmode = 'avoid_clique'",
        "n = 6\nk = 4\nmode = 'ramsey'",
        "n = 17\nk = 4\nmode = 'avoid_clique'",
        "n = 3\nk = 3";
    backgammon: "", "short_game = true", "simple_doubles = true", "short_game = true\nsimple_doubles = true";
    blob:
        "",
        "players = 3\ncards = 2\nfull = true",
        "players = 5\ncards = 10",
        "players = 8\ncards = 3",
        "players = 4\ncards = 5",
        "network_sees = 'deal'",
        "players = 5\ncards = 3\nfull = true\nnetwork_sees = 'deal'";
}

/// Hands the game with these options (TOML text) to `visitor`; what is wrong with them fails the test by name.
fn with_game<V: GameVisitor>(name: &str, options: &str, visitor: V) -> V::Out {
    let table: toml::Table =
        options.parse().unwrap_or_else(|e| panic!("options of {name}: {options:?}: {e}"));
    println!("{name} with {options:?}");
    game::dispatch(name, &table, visitor).unwrap_or_else(|e| panic!("options of {name}: {options:?}: {e}"))
}

#[test]
fn every_registered_game_is_covered() {
    struct Name;
    impl GameVisitor for Name {
        type Out = &'static str;
        fn visit<G: Game>(self, _game: G) -> &'static str {
            G::NAME
        }
    }
    assert_eq!(COVERED, game::NAMES, "one line per game, in the order of the registry");
    for name in COVERED {
        assert_eq!(&with_game(name, "", Name), name);
    }
}
