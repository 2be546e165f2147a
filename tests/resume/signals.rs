//! Signals and closed pipes: a run receives them at any point, ends with a complete checkpoint and the exit code of the signal, and can be
//! resumed to the same bytes.

use super::{
    CONFIG, Folder, RAMSEY, UNBOUNDED, assert_same_runs, output_of, send,
    start_children_with_default_signals, text, wait_until,
};
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The note of a run that receives a signal while it writes a checkpoint, if the write takes long.
const WRITING: &str = "finishing the checkpoint; a second signal ends the run at once\n";

/// An epoch of hours: its self-play alone.
fn endless() -> String {
    CONFIG.replace("samples_per_epoch = 400", "samples_per_epoch = 1_000_000_000")
}

/// The output of a process that ends by itself after `before`.
fn output_after(mut command: Command, before: impl FnOnce(&Child)) -> Output {
    let child = command.spawn().expect("runs");
    before(&child);
    output_of(child)
}

#[test]
fn interrupted_runs_end_with_a_checkpoint_and_the_code_of_the_signal() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let (whole, stopped) = (Folder::new(), Folder::new());
        let output = output_after(stopped.command(UNBOUNDED, 2), |child| {
            wait_until(|| stopped.metrics().len() >= 2);
            send(signal, child);
        });
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(
            output.status.code() == Some(code) && ["", WRITING].contains(&err.as_str()),
            "{signal}: {err}"
        );
        let reached = stopped.metrics().len() as u64;
        assert!(reached >= 2);
        let expected = format!("\nstopped after epoch {reached}; continue with:\n  vecaz run --resume ");
        assert!(out.contains(&expected), "{signal}: {out}");
        assert_eq!(out.matches("stopped after").count() + out.matches("results are in").count(), 1, "{out}");
        stopped.finish(reached + 2, 1);
        whole.finish(reached + 2, 2);
        assert_same_runs(&whole, &stopped);
    }
}

#[test]
fn a_closed_pipe_ends_a_run_with_141_and_it_is_resumed_to_the_same_bytes() {
    let (whole, stopped) = (Folder::new(), Folder::new());
    let mut child = stopped.command(UNBOUNDED, 2).spawn().expect("runs");
    wait_until(|| stopped.metrics().len() >= 2);
    drop(child.stdout.take());
    let output = output_of(child);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(141), ""));
    let reached = stopped.metrics().len() as u64;
    stopped.finish(reached + 1, 1);
    whole.finish(reached + 1, 2);
    assert_same_runs(&whole, &stopped);
}

#[test]
fn a_signal_ends_every_kind_of_long_work() {
    let overlapped = endless().replace("1_000_000_000", "5_000_000"); // which are held in memory until the end
    let overlapped = overlapped.replace("[train]", "[train]\nmode = 'overlapped'");
    let long_poll = endless().replace("passes_per_poll = 4", "passes_per_poll = 1_000_000");
    let deep = "algorithm = 'puct'\nroot_cache = 400_000\nnodes = 100_001";
    let root_cache = CONFIG.replace("root_cache = 64", deep).replace("tic_tac_toe", "hex");
    let root_cache = root_cache.replace("simulations = 12", "simulations = 100_000");
    let root_cache = root_cache.replace("games = 13", "games = 2").replace("opening_plies = 3", "");
    let root_cache = root_cache.replace("blocks = 1\nchannels = 16", "blocks = 4\nchannels = 256");
    let root_cache = root_cache.replace("[eval]", "[eval]\nevery = 0");
    let match_play = RAMSEY.replace("every = 0", "opponent = 'rollouts:1000000'");
    for (work, config) in [
        ("self-play", endless()),
        ("a poll", long_poll),
        ("overlapped self-play", overlapped),
        ("a root cache", root_cache),
        ("a match", match_play),
    ] {
        let folder = Folder::with(&config);
        let output = output_after(folder.command(UNBOUNDED, 2), |child| {
            wait_until(|| folder.starts() > 0);
            sleep(Duration::from_millis(300));
            send("-INT", child);
        });
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(130), ""), "{work}");
    }
}

/// The program cannot check for signals in the system call that waits for a writer of the pipe.
#[test]
fn a_signal_ends_a_command_that_waits_for_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let pipe = pipe.to_str().expect("UTF-8");
    let embedded = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");
    for arguments in [
        vec!["run", "--config", pipe],
        vec!["inspect", "--config", pipe],
        vec!["bench-scaling", "--config", pipe],
        vec!["eval", embedded, "--positions", pipe],
        vec!["play", "--sims", "8"],
    ] {
        start_children_with_default_signals();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
        command.args(&arguments).env_remove("VECAZ_LOG").stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
            let child = command.spawn().expect("runs");
            // Before that its handlers may not be installed, and the signal has its default action.
            wait_until(|| handles_signals(child.id()));
            send(signal, &child);
            let output = output_of(child);
            assert_eq!(
                (output.status.code(), text(&output.stderr).as_str()),
                (Some(code), ""),
                "{arguments:?}"
            );
        }
    }
}

/// True once the process `id` handles SIGTERM, from `/proc` on Linux; on other systems after a second.
fn handles_signals(id: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{id}/status")) else {
        sleep(Duration::from_secs(1));
        return true;
    };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("hexadecimal") & (1 << 14) != 0
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let folder = Folder::new();
    let run = folder.command(UNBOUNDED, 1);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = output_after(command, |child| {
        wait_until(|| !folder.metrics().is_empty());
        send("-HUP", child);
        let reached = folder.metrics().len();
        wait_until(|| folder.metrics().len() > reached + 2);
        send("-TERM", child);
    });
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
}
