//! `vecaz inspect`: stored games of a run, random plies, legal actions on request.

use super::*;

#[test]
fn a_stored_game_is_found_by_file_and_slot() {
    let file = format!("{}/games/epoch-000002.jsonl", run());
    let stored = records(&std::fs::read_to_string(&file).expect("read"));
    let game = stored.iter().find(|game| game["slot"] == 5).expect("a game of slot 5");
    let shown = records(&stdout(&mut vecaz(&["inspect", "--stored", &file, "--slot", "5", "--json"])));
    assert_eq!(Some(shown.len() - 1), game["actions"].as_array().map(Vec::len));
    let returns = |value: &Value| -> Vec<f64> {
        value.as_array().expect("a list").iter().filter_map(Value::as_f64).collect()
    };
    assert_eq!(returns(&shown[shown.len() - 1]["returns"]), returns(&game["returns"]));
    let first = records(&stdout(&mut vecaz(&["inspect", "--stored", &file, "--json"])));
    assert_eq!(Some(first.len() - 1), stored[0]["actions"].as_array().map(Vec::len));
    let (code, line) = refusal(&mut vecaz(&["inspect", "--stored", &file, "--slot", "999"]));
    assert!(code == 2 && line.contains("--slot: got 999, expected one of "), "{line}");
    let config = format!("{}/config.toml", run());
    let (code, line) = refusal(&mut vecaz(&["inspect", "--stored", &config]));
    assert!(code == 1 && line.contains("has no config.toml"), "{line}");
    let (code, line) = refusal(&mut vecaz(&["inspect", "--stored", "nowhere.jsonl"]));
    assert!(code == 1 && line.contains("nowhere.jsonl: "), "{line}");
}

#[test]
fn random_plies_follow_the_actions_and_repeat_with_the_seed() {
    let args = ["inspect", "--game", "backgammon", "--actions", "player 0", "--random", "30", "--json"];
    let game = |seed: &str| stdout(vecaz(&args).args(["--seed", seed]));
    let plies = records(&game("3"));
    assert_eq!(plies.len(), 32, "the start, the action, and 30 random plies");
    assert!(
        plies.iter().any(|ply| ply["kind"] == "chance") && plies.iter().any(|ply| ply["kind"] == "player")
    );
    assert_eq!(game("3"), game("3"));
    assert_ne!(game("3"), game("4"));
    let whole = stdout(&mut vecaz(&["inspect", "--game", "tic_tac_toe", "--random", "100"]));
    assert!(whole.contains("the game is over; returns ["), "{whole}");
}

#[test]
fn boards_have_no_legal_actions_unless_they_are_asked_for() {
    let hex = ["inspect", "--game", "hex", "--actions", "f6"];
    let boards = stdout(&mut vecaz(&hex));
    assert!(boards.contains("player 1 to move\n") && !boards.contains("legal"), "{boards}");
    let legal = stdout(vecaz(&hex).arg("--legal"));
    assert!(legal.contains("player 1 to move; legal: 0=a1 1=b1 "), "{legal}");
}

/// A draw is worth 0, not -0, to both.
#[test]
fn a_draw_has_no_minus() {
    let args = ["inspect", "--game", "tic_tac_toe", "--actions", "4,0,8,2,1,7,6,3,5"];
    let text = stdout(&mut vecaz(&args));
    assert!(text.ends_with("the game is over; returns [0, 0]\n"), "{text}");
    let json = records(&stdout(vecaz(&args).arg("--json")));
    let last = &json[json.len() - 1];
    for key in ["returns", "scores"] {
        let values = last[key].as_array().expect("a list");
        assert!(
            values.iter().all(|value| value.as_f64().is_some_and(|value| value.is_sign_positive())),
            "{last}"
        );
    }
}
