//! The contract of `trait Game`, checked by random play for every registered game with its default options and all of
//! [`Game::VARIANTS`], and for [`nim`], a game of the tests that follows the steps of docs/games.md.
//!
//! A new game needs no line here. The laws are in `laws.rs`, random play in `walk.rs`.

mod laws;
mod nim;
#[path = "../support/mod.rs"]
mod support;
mod walk;

use nim::Nim;
use std::path::Path;
use vecaz::game::{self, Game, GameVisitor};

/// One test per law, which checks it for every game.
macro_rules! check_laws {
    ($($law:ident),+ $(,)?) => {
        $(#[test]
        fn $law() {
            struct Check;
            impl GameVisitor for Check {
                type Out = ();
                fn visit<G: Game>(self, game: G) {
                    laws::$law(&game);
                }
            }
            for &name in game::NAMES {
                for options in variants_of(name) {
                    with_game(name, options, Check);
                }
            }
            for options in all_variants::<Nim>() {
                Check.visit(Nim::from_options(&parse(options)).expect(options));
            }
        })+
    };
}

check_laws! {
    sizes_are_consistent, options_make_the_same_game, unknown_options_are_refused, play_is_legal_and_ends,
    chance_is_a_distribution, returns_are_bounded, symmetries_are_distinct_bijections,
    symmetries_commute_with_play, observations_are_finite_and_complete, hidden_draws_keep_what_is_seen,
    canonical_states_share_an_evaluation, bytes_that_are_valid_can_be_observed, history_keys_follow_the_position, names_are_read_back,
    erased_play_is_the_same, batches_keep_finished_games,
}

/// The default game, and each of its variants.
fn all_variants<G: Game>() -> Vec<&'static str> {
    std::iter::once("").chain(G::VARIANTS.iter().copied()).collect()
}

/// [`all_variants`] of the game called `name`.
fn variants_of(name: &str) -> Vec<&'static str> {
    struct Variants;
    impl GameVisitor for Variants {
        type Out = Vec<&'static str>;
        fn visit<G: Game>(self, _game: G) -> Self::Out {
            all_variants::<G>()
        }
    }
    with_game(name, "", Variants)
}

fn parse(options: &str) -> toml::Table {
    options.parse().unwrap_or_else(|e| panic!("{options:?}: {e}"))
}

/// Passes the game with these options (TOML text) to `visitor`. Invalid options fail the test with their name.
fn with_game<V: GameVisitor>(name: &str, options: &str, visitor: V) -> V::Out {
    println!("{name} with {options:?}");
    let game = game::dispatch(name, &parse(options), visitor);
    game.unwrap_or_else(|e| panic!("options of {name}: {options:?}: {e}"))
}

/// A game is one file or folder called by its name, one line of the registry, and one configuration called by its name.
#[test]
fn every_game_is_one_file_or_folder_and_one_configuration() {
    struct Name;
    impl GameVisitor for Name {
        type Out = &'static str;
        fn visit<G: Game>(self, _game: G) -> &'static str {
            G::NAME
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for &name in game::NAMES {
        assert_eq!(with_game(name, "", Name), name);
        let (file, folder) = (format!("src/game/{name}.rs"), format!("src/game/{name}/mod.rs"));
        assert!(root.join(&file).is_file() || root.join(&folder).is_file(), "neither {file} nor {folder}");
        let config = vecaz::cli::built_in_config(name).unwrap_or_else(|| panic!("no configs/{name}.toml"));
        assert_eq!(config, std::fs::read_to_string(root.join(format!("configs/{name}.toml"))).expect(name));
    }
}

/// The table of games in docs/games.md has every option, followed in parentheses by its default and by the value that the configuration
/// of that name sets instead.
#[test]
fn the_page_on_games_has_the_defaults() {
    struct Options;
    impl GameVisitor for Options {
        type Out = toml::Table;
        fn visit<G: Game>(self, game: G) -> toml::Table {
            game.options()
        }
    }
    let shown = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let page = include_str!("../../docs/games.md");
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once('`'))
        .filter(|(name, _)| game::NAMES.contains(name))
        .collect();
    assert!(!rows.is_empty(), "a table of games");
    for (name, row) in rows {
        let config: toml::Table = vecaz::cli::built_in_config(name).expect(name).parse().expect(name);
        for (key, default) in with_game(name, "", Options) {
            let of_key =
                row.split("; `").find_map(|part| part.split_once(&format!("{key}`"))).map(|(_, text)| text);
            let text = of_key.unwrap_or_else(|| panic!("{name}: no `{key}` in {row:?}"));
            let (_, said) =
                text.rsplit_once('(').unwrap_or_else(|| panic!("{name}.{key}: no default in {text:?}"));
            let said = said.replace(['`', ','], "");
            let mut right = shown(&default);
            if let Some(set) = config["game"].get(&key).filter(|&set| *set != default) {
                right += &format!("; in configs/{name}.toml {}", shown(set));
            }
            assert!(
                said.split(')').next().is_some_and(|said| said.starts_with(&right)),
                "{name}.{key}: {said:?} is not {right:?}"
            );
        }
    }
}
