//! The updates that are due, also after a resume with other settings.

use super::*;

/// What a resumed run changes counts from then on, and not for the samples before.
#[test]
fn a_resumed_run_trains_by_its_new_batch_and_ratio() {
    for mode in ["in_turns", "overlapped"] {
        let folder = Folder::with(&CONFIG.replace("[train]", &format!("[train]\nmode = '{mode}'")));
        folder.finish(3, 1);
        for (epochs, batch, ratio) in [(6, 128, 4.0), (9, 16, 1.0), (12, 32, 6.0)] {
            let mut command = folder.command(epochs, 1);
            command.args(["--set", &format!("train.batch={batch}")]);
            command.args(["--set", &format!("train.replay_ratio={ratio}")]);
            assert!(command.output().expect("runs").status.success());
            let records = folder.metrics();
            let number = |epoch: usize, key: &str| records[epoch - 1][key].as_u64().expect("a number");
            for epoch in epochs as usize - 1..=epochs as usize {
                let made = number(epoch, "updates") - number(epoch - 1, "updates");
                let of = if mode == "in_turns" { epoch } else { epoch - 1 };
                let due = number(of, "samples") as f64 * ratio / f64::from(batch);
                assert!((made as f64 - due).abs() <= 1.0, "{mode}, epoch {epoch}: {made} updates, {due} due");
            }
        }
    }
}

#[test]
fn overlapped_training_is_an_epoch_behind() {
    let folder = Folder::with(&overlapped());
    folder.finish(5, 2);
    let (mut samples, mut updates) = (0.0, Vec::new());
    for record in folder.metrics() {
        updates.push(record["updates"].as_u64().expect("a number"));
        let due = if samples < 300.0 { 0 } else { (samples * 2.0 / 32.0) as u64 };
        assert_eq!(updates.last(), Some(&due));
        samples += record["samples"].as_f64().expect("a number");
    }
    assert!(updates[0] == 0 && updates.windows(2).all(|pair| pair[0] < pair[1]), "{updates:?}");
}

/// The run has trained on the samples before, so that they are not due once more.
#[test]
fn a_resumed_run_with_more_samples_before_updates_repeats_none() {
    let folder = Folder::new();
    folder.finish(3, 1);
    let mut command = folder.command(7, 1);
    assert!(command.args(["--set", "train.min_samples=2000"]).output().expect("runs").status.success());
    let (mut samples, mut updates, mut last) = (0, 0, 0);
    for record in folder.metrics() {
        let number = |key: &str| record[key].as_u64().expect("a number");
        samples += number("samples");
        last = number("updates") - updates;
        updates += last;
        let due = number("samples") * 2 / 32 + 1;
        assert!(last <= due, "{last} updates after {samples} samples, at most {due} due");
        assert!(
            number("epoch") <= 3 || samples >= 2000 || last == 0,
            "{last} updates after {samples} samples"
        );
    }
    assert!(samples >= 2000 && last > 0, "{last} updates after {samples} samples");
}
