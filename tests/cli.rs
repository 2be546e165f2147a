//! The command line: help, every subcommand on a small run, and one line for every kind of invalid input.

#[path = "cli/completions.rs"]
mod completions;
#[path = "cli/cost.rs"]
mod cost;
#[path = "cli/cube.rs"]
mod cube;
#[path = "cli/encodings.rs"]
mod encodings;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/learning.rs"]
mod learning;
#[path = "cli/listing.rs"]
mod listing;
#[cfg(unix)]
#[path = "cli/long_work.rs"]
mod long_work;
#[path = "cli/matches.rs"]
mod matches;
#[path = "cli/new.rs"]
mod new;
#[path = "cli/play.rs"]
mod play;
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/report.rs"]
mod report;
#[path = "cli/start.rs"]
mod start;
#[cfg(target_os = "linux")]
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/texts.rs"]
mod texts;
#[path = "cli/verify.rs"]
mod verify;
#[path = "cli/weights.rs"]
mod weights;
#[path = "cli/width.rs"]
mod width;

use assert_cmd::Command;
use clap::CommandFactory;
use serde_json::{Value, json};
use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::LazyLock;
use vecaz::cli::Cli;
use vecaz::weights::{EvaluatedPositions, NetFile};

fn vecaz(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("vecaz").expect("the program is built");
    command.args(arguments).env_remove("VECAZ_LOG").env_remove("COLUMNS");
    command
}

fn stdout(command: &mut Command) -> String {
    let output = command.assert().success();
    String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
}

/// Runs a command that must fail before it prints results; returns the exit code and the one line on stderr.
fn refusal(command: &mut Command) -> (i32, String) {
    let (code, stderr, stdout) = failure(command);
    assert_eq!(stdout, "", "{command:?} printed results before it failed");
    (code, stderr)
}

/// Runs a command that must fail; returns the exit code, the one line on stderr, and stdout.
fn failure(command: &mut Command) -> (i32, String, String) {
    let output = command.output().expect("runs");
    let [stderr, stdout] = [output.stderr, output.stdout].map(|text| String::from_utf8(text).expect("UTF-8"));
    let code = output.status.code().expect("no signal");
    assert!(code != 0, "accepted: {command:?}");
    assert!(stderr.starts_with("error: ") && stderr.trim_end().lines().count() == 1, "{command:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{command:?}: {stderr}");
    (code, stderr, stdout)
}

/// A text in which paths, and the name of the program, are those of Unix.
fn as_on_unix(text: &str) -> String {
    if cfg!(windows) { text.replace('\\', "/").replace("vecaz.exe", "vecaz") } else { text.to_string() }
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_subcommand_has_help_with_examples() {
    let mut names = vec![];
    for subcommand in Cli::command().get_subcommands() {
        let name = subcommand.get_name().to_string();
        let help = as_on_unix(&stdout(&mut vecaz(&[&name, "--help"])));
        assert!(help.contains("Usage: vecaz ") && help.contains("Examples:\n  vecaz "), "{name}: {help}");
        names.push(name);
    }
    let help = stdout(&mut vecaz(&["--help"]));
    assert!(names.iter().all(|name| help.contains(&format!("\n  {name} "))), "{help}");
    assert!(stdout(&mut vecaz(&["--version"])).starts_with("vecaz "));
}

#[test]
fn without_a_command_the_help_is_shown() {
    let output = vecaz(&[]).assert().failure().code(2);
    assert!(as_on_unix(&String::from_utf8_lossy(&output.get_output().stderr)).contains("Usage: vecaz "));
}

#[test]
fn inspect_writes_one_record_a_position() {
    let args = ["inspect", "--game", "tic_tac_toe", "--actions", "b2,0,2,b1,6", "--json"];
    let mut records = records(&stdout(&mut vecaz(&args)));
    let board = |record: &mut Value| record.as_object_mut().and_then(|fields| fields.remove("board"));
    let boards: Vec<Value> = records.iter_mut().filter_map(board).collect();
    let first = json!({
        "ply": 0, "kind": "player", "to_play": 0, "legal": [0, 1, 2, 3, 4, 5, 6, 7, 8], "chance": [], "returns": null,
        "action_names": ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"], "scores": null,
    });
    let fourth = json!({
        "ply": 3, "kind": "player", "to_play": 1, "legal": [1, 3, 5, 6, 7, 8], "chance": [], "returns": null,
        "action_names": ["b1", "a2", "c2", "a3", "b3", "c3"], "scores": null,
    });
    let last = json!({
        "ply": 5, "kind": "over", "to_play": null, "legal": [], "chance": [], "returns": [1.0, -1.0],
        "action_names": [], "scores": [1.0, -1.0],
    });
    assert_eq!(records.len(), 6);
    assert_eq!([&records[0], &records[3], &records[5]], [&first, &fourth, &last]);
    let text = stdout(&mut vecaz(&args[..5]));
    assert!(
        boards.iter().all(|board| text.contains(board.as_str().expect("a text").trim_end())),
        "{boards:?}"
    );
    assert_eq!(boards.len(), 6);
}

#[test]
fn inspect_draws_boards_for_people() {
    let args = ["inspect", "--set", "game.rows=4", "--set", "game.columns=5", "--actions", "3 3\n2"];
    insta::assert_snapshot!(stdout(&mut vecaz(&args)), @r"
    ply 0
     . . . . .
     . . . . .
     . . . . .
     . . . . .
     0 1 2 3 4
    player 0 to move
    -> 3

    ply 1
     . . . . .
     . . . . .
     . . . . .
     . . .(X).
     0 1 2 3 4
    player 1 to move
    -> 3

    ply 2
     . . . . .
     . . . . .
     . . .(O).
     . . . X .
     0 1 2 3 4
    player 0 to move
    -> 2

    ply 3
     . . . . .
     . . . . .
     . . . O .
     . .(X)X .
     0 1 2 3 4
    player 1 to move
    ");
}

#[test]
fn inspect_reports_a_full_column_and_the_result_of_a_line() {
    let args = ["inspect", "--actions", "0,0,0,0,0,0", "--json", "-"];
    assert_eq!(records(&stdout(&mut vecaz(&args)))[6]["legal"], json!([1, 2, 3, 4, 5, 6]));
    let over = stdout(&mut vecaz(&["inspect", "--actions", "6,0,6,0,5,0,5,0"]));
    assert!(over.trim_end().ends_with("the game is over; returns [-1, 1]"), "{over}");
}

#[test]
fn inspect_reads_actions_from_stdin_and_files_and_writes_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (folder.path().join("actions.txt"), folder.path().join("out.jsonl"));
    std::fs::write(&input, "3\n3\n2\n").expect("written");
    let direct = stdout(&mut vecaz(&["inspect", "--actions", "3,3,2", "--json", "-"]));
    let piped = stdout(vecaz(&["inspect", "--actions", "-", "--json"]).write_stdin("3 3 2"));
    assert_eq!(piped, direct);
    let from_file = format!("@{}", input.display());
    let args = ["inspect", "--actions", &from_file, "--json", output.to_str().expect("UTF-8")];
    assert_eq!(stdout(&mut vecaz(&args)), "");
    assert_eq!(std::fs::read_to_string(&output).expect("written"), direct);
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 2, "no temporary file stays");
}

#[test]
fn a_configuration_file_names_the_game_and_is_read_from_a_pipe_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("game.toml");
    std::fs::write(&path, "[game]\nname = \"connect_four\"\ncolumns = 4\nrows = 4\n").expect("written");
    let path = path.to_str().expect("UTF-8");
    let legal = |args: &[&str]| records(&stdout(&mut vecaz(args)))[0]["legal"].as_array().map(Vec::len);
    assert_eq!(legal(&["inspect", "--json", "--config", path]), Some(4));
    assert_eq!(legal(&["inspect", "--json", "--config", path, "--set", "game.columns=6"]), Some(6));
    assert_eq!(legal(&["inspect", "--json", "--config", "quick"]), Some(7), "a built-in one by its name");
}

#[test]
fn inspect_shows_the_legal_plies_before_it_refuses_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("game.jsonl").display().to_string();
    for (actions, part) in [
        ("3,9", "ply 1: action 9 is not legal here; legal: 0, 1, 2, 3, 4, 5, 6"),
        ("3,-1", "ply 1: action -1 is not legal here"),
        ("3,99999999999", "ply 1: action 99999999999 is not legal here"),
        ("3 c7x", "ply 1: action c7x is not legal here"),
        ("0,0,0,0,0,0,0", "ply 6: action 0 is not legal here; legal: 1, 2, 3, 4, 5, 6"),
        ("0,1,0,1,0,1,0,1", "ply 7: action 1 is not legal here; legal: none, the game is over"),
    ] {
        let arguments = ["inspect", "--actions", actions, "--json"];
        let (code, line, shown) = failure(&mut vecaz(&arguments));
        assert!(code == 1 && line.contains(part), "{actions}: {code}, {line}");
        let plies = records(&shown).len();
        assert!(line.contains(&format!("ply {}: ", plies - 1)), "{actions}: {plies} positions, {line}");
        let (_, _, boards) = failure(&mut vecaz(&arguments[..3]));
        assert_eq!(boards.matches("ply ").count(), plies, "{boards}");
        refusal(vecaz(&arguments).arg(&file));
        assert!(!Path::new(&file).exists(), "a file is whole or absent");
    }
}

const TINY: &[&str] = &[
    "net.blocks=1",
    "net.channels=16",
    "search.simulations=12",
    "selfplay.games=8",
    "selfplay.samples_per_epoch=200",
    "selfplay.passes_per_poll=4",
    "replay.capacity=2000",
    "train.batch=32",
    "train.min_samples=100",
    "eval.share=0.0",
    "eval.simulations=8",
    "eval.positions=20",
];

/// A run of two epochs of tic-tac-toe, made once, and the output of the program.
static RUN: LazyLock<(tempfile::TempDir, String)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run").display().to_string();
    let mut command = vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "2", "--out", &out]);
    TINY.iter().for_each(|setting| {
        command.args(["--set", setting]);
    });
    let printed = stdout(&mut command);
    (folder, printed)
});

fn run() -> String {
    RUN.0.path().join("run").display().to_string()
}

/// The path of a file or folder of one test, next to the run.
fn sibling_path(name: &str) -> PathBuf {
    let _ = run();
    RUN.0.path().join(name)
}

#[test]
fn a_run_prints_a_table_and_leaves_what_the_help_says() {
    let _ = run();
    let lines: Vec<&str> = RUN.1.lines().collect();
    assert!(lines[0].starts_with("tic_tac_toe: 8 games at once, 12 simulations"), "{lines:?}");
    let from = |start: &str| {
        let found = lines.iter().position(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("no {start} in {lines:?}"))
    };
    let (network, memory, table) =
        (from("network executed by"), from("memory: trees "), from("epoch  minutes"));
    assert_eq!(lines[network], "network executed by fused kernels, which cover every layer; trained in f32");
    assert!(lines[..network].concat().contains("2 epochs, folder ") && memory < table, "{lines:?}");
    let [first, second, results, next @ ..] = &lines[table + 1..] else { panic!("{lines:?}") };
    assert_eq!([first, second].map(|line| line.split_whitespace().next()), [Some("1"), Some("2")]);
    assert!(results.starts_with("results are in "), "{lines:?}");
    for command in ["serve RUN", "play RUN", "eval RUN --against rollouts:800", "run --resume RUN --epochs E"]
    {
        let line = format!("  vecaz {}", command.replace("RUN", &run()));
        assert!(next.contains(&line.as_str()), "{line}: {next:?}");
    }
    let folder = PathBuf::from(run());
    for name in [
        "config.toml",
        "metrics.jsonl",
        "report.html",
        "best.safetensors",
        "manifest.jsonl",
        "checkpoints",
        "games",
    ] {
        assert!(folder.join(name).exists(), "{name}");
    }
    let metrics = std::fs::read_to_string(folder.join("metrics.jsonl")).expect("read");
    let numbers: Vec<Value> = records(&metrics).iter().map(|record| record["epoch"].clone()).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn eval_writes_a_line_a_position_and_a_summary() {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/positions/tic_tac_toe.jsonl");
    let solved: String =
        std::fs::read_to_string(fixture).expect("read").split_inclusive('\n').take(12).collect();
    let positions = sibling_path("positions.jsonl");
    std::fs::write(&positions, solved).expect("written");
    let args = ["eval", &run(), "--positions", positions.to_str().expect("UTF-8"), "--sims", "400"];
    let rows = records(&stdout(vecaz(&args).args(["--json", "-"])));
    assert_eq!(rows.len(), 13);
    for (index, row) in rows[..12].iter().enumerate() {
        assert_eq!(row["index"], index);
        assert!(
            ["policy_action", "search_action"].iter().all(|key| row[key].as_u64().is_some_and(|a| a < 9))
        );
        assert!(row["value"].as_f64().is_some_and(|value| value.abs() <= 1.0), "{row}");
    }
    let summary = &rows[12];
    assert_eq!(summary["positions"], 12);
    let network = as_on_unix(&format!("{}/best.safetensors (epoch ", run()));
    assert!(
        summary["network"].as_str().is_some_and(|label| as_on_unix(label).starts_with(&network)),
        "{summary}"
    );
    for key in ["policy_outcome_error", "policy_exact_error", "search_outcome_error", "search_exact_error"] {
        assert!(summary[key].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{summary}");
    }
    // By a short path, which leaves the first line whole.
    let args = ["eval", "run", args[2], args[3], "--sims", "400"];
    let table = stdout(vecaz(&args).current_dir(RUN.0.path()));
    let first: Vec<&str> = table.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(first, ["network:", "12", "search,", "raw", "uniform"]);
}

#[test]
fn a_match_counts_every_game() {
    for opponent in ["random", "rollouts:5", &run()] {
        let args = ["eval", &run(), "--against", opponent, "--games", "6", "--sims", "8", "--json", "-"];
        let row = &records(&stdout(&mut vecaz(&args)))[0];
        let points = ["wins", "draws", "losses"].map(|key| row[key].as_u64().expect("a count"));
        assert_eq!((points.iter().sum::<u64>(), &row["games"]), (6, &json!(6)), "{row}");
        assert!(row["elo"].is_object(), "{row}");
        let is_run = |label: &Value| label.as_str().is_some_and(|label| label.starts_with(&run()));
        assert!(is_run(&row["network"]), "{row}");
        let named = &row["opponent_network"];
        assert!(if opponent == run() { is_run(named) } else { named.is_null() }, "{row}");
    }
    let args = ["eval", &run(), "--against", "random", "--games", "2", "--sims", "8"];
    let text = stdout(&mut vecaz(&args));
    assert!(
        text.starts_with("network: ") && text.contains("\nagainst random: ") && text.contains("Elo"),
        "{text}"
    );
}

#[test]
fn bench_scaling_measures_a_trained_network() {
    let net = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");
    let args =
        ["bench-scaling", "--run", net, "--games", "3", "--sims", "16", "--seconds", "0.05", "--json", "-"];
    let rows: Value = serde_json::from_str(&stdout(&mut vecaz(&args))).expect("a JSON array");
    let name = rows[0]["net"].as_str().expect("a name");
    assert!(name.starts_with("2x32@"), "{name}");
    let refused = vecaz(&["bench-scaling", "--run", net, "--net", "2x32"]).assert().failure();
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("--net"));
}

#[test]
fn bench_scaling_writes_a_row_for_each_combination() {
    let args = [
        ["bench-scaling", "--game", "tic_tac_toe", "--games", "1,8", "--sims", "16", "--seconds", "0.05"]
            .as_slice(),
        &["--net", "uniform", "--threads", "1", "--root-cache", "0,50", "--json", "-"],
    ]
    .concat();
    let rows: Value = serde_json::from_str(&stdout(&mut vecaz(&args))).expect("a JSON array");
    let rows = rows.as_array().expect("an array");
    let plan: Vec<(u64, u64)> =
        rows.iter().filter_map(|row| Some((row["games"].as_u64()?, row["root_cache"].as_u64()?))).collect();
    // Gumbel: a quarter of the simulations of a ply.
    assert_eq!(plan, [(1, 0), (8, 0), (1, 4), (8, 4)]);
    for row in rows {
        for (key, value) in [("game", "tic_tac_toe"), ("net", "uniform"), ("device", "cpu")] {
            assert_eq!(row[key], value);
        }
        let sizes = ["sims", "leaves", "threads", "max_threads"].map(|key| row[key].as_u64());
        assert_eq!(sizes, [16, 1, 1, 1].map(Some));
        for key in ["simulations_per_second", "moves_per_second", "forward_positions_per_second"] {
            assert!(row[key].as_f64().is_some_and(|rate| rate > 0.0), "{key}: {row}");
        }
        // Null if no game is finished in this time.
        assert_eq!(row["plies_per_game"].is_null(), row["games_per_second"].is_null(), "{row}");
        let [moves, plies, games] =
            ["moves_per_second", "plies_per_game", "games_per_second"].map(|key| row[key].as_f64());
        if let (Some(moves), Some(plies), Some(games)) = (moves, plies, games) {
            assert!((1.0..=9.0).contains(&plies) && (games * plies / moves - 1.0).abs() < 1e-9, "{row}");
        }
        let share = row["share"].as_object().expect("an object");
        assert_eq!(share.len(), 5, "{row}");
        let sum: f64 = share.values().filter_map(Value::as_f64).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{row}");
    }
}
