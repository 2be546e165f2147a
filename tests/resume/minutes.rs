//! The time limit ends an epoch in progress. Its results are discarded: checkpoints are made at epoch boundaries only, so that a resumed
//! run gives the same bytes.

use super::{Folder, RAMSEY, UNBOUNDED, assert_same_runs, output_of, text};
use std::process::{Command, Output};

/// Runs the command with further arguments to its end.
fn output_with(mut command: Command, more: &[&str]) -> Output {
    output_of(command.args(more).spawn().expect("runs"))
}

const ENDLESS: &[&str] = &["--set", "selfplay.samples_per_epoch=1000000000", "--minutes", "0.06"];

#[test]
fn a_time_limit_ends_the_first_epoch_with_an_error() {
    let folder = Folder::new();
    let output = output_with(folder.command(UNBOUNDED, 2), ENDLESS);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(
        line.starts_with("error: the limit of 0.06 minutes was reached in epoch 1 (self-play: "),
        "{line}"
    );
    assert!(line.contains(" of 1000000000 samples)") && line.contains("samples_per_epoch"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[test]
fn an_epoch_discarded_at_the_time_limit_is_repeated_with_the_same_bytes() {
    let (whole, limited) = (Folder::new(), Folder::new());
    whole.finish(4, 1);
    limited.finish(2, 2);
    let output = output_with(limited.command(UNBOUNDED, 2), ENDLESS);
    let line = text(&output.stderr);
    assert!(
        line.contains("minutes was reached in epoch 3 (self-play: ") && output.status.code() == Some(1),
        "{line}"
    );
    assert_eq!(limited.metrics().len(), 2);
    let back = ["--set", "selfplay.samples_per_epoch=400", "--set", "run.minutes=0.0"];
    let output = output_with(limited.command(4, 1), &back);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_same_runs(&whole, &limited);
}

/// The first epoch has no evaluation, the second one of hours.
#[test]
fn a_time_limit_ends_an_evaluation_and_keeps_the_epochs_before() {
    let folder = Folder::with(&RAMSEY.replace("every = 0", "every = 2\nopponent = 'rollouts:1000000'"));
    let output = output_with(folder.command(UNBOUNDED, 2), &["--minutes", "0.1"]);
    let out = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{out}");
    assert!(
        out.contains("\ntime limit reached in epoch 2; its results are discarded\nresults are in "),
        "{out}"
    );
    assert_eq!(folder.metrics().len(), 1);
}
