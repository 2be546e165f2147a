//! Wrong keys and their remedy: errors with place and nearest key, `vecaz games`, `vecaz config`.

use super::{refusal, stdout, vecaz};
use vecaz::config::{Config, Layers};
use vecaz::registry::Registry;

#[test]
fn a_wrong_game_key_or_value_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("broken.toml").display().to_string();
    std::fs::write(&broken, "[game\nname = 3").expect("written");
    for (arguments, part) in [
        (["--game", "chequers"], "unknown game chequers; the games are tic_tac_toe, "),
        (
            ["--set", "search.sims=3"],
            "config key search.sims (--set): no such key; the nearest is search.simulations",
        ),
        (
            ["--set", "serch.simulations=3"],
            "serch.simulations (--set): no such key; the nearest is search.simulations",
        ),
        (["--set", "search.simulations=many"], "got \"many\", expected a whole number from 1 to 1000000"),
        (["--set", "search.simulations=0"], "got 0, expected a whole number from 1 to 1000000"),
        (
            ["--set", "search.simulations=99999999999999999999"],
            "got \"99999999999999999999\", expected a whole number from 1 to 1000000",
        ),
        (["--set", "search.simulations=-1"], "got -1, expected a whole number from 1 to 1000000"),
        (["--set", "train.lr=nan"], "got NaN, expected a number from 0 to 100"),
        (["--set", "nonsense"], "expected key=value"),
        (["--set", "game.rows=99"], "game.rows (--set): got 99, expected a whole number from 2 to 12"),
        (["--set", "game.colums=6"], "game.colums (--set): no such key; the nearest is game.columns"),
        (["--set", "game.swap=true"], "no such key; connect_four has game.rows, game.columns, game.connect"),
        (["--game", "3"], "unknown game 3; the games are tic_tac_toe, "),
        (
            ["--game", "chomp"],
            "blob; a program made by `vecaz new` has its own as well, and opens their runs",
        ),
        (["--config", &broken], "broken.toml, line 1: "),
        (["--config", "connect4"], "--config: got connect4 (not found: "),
        (["--config", "connect4"], "or one of backgammon, backgammon_mcts, blob, "),
        (["--set", "search.c_puct=2"], "search.c_puct (--set): no such key; the nearest is search.c_init"),
        (["--set", "Game.name=hex"], "Game.name (--set): no such key; the nearest is game.name"),
        (["--set", "game.Rows=5"], "game.Rows (--set): no such key; the nearest is game.rows"),
    ] {
        let (code, line) = refusal(vecaz(&["inspect"]).args(arguments));
        assert!(code == 2 && line.contains(part), "{arguments:?}: {code}, {line}");
    }
    let (code, line) = refusal(vecaz(&["inspect"]).env("VECAZ_LOG", "a=b=c"));
    assert!(code == 2 && line.contains("VECAZ_LOG"), "{line}");
}

#[test]
fn an_error_about_a_key_of_a_file_has_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.toml");
    let path = path.to_str().expect("UTF-8");
    for (text, part) in [
        ("[game]\nname = 'chequers'", "unknown game chequers (PATH, line 2); the games are tic_tac_toe, "),
        (
            "[game]\nname = 'hex'\n\nsize = 30",
            "game.size (PATH, line 4): got 30, expected a whole number from 3 to 19",
        ),
        (
            "[search]\nsims = 3",
            "config key search.sims (PATH, line 2): no such key; the nearest is search.simulations",
        ),
        ("[net]\nchannels = 'wide'", "(PATH, line 2): got \"wide\", expected a whole number from 1 to 4096"),
    ] {
        std::fs::write(path, text).expect("written");
        for command in ["inspect", "run", "config"] {
            let (code, line) = refusal(&mut vecaz(&[command, "--config", path]));
            assert!(code == 2 && line.contains(&part.replace("PATH", path)), "{text}: {line}");
        }
    }
}

#[test]
fn games_lists_every_game_with_settings_and_configurations() {
    let text = stdout(&mut vecaz(&["games"]));
    for name in Registry::built_in().names() {
        assert!(
            text.contains(&format!("{name}: ")) && text.contains(&format!("--config {name}")),
            "{name}: {text}"
        );
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let hex = stdout(&mut vecaz(&["games", "hex"]));
    for part in [
        "hex: X connects the top border with the bottom border; O connects the left",
        "game.size: a whole number from 3 to 19, default 11. Side of the board.",
        "--config hex13: ",
    ] {
        assert!(hex.contains(part), "{hex}");
    }
    assert!(!hex.contains("chess"), "{hex}");
    let (code, line) = refusal(&mut vecaz(&["games", "chequers"]));
    assert!(code == 2 && line.contains("unknown game chequers; the games are "), "{line}");
}

#[test]
fn config_lists_every_key_as_a_file_that_is_read_back() {
    let text = stdout(&mut vecaz(&["config", "--game", "hex", "--set", "search.leaves=7"]));
    for (section, _, keys) in Config::default().sections() {
        assert!(text.contains(&format!("\n[{section}] # ")), "{section}");
        assert!(
            keys.iter().all(|key| text.contains(&format!("\n{} = ", key.name)) || key.default == "none"),
            "{section}"
        );
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let read = Layers::default().text(&text, "listed").and_then(Layers::resolve).expect("a configuration");
    let built_in = Layers::default().text(include_str!("../../configs/hex.toml"), "hex").expect("TOML");
    let mut expected = built_in.set("search.leaves=7").and_then(Layers::resolve).expect("valid");
    expected.game = read.game.clone();
    assert_eq!((read.game_name(), &read), ("hex", &expected));
    let one = stdout(&mut vecaz(&["config", "search.leaves"])).replace("\n# ", " ");
    assert!(
        one.contains("Values: a whole number from 1 to 4096; default 1.")
            && one.ends_with("\nleaves = 1\n\n"),
        "{one}"
    );
    assert!(!one.contains("simulations = "), "{one}");
    assert!(stdout(&mut vecaz(&["config", "game", "--game", "go"])).contains("\nkomi = 7.5\n"));
    let (code, line) = refusal(&mut vecaz(&["config", "serch"]));
    assert!(code == 2 && line.contains("config key serch: no such key; the nearest is search"), "{line}");
}
