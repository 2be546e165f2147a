//! A network trained from zero gets stronger against exact play.

use vecaz::config::Layers;
use vecaz::report::metrics::EpochRecord;
use vecaz::report::progress::{Progress, Verbosity};
use vecaz::run::Run;
use vecaz::stop::Stop;

const CONFIG: &str = "
[game]
name = 'tic_tac_toe'
[net]
blocks = 1
channels = 16
[search]
simulations = 32
max_num_considered_actions = 9
[selfplay]
games = 64
samples_per_epoch = 2000
opening_plies = 5
[train]
batch = 128
min_samples = 2000
replay_ratio = 6.0
lr = 5e-3
lr_updates = 600
[run]
epochs = 6
seed = 5
[eval]
share = 0.0
positions = 627
simulations = 16
";

/// Outcome errors over all positions of tic-tac-toe up to symmetry, where random play errs in about 43 of 100.
#[test]
fn tic_tac_toe_is_learned_from_zero() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Layers::default().text(CONFIG, "test").and_then(Layers::resolve).expect("valid");
    let mut run = Run::start(config, &folder.path().join("run"), 2).expect("started");
    run.run_epochs(&mut Progress::new(Verbosity::Quiet), &Stop::default()).expect("run");
    let text = std::fs::read_to_string(folder.path().join("run/metrics.jsonl")).expect("metrics");
    let records: Vec<EpochRecord> =
        text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let errors = |r: &EpochRecord| {
        let s = r.strength.expect("measured");
        (s.policy_outcome_error.expect("positions"), s.search_outcome_error.expect("positions"))
    };
    let (first, last) = (errors(&records[0]), errors(&records[5]));
    assert!(last.0 < 0.08, "raw policy {last:?}, after one epoch {first:?}");
    assert!(last.0 < first.0, "raw policy {last:?}, after one epoch {first:?}");
    assert!(last.1 < 0.02, "search {last:?}");
    let policy = |r: &EpochRecord| r.losses.as_ref().expect("updates").policy_kl;
    assert!(policy(&records[5]) < policy(&records[0]));
}
