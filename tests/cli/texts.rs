//! Sentences of commands: a diverged run, threads, numbers with their nouns.

use super::*;

/// With a rate of 100 a weight decay of 10 multiplies weights by -999 in every update, so that they become infinite.
#[test]
fn a_diverged_run_names_the_epoch_and_the_keys_to_change() {
    let out = sibling_path("diverged").display().to_string();
    let mut command = vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "4", "--out", &out]);
    let wild = [
        "train.weight_decay=10",
        "train.lr=100",
        "train.clip_norm=0",
        "train.warmup_updates=0",
        "eval.every=0",
    ];
    TINY.iter().chain(&wild).for_each(|setting| {
        command.args(["--set", setting]);
    });
    let (code, line, _) = failure(&mut command);
    assert!(code == 1 && line.contains(" is not finite (") && line.contains(" in epoch "), "{line}");
    for part in ["lower train.lr (now 100) or train.clip_norm (now 0, 0 is off)", "`vecaz run --resume`"] {
        assert!(line.contains(part), "{line}");
    }
    // What the error says helps: the same epoch with a lower rate.
    let mut again = vecaz(&["run", "--resume", &out, "--epochs", "4", "--set", "train.lr=0.01"]);
    stdout(again.args(["--set", "train.clip_norm=1"]));
}

#[test]
fn more_threads_than_cores_are_warned_of() {
    let cores = std::thread::available_parallelism().expect("known").get();
    let many = (2 * cores + 1).to_string();
    let play = |threads: &str| {
        let output =
            vecaz(&["play", &run(), "--sims", "2", "--threads", threads]).write_stdin("quit\n").output();
        String::from_utf8(output.expect("runs").stderr).expect("UTF-8")
    };
    assert!(play(&many).contains(&format!("{many} threads on {cores} core")), "{}", play(&many));
    assert_eq!(play("0"), "");
}

#[test]
fn one_of_a_thing_is_in_the_singular() {
    let out = sibling_path("singular").display().to_string();
    let mut command = vecaz(&[
        "run",
        "--game",
        "tic_tac_toe",
        "--epochs",
        "1",
        "--minutes",
        "1",
        "--threads",
        "1",
        "--out",
        &out,
    ]);
    TINY.iter().for_each(|setting| {
        command.args(["--set", setting]);
    });
    let text = stdout(&mut command).replace("\n  ", " ");
    assert!(text.contains(", 1 thread, seed 1, 1 epoch, at most 1 minute, folder "), "{text}");
    let text = stdout(&mut vecaz(&["eval", &out, "--against", "random", "--games", "2", "--sims", "1"]));
    assert!(!text.contains("1 games"), "{text}");
}

#[test]
fn diagnostics_say_what_is_done_on_the_cpu_and_have_no_colours_in_a_pipe() {
    let run = run();
    let eval = ["eval", &run, "--against", "random", "--games", "2", "--sims", "8"];
    let out = sibling_path("logged").display().to_string();
    let mut train = vecaz(&["run", "--verbose", "--game", "tic_tac_toe", "--epochs", "1", "--out", &out]);
    TINY.iter().for_each(|setting| {
        train.args(["--set", setting]);
    });
    let commands = [
        (vecaz(&eval), "", ""),
        (train, "INFO vecaz ", "DEBUG epoch 1: "),
        (vecaz(&[eval.as_slice(), &["-v"]].concat()), "INFO vecaz ", "tic_tac_toe network 1x16 after "),
        (vecaz(&["inspect", "-v"]), "INFO vecaz ", " of commit "),
    ];
    for (mut command, start, part) in commands {
        let output = command.output().expect("runs");
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(
            output.status.success() && text.trim_start().starts_with(start) && text.contains(part),
            "{text}"
        );
        assert!(!text.contains('\u{1b}') && text.is_empty() == part.is_empty(), "{text}");
    }
    let mut logged = vecaz(&eval);
    let text = logged.env("VECAZ_LOG", "vecaz=debug").output().expect("runs").stderr;
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(text.contains(" network 1x16 after ") && !text.contains('\u{1b}'), "{text}");
}
