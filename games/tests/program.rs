//! The program with these games: it trains, evaluates and shows them as it does the built-in ones.

use std::path::Path;
use std::process::Command;

/// The standard output of a command that succeeds.
fn stdout(folder: &Path, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vecaz_games"));
    let output =
        command.args(line.split_whitespace()).current_dir(folder).output().expect("the program starts");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

const SHORT: &str = "--games 32 --sims 16 --threads 1 --seed 3 --quiet --set selfplay.samples_per_epoch=1500 \
    --set train.min_samples=1500 --set train.batch=128 --set net.arch=mlp --set net.blocks=1 --set net.channels=32 \
    --set eval.share=0.0";

#[test]
fn all_games_are_listed_with_their_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let games = stdout(folder.path(), "games");
    for part in [
        "breakthrough: ",
        "dots_and_boxes: ",
        "quoridor: ",
        "ultimate_tic_tac_toe: ",
        "2048: ",
        "game.max_tile: ",
    ] {
        assert!(games.contains(part), "{part}: {games}");
    }
}

#[test]
fn boards_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let drawn = |line: &str| stdout(folder.path(), &format!("inspect {line}"));
    let walls = drawn("--game quoridor --set game.size=3 --actions a1h,c1");
    assert!(
        walls.contains("   a   b   c\n 1 .   .  (O)\n   - - -\n 2 .   .   .\n\n 3 .   X   .\n"),
        "{walls}"
    );
}

/// A player who closes a box moves again, which self-play, search and matches follow.
#[test]
fn dots_and_boxes_is_learned_and_evaluated() {
    let folder = tempfile::tempdir().expect("a folder");
    stdout(
        folder.path(),
        &format!("run --game dots_and_boxes --set game.rows=2 --epochs 6 --out run {SHORT}"),
    );
    let result = stdout(folder.path(), "eval run --against random --games 60 --sims 64 --seed 2");
    let won = result.split(" won").next().and_then(|text| text.split(' ').next_back()?.parse::<u64>().ok());
    assert!(won.expect("the number of wins") >= 42, "most games against random play are won: {result}");
    assert!(stdout(folder.path(), "verify run").contains("nothing differs"));
}

/// One player, and chance whose outcomes have places on the board, which symmetries move.
#[test]
fn tiles_are_learned_and_their_score_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    stdout(
        folder.path(),
        &format!(
            "run --game 2048 --set game.max_tile=64 --epochs 6 --out run {SHORT} --set search.solver=false"
        ),
    );
    let result = stdout(folder.path(), "eval run --against random --games 60 --sims 32 --seed 2");
    let lead =
        result.split("lead").nth(1).and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    assert!(lead.expect("a lead") > 0.0, "the network scores more than random play: {result}");
}
