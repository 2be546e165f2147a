//! What is refused: one line on stderr, its exit code, and what is near.

use super::*;

#[test]
fn what_was_not_understood_is_one_line_and_exit_code_2() {
    for (arguments, part) in [
        (vec!["frobnicate"], "unrecognized subcommand 'frobnicate'"),
        (
            vec!["inspect", "--gaem", "hex"],
            "error: unexpected argument '--gaem' found; the nearest is --game\n",
        ),
        (
            vec!["rnu"],
            "error: unrecognized subcommand 'rnu'; the commands are run, work, top, bench-scaling, ",
        ),
        (vec!["new", "skat", "--kind", "foo"], "[possible values: board, dice, cards, solo]\n"),
        (vec!["new", "skat", "--kind", "card"], "cards, solo]; the nearest is cards\n"),
        (vec!["run", "--sims", "many"], "error: --sims <S>: got many, expected a whole number, 0 or more\n"),
        (vec!["run", "--epochs", "0"], "error: --epochs <E>: got 0, expected a whole number, 1 or more\n"),
        (
            vec!["play", "--sims", "0"],
            "error: --sims <S>: got 0, expected a whole number from 1 to 1000000\n",
        ),
        (vec!["run", "--minutes", "ten"], "error: --minutes <M>: got ten, expected a number\n"),
        (vec!["inspect", "--game"], "a value is required for '--game <G>'"),
        (vec!["inspect", "3,3"], "unexpected argument '3,3'"),
        (vec!["run", "hex"], "error: unexpected argument 'hex' found; --game hex names a game\n"),
        (vec!["plan", "quick"], "unexpected argument 'quick' found; --config quick names a configuration\n"),
        (vec!["top", "here", "hex"], "unexpected argument 'hex' found\n"),
        (vec!["inspect", "--quiet", "--verbose"], "cannot be used with"),
    ] {
        let (code, line) = refusal(&mut vecaz(&arguments));
        assert!(code == 2 && line.contains(part), "{arguments:?}: {code}, {line}");
    }
}

#[test]
fn what_cannot_be_done_is_one_line_and_exit_code_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = |name: &str| folder.path().join(name).display().to_string();
    let (missing_folder, a_folder) = (inside("none/out.json"), inside(""));
    let (missing_actions, missing_config) = (format!("@{}", inside("none.txt")), inside("none.toml"));
    let missing = |name: &str| format!("{name}: {}", if cfg!(windows) { "" } else { "No such file" });
    for (arguments, part) in [
        (["--config", &missing_config], missing("none.toml")),
        (["--actions", &missing_actions], missing("none.txt")),
        (["--json", &missing_folder], missing("out.json")),
        (["--json", &a_folder], "writing ".into()),
    ] {
        let (code, line) = refusal(vecaz(&["inspect"]).args(arguments));
        assert!(code == 1 && line.contains(&part), "{arguments:?}: {code}, {line}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0, "nothing was written");
}

#[test]
fn a_missing_run_names_the_one_that_is_there() {
    let runs = tempfile::tempdir().expect("a folder");
    let path = |name: &str| runs.path().join(name).display().to_string();
    std::fs::create_dir(path("hex-1")).expect("created");
    let (missing, near) = (path("hex"), format!("; the nearest is {}\n", path("hex-1")));
    for arguments in [
        vec!["play", &missing],
        vec!["eval", &missing, "--against", "random"],
        vec!["run", "--resume", &missing],
        vec!["report", &missing],
        vec!["verify", &missing],
    ] {
        let (code, line) = refusal(&mut vecaz(&arguments));
        assert!(code == 1 && line.ends_with(&near), "{arguments:?}: {code}, {line}");
    }
}

/// It was interrupted before its first epoch was complete.
#[test]
fn a_run_without_a_network_is_called_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("config.toml"), "").expect("written");
    let run = folder.path().display().to_string();
    for arguments in
        [vec!["play", &run], vec!["eval", &run, "--against", "random"], vec!["export-weights", &run]]
    {
        let (code, line) = refusal(&mut vecaz(&arguments));
        assert!(
            code == 1 && line.ends_with(": the run has no network yet\n"),
            "{arguments:?}: {code}, {line}"
        );
    }
}

/// `/sys` refuses new files even to the superuser.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files_is_refused() {
    assert!(Path::new("/sys").is_dir());
    let (code, line) = refusal(&mut vecaz(&["inspect", "--json", "/sys/out.json"]));
    assert!(code == 1 && line.starts_with("error: writing /sys/out.json: "), "{line}");
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly_with_141() {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
    command.args(["inspect", "--json", "--actions", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    drop(child.stdout.take()); // before the program, which waits for its actions, can print
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), b"".as_slice()));
}
