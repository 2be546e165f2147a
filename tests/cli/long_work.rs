//! Long work shows its progress, prints partial results when it is stopped, and checks the path of its result before it starts.

#[path = "../support/signals.rs"]
mod signals;

use super::*;
use std::io::Read;
use std::process::{Child, Command as Process, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A program that plays the first legal action, after `each` has run for a request with `$line`.
fn opponent(name: &str, each: &str) -> String {
    let path = sibling_path(name);
    let reply = r#"echo "$line" | sed 's/.*"legal":\[\([0-9]*\).*/{"action":\1}/'"#;
    std::fs::write(&path, format!("while read -r line; do\n{each}\n{reply}\ndone\n")).expect("written");
    format!("exec:sh '{}'", path.display())
}

fn process(arguments: &[&str]) -> Process {
    let mut process = Process::new(assert_cmd::cargo::cargo_bin("vecaz"));
    signals::start_children_with_default_signals();
    process.args(arguments).env_remove("VECAZ_LOG").env_remove("COLUMNS");
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    process
}

pub(super) fn wait_until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing happened for a minute");
        sleep(Duration::from_millis(5));
    }
}

fn interrupt(child: Child) -> Output {
    let sent = Process::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    child.wait_with_output().expect("ends")
}

#[test]
fn an_unwritable_path_is_refused_before_the_first_game() {
    let marker = sibling_path("first_game");
    let against = opponent("marking.sh", &format!("touch '{}'", marker.display()));
    let missing = sibling_path("none/out.json").display().to_string();
    let args = ["eval", &run(), "--against", &against, "--games", "2", "--sims", "8", "--json", &missing];
    let (code, line) = refusal(&mut vecaz(&args));
    assert!(code == 1 && line.contains("out.json: No such file"), "{line}");
    assert!(!marker.exists(), "the match was played before");
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_printed_all_the_same() {
    let args = ["eval", &run(), "--against", "random", "--games", "4", "--sims", "8", "--json", "/dev/full"];
    let (code, line, printed) = failure(&mut vecaz(&args));
    assert!(code == 1 && line.contains("/dev/full: No space left"), "{line}");
    assert!(printed.contains("against random: "), "{printed}");
}

#[test]
fn a_match_that_is_interrupted_prints_the_games_that_are_over() {
    let marker = sibling_path("waiting");
    // Blocks in the first game that has seven plies.
    let each = format!(
        "case \"$line\" in *'\"actions\":['[0-9],[0-9],[0-9],[0-9],[0-9],[0-9],[0-9]*) touch '{}'; sleep 60;; esac",
        marker.display()
    );
    let against = opponent("waiting.sh", &each);
    let target = sibling_path("partial.json").display().to_string();
    let args =
        ["eval", &run(), "--against", &against, "--games", "40", "--sims", "8", "--threads", "1", "--json"];
    for (json, in_json) in [(target.as_str(), false), ("-", true)] {
        let _ = std::fs::remove_file(&marker);
        let child = process(&args).arg(json).spawn().expect("runs");
        wait_until(|| marker.exists());
        let output = interrupt(child);
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
        let (text, other) = if in_json { (stderr, stdout) } else { (stdout, stderr) };
        assert_eq!((output.status.code(), other.as_str()), (Some(130), ""), "{text}");
        let text = &text[text.find("stopped after ").expect("a partial result")..];
        let over = text
            .strip_prefix("stopped after ")
            .and_then(|rest| rest.split_once(" of 40 games,")?.0.parse().ok());
        assert!(over.is_some_and(|over: u64| (1..40).contains(&over)), "{text}");
        let [won, drawn, lost] = [" won,", " drawn,", " lost"].map(|word| {
            let before = text.split_once(word).expect("a count").0;
            before.rsplit([' ', '\n']).next().and_then(|count| count.parse::<u64>().ok()).expect("a number")
        });
        assert_eq!((Some(won + drawn + lost), drawn), (over, 0), "a draw has nine plies: {text}");
    }
    assert!(!Path::new(&target).exists(), "a file has whole matches only");
}

#[test]
fn settings_that_were_tried_before_an_interrupt_are_kept() {
    let file = sibling_path("tuned_in_part.toml");
    let out = file.display().to_string();
    let args = ["tune", "--game", "tic_tac_toe", "--threads", "1", "--exhaustive", "--out", &out];
    let mut child = process(&args).args(["--set", "search.simulations=8"]).spawn().expect("runs");
    let stdout = child.stdout.as_mut().expect("a pipe");
    // The header and one row.
    let mut lines = 0;
    while lines < 2 {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).expect("read"), 1, "it ended");
        lines += usize::from(byte[0] == b'\n');
    }
    let output = interrupt(child);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(130), "{text}");
    let (rows, found) = text.split_once("fastest of ").expect("a summary");
    assert!(rows.lines().count() < 30, "of more than 100 combinations: {found}");
    let threads = rows.lines().skip(1).map(|row| row.split_whitespace().next());
    assert!(threads.eq(rows.lines().skip(1).map(|_| Some("1"))), "none but what was typed: {rows}");
    let config: toml::Table = std::fs::read_to_string(&file).expect("written").parse().expect("TOML");
    assert_eq!(config["game"]["name"].as_str(), Some("tic_tac_toe"));
}

/// The first line of stderr, which is written after ten seconds.
fn first_line(child: &mut Child) -> String {
    let mut line = Vec::new();
    let stderr = child.stderr.as_mut().expect("a pipe");
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        assert_eq!(stderr.read(&mut byte).expect("read"), 1, "it ended: {}", String::from_utf8_lossy(&line));
        line.push(byte[0]);
    }
    String::from_utf8(line).expect("UTF-8")
}

/// The run waits in the same way as the match, so that the test uses the machine's cores only at its start.
#[test]
fn in_a_pipe_a_line_shows_the_progress_of_a_match_and_of_the_first_epoch() {
    let against = opponent("sleeping.sh", "sleep 60");
    let args =
        ["eval", &run(), "--against", &against, "--games", "2", "--sims", "8", "--reply-timeout", "30"];
    let mut playing = process(&args).spawn().expect("runs");
    let out = sibling_path("endless").display().to_string();
    let mut running =
        process(&["run", "--game", "tic_tac_toe", "--minutes", "2", "--out", &out, "--threads", "1"]);
    TINY.iter().chain(&["selfplay.samples_per_epoch=1000000000"]).for_each(|setting| {
        running.args(["--set", setting]);
    });
    let mut running = running.spawn().expect("runs");
    let line = first_line(&mut running);
    assert!(line.starts_with("self-play: ") && line.contains(" of 1000000000 samples, "), "{line}");
    assert!(line.ends_with(" left; epoch 1, run 2m left\n"), "{line}");
    assert_eq!(first_line(&mut playing), "match: 0 of 2 games\n");
    for child in [playing, running] {
        assert_eq!(interrupt(child).status.code(), Some(130));
    }
}

/// The earlier ladder stays, and nothing half written is left.
#[test]
fn a_ladder_that_is_interrupted_leaves_the_folder_as_it_was() {
    let out = sibling_path("interrupted").display().to_string();
    let mut command = vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "3", "--out", &out]);
    TINY.iter().for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let files = || {
        let mut found: Vec<_> =
            std::fs::read_dir(&out).expect("listed").map(|entry| entry.expect("an entry").path()).collect();
        found.sort();
        found
    };
    let args = ["eval", &out, "--ladder", "--every", "1", "--sims", "8", "--games"];
    for earlier in [false, true] {
        if earlier {
            stdout(vecaz(&args).arg("2"));
        }
        let before = files();
        let ladder = std::fs::read(Path::new(&out).join("ladder.json")).ok();
        assert_eq!(ladder.is_some(), earlier);
        let child = process(&args).arg("1000000").spawn().expect("runs");
        sleep(Duration::from_secs(2)); // in the first of many games
        let output = interrupt(child);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(130), b"".as_slice()));
        assert_eq!(files(), before);
        assert_eq!(std::fs::read(Path::new(&out).join("ladder.json")).ok(), ladder);
    }
}
