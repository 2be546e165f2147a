//! `vecaz play`, and the network that each command reports.

use super::{TINY, as_on_unix, refusal, run, sibling_path, stdout, vecaz};
use std::path::Path;

fn play(arguments: &[&str], typed: &str) -> String {
    stdout(vecaz(&["play", &run(), "--sims", "40"]).args(arguments).write_stdin(typed))
}

#[test]
fn play_introduces_helps_takes_back_and_ends() {
    let text = play(&[], "hint\nz9\n\nB2\nUNDO\nQuit\n");
    // The path may be longer than the rest of the line.
    let head = as_on_unix(&text.replace("\n  ", " "));
    assert!(head.starts_with("tic_tac_toe, 40 simulations a move by "), "{text}");
    assert!(head.contains("/run/best.safetensors (epoch "), "{text}");
    assert!(
        text.contains("\nplayer 0 (you): X makes three in a row.\nplayer 1 (the network): O makes "),
        "{text}"
    );
    assert!(text.contains("value ") && text.contains("visits") && text.contains("expected: "), "{text}");
    assert!(text.contains("ply 0: action z9 is not legal here; legal: 0 (a1)"), "{text}");
    assert!(text.contains("player 1 (the network) plays ") && text.contains("(O)"), "{text}");
    let empty = " 1 . . .\n 2 . . .\n 3 . . .";
    assert_eq!(text.matches(empty).count(), 2, "at the start and after undo: {text}");
    assert!(!text.contains("game over"), "{text}");
    for command in ["help", "?", "HELP"] {
        let text = play(&[], &format!("{command}\n"));
        assert!(text.contains("9 legal moves: a1 b1 c1 a2 b2 c2 a3 b3 c3\n"), "{text}");
        assert!(text.contains("undo: ") && text.contains("hint: "), "{text}");
    }
    let end_of_input = play(&["--seat", "1"], "");
    assert!(end_of_input.contains("player 0 (the network) plays "), "{end_of_input}");
    assert!(
        end_of_input.contains("player 1 (you): O makes") && end_of_input.ends_with("> \n"),
        "{end_of_input}"
    );
}

/// The search of the network is shown on request only.
#[test]
fn the_network_plays_without_an_evaluation_and_an_untrained_one_is_noted() {
    let text = play(&[], "b2\nquit\n");
    assert!(text.contains("player 1 (the network) plays ") && !text.contains("visits"), "{text}");
    assert!(!text.contains("untrained"), "{text}");
    let untrained = sibling_path("untrained").display().to_string();
    let mut command = vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "1", "--out", &untrained]);
    TINY.iter().chain(&["train.min_samples=2000"]).for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let text = stdout(vecaz(&["play", &untrained, "--sims", "1"]).write_stdin("quit\n")).replace("\n  ", " ");
    assert!(
        text.contains(", 1 simulation a move by ") && text.contains("NOTE: this network has 0 updates."),
        "{text}"
    );
    for arguments in [["--game", "hex"], ["--set", "game.name=hex"]] {
        let (code, line) = refusal(vecaz(&["play"]).args(arguments));
        assert!(code == 2 && line.contains("`vecaz run --game hex --minutes 10` trains one"), "{line}");
    }
}

#[test]
fn the_end_shows_the_winner() {
    let every_action: String = (0..9).map(|action| format!("{action}\n")).collect();
    let text = play(&[], &every_action);
    let result = text.lines().find_map(|line| line.strip_prefix("game over: ")).expect("an end");
    let results = ["player 0 (you) wins", "player 1 (the network) wins", "a draw"];
    assert!(results.contains(&result) && !text.contains("scores by player"), "{text}");
}

/// 2 simulations visit at most 2 of 9 moves.
#[test]
fn moves_without_visits_have_no_value() {
    let text = stdout(vecaz(&["play", &run(), "--sims", "2"]).write_stdin("hint\n"));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("  visits ")).collect();
    let (visited, others): (Vec<&str>, Vec<&str>) =
        rows.iter().partition(|row| !row.contains("visits      0"));
    assert!(rows.len() == 7 && !visited.is_empty() && others.len() >= 5, "{text}");
    assert!(others.iter().all(|row| row.contains("value      -  prior")), "{text}");
    assert!(visited.iter().all(|row| row.contains("value +") || row.contains("value -0")), "{text}");
}

#[test]
fn a_typo_shows_the_nearest_of_many_moves() {
    let arguments = ["inspect", "--game", "hex", "--actions", "f66"];
    let (code, line) = {
        let output = vecaz(&arguments).output().expect("runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    assert_eq!(code, Some(1));
    assert!(
        line.contains("action f66 is not legal here; legal: 60 (f6)") || line.contains("60 (f6), "),
        "{line}"
    );
    assert!(line.ends_with(" and 116 others\n") && line.len() < 140, "{line}");
}

#[test]
fn play_does_not_show_the_hands_of_others() {
    let out = sibling_path("blob").display().to_string();
    let mut command = vecaz(&["run", "--quiet", "--game", "blob", "--epochs", "1", "--out", &out]);
    let settings =
        ["search.determinisations=2", "eval.opponent=random", "eval.match_games=2", "game.cards=3"];
    TINY.iter().chain(&settings).for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let text = stdout(vecaz(&["play", &out, "--sims", "8"]).write_stdin("hint\n"));
    let (others, own) = text.split_once("round 1 of 1").expect("the table");
    assert!(others.contains("player 3 (the network) plays bid ") && !others.contains("visits"), "{text}");
    assert!(own.contains("visits"), "{text}");
    assert_eq!(own.matches("  3 cards").count(), 3, "the hands of the others are counted only: {text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn every_path_to_a_network_is_taken_and_named() {
    let run = run();
    let checkpoint = format!("{run}/checkpoints/epoch-000001");
    let weights = format!("{checkpoint}/weights.safetensors");
    let copy = sibling_path("random");
    std::fs::copy(&weights, &copy).expect("copied");
    let folder = Path::new(&run).parent().expect("a folder");
    for (opponent, named) in [
        (run.as_str(), format!("opponent: {run}/best.safetensors (epoch ")),
        ("./run", "opponent: ./run/best.safetensors (epoch ".into()),
        (&checkpoint, format!("opponent: {weights} (epoch 1, ")),
        (&weights, format!("opponent: {weights} (epoch 1, ")),
        ("./random", "opponent: ./random (".into()),
        ("random", "against random: ".into()),
    ] {
        let arguments = ["eval", "run", "--against", opponent, "--games", "2", "--sims", "4"];
        let text = stdout(vecaz(&arguments).current_dir(folder));
        // Long paths are broken to the width of a page.
        let joined = as_on_unix(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(joined.contains(&as_on_unix(&named)), "{opponent}: {text}");
        assert!(
            as_on_unix(&text).starts_with("network: run/best.safetensors (epoch ")
                && text.contains(" updates)\n"),
            "{text}"
        );
    }
    for (opponent, part) in [
        ("./missing", "--against: got ./missing (not found: "),
        ("run/checkpoints", "run/checkpoints: neither a run (it has no config.toml) nor a checkpoint"),
        ("run/config.toml", "run/config.toml: "),
    ] {
        let arguments = ["eval", "run", "--against", opponent, "--games", "2", "--json", "-"];
        let (_, line) = refusal(vecaz(&arguments).current_dir(folder));
        assert!(as_on_unix(&line).contains(part), "{line}");
    }
    let (_, line) = refusal(&mut vecaz(&["play", &run, "--set", "net.channels=32"]));
    assert!(line.contains("net.channels (--set): got 32, expected 16, the value of the weights"), "{line}");
}
