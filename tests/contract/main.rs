//! The contract of `trait Game` ([`vecaz::contract`]) for every built-in game and for [`nim`], a game of the tests that follows the steps
//! of docs/games.md; and that the contract finds what breaks it.
//!
//! A new game needs no line here.

mod as_inside;
mod broken;
mod chance;
mod copies;
mod leak;
mod named;
mod nim;
#[allow(dead_code, reason = "the tests have no use for the example's program")]
#[path = "../../examples/own_game.rs"]
mod own_game;
mod points;
mod recurring;
#[path = "../support/mod.rs"]
mod support;
mod symmetries;

use nim::Nim;
use std::path::Path;
use vecaz::contract;
use vecaz::registry::Registry;

#[test]
fn every_built_in_game_keeps_the_laws() {
    Registry::built_in().check_contracts().unwrap();
}

#[test]
fn a_game_outside_the_crate_keeps_the_laws() {
    contract::check::<Nim>().unwrap();
}

#[test]
fn the_game_of_the_example_keeps_the_laws() {
    contract::check::<own_game::Nim>().unwrap();
}

/// A game is one file or folder called by its name, one line of the registry, and one configuration called by its name.
#[test]
fn every_game_is_one_file_or_folder_and_one_configuration() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let registry = Registry::built_in();
    for name in registry.names() {
        assert_eq!(registry.game(name, &toml::Table::new()).expect(name).name(), name);
        let (file, folder) = (format!("src/game/{name}.rs"), format!("src/game/{name}/mod.rs"));
        assert!(root.join(&file).is_file() || root.join(&folder).is_file(), "neither {file} nor {folder}");
        let config = registry.config(name).unwrap_or_else(|| panic!("no configs/{name}.toml"));
        assert_eq!(config, std::fs::read_to_string(root.join(format!("configs/{name}.toml"))).expect(name));
    }
}

/// The table of games in docs/games.md has every option, followed in parentheses by its default and by the value that the configuration
/// of that name sets instead.
#[test]
fn the_page_on_games_has_the_defaults() {
    let registry = Registry::built_in();
    let shown = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let page = include_str!("../../docs/games.md");
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once('`'))
        .filter(|(name, _)| registry.names().contains(name))
        .collect();
    assert!(!rows.is_empty(), "a table of games");
    for (name, row) in rows {
        let config: toml::Table = registry.config(name).expect(name).parse().expect(name);
        for (key, default) in registry.game(name, &toml::Table::new()).expect(name).options() {
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

/// A setting of a built-in configuration must not cost a game its solved positions, with which runs are measured.
#[test]
fn built_in_configurations_have_the_solved_positions_of_their_games() {
    let registry = Registry::built_in();
    for name in registry.names() {
        let config: toml::Table = registry.config(name).expect(name).parse().expect(name);
        let mut options = config["game"].as_table().expect(name).clone();
        options.remove("name");
        let [own, default] =
            [options, toml::Table::new()].map(|options| registry.game(name, &options).expect(name));
        assert_eq!(own.solved_positions(), default.solved_positions(), "{name}");
    }
}
