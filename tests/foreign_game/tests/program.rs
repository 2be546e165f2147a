//! The program with games of its own: every command works with them as with the built-in ones.

use std::path::Path;
use std::process::{Command, Output};

fn program(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foreign_game"));
    command.args(line.split_whitespace()).current_dir(folder);
    command.output().expect("the program starts")
}

/// The standard output of a command that succeeds.
fn stdout(folder: &Path, line: &str) -> String {
    let output = program(folder, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The bytes of every file of a run that must repeat: its networks and games.
fn bytes(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut folders = vec![run.to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(run).expect("inside").display().to_string();
            match path.is_dir() {
                true => folders.push(path),
                false if name.ends_with(".safetensors") || name.starts_with("games/") => {
                    files.push((name, std::fs::read(&path).expect("a file")));
                }
                false => {}
            }
        }
    }
    files.sort();
    files
}

const SHORT: &str = "--games 16 --sims 16 --threads 1 --seed 3 --quiet --set selfplay.samples_per_epoch=300 \
    --set train.min_samples=300 --set train.batch=64 --set net.arch=mlp --set net.blocks=1 --set net.channels=16 \
    --set eval.share=0.0";

#[test]
fn the_game_added_last_is_the_default_and_all_are_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let games = stdout(folder.path(), "games");
    for part in
        ["chomp: ", "pig: ", "game.rounds: ", "--config chomp: Chomp on a small bar", "connect_four: "]
    {
        assert!(games.contains(part), "{part}: {games}");
    }
    assert!(stdout(folder.path(), "config").contains("name = \"chomp\""));
    let boards = stdout(folder.path(), "inspect --actions b1,a2");
    assert!(boards.contains("# . . ."), "{boards}");
}

#[test]
fn runs_learn_resume_and_repeat() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for game in ["chomp", "pig"] {
        stdout(path, &format!("run --game {game} --epochs 4 --out {game} {SHORT}"));
        stdout(path, &format!("run --game {game} --epochs 2 --out {game}-parts {SHORT}"));
        stdout(path, &format!("run --resume {game}-parts --epochs 4 --threads 2 --quiet"));
        let (whole, parts) = (bytes(&path.join(game)), bytes(&path.join(format!("{game}-parts"))));
        assert!(whole.len() > 3, "{game}: {} files", whole.len());
        let names =
            |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&whole), names(&parts), "{game}");
        for ((name, one), (_, other)) in whole.iter().zip(&parts) {
            assert!(one == other, "{game}: {name} differs");
        }
        let verified = stdout(path, &format!("verify {game}"));
        assert!(verified.contains("nothing differs"), "{verified}");
    }
}

#[test]
fn networks_are_evaluated_exported_and_played() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    stdout(path, &format!("run --game chomp --epochs 8 --out chomp {SHORT}"));
    let result = stdout(path, "eval chomp --against random --games 60 --sims 200 --seed 2");
    assert!(result.contains("Elo"), "{result}");
    let won: u64 =
        result.split(" won").next().and_then(|text| text.split(' ').next_back()?.parse().ok()).expect("won");
    assert!(won >= 48, "search with 200 simulations wins most games against random play: {result}");
    stdout(path, "export-weights chomp --out chomp.safetensors");
    assert!(path.join("chomp.safetensors").is_file());
}

#[test]
fn one_player_is_measured_by_mean_scores() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    stdout(path, &format!("run --game pig --epochs 3 --out pig {SHORT}"));
    let result = stdout(path, "eval pig --against random --games 81 --sims 50 --seed 2");
    assert!(result.contains("41 games of each") && result.contains("points"), "{result}");
    for word in ["drawn", "Elo", "win rate", "won"] {
        assert!(!result.contains(word), "{word}: {result}");
    }
    let lead: f64 = result
        .split("lead")
        .nth(1)
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .expect("a lead");
    assert!(lead > 0.0, "search scores more than random play: {result}");
}
