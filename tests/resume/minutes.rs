//! The time limit cuts an epoch in progress: what was played is trained on, measured and kept beside the checkpoints, which are made at
//! the boundaries of full epochs only. So a resumed run gives the same bytes.

use super::{Folder, RAMSEY, UNBOUNDED, assert_same_runs, difference, output_of, text};
use std::fs;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

/// Runs the command with further arguments to its end.
fn output_with(mut command: Command, more: &[&str]) -> Output {
    output_of(command.args(more).spawn().expect("runs"))
}

const ENDLESS: &[&str] = &["--set", "selfplay.samples_per_epoch=1000000000", "--minutes", "0.06"];
/// Back to the epochs of a run without a limit.
const BACK: &[&str] = &["--set", "selfplay.samples_per_epoch=400", "--set", "run.minutes=0.0"];

/// The cut epoch is trained on, measured and kept, and other commands take its network.
fn assert_cut(folder: &Folder, output: &Output, epoch: u64) {
    let out = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{out}");
    assert!(out.contains(&format!("the time limit ended epoch {epoch}: final.safetensors is")), "{out}");
    let records = folder.metrics();
    let last = records.last().expect("a record");
    assert_eq!((records.len() as u64, &last["epoch"], &last["cut"]), (epoch, &epoch.into(), &true.into()));
    assert!(last["samples"].as_u64() > Some(0) && last["losses"].is_object(), "{last}");
    assert!(last["strength"]["search_outcome_error"].is_number(), "{last}");
    assert!(folder.run().join("final.safetensors").exists() && difference(&folder.run()).is_none());
}

#[test]
fn a_time_limit_cuts_the_first_epoch_and_keeps_what_was_learned() {
    let (whole, folder) = (Folder::new(), Folder::new());
    let output = output_with(folder.command(UNBOUNDED, 2), ENDLESS);
    assert_cut(&folder, &output, 1);
    let mut eval = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
    eval.arg("eval").arg(folder.run()).args(["--against", "random", "--games", "2", "--sims", "2"]);
    let output = eval.output().expect("runs");
    // A long path breaks the line.
    let out = (text(&output.stdout) + &text(&output.stderr)).replace("\n  ", " ");
    assert!(output.status.success() && out.contains("final.safetensors (epoch 1, "), "{out}");
    whole.finish(2, 1);
    assert!(output_with(folder.command(2, 1), BACK).status.success());
    assert_same_runs(&whole, &folder);
}

#[test]
fn a_cut_epoch_is_played_in_full_by_a_resumed_run_with_the_same_bytes() {
    let (whole, limited) = (Folder::new(), Folder::new());
    whole.finish(4, 1);
    limited.finish(2, 2);
    for kill in 0..6 {
        let output = output_with(limited.command(UNBOUNDED, 2), ENDLESS);
        assert_cut(&limited, &output, 3);
        // The next process is killed before it has played the epoch, and loses nothing of the cut one.
        let mut child = limited
            .command(UNBOUNDED, 1)
            .args(&ENDLESS[..2])
            .args(["--minutes", "1000"])
            .spawn()
            .expect("runs");
        sleep(Duration::from_millis(40 * kill));
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!(difference(&limited.run()), None, "after {kill}");
        // Nor does one lose it that has nothing to play.
        let output = output_with(limited.command(UNBOUNDED, 2), &["--minutes", "0.00001"]);
        assert!(text(&output.stdout).contains("the limit is reached after 2 epochs"), "{output:?}");
        assert_eq!((limited.metrics().len(), difference(&limited.run())), (3, None), "after {kill}");
        assert!(fs::exists(limited.run().join("final.safetensors")).expect("known"));
    }
    let output = output_with(limited.command(4, 1), BACK);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_same_runs(&whole, &limited);
    assert!(!fs::exists(limited.run().join("final.safetensors")).expect("known"));
}

/// A poll of more passes than there is time for ends within it, and what it has played is trained on.
#[test]
fn a_time_limit_ends_a_long_poll() {
    let long_poll = RAMSEY.replace("passes_per_poll = 4", "passes_per_poll = 1_000_000");
    assert_ne!(long_poll, RAMSEY);
    // With few simulations a ply, the memory plan has no room for the games of so long a poll.
    let folder = Folder::with(&long_poll.replace("simulations = 6", "simulations = 120"));
    // The whole poll would take minutes, of which the limit allows half of one before the run is stopped without a result.
    let many = [ENDLESS, &["--set", "selfplay.games=256"]].concat();
    let output = output_with(folder.command(UNBOUNDED, 2), &many);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records = folder.metrics();
    assert!(records.last().is_some_and(|record| record["cut"] == true), "{records:?}");
}

/// The first epoch has no measurement, the second one of hours, without which it is complete.
#[test]
fn a_time_limit_ends_a_measurement_and_keeps_its_epoch() {
    let folder = Folder::with(&RAMSEY.replace("every = 0", "every = 2\nopponent = 'rollouts:1000000'"));
    let output = output_with(folder.command(UNBOUNDED, 2), &["--minutes", "0.1"]);
    let out = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{out}");
    let records = folder.metrics();
    assert!(
        records.len() == 2 && records[1]["strength"].is_null() && records[1]["cut"].is_null(),
        "{records:?}"
    );
}
