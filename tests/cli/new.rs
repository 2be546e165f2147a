//! `vecaz new`: the files of a project, and what it refuses. That projects build, train and keep the laws is in `tests/new_project.sh` and
//! `tests/foreign_game`.

use super::{refusal, stdout, vecaz};
use std::path::Path;

#[test]
fn a_project_of_each_kind_has_its_game_and_depends_on_the_sources() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in ["board", "dice", "cards", "solo"] {
        let out = folder.path().join(kind);
        let text =
            stdout(vecaz(&["new", "my_game", "--kind", kind, "--out"]).arg(&out).current_dir(folder.path()));
        assert!(text.contains("cargo run --release -- run"), "{text}");
        let read = |path: &str| std::fs::read_to_string(out.join(path)).expect(path);
        let cargo: toml::Table = read("Cargo.toml").parse().expect("TOML");
        assert_eq!(cargo["package"]["name"].as_str(), Some("my_game"));
        let sources = cargo["dependencies"]["vecaz"]["path"].as_str().expect("a path");
        let full = |path: &str| Path::new(path).canonicalize().expect("is there");
        assert_eq!(full(sources), full(env!("CARGO_MANIFEST_DIR")));
        let config: toml::Table = read("config.toml").parse().expect("TOML");
        assert_eq!(config["game"]["name"].as_str(), Some("my_game"));
        let game = read("src/game.rs");
        assert!(game.contains("const NAME: &'static str = \"my_game\";"), "{game}");
        assert!(game.contains("include_str!(\"../config.toml\")") && game.contains("NamedText, ObsShape"));
        assert!(read("src/main.rs").contains("with::<my_game::game::Rules>"));
        assert!(read("tests/laws.rs").contains("check::<my_game::game::Rules>"));
    }
}

#[test]
fn wrong_names_and_folders_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |arguments: &[&str]| refusal(vecaz(arguments).current_dir(folder.path()));
    for (name, expected) in [
        ("Skat", "the name: got Skat, expected the name of a crate"),
        ("7wonders", "the name: got 7wonders, expected the name of a crate"),
        ("match", "no word of Rust"),
        ("../skat", "expected the name of a crate"),
        ("hex", "the name: got hex, expected one that no game or built-in configuration has"),
    ] {
        let (code, line) = refused(&["new", name]);
        assert!(code == 2 && line.contains(expected), "{name}: {code} {line}");
    }
    std::fs::create_dir(folder.path().join("skat")).expect("a folder");
    let (code, line) = refused(&["new", "skat"]);
    assert!(code == 1 && line.contains("creating skat"), "{code} {line}");
    let (code, line) = refused(&["new", "azul", "--vecaz", "skat"]);
    assert!(code == 2 && line.contains("expected the source tree of vecaz"), "{code} {line}");
    assert!(!folder.path().join("azul").exists());
}
