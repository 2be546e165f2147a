//! The folder of a run: moved or deleted during the run, with remains of a killed process, or used by several processes at once.

use super::*;

/// An epoch of hours, which only ends by an error.
#[cfg(unix)]
fn endless() -> String {
    CONFIG.replace("samples_per_epoch = 400", "samples_per_epoch = 1000000000")
}

/// The one line of a process that must fail within seconds.
#[cfg(unix)]
fn error_of(mut child: Child) -> String {
    let started = Instant::now();
    while child.try_wait().is_ok_and(|status| status.is_none()) && started.elapsed() < Duration::from_secs(20)
    {
        sleep(Duration::from_millis(2));
    }
    // Does nothing to a process that has ended.
    child.kill().expect("killed");
    let output = child.wait_with_output().expect("ended");
    let line = text(&output.stderr);
    assert!(output.status.code() == Some(1) && line.lines().count() == 1, "{:?}: {line}", output.status);
    line
}

/// Windows neither moves nor deletes a folder in which a file is open, as the lock of a run is.
#[cfg(unix)]
#[test]
fn a_run_whose_folder_is_moved_or_deleted_ends_at_once_and_does_not_come_back() {
    for delete in [false, true] {
        let folder = Folder::with(&endless());
        let child = folder.command(UNBOUNDED, 1).spawn().expect("runs");
        let manifest = folder.run().join("manifest.jsonl");
        wait_until(|| fs::read_to_string(&manifest).is_ok_and(|text| text.contains("epoch-000000")));
        let away = folder.0.path().join("away");
        match delete {
            true => fs::remove_dir_all(folder.run()).expect("deleted"),
            false => fs::rename(folder.run(), &away).expect("moved"),
        }
        let line = error_of(child);
        assert!(line.contains("the folder was moved, deleted or emptied during the run"), "{line}");
        assert!(!folder.run().exists(), "the folder came back");
        assert!(delete || difference(&away).is_none());
    }
}

#[cfg(unix)]
#[test]
fn a_run_that_is_moved_between_any_epochs_is_continued_where_it_is() {
    let (whole, moved) = (Folder::new(), Folder::new());
    let mut epochs = 0;
    for _ in 0..4 {
        let child = moved.command(UNBOUNDED, 1).spawn().expect("runs");
        wait_until(|| moved.metrics().len() > epochs);
        let away = moved.0.path().join("away");
        fs::rename(moved.run(), &away).expect("moved");
        error_of(child);
        assert!(!moved.run().exists(), "the folder came back");
        fs::rename(&away, moved.run()).expect("moved back");
        assert_ready(&moved.run());
        epochs = moved.metrics().len();
    }
    let epochs = epochs as u64 + 1;
    moved.finish(epochs, 2);
    whole.finish(epochs, 2);
    assert_same_runs(&whole, &moved);
}

/// Readers open files that are being replaced and checkpoints that are being removed.
#[test]
fn a_run_in_progress_is_read_without_false_alarms() {
    let folder = Folder::new();
    let mut child = folder.command(UNBOUNDED, 1).spawn().expect("runs");
    wait_until(|| !folder.metrics().is_empty());
    let mut found = Vec::new();
    for _ in 0..8 {
        found.extend(difference(&folder.run()));
        let mut export = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
        export.arg("export-weights").arg(folder.run()).arg("--out").arg(folder.0.path().join("out"));
        let output = export.output().expect("runs");
        found.extend((!output.status.success()).then(|| text(&output.stderr)));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(found.is_empty(), "{found:?}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("listed") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

#[test]
fn pruning_that_a_kill_interrupted_is_finished_at_the_next_start() {
    let folder = Folder::new();
    folder.finish(5, 1);
    let before = content(&folder.run());
    let checkpoints = folder.run().join("checkpoints");
    let kept = checkpoints.join("epoch-000005");
    // Not pruned yet, half removed, half written, and written but not in the manifest.
    for name in ["epoch-000001", "epoch-000006", ".removing-epoch-000002", ".writing-epoch-000006"] {
        copy(&kept, &checkpoints.join(name));
    }
    fs::remove_file(checkpoints.join(".removing-epoch-000002/progress.bin")).expect("removed");
    folder.finish(5, 1);
    assert_eq!(content(&folder.run()).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    let mut names: Vec<_> = fs::read_dir(&checkpoints)
        .expect("listed")
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    assert_eq!(names, ["epoch-000003", "epoch-000004", "epoch-000005"]);
}

#[test]
fn runs_started_at_once_get_a_folder_each() {
    let folder = Folder::new();
    let start = || {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
        command.args(["run", "--config", "tiny.toml", "--epochs", "1", "--threads", "1"]);
        command.current_dir(folder.0.path()).env_remove("VECAZ_LOG");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs")
    };
    let children: Vec<Child> = (0..6).map(|_| start()).collect();
    for child in children {
        let output = child.wait_with_output().expect("ended");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    for number in 1..=6 {
        let run = folder.0.path().join(format!("runs/tic_tac_toe-{number}"));
        assert_eq!(difference(&run), None);
    }
    assert_eq!(fs::read_dir(folder.0.path().join("runs")).expect("listed").count(), 6);
}

#[test]
fn a_run_that_is_refused_leaves_no_folder() {
    let folder = Folder::new();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
    command
        .args(["run", "--config", "tiny.toml", "--games", "1000000", "--sims", "100000"])
        .current_dir(folder.0.path());
    let output = command.output().expect("runs");
    assert!(!output.status.success() && !folder.0.path().join("runs").exists(), "{}", text(&output.stderr));
}
