//! A run that is stopped at any time, by any cause, and resumed ends with the same bytes as an uninterrupted run.

#[path = "resume/folder.rs"]
mod folder;
#[cfg(target_os = "linux")]
#[path = "resume/kills_at_calls.rs"]
mod kills_at_calls;
#[path = "resume/minutes.rs"]
mod minutes;
#[cfg(unix)]
#[path = "resume/signals.rs"]
mod signals;
#[path = "resume/updates.rs"]
mod updates;
#[cfg(unix)]
#[path = "support/signals.rs"]
mod signals_of_children;

#[cfg(unix)]
use signals_of_children::start_children_with_default_signals;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vecaz::config::Precision;
use vecaz::isa::Isa;
use vecaz::net::cpu::available_isas;
use vecaz::rng::{Key, Purpose};

/// More epochs than any of these runs finishes.
const UNBOUNDED: u64 = 1_000_000;

/// Epochs of some ten milliseconds; the ring fills and wraps, and every game begins in a cloned root cache.
const CONFIG: &str = "
[game]
name = 'tic_tac_toe'
[net]
arch = 'mlp'
blocks = 1
channels = 16
value_hidden = 8
[search]
simulations = 12
root_cache = 64
cache_entries = 512
[selfplay]
games = 13
samples_per_epoch = 400
passes_per_poll = 4
opening_plies = 3
temperature_plies = 9
[replay]
capacity = 3001
[train]
batch = 32
min_samples = 300
replay_ratio = 2.0
warmup_updates = 10
[eval]
share = 0.0
simulations = 8
positions = 20
";

/// Nearly every game is a draw, and so a finding.
const RAMSEY: &str = "
[game]
name = 'clique'
n = 6
k = 4
mode = 'avoid_clique'
[net]
arch = 'mlp'
blocks = 1
channels = 16
value_hidden = 8
[search]
simulations = 6
[selfplay]
games = 13
samples_per_epoch = 1000
passes_per_poll = 4
opening_plies = 9
temperature_plies = 9
[replay]
capacity = 3001
[train]
batch = 32
min_samples = 300
[eval]
every = 0
";

/// Decisions on whole turns, with lambda returns, trained in bf16, by weights that are averaged.
const AFTERSTATE: &str = "
[game]
name = 'backgammon'
short_game = true
[net]
arch = 'mlp'
blocks = 1
channels = 16
value_hidden = 8
[search]
algorithm = 'afterstate'
[selfplay]
games = 13
samples_per_epoch = 1500
passes_per_poll = 8
opening_plies = 3
[replay]
capacity = 3001
[train]
batch = 32
min_samples = 300
td_lambda = 0.6
average = 0.3
precision = 'bf16'
[eval]
every = 0
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self::with(CONFIG)
    }

    fn with(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("tiny.toml"), config).expect("written");
        Self(folder)
    }

    fn run(&self) -> PathBuf {
        self.0.path().join("run")
    }

    /// `vecaz run` into the folder, from the start or from the last checkpoint.
    fn command(&self, epochs: u64, threads: u64) -> Command {
        #[cfg(unix)]
        start_children_with_default_signals();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
        command.arg("run");
        if self.run().join("config.toml").exists() {
            command.arg("--resume").arg(self.run());
        } else {
            command.arg("--out").arg(self.run()).arg("--config").arg(self.0.path().join("tiny.toml"));
        }
        command.args(["--epochs", &epochs.to_string(), "--threads", &threads.to_string()]);
        command.env_remove("VECAZ_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn finish(&self, epochs: u64, threads: u64) -> Output {
        let output = self.command(epochs, threads).output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Number of processes that have started to work here: each opens its own event file.
    fn starts(&self) -> usize {
        let Ok(entries) = fs::read_dir(self.run()) else { return 0 };
        entries
            .filter_map(|e| e.ok())
            .filter(|e| e.file_name().to_string_lossy().starts_with("events.out"))
            .count()
    }

    fn metrics(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.run().join("metrics.jsonl")).unwrap_or_default();
        // A process at work may be in the middle of the last line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// Waits until `done`, for at most a minute.
fn wait_until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing happened for a minute");
        sleep(Duration::from_millis(2));
    }
}

/// The output of a process that ends by itself, within a minute.
fn output_of(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().expect("known").is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().expect("killed");
            panic!("it did not end within a minute");
        }
        sleep(Duration::from_millis(2));
    }
    child.wait_with_output().expect("ended")
}

/// True if [`Child::kill`] has ended the process, and not itself.
fn was_killed(output: &Output) -> bool {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
    // The code that the killing process names; an error of the program has it too.
    #[cfg(not(unix))]
    return output.status.code() == Some(1) && !text(&output.stderr).contains("error: ");
}

#[cfg(unix)]
fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// True for the files that hold a time or a setting of the process, such as its threads.
fn tells_time(name: &str) -> bool {
    let parts = ["events.out", "metrics.jsonl", "report.html", "config.toml"];
    parts.iter().any(|part| name.starts_with(part)) || name.ends_with("progress.bin")
}

/// The entries of the manifest, without the digests of files that hold a time, and without its own checksum.
fn manifest(run: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(run.join("manifest.jsonl")).expect("read");
    let mut lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.pop();
    for line in &mut lines {
        if line["path"].as_str().is_some_and(tells_time) {
            *line = line["path"].clone();
        }
    }
    lines
}

/// The error of `vecaz verify` on the run; None if nothing differs.
fn difference(run: &Path) -> Option<String> {
    let mut verify = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
    let output = verify.arg("verify").arg(run).output().expect("runs");
    (!output.status.success()).then(|| text(&output.stderr))
}

/// Every file whose bytes are a function of configuration and seed, by its path in the run's folder.
fn content(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![run.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(run).expect("inside").display().to_string().replace('\\', "/");
            if !tells_time(&name) && name != "manifest.jsonl" && name != ".lock" {
                found.insert(name, fs::read(&path).expect("read"));
            }
        }
    }
    found
}

/// Equal except for times.
fn assert_same_runs(a: &Folder, b: &Folder) {
    let (left, right) = (content(&a.run()), content(&b.run()));
    assert_eq!(left.keys().collect::<Vec<_>>(), right.keys().collect::<Vec<_>>());
    assert!(left.len() > 10, "{:?}", left.keys());
    for (name, bytes) in &left {
        assert!(*bytes == right[name], "{name} differs");
    }
    assert_eq!(manifest(&a.run()), manifest(&b.run()));
    assert_eq!([difference(&a.run()), difference(&b.run())], [None, None]);
    let timeless = |record: &serde_json::Value| {
        let keys = ["epoch", "games", "positions", "samples", "simulations", "updates", "losses", "strength"];
        (keys.map(|key| record[key].clone()), record["findings"].clone())
    };
    let (left, right) = (a.metrics(), b.metrics());
    assert_eq!(left.iter().map(timeless).collect::<Vec<_>>(), right.iter().map(timeless).collect::<Vec<_>>());
}

/// Training overlaps with self-play.
fn overlapped() -> String {
    CONFIG.replace("[train]", "[train]\nmode = 'overlapped'")
}

#[test]
fn killed_at_any_moment_it_ends_with_the_same_bytes() {
    check_kills(CONFIG, 20);
    check_kills(&overlapped(), 10);
}

#[test]
fn a_run_that_decides_on_whole_turns_ends_with_the_same_bytes() {
    check_threads(AFTERSTATE);
    check_kills(AFTERSTATE, 6);
}

fn check_kills(config: &str, kills: u64) {
    let [timed, killed, whole] = [(); 3].map(|()| Folder::with(config));
    timed.finish(1, 1);
    let started = Instant::now();
    timed.finish(6, 1);
    let epoch = started.elapsed().as_secs_f64() / 5.0;
    let mut rng = Key::new(5, Purpose::Evaluation).stream();
    for kill in 0..kills {
        let mut child = killed.command(UNBOUNDED, 1 + kill % 3).spawn().expect("runs");
        // Every fourth kill may happen at the start of the process, the others during its work.
        if kill % 4 > 0 {
            let before = killed.starts();
            wait_until(|| killed.starts() > before || child.try_wait().is_ok_and(|s| s.is_some()));
        }
        sleep(Duration::from_secs_f64(f64::from(rng.uniform()) * 2.0 * epoch));
        child.kill().expect("killed");
        let output = child.wait_with_output().expect("ended");
        assert!(was_killed(&output), "it ended by itself: {}", text(&output.stderr));
        assert_ready(&killed.run());
    }
    // Kills may leave no epoch at all: what is compared is never less than three.
    let epochs = (killed.metrics().len() as u64 + 1).max(3);
    killed.finish(epochs, 2);
    whole.finish(epochs, 1);
    let numbers: Vec<u64> = killed.metrics().iter().filter_map(|r| r["epoch"].as_u64()).collect();
    assert_eq!(numbers, (1..=epochs).collect::<Vec<_>>(), "each epoch once");
    assert_same_runs(&whole, &killed);
}

/// A killed process leaves nothing that differs from the manifest, or a run that has not begun.
fn assert_ready(run: &Path) {
    let nothing = format!("reading {}: ", run.display());
    let begun = ["not a run (it has no config.toml)", "the run has no checkpoint yet", &nothing];
    let found = difference(run).filter(|line| !begun.iter().any(|part| line.contains(part)));
    assert_eq!(found, None);
}

#[test]
fn killed_while_it_writes_findings_it_ends_with_the_same_findings() {
    let (killed, whole) = (Folder::with(RAMSEY), Folder::with(RAMSEY));
    // Without a last line that is still being written, or that a kill has cut: the next start removes it.
    let lines = |folder: &Folder| {
        let text = fs::read_to_string(folder.run().join("findings.jsonl")).unwrap_or_default();
        let ended = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        ended.map(str::to_string).collect::<Vec<_>>()
    };
    let mut rng = Key::new(6, Purpose::Evaluation).stream();
    for kill in 0..8 {
        let before = lines(&killed);
        let mut child = killed.command(UNBOUNDED, 1 + kill % 3).spawn().expect("runs");
        wait_until(|| lines(&killed).len() > before.len() || child.try_wait().is_ok_and(|s| s.is_some()));
        sleep(Duration::from_secs_f64(f64::from(rng.uniform()) * 0.05));
        child.kill().expect("killed");
        let output = child.wait_with_output().expect("ended");
        assert!(was_killed(&output), "it ended by itself: {}", text(&output.stderr));
        let after = lines(&killed);
        assert_eq!(after[..before.len()], before, "what is found stays");
    }
    // Kills may leave no epoch at all: what is compared is never less than three.
    let epochs = (killed.metrics().len() as u64 + 1).max(3);
    killed.finish(epochs, 2);
    whole.finish(epochs, 1);
    assert_same_runs(&whole, &killed);
    let found = lines(&whole);
    assert_eq!(whole.metrics().last().expect("an epoch")["findings"], found.len());
    let distinct: std::collections::BTreeSet<&String> = found.iter().collect();
    assert!(found.len() > 100 && distinct.len() == found.len(), "{} findings", found.len());
}

#[test]
fn resumed_with_other_threads_it_ends_with_the_same_bytes() {
    check_threads(CONFIG);
    check_threads(&CONFIG.replace("[net]", "[net]\nexecutor = 'candle'"));
}

/// In every number format, with each instruction set of the machine that rounds as the others do.
#[test]
fn resumed_with_another_instruction_set_it_ends_with_the_same_bytes() {
    for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
        let config = CONFIG.replace("[net]", &format!("[net]\nprecision = '{precision}'\nisa = 'portable'"));
        let (whole, parts) = (Folder::with(&config), Folder::with(&config));
        // The first and the last part are by plain Rust, so that the configurations are equal.
        let isas: Vec<Isa> = [Isa::Portable].into_iter().chain(available_isas(precision)).collect();
        let isas: Vec<Isa> = isas.into_iter().filter(|isa| *isa != Isa::Amx).collect();
        for (epochs, isa) in (1..).zip(&isas) {
            let mut command = parts.command(epochs, 1);
            let output = command.args(["--set", &format!("net.isa={isa}")]).output().expect("runs");
            assert!(output.status.success(), "{precision} {isa}: {}", text(&output.stderr));
        }
        whole.finish(isas.len() as u64, 2);
        assert_same_runs(&whole, &parts);
    }
}

#[test]
fn a_run_that_learns_ownership_ends_with_the_same_bytes() {
    let othello = CONFIG.replace("'tic_tac_toe'", "'othello'\nsize = 6").replace("'mlp'", "'resnet'");
    let config =
        othello.replace("[net]", "[net]\nauxiliary = 'ownership'").replace("positions = 20", "every = 0");
    check_threads(&config);
    let at_points = config.replace("[net]", "[net]\npolicy_head = 'points'");
    check_threads(&at_points.replace("[train]", "[train]\nmode = 'overlapped'"));
    let folder = Folder::with(&config);
    folder.finish(3, 2);
    let losses: Vec<f64> = folder
        .metrics()
        .iter()
        .filter_map(|record| record["losses"]["heads"]["ownership"].as_f64())
        .collect();
    assert!(losses.len() >= 2 && losses.iter().all(|loss| (0.01..0.75).contains(loss)), "{losses:?}");
}

fn check_threads(config: &str) {
    let (whole, parts) = (Folder::with(config), Folder::with(config));
    whole.finish(6, 2);
    for (epochs, threads) in [(1, 1), (2, 5), (4, 3), (6, 1)] {
        parts.finish(epochs, threads);
    }
    assert_same_runs(&whole, &parts);
    let again = text(&parts.finish(6, 1).stdout);
    assert!(again.contains("the limit is reached after 6 epochs"), "{again}");
}

#[test]
fn a_run_that_learns_win_draw_and_loss_ends_with_the_same_bytes() {
    check_threads(&CONFIG.replace("[net]", "[net]\nvalue_head = 'wdl'"));
}

#[test]
fn a_second_process_in_the_same_folder_is_refused() {
    let folder = Folder::new();
    let mut first = folder.command(UNBOUNDED, 1).spawn().expect("runs");
    wait_until(|| !folder.metrics().is_empty());
    let second = folder.command(UNBOUNDED, 1).output().expect("runs");
    let alive = first.try_wait().expect("asked").is_none();
    first.kill().expect("killed");
    assert!(was_killed(&first.wait_with_output().expect("ended")));
    let line = text(&second.stderr);
    assert!(alive && second.status.code() == Some(1), "{line}");
    assert!(
        line.contains("another vecaz process is using the folder") && line.lines().count() == 1,
        "{line}"
    );
}
