//! Invalid input and failures of the system: one line on stderr, an exit code other than 0, and an unchanged run.

#[path = "bad_input/accept.rs"]
mod accept;
#[path = "bad_input/damage.rs"]
mod damage;
#[path = "bad_input/limits.rs"]
mod limits;
#[path = "bad_input/machine.rs"]
mod machine;
#[path = "bad_input/weights.rs"]
mod weights;

use assert_cmd::Command;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const CONFIG: &str = "
[game]
name = 'tic_tac_toe'
[net]
arch = 'mlp'
blocks = 1
channels = 16
value_hidden = 8
[search]
simulations = 8
[selfplay]
games = 8
samples_per_epoch = 100
passes_per_poll = 4
[replay]
capacity = 1000
[train]
batch = 32
min_samples = 100
[eval]
share = 0.0
simulations = 8
positions = 20
";

fn vecaz(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("vecaz").expect("the program is built");
    command.args(arguments).env_remove("VECAZ_LOG");
    command
}

/// Runs a command that must fail, with exit code 2 if a game, a key or its value is invalid or a text is not UTF-8, otherwise 1. Returns its line on stderr.
fn refusal(command: &mut Command) -> String {
    let output = command.timeout(std::time::Duration::from_secs(60)).output().expect("runs");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    let is_usage = stderr.trim_end().ends_with(", expected UTF-8")
        || ["error: config ", "error: unknown game ", "error: --"]
            .iter()
            .any(|kind| stderr.starts_with(kind));
    assert_eq!(output.status.code(), Some(if is_usage { 2 } else { 1 }), "{command:?}: {stderr}");
    assert!(stderr.starts_with("error: ") && stderr.trim_end().lines().count() == 1, "{command:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{command:?}: {stderr}");
    stderr
}

fn assert_refused(arguments: &[&str], part: &str) {
    let line = refusal(&mut vecaz(arguments));
    assert!(line.contains(part), "{arguments:?}: {line}");
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A run of two epochs, made once; tests work on copies.
static RUN: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let (config, run) = (folder.path().join("tiny.toml"), folder.path().join("run"));
    fs::write(&config, CONFIG).expect("written");
    vecaz(&["run", "--config", utf8(&config), "--epochs", "2", "--out", utf8(&run)]).assert().success();
    folder
});

/// A copy of the run, and its parent folder.
fn run_copy() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    copy(&RUN.path().join("run"), &run);
    (folder, run)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

/// Every file below `folder` with its bytes.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(content(&path));
        } else if path.file_name().is_some_and(|name| name != ".lock") {
            found.insert(path.clone(), fs::read(&path).expect("read"));
        }
    }
    found
}

fn checkpoint(run: &Path, file: &str) -> PathBuf {
    run.join("checkpoints/epoch-000002").join(file)
}

/// Asserts that `vecaz run` with each list of arguments is refused with a line that contains `part`, and leaves no folder.
fn assert_runs_are_refused(cases: &[(Vec<&str>, &str)]) {
    for (arguments, part) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("run");
        let line = refusal(vecaz(&["run", "--out", utf8(&out), "--epochs", "1"]).args(arguments));
        assert!(line.contains(part), "{arguments:?}: {line}");
        assert!(!out.exists(), "{arguments:?} left a folder");
    }
}

#[test]
fn what_decisions_on_whole_turns_lack_is_refused() {
    let afterstate = ["--game", "backgammon", "--set", "search.algorithm=afterstate"];
    let with = |more: &[&'static str]| [&afterstate, more].concat();
    let mut cases = vec![
        (
            with(&["--set", "train.td_lambda=1.5"]),
            "train.td_lambda (--set): got 1.5, expected a number from 0 to 1",
        ),
        (with(&["--set", "eval.turns=3"]), "eval.turns (--set): got 3, expected a whole number from 1 to 2"),
        (
            vec!["--game", "hex", "--set", "eval.turns=2"],
            "eval.turns (--set): got 2, expected 1, or eval.algorithm = \"afterstate\"",
        ),
        (
            vec!["--game", "chess", "--set", "search.algorithm=afterstate", "--set", "eval.turns=2"],
            "eval.turns (--set): got 2, expected 1 in a game with rules about repeated positions",
        ),
        (
            vec!["--game", "blob", "--set", "search.algorithm=afterstate"],
            "search.algorithm (--set): got afterstate, expected puct or gumbel in a game with hidden information",
        ),
        (
            vec!["--game", "blob", "--set", "eval.algorithm=afterstate"],
            "eval.algorithm (--set): got afterstate, expected puct or gumbel, or search.algorithm = \"afterstate\"",
        ),
    ];
    if cfg!(feature = "cuda") {
        let gpu = "search.algorithm (--set): got afterstate, expected puct or gumbel on a GPU, or the CPU as run.device";
        cases.push((with(&["--device", "cuda"]), gpu));
        cases.push((with(&["--set", "net.device=cuda"]), gpu));
    }
    if cfg!(feature = "cluster") {
        let url = "redis://127.0.0.1:1/none";
        cases.push((
            with(&["--cluster", url]),
            "search.algorithm (--set): got afterstate, expected puct or gumbel with workers",
        ));
        cases.push((
            vec!["--set", "train.td_lambda=0.5", "--cluster", url],
            "train.td_lambda (--set): got 0.5, expected 1 with workers",
        ));
    }
    assert_runs_are_refused(&cases);
}

#[test]
fn invalid_values_of_single_keys_and_games_are_refused() {
    assert_runs_are_refused(&[
        (vec!["--set", "selfplay.gmaes=3"], "selfplay.gmaes"),
        (
            vec!["--set", "selfplay.games=many"],
            "selfplay.games (--set): got \"many\", expected a whole number from 1 to 1048576",
        ),
        (vec!["--set", "train.lr=[1]"], "train.lr (--set): got [1], expected a number from 0 to 100"),
        (vec!["--games", "0"], "selfplay.games: got 0, expected a whole number from 1 to 1048576"),
        (vec!["--sims", "0"], "search.simulations: got 0"),
        (vec!["--set", "eval.positions=0"], "eval.positions (--set): got 0"),
        (
            vec!["--game", "hex", "--set", "eval.opponent=bob"],
            "eval.opponent (--set): got bob, expected ladder, random, or rollouts:S",
        ),
        // Of a game with solved positions, which are measured instead of a match.
        (vec!["--set", "eval.opponent=rollout:9"], "eval.opponent (--set): got rollout:9, expected ladder, "),
        (
            vec!["--game", "backgammon", "--set", "game.match_points=26"],
            "game.match_points (--set): got 26, expected a whole number from 0 to 25",
        ),
        (vec!["--game", "go_fish"], "unknown game go_fish; the games are tic_tac_toe, "),
        (
            vec!["--game", "hex", "--set", "game.size=99"],
            "game.size (--set): got 99, expected a whole number from 3 to 19",
        ),
        (
            vec!["--game", "clique", "--set", "game.k=7"],
            "game.k (--set): got 7, expected a whole number from 3 to 6 (at most n)",
        ),
        (
            vec!["--game", "blob", "--set", "game.players=9"],
            "game.players (--set): got 9, expected a whole number from 3 to 8",
        ),
        (
            vec!["--game", "blob", "--set", "game.players=8", "--set", "game.cards=7"],
            "game.cards (--set): got 7, expected a whole number from 1 to 6, for 8 players share 52 cards",
        ),
        (
            vec!["--game", "chess", "--set", "game.fen=8/8/8/8 w"],
            "game.fen (--set): got 8/8/8/8 w (2 fields), expected 4 to 6 fields",
        ),
        (vec!["--games", "1000000", "--sims", "100000"], "the largest selfplay.games that fits is "),
        (vec!["--set", "run.memory_mib=1"], "more than the 1 MiB allowed"),
    ]);
}

#[test]
fn values_that_contradict_others_are_refused() {
    assert_runs_are_refused(&[
        (
            vec!["--set", "net.arch=edge"],
            "net.arch (--set): got edge, expected resnet or mlp, since the actions of this game are not the edges",
        ),
        (
            vec!["--set", "net.policy_head=points"],
            "net.policy_head (--set): got points, expected dense: the actions of this game are not points",
        ),
        (
            vec!["--game", "clique", "--set", "net.arch=edge", "--set", "net.precision=int8"],
            "net.precision (--set): got int8, expected f32 or bf16",
        ),
        (
            vec!["--set", "net.isa=amx", "--set", "net.precision=f32"],
            "net.isa (--set): got amx, expected one of native",
        ),
        (
            vec!["--set", "net.isa=amx", "--set", "net.device=cuda"],
            "net.isa (--set): got amx, expected native for a network on a GPU",
        ),
        (
            vec![
                "--set",
                "net.executor=candle",
                "--set",
                "net.precision=f32",
                "--set",
                "train.precision=bf16",
            ],
            match cfg!(feature = "candle") {
                true => "train.precision (--set): got bf16, expected f32, since candle executes this network",
                false => "this program was built without the feature candle",
            },
        ),
        (
            vec!["--set", "train.precision=f16"],
            "train.precision (--set): got f16, expected f32 or bf16 for training on the CPU",
        ),
    ]);
}

#[test]
fn sizes_that_overflow_are_counted_right() {
    let settings = [
        "search.determinisations=4096",
        "search.nodes=100000000",
        "selfplay.games=1048576",
        "run.memory_mib=1000000",
    ];
    let mut command = vecaz(&["run", "--game", "blob", "--sims", "1000000"]);
    settings.iter().for_each(|setting| {
        command.args(["--set", setting]);
    });
    let line = refusal(&mut command);
    let need: u128 = line.split(' ').find_map(|word| word.parse().ok()).expect("a number");
    // 2^32 rows of 10^8 nodes are more than 2^64 bytes, which is where the count stops.
    assert_eq!(need, 1 << 44, "{line}");
}

#[test]
fn measurements_that_do_not_fit_are_refused_before_the_first() {
    for arguments in [
        vec!["bench-scaling", "--games", "1,1048576", "--sims", "1000000", "--net", "uniform"],
        vec![
            "bench-scaling",
            "--games",
            "1",
            "--sims",
            "1000000",
            "--set",
            "run.memory_mib=20",
            "--net",
            "uniform",
        ],
    ] {
        let output = vecaz(&arguments).assert().failure();
        assert_eq!(output.get_output().stdout, b"", "{arguments:?}: nothing was measured");
        assert_refused(&arguments, "MiB allowed");
    }
}

#[test]
fn a_resume_with_another_configuration_is_refused() {
    let (folder, run) = run_copy();
    let before = content(&run);
    let name = utf8(&run);
    for (arguments, part) in [
        (
            vec!["--game", "hex"],
            "game.name: got \"hex\", expected \"tic_tac_toe\", that of the resumed run: ",
        ),
        (
            vec!["--set", "net.channels=32"],
            "net.channels (--set): got 32, expected 16, that of the resumed run: ",
        ),
        (
            vec!["--set", "net.precision=bf16"],
            "net.precision (--set): got \"bf16\", expected \"f32\", that of the",
        ),
        (vec!["--seed", "2"], "run.seed: got 2, expected 1, that of the resumed run: "),
        (
            vec!["--games", "9"],
            "selfplay.games: got 9, expected 8, that of the resumed run: the checkpoint has that number",
        ),
        (vec!["--games", "9"], "all others can be changed"),
        (vec!["--set", "replay.capacity=50"], "replay.capacity (--set): got 50, expected "),
        (
            vec!["--set", "train.optimizer=sgd"],
            "train.optimizer (--set): got \"sgd\", expected \"adamw\", which",
        ),
        (
            vec!["--set", "train.mode=overlapped"],
            "train.mode (--set): got \"overlapped\", expected \"in_turns\", that",
        ),
        (vec!["--set", "run.memory_mib=0", "--set", "eval.simulations=0"], "eval.simulations (--set): got 0"),
        (vec!["--set", "search.simulations=1000000", "--set", "search.nodes=100000000"], "MiB allowed"),
    ] {
        let line = refusal(vecaz(&["run", "--resume", name, "--epochs", "3"]).args(&arguments));
        assert!(line.contains(part), "{arguments:?}: {line}");
    }
    assert_refused(&["run", "--out", name, "--epochs", "1"], "the folder already contains a run");
    assert!(content(&run) == before, "the run was changed");
    let (empty, missing) = (folder.path().join("empty"), folder.path().join("missing"));
    fs::create_dir(&empty).expect("made");
    assert_refused(&["run", "--resume", utf8(&empty)], "not a run");
    assert_refused(&["run", "--resume", utf8(&missing)], "reading ");
    assert!(fs::read_dir(&empty).expect("listed").next().is_none() && !missing.exists());
}

/// A folder cannot be created below a regular file, not even by the superuser.
#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let (folder, run) = run_copy();
    let file = folder.path().join("file");
    fs::write(&file, b"").expect("written");
    let below = file.join("x");
    let run_args = ["run", "--game", "tic_tac_toe", "--epochs", "1", "--out", utf8(&below)];
    assert_refused(&run_args, "creating ");
    assert_refused(&["export-weights", utf8(&run), "--out", utf8(&below)], "writing ");
    assert_refused(
        &["eval", utf8(&run), "--against", "random", "--games", "2", "--json", utf8(&below)],
        "writing ",
    );
    assert_eq!(fs::read(&file).expect("read"), b"");
}

/// A limit on the size of files has the effect of a full disk, also for the superuser. Its signal does not end the program.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_last_checkpoint() {
    let (_folder, run) = run_copy();
    let before = content(&run.join("checkpoints"));
    let program = assert_cmd::cargo::cargo_bin("vecaz");
    let resume = "ulimit -f 4; exec \"$0\" run --resume \"$1\" --epochs 4";
    let mut full = Command::new("bash");
    full.args(["-c", resume, utf8(&program), utf8(&run)]);
    let line = refusal(&mut full);
    assert!(line.starts_with("error: writing ") && line.contains("File too large"), "{line}");
    assert!(!line.contains(".vecaz-"), "{line}");
    let mut after = content(&run.join("checkpoints"));
    after.retain(|path, _| !path.display().to_string().contains("/.writing-"));
    assert!(after == before, "the checkpoints were changed");
    vecaz(&["run", "--resume", utf8(&run), "--epochs", "4"]).assert().success();
    vecaz(&["verify", utf8(&run)]).assert().success();
    let hidden =
        |path: &PathBuf| path.strip_prefix(&run).is_ok_and(|path| path.display().to_string().contains("/."));
    assert_eq!(content(&run).into_keys().find(hidden), None, "nothing half written stays");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_refused() {
    assert_refused(&["inspect", "--json", "/dev/full"], "writing /dev/full: No space left on device");
}

#[test]
fn wrong_positions_are_refused_by_line() {
    let (folder, run) = run_copy();
    let path = folder.path().join("positions.jsonl");
    let good = r#"{"actions":[0],"scores":[null,0,0,0,0,0,0,0,0]}"#;
    for (text, part) in [
        ("junk".to_string(), "line 1: expected {\"actions\":"),
        (format!("{good}\njunk"), "line 2: expected {\"actions\":"),
        (format!("{good}\n{{\"actions\":[0,0],\"scores\":[]}}"), "line 2: ply 1: action 0 is not legal here"),
        (
            "{\"actions\":[0],\"scores\":[1,2]}".into(),
            "line 1: 2 scores, expected 9, one per action of tic_tac_toe",
        ),
        (good.replace("[null,", "[3,"), "line 1: score 3 for action 0, which is not legal"),
        (good.replace("[null,0", "[null,null"), "line 1: no score for action 1, which is legal"),
        (good.replace("[0]", "[0,3,1,4,2]"), "line 1: the game is over after these actions"),
        (good.replace("[0]", "[99999999]"), "line 1: expected {\"actions\":"),
        (String::new(), "has no positions"),
    ] {
        fs::write(&path, &text).expect("written");
        assert_refused(&["eval", utf8(&run), "--positions", utf8(&path)], part);
    }
    fs::write(&path, [0xff, 0xfe, b'\n']).expect("written");
    assert_refused(&["eval", utf8(&run), "--positions", utf8(&path)], "positions.jsonl");
    let missing = folder.path().join("none.jsonl");
    assert_refused(&["eval", utf8(&run), "--positions", utf8(&missing)], "(os error 2)");
}

#[test]
fn missing_opponents_and_seats_are_refused() {
    let (folder, run) = run_copy();
    let name = utf8(&run);
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("made");
    for (opponent, part) in [
        ("nonsense", "--against: got nonsense (not found: "),
        ("rollouts:0", "--against: got rollouts:0"),
        ("rollouts:many", "--against: got rollouts:many"),
        (utf8(&empty), "neither a run (it has no config.toml) nor a checkpoint"),
    ] {
        assert_refused(&["eval", name, "--against", opponent], part);
    }
    assert_refused(&["play", name, "--seat", "2"], "--seat: got 2, expected a whole number from 0 to 1");
    assert_refused(&["verify", utf8(&empty)], "not a run");
    assert_refused(&["export-weights", utf8(&empty)], "neither a run (it has no config.toml)");
    assert_refused(
        &["inspect", "--game", "chess", "--actions", "e2e4,e2e4"],
        "ply 1: action e2e4 is not legal here",
    );
    assert_refused(&["play", "--threads", "\u{202e}\n1"], r"got \u{202e} 1, expected a whole number");
    // Characters that change the writing direction or control the terminal are escaped.
    assert_refused(
        &["inspect", "--game", "chess", "--actions", "\u{202e}e4\u{1b}[31m"],
        r"action \u{202e}e4\u{1b}[31m is not legal here",
    );
}
