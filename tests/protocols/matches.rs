//! Matches against programs that speak GTP and UCI: the opponent is this program.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

const PROGRAM: &str = env!("CARGO_BIN_EXE_vecaz");

/// Runs of one epoch without an update.
static RUNS: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    for (game, settings) in [
        ("hex", &["game.size=5", "game.swap=true"][..]),
        ("go", &["game.size=5"]),
        ("chess", &["game.max_plies=40"]),
    ] {
        let run = folder.path().join(game).display().to_string();
        let mut command = Command::new(PROGRAM);
        command.args([
            "run", "--quiet", "--game", game, "--epochs", "1", "--games", "8", "--sims", "4", "--out", &run,
        ]);
        for set in settings.iter().chain(&[
            "net.blocks=1",
            "net.channels=16",
            "selfplay.samples_per_epoch=100",
            "train.min_samples=100000",
            "eval.every=0",
        ]) {
            command.args(["--set", set]);
        }
        let output = command.output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    folder
});

fn run(game: &str) -> String {
    RUNS.path().join(game).display().to_string()
}

fn eval(game: &str, against: &str, more: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(["eval", &run(game), "--against", against, "--sims", "8", "--threads", "2"]);
    command.args(more).env_remove("VECAZ_LOG").output().expect("runs")
}

fn row(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn engine(kind: &str, game: &str) -> String {
    format!("{kind}:'{PROGRAM}' engine '{}' --sims 8 --threads 1", run(game))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("written")
}

#[test]
fn games_against_a_program_of_gtp_are_played_and_written() {
    for game in ["hex", "go"] {
        let file = RUNS.path().join(format!("{game}.sgf"));
        let args = ["--games", "6", "--json", "-", "--record", file.to_str().expect("UTF-8")];
        let row = row(&eval(game, &engine("gtp", game), &args));
        assert_eq!(row["games"], 6, "{row}");
        let text = read(&file);
        assert_eq!(text.matches("(;FF[4]GM[").count(), 6, "{text}");
        let results: Vec<&str> =
            text.split("RE[").skip(1).map(|rest| rest.split(']').next().expect("an end")).collect();
        let wins = (0..6).filter(|&game| results[game].starts_with(["B+", "W+"][game % 2])).count();
        assert_eq!((results.len(), row["wins"].as_u64()), (6, Some(wins as u64)), "{row} {results:?}");
        assert!(text.contains("RO[1]RE[") && text.find("RO[1]RE[") < text.find("RO[6]RE["), "{text}");
    }
}

#[test]
fn games_against_a_program_of_uci_are_played_and_written() {
    let file = RUNS.path().join("chess.pgn");
    let args = [
        "--games",
        "4",
        "--json",
        "-",
        "--record",
        file.to_str().expect("UTF-8"),
        "--opponent-nodes",
        "8",
        "--opponent-option",
        "MultiPV=2",
    ];
    let row = row(&eval("chess", &engine("uci", "chess"), &args));
    assert_eq!(row["games"], 4, "{row}");
    let text = read(&file);
    assert_eq!((text.matches("[Event ").count(), text.matches("\n1. ").count()), (4, 4), "{text}");
    assert!(text.contains(&format!("[White \"uci:'{PROGRAM}'")), "{text}");
}

/// The program gets the position of each opening, in which none of the moves of a new game is legal.
#[test]
fn openings_reach_a_program_of_uci() {
    let file = RUNS.path().join("endings.epd");
    std::fs::write(&file, "4k3/7p/8/8/8/8/P7/4K3 w - - 0 1\n4k3/1p6/8/8/8/8/6P1/4K3 b - - 0 1\n")
        .expect("written");
    let args = ["--games", "4", "--openings", file.to_str().expect("UTF-8"), "--json", "-"];
    let row = row(&eval("chess", &engine("uci", "chess"), &args));
    assert_eq!(row["games"], 4, "{row}");
}

#[test]
fn faults_of_a_program_are_one_sentence() {
    let shell = |script: &str| format!("gtp:sh -c \"{script}\"");
    let answers = "while read line; do echo = A1; echo; done";
    for (game, against, more, part) in [
        ("hex", "gtp:no-such-program".to_string(), &[][..], "cannot be started"),
        (
            "hex",
            shell("echo out of ideas >&2; exit 3"),
            &[],
            "exited (exit status: 3) before it replied; last line of stderr: out of ideas",
        ),
        ("hex", shell("while read line; do echo '? no'; echo; done"), &[], "refused \\\"boardsize 5\\\": no"),
        (
            "hex",
            shell("while read line; do echo hello; done"),
            &[],
            "replied \\\"hello\\\" to \\\"boardsize 5\\\", expected = or ?",
        ),
        (
            "hex",
            shell(answers),
            &["--games", "4", "--opening-plies", "0"],
            "played \\\"A1\\\", which is not legal at ply ",
        ),
        ("hex", shell("sleep 60"), &["--reply-timeout", "0.2"], "did not reply within 0.2 s"),
        ("hex", engine("gtp", "hex"), &["--opponent-nodes", "5"], "expected uci:COMMAND"),
        ("hex", engine("uci", "hex"), &[], "UCI for hex"),
        ("chess", engine("gtp", "chess"), &[], "GTP for chess"),
        ("chess", engine("uci", "chess"), &["--opponent-option", "Fly=1"], "has no option Fly"),
        ("chess", engine("uci", "chess"), &["--opponent-option", "Fly"], "expected NAME=VALUE"),
        ("chess", engine("uci", "chess"), &["--opponent-seconds", "0"], "--opponent-seconds: got 0"),
        ("hex", "exec:true".to_string(), &["--opponent-seconds", "1"], "expected gtp:COMMAND or uci:COMMAND"),
    ] {
        let output = eval(game, &against, more);
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        let part = part.replace("\\\"", "\"");
        assert!(!output.status.success() && line.starts_with("error: "), "{against}: {line}");
        assert!(line.contains(&part) && line.lines().count() == 1, "{against}: {part}: {line}");
    }
}

/// A program that gives up has lost, and the record says so.
#[test]
fn a_program_that_resigns_has_lost() {
    let file = RUNS.path().join("resigned.sgf");
    let script = "while read line; do case $line in genmove*) echo = resign;; *) echo =;; esac; echo; done";
    let against = format!("gtp:sh -c '{script}'");
    let args = ["--games", "4", "--json", "-", "--record", file.to_str().expect("UTF-8")];
    let row = row(&eval("go", &against, &args));
    assert_eq!((&row["wins"], &row["losses"]), (&serde_json::json!(4), &serde_json::json!(0)), "{row}");
    assert!(row["lead_per_game"].is_null() || row["lead_per_game"].as_f64() > Some(0.0), "{row}");
    let text = read(&file);
    assert_eq!((text.matches("RE[B+R]").count(), text.matches("RE[W+R]").count()), (2, 2), "{text}");
}

#[test]
fn records_that_a_game_has_not_are_refused() {
    let file = RUNS.path().join("none.sgf").display().to_string();
    let mut command = Command::new(PROGRAM);
    let network = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");
    let output =
        command.args(["eval", network, "--against", "random", "--record", &file]).output().expect("runs");
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        line.contains("none.sgf, expected a file that ends in .jsonl: connect_four has no other"),
        "{line}"
    );
    assert!(!Path::new(&file).exists());
}

/// The command itself: the protocol of the game, and the end of input.
#[cfg(unix)]
#[test]
fn the_command_speaks_on_stdin_and_stdout() {
    use std::io::Write;
    let say = |arguments: &[&str], script: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).env_remove("VECAZ_LOG");
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("runs");
        child.stdin.take().expect("piped").write_all(script.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("ends");
        (
            output.status.code(),
            String::from_utf8(output.stdout).expect("UTF-8"),
            String::from_utf8(output.stderr).expect("UTF-8"),
        )
    };
    let hex = run("hex");
    assert_eq!(say(&["engine", &hex], "name"), (Some(0), "= vecaz\n\n".into(), String::new()));
    let chess = run("chess");
    let (code, text, _) = say(&["engine", &chess, "--sims", "5"], "isready\ngo\n");
    assert!(code == Some(0) && text.starts_with("readyok\n") && text.contains("\nbestmove "), "{text}");
    let (code, text, _) = say(&["engine"], "{\"id\":\"a\",\"moves\":[3],\"maxVisits\":5}\n");
    assert!(code == Some(0) && text.starts_with("{\"id\":\"a\",\"turnNumber\":1,"), "{text}");
    let (code, _, line) = say(&["engine", &hex, "--protocol", "uci"], "");
    assert_eq!((code, line.as_str()), (Some(1), "error: UCI for hex: it is for chess\n"));
    let (code, _, line) = say(&["engine", &hex, "--seconds", "nan"], "");
    assert!(code == Some(2) && line.contains("--seconds: got NaN, expected more than 0"), "{line}");
    let (code, _, line) = say(&["engine", &hex, "--protocol", "xboard"], "");
    assert!(code == Some(2) && line.contains("xboard") && line.contains("gtp"), "{line}");
}

/// A client that closes its end of stdout ends the program without a word.
#[cfg(unix)]
#[test]
fn a_closed_stdout_ends_the_program_quietly() {
    use std::io::Write;
    let mut command = Command::new(PROGRAM);
    command.args(["engine", &run("hex")]).env_remove("VECAZ_LOG");
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("runs");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"name\n").expect("written");
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), b"".as_slice()));
}

/// A record replaces neither the opponent nor the result in JSON.
#[test]
fn records_over_other_files_of_the_match_are_refused() {
    let opponent = RUNS.path().join("opponent.safetensors");
    // Outputs are checked before any network is read.
    std::fs::write(&opponent, "a network").expect("written");
    let path = opponent.to_str().expect("UTF-8");
    let refused = |args: &[&str]| {
        let output = eval("chess", path, args);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let line = refused(&["--games", "2", "--record", path]);
    assert!(line.contains("the output path is also an input"), "{line}");
    let both = RUNS.path().join("both");
    let both = both.to_str().expect("UTF-8");
    let line = refused(&["--games", "2", "--record", both, "--json", both]);
    assert!(line.contains("expected another file than that of --json"), "{line}");
    let same = RUNS.path().join(".").join("both");
    let line = refused(&["--games", "2", "--record", both, "--json", same.to_str().expect("UTF-8")]);
    assert!(line.contains("expected another file than that of --json"), "{line}");
    assert_eq!(std::fs::read(&opponent).expect("read"), b"a network");
}
