//! Another program as opponent: the binary of this test, started again with `opponent MANNER`, plays or misbehaves.

#[cfg(unix)]
#[path = "support/signals.rs"]
mod signals;

use serde_json::{Value, json};
use std::fs::{File, TryLockError};
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use vecaz::batch::Playthrough;
use vecaz::game::Turn;
use vecaz::registry::any_game;

/// The variable with the file that the process which the opponent starts, or the opponent that sleeps, locks as long as it lives.
const LEFT: &str = "VECAZ_TEST_LEFT";

const CONNECT_FOUR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("opponent") {
        opponent(&arguments.next().expect("a manner"));
        return;
    }
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let checks: &[(&str, fn())] = &[
        ("numbers and names are valid replies with any number of threads", numbers_and_names),
        ("stronger play wins against it", strength_shows),
        ("a program sees no card that its player does not see", hidden_cards),
        ("mean raw scores are shown for games with points", points_a_game),
        #[cfg(unix)]
        ("a signal ends a match that waits for a program, and the program", a_signal_ends_both),
        ("every fault is reported in one sentence", misbehaviour),
        ("a program that is not there is named", missing_program),
        ("commands and limits that cannot be are refused", wrong_commands),
        ("a slow program is killed at the timeout", slow_ones_are_ended),
        ("no process is left after a match", no_process_is_left),
    ];
    let skipped: Vec<String> =
        std::env::args().filter_map(|argument| Some(argument.strip_prefix("--skip=")?.to_string())).collect();
    for (name, check) in checks.iter().filter(|(name, _)| !skipped.iter().any(|part| name.contains(part))) {
        print!("external: {name} ... ");
        check();
        println!("ok");
    }
}

/// Checks every field of the question by the rules and plays the lowest legal action.
fn opponent(manner: &str) {
    if manner == "lingers" {
        live();
    }
    let stdin = std::io::stdin();
    for (number, line) in stdin.lock().lines().map_while(Result::ok).enumerate() {
        let request: Value = serde_json::from_str(&line).expect("JSON");
        match (manner, number) {
            ("dies", 3) => {
                eprintln!("some noise\nout of ideas");
                std::process::exit(7);
            }
            ("closes", 0) => return,
            ("leaves", 0) => {
                start_lingering();
                say("{\"action\":0}");
            }
            ("swears", 1) => {
                eprintln!("{}\n\u{1b}[31m{}", "-".repeat(1 << 20), "#".repeat(1000));
                std::process::exit(7);
            }
            ("spams", 0) => {
                let mut stdout = std::io::stdout().lock();
                while stdout.write_all(b"{\"action\":0}\n").is_ok() {}
            }
            ("sleeps", 0) => {
                live();
            }
            ("babbles", 0) => say("Hello, I am a program."),
            ("cheats", 1) => say("{\"action\":1000}"),
            ("floods", 0) => {
                let mut stdout = std::io::stdout().lock();
                while stdout.write_all(&[b'9'; 4096]).is_ok() {}
            }
            ("chats", _) => say("{\"action\":0}\n{\"action\":0}"),
            ("players", _) => {
                check_cards(&request);
                say(&json!({ "action": request["legal_names"][0] }).to_string());
            }
            ("names", _) => say(&json!({ "action": request["legal_names"][checked(&request)] }).to_string()),
            _ => {
                say(&json!({ "action": request["legal"][checked(&request)], "why": "no reason" }).to_string())
            }
        }
    }
}

/// Starts a process that outlives this one if nobody ends it, and waits until it lives.
#[expect(clippy::zombie_processes, reason = "that it is left is the matter of the test")]
fn start_lingering() {
    let mut left = Command::new(std::env::current_exe().expect("known"));
    left.args(["opponent", "lingers"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    left.spawn().expect("starts");
    let file = std::env::var_os(LEFT).expect("set");
    wait_until(|| lives(file.as_ref()));
}

/// Lives for an hour, with the lock of the file of [`LEFT`].
fn live() {
    let file = std::env::var_os(LEFT).map(|path| File::create(path).expect("created"));
    file.iter().for_each(|file| file.lock().expect("locked"));
    std::thread::sleep(Duration::from_secs(3600));
}

/// True while a process holds the lock of the file.
fn lives(file: &Path) -> bool {
    File::open(file).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // The reader may have exited.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Replays the question by the rules; returns the index of the lowest legal action.
fn checked(request: &Value) -> usize {
    let options = serde_json::from_value(request["options"].clone()).expect("options");
    let mut play =
        Playthrough::new(any_game(request["game"].as_str().expect("a name"), &options).expect("a game"));
    let mut by_name = play.clone();
    let played = request["actions"].as_array().expect("actions");
    let names = request["names"].as_array().expect("names");
    assert_eq!(played.len(), names.len());
    for (action, name) in played.iter().zip(names) {
        play.step(action.as_u64().expect("a number") as u16).expect("legal");
        by_name.step_text(name.as_str().expect("a name")).expect("legal");
    }
    assert_eq!(play.actions(), by_name.actions());
    assert_eq!(request["legal"], json!(play.legal()));
    assert_eq!(play.turn(), Turn::Player(request["player"].as_u64().expect("a player") as u8));
    assert_eq!(request["legal"].as_array().map(Vec::len), request["legal_names"].as_array().map(Vec::len));
    0
}

/// `vecaz eval RUN` against this binary.
fn eval(run: &str, manner: &str, more: &[&str]) -> Output {
    let this = std::env::current_exe().expect("known");
    let against = format!("exec:\"{}\" opponent {manner}", this.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_vecaz"));
    command.args(["eval", run, "--against", &against]).args(more).env_remove("VECAZ_LOG");
    if !more.contains(&"--sims") {
        command.args(["--set", "eval.simulations=8"]);
    }
    command.output().expect("runs")
}

fn row(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn numbers_and_names() {
    let args = |threads| ["--games", "6", "--threads", threads, "--json", "-"];
    let numbers = row(&eval(CONNECT_FOUR, "numbers", &args("1")));
    for (manner, threads) in [("names", "1"), ("numbers", "3")] {
        let mut again = row(&eval(CONNECT_FOUR, manner, &args(threads)));
        again["against"] = numbers["against"].clone();
        assert_eq!(again, numbers, "{manner} {threads}");
    }
    let repeated = numbers["repeated_games"].as_u64().unwrap_or(0);
    assert_eq!(numbers["games"].as_u64().map(|games| games + repeated), Some(6));
}

fn strength_shows() {
    let row = row(&eval(CONNECT_FOUR, "numbers", &["--games", "20", "--json", "-"]));
    assert!(row["win_rate"].as_f64().is_some_and(|rate| rate > 0.8), "{row}");
    assert!(row["win_rate_interval"][0].as_f64().is_some_and(|low| low > 0.5), "{row}");
    assert_eq!((&row["points_per_game"], &row["points_interval"]), (&Value::Null, &Value::Null));
}

/// Of the six cards of a deal to three players a request has those of the player to move, in `actions`, `names` and `view`.
fn check_cards(request: &Value) {
    let player = request["player"].as_u64().expect("a player") as usize;
    for (k, name) in request["names"].as_array().expect("names").iter().enumerate() {
        let sees = k >= 6 || k % 3 == player;
        assert_eq!((name.is_string(), request["actions"][k].is_u64()), (sees, sees), "{request}");
    }
    let hands = request["view"]["board"]["seats"].as_array().expect("seats");
    assert!((0..3).all(|seat| seat == player || hands[seat]["hand"] == json!([])), "{request}");
    assert_ne!(hands[player]["hand"], json!([]), "{request}");
}

fn hidden_cards() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = hardly_trained(folder.path(), "blob", &["game.players=3", "game.cards=2"]);
    let row = row(&eval(&run, "players", &["--games", "12", "--opening-plies", "0", "--json", "-"]));
    assert_eq!(row["games"], 12, "{row}");
}

/// A run of one epoch without an update.
fn hardly_trained(folder: &Path, game: &str, settings: &[&str]) -> String {
    let run = folder.join("run").display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_vecaz"));
    command.args(["run", "--quiet", "--game", game, "--epochs", "1", "--games", "8", "--sims", "4"]);
    for &set in settings.iter().chain(&[
        "net.blocks=1",
        "net.channels=16",
        "selfplay.samples_per_epoch=200",
        "train.min_samples=100000",
        "eval.every=0",
    ]) {
        command.args(["--set", set]);
    }
    let output = command.args(["--out", &run]).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    run
}

fn points_a_game() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = hardly_trained(folder.path(), "backgammon", &["game.short_game=true"]);
    let row = row(&eval(&run, "names", &["--games", "12", "--opening-plies", "0", "--json", "-"]));
    let number = |value: &Value| value.as_f64().expect("a number");
    let mean = number(&row["points_per_game"]);
    assert_eq!(mean, number(&row["raw_score"]["mean"]));
    // Whole points, up to three a game.
    assert!((mean * 12.0 - (mean * 12.0).round()).abs() < 1e-9 && mean.abs() <= 3.0, "{row}");
    let interval = |name: &str| (number(&row[name][0]), number(&row[name][1]));
    let (low, high) = interval("points_interval");
    assert!(low < mean && mean < high, "{row}");
    let adjusted = number(&row["luck_adjusted_points"]);
    let (low_adjusted, high_adjusted) = interval("luck_adjusted_points_interval");
    assert!(adjusted != mean && low_adjusted < adjusted && adjusted < high_adjusted, "{row}");
    let text = eval(&run, "names", &["--games", "12", "--opening-plies", "0"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let points = format!("\n  points    {mean:+.3} [{low:+.3} to {high:+.3}] per game, of the opponents ");
    assert!(text.contains(&points) && text.contains("\n  lead      "), "{text}");
    assert!(text.contains("\n  win rate  "), "{text}");
    let adjusted = format!(
        "\n  adjusted  {adjusted:+.3} [{low_adjusted:+.3} to {high_adjusted:+.3}] points per game without luck\n"
    );
    assert!(text.contains(&adjusted), "{text}");
}

fn refusal(output: &Output) -> String {
    // Windows calls the status a code.
    let line = String::from_utf8_lossy(&output.stderr).replace("exit code", "exit status");
    let code = if line.starts_with("error: --") { 2 } else { 1 };
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert!(output.stdout.is_empty() && line.starts_with("error: ") && line.lines().count() == 1, "{line}");
    line
}

fn misbehaviour() {
    for (manner, part) in [
        (
            "dies",
            "opponent dies: exited (exit status: 7) before it replied; last line of stderr: out of ideas",
        ),
        ("closes", "opponent closes: exited (exit status: 0) before it replied"),
        (
            "babbles",
            "opponent babbles: replied \"Hello, I am a program.\", expected {\"action\": A} with A one of 0, 1, 2",
        ),
        ("cheats", "opponent cheats: replied \"{\\\"action\\\":1000}\", expected "),
        ("floods", "opponent floods: replied \"99999"),
        ("chats", "opponent chats: "),
        ("swears", "last line of stderr: \\u{1b}[31m########"),
        ("spams", "opponent spams: wrote \"{\\\"action\\\":0}\" before a request"),
    ] {
        // With so many simulations a line too many has come long before the next request.
        let more = ["--games", "4", "--threads", "1", "--opening-plies", "0", "--sims", "3000"];
        let output = eval(CONNECT_FOUR, manner, &more);
        assert!(!output.status.success(), "{manner} is not noticed");
        let line = refusal(&output);
        assert!(line.contains(part) && line.len() < 500, "{manner}: {line}");
    }
}

/// The refusal of a match against `against`.
fn refused(against: &str, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vecaz"));
    command.args(["eval", CONNECT_FOUR, "--against", against]).args(more).env_remove("VECAZ_LOG");
    refusal(&command.output().expect("runs"))
}

fn missing_program() {
    let part = match cfg!(windows) {
        true => "no-such-program-here cannot be started: program not found",
        false => "no-such-program-here cannot be started: No such file",
    };
    let line = refused("exec:no-such-program-here --fast", &[]);
    assert!(line.contains(part), "{line}");
}

fn wrong_commands() {
    for (against, more, part) in [
        ("exec:", vec![], "opponent : an empty command"),
        ("exec:a 'b", vec![], "a quote without an end"),
        ("exec:a", vec!["--reply-timeout", "0"], "--reply-timeout: got 0, expected more than 0"),
        ("exec:a", vec!["--reply-timeout", "nan"], "--reply-timeout: got NaN"),
    ] {
        let line = refused(against, &more);
        assert!(line.contains(part), "{against}: {line}");
    }
}

fn slow_ones_are_ended() {
    let start = Instant::now();
    let line = refusal(&eval(CONNECT_FOUR, "sleeps", &["--games", "2", "--reply-timeout", "0.3"]));
    assert!(line.contains("opponent sleeps: did not reply within 0.3 s"), "{line}");
    assert!(start.elapsed() < Duration::from_secs(60), "it was waited for");
}

fn no_process_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("left");
    let this = std::env::current_exe().expect("known");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vecaz"));
    command.args(["eval", CONNECT_FOUR, "--sims", "8", "--games", "2", "--threads", "1"]);
    command.args(["--against", &format!("exec:\"{}\" opponent leaves", this.display())]).env(LEFT, &file);
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(file.exists(), "no process was started");
    wait_until(|| !lives(&file));
}

#[cfg(unix)]
fn a_signal_ends_both() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("asleep");
    let this = std::env::current_exe().expect("known");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vecaz"));
    command.args([
        "eval",
        CONNECT_FOUR,
        "--sims",
        "8",
        "--games",
        "2",
        "--threads",
        "1",
        "--reply-timeout",
        "3600",
    ]);
    command.args(["--against", &format!("exec:\"{}\" opponent sleeps", this.display())]).env(LEFT, &file);
    signals::start_children_with_default_signals();
    let mut child = command.stderr(Stdio::piped()).spawn().expect("runs");
    wait_until(|| lives(&file));
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs").success()
    );
    wait_until(|| child.try_wait().expect("known").is_some());
    let output = child.wait_with_output().expect("ended");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(130), b"".as_slice()));
    wait_until(|| !lives(&file));
}

/// Waits until `done`, for at most a minute.
fn wait_until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing happened for a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}
