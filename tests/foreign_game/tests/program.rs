//! The program with games of its own: every command works with them as with the built-in ones. And the laws hold for them and for the games that `vecaz new` writes.

#[path = "../../../src/cli/new/board.rs"]
mod board;
#[path = "../../../src/cli/new/cards.rs"]
mod cards;
#[path = "../src/chomp.rs"]
mod chomp;
#[path = "../../../src/cli/new/dice.rs"]
mod dice;
#[path = "../src/pig.rs"]
mod pig;
#[path = "../../../src/cli/new/solo.rs"]
mod solo;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

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

#[test]
fn the_laws_hold() {
    vecaz::contract::check::<chomp::Chomp>().unwrap();
    vecaz::contract::check::<pig::Pig>().unwrap();
    vecaz::contract::check::<board::Rules>().unwrap();
    vecaz::contract::check::<dice::Rules>().unwrap();
    vecaz::contract::check::<cards::Rules>().unwrap();
    vecaz::contract::check::<solo::Rules>().unwrap();
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
    // The embedded network plays another game.
    for command in ["play", "engine"] {
        let refused = program(folder.path(), command);
        let line = String::from_utf8(refused.stderr).unwrap();
        assert!(
            line.contains("the embedded network plays connect_four; `run --game chomp"),
            "{command}: {line}"
        );
    }
}

/// The name of a game without a configuration of its own is taken, too.
#[test]
fn a_project_is_not_named_like_a_game() {
    let folder = tempfile::tempdir().unwrap();
    let refused = program(folder.path(), "new pig");
    let line = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{line}");
    assert!(line.contains("the name: got pig, expected one that no game"), "{line}");
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
    let mut play = Command::new(env!("CARGO_BIN_EXE_foreign_game"));
    play.args(["play", "chomp", "--sims", "20"])
        .current_dir(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut play = play.spawn().expect("the program starts");
    // Squares that are eaten already are refused; the poisoned one ends the game.
    let squares: String = ["d3", "c3", "b3", "a3", "d2", "c2", "b2", "a2", "d1", "c1", "b1", "a1"].join("\n");
    play.stdin.take().expect("a pipe").write_all(squares.as_bytes()).expect("written");
    let played = String::from_utf8(play.wait_with_output().expect("ended").stdout).expect("UTF-8");
    assert!(played.contains("# . . .") && played.contains("game over: "), "{played}");
    stdout(path, "export-weights chomp --out chomp.safetensors");
    assert!(path.join("chomp.safetensors").is_file());
}

#[test]
fn one_player_is_measured_by_mean_scores() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    stdout(path, &format!("run --game pig --epochs 3 --out pig {SHORT} --set eval.opponent=random"));
    let metrics = std::fs::read_to_string(path.join("pig/metrics.jsonl")).expect("metrics");
    let last: serde_json::Value =
        serde_json::from_str(metrics.lines().last().expect("an epoch")).expect("JSON");
    let (score, of_pairs) = (&last["strength"]["mean_score"], last["strength"]["match_score"].as_f64());
    let [mean, low, high] = [&score["mean"], &score["interval"][0], &score["interval"][1]]
        .map(|number| number.as_f64().unwrap_or_else(|| panic!("{last}")));
    assert!(low < mean && mean < high && mean > 1.0, "a mean of Pig's points: {last}");
    assert!(
        of_pairs.is_some_and(|share| share > 0.5),
        "more pairs are won than lost against random play: {last}"
    );
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

/// A process that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Redis server with its port. Without a redis-server the test is skipped with a message, and fails under VECAZ_REQUIRE_REDIS=1.
fn redis(folder: &Path) -> Option<(Killed, u16)> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder);
    match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(server) => {
            let (server, start) = (Killed(server), Instant::now());
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                assert!(start.elapsed() < Duration::from_secs(60), "no server within a minute");
                sleep(Duration::from_millis(5));
            }
            Some((server, port))
        }
        Err(error) => {
            let required = std::env::var_os("VECAZ_REQUIRE_REDIS").is_some_and(|value| value == "1");
            assert!(!required, "VECAZ_REQUIRE_REDIS=1, and redis-server does not start: {error}");
            eprintln!("SKIPPED: there is no redis-server, so this test of two machines has not run");
            None
        }
    }
}

/// The learner does not play, so that all games are the worker's.
#[test]
fn workers_play_the_games_of_a_learner() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let Some((_server, port)) = redis(path) else { return };
    for game in ["chomp", "pig"] {
        let url = format!("redis://127.0.0.1:{port}/{game}");
        let mut worker = Command::new(env!("CARGO_BIN_EXE_foreign_game"));
        worker.args(["work", &url, "--threads", "1"]).current_dir(path).stdout(Stdio::null());
        let mut worker = Killed(worker.spawn().expect("the program starts"));
        let learner = format!("run --game {game} --cluster {url} --play 0 --epochs 2 --out {game} {SHORT}");
        stdout(path, &format!("{learner} --set cluster.max_queued_bytes=16777216"));
        assert!(worker.0.wait().expect("ended").success(), "{game}: the worker ends with its run");
        let metrics = std::fs::read_to_string(path.join(game).join("metrics.jsonl")).expect("metrics");
        let last: serde_json::Value =
            serde_json::from_str(metrics.lines().last().expect("an epoch")).expect("JSON");
        assert!(last["samples"].as_u64() >= Some(300) && last["workers"]["active"] == 1, "{last}");
        assert!(stdout(path, &format!("verify {game}")).contains("nothing differs"));
    }
}
