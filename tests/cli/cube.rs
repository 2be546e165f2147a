//! Backgammon with a cube, by networks that were trained without it.

use super::*;

/// A run of one epoch of backgammon, as small as possible, in `out`.
fn train(out: &str, further: &[&str]) {
    let mut command = vecaz(&["run", "--game", "backgammon", "--epochs", "1", "--quiet", "--out", out]);
    for setting in TINY.iter().chain(further) {
        command.args(["--set", setting]);
    }
    stdout(&mut command);
}

#[test]
fn a_network_that_predicts_results_plays_with_a_cube_and_matches() {
    let out = sibling_path("cube").display().to_string();
    train(&out, &[]);
    // Few games, and none of a thousand plies.
    let eval = |settings: &[&str], opponent: &str| {
        let mut command = vecaz(&["eval", &out, "--against", opponent, "--games", "4", "--json", "-"]);
        settings.iter().chain(&["game.ply_limit=400"]).for_each(|set| {
            command.args(["--set", set]);
        });
        stdout(&mut command)
    };
    assert!(eval(&["game.cube=true"], "random").contains("\"luck_adjusted_points\""));
    eval(&["game.cube=true", "game.match_points=3"], "random");
    eval(&["game.match_points=2"], &out);
    for (set, expected) in [
        ("net.precision=int8", "net.precision: got int8, expected f32 or bf16"),
        ("eval.algorithm=puct", "eval.algorithm: got puct, expected afterstate"),
        ("eval.turns=2", "eval.turns: got 2, expected 1"),
    ] {
        let args = ["eval", &out, "--against", "random", "--set", "game.cube=true", "--set", set];
        let (code, line) = refusal(&mut vecaz(&args));
        assert!(code == 2 && line.contains(expected), "{set}: {code}, {line}");
    }
    for (command, option) in [("play", "--sims"), ("engine", "--sims"), ("engine", "--seconds")] {
        let (code, line) = refusal(&mut vecaz(&[command, &out, option, "5"]));
        assert!(
            code == 2 && line.contains(&format!("{option}: got 5, expected none: ")),
            "{command}: {line}"
        );
    }
    let args =
        ["inspect", "--game", "backgammon", "--set", "game.cube=true", "--actions", "player 0,3-1,8/5,6/5"];
    let shown = stdout(&mut vecaz(&args));
    assert!(shown.contains("the cube is at 1, in the middle") && shown.contains("double"), "{shown}");
}

#[test]
fn a_cube_is_refused_where_a_network_cannot_play_it() {
    let (out, of_trees) = (sibling_path("no_cube"), sibling_path("cube_of_trees"));
    let [out, of_trees] = [out, of_trees].map(|path| path.display().to_string());
    train(&out, &["net.auxiliary="]);
    train(&of_trees, &["search.algorithm=gumbel", "train.td_lambda=1", "eval.algorithm=gumbel"]);
    let cube = ["--set", "game.cube=true"];
    for (arguments, part) in [
        (
            vec!["eval", &out, "--against", "random"],
            "they need a head that predicts outcomes, which training with net.auxiliary",
        ),
        (
            vec!["eval", &of_trees, "--against", "random"],
            "they need one that was trained with search.algorithm = \"afterstate\"",
        ),
        (vec!["run", "--game", "backgammon"], "training backgammon with these settings of the game"),
        (
            vec!["bench-scaling", "--game", "backgammon"],
            "training backgammon with these settings of the game",
        ),
        (vec!["tune", "--game", "backgammon"], "training backgammon with these settings of the game"),
    ] {
        let (code, line) = refusal(vecaz(&arguments).args(cube));
        assert!(code == 1 && line.contains(part), "{arguments:?}: {code}, {line}");
    }
}
