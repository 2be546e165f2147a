//! Kills before every system call that changes the folder: the manifest is valid whenever the process ends.
//!
//! `VECAZ_KILLS=300 cargo test --release --test resume at_calls` kills more often than the default.

use super::*;
use vecaz::run::manifest::Manifest;
use vecaz::run::{MANIFEST, games_name};

/// Default number of kills. They cover more than two epochs of some sixty calls each.
const KILLS: u64 = 40;
/// Calls between two kills, a prime, so that kills fall into every phase of an epoch.
const STEP: u64 = 7;

/// The library that kills a process at a call, compiled next to the test program.
fn library(folder: &Path) -> PathBuf {
    let library = folder.join("kill_at_call.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/kill_at_call.c");
    let mut compiler = Command::new("cc");
    let done = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args([source, "-ldl"]).status();
    assert!(done.expect("a C compiler").success());
    library
}

/// Runs until the kill; returns false if the process ended before.
fn is_killed(folder: &Folder, library: &Path, call: u64, epochs: u64) -> bool {
    let mut command = folder.command(epochs, 1 + call % 3);
    let output =
        command.env("LD_PRELOAD", library).env("KILL_AT_CALL", call.to_string()).output().expect("runs");
    let killed = was_killed(&output);
    assert!(killed || output.status.success(), "call {call}: {}", text(&output.stderr));
    killed
}

/// The manifest lists no games of an epoch after its own: where a second kill follows, the file may have others.
fn assert_no_later_games(run: &Path) {
    let Ok(text) = fs::read_to_string(run.join(MANIFEST)) else { return };
    let head: serde_json::Value = serde_json::from_str(text.lines().next().expect("a head")).expect("JSON");
    let last = games_name(head["epoch"].as_u64().expect("a number"));
    let listed = Manifest::load(run).expect("whole").expect("there").games();
    assert!(listed.iter().all(|name| *name <= last), "{listed:?} after {last}");
}

#[test]
fn killed_at_calls_it_is_ready_to_resume_and_ends_with_the_same_bytes() {
    let [whole, killed] = [(); 2].map(|()| Folder::new());
    let library = library(whole.0.path());
    let kills = std::env::var("VECAZ_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"));
    for kill in 0..kills {
        assert!(is_killed(&killed, &library, 1 + kill * STEP % 281, UNBOUNDED), "kill {kill}");
        assert_ready(&killed.run());
        assert_no_later_games(&killed.run());
    }
    let epochs = killed.metrics().len() as u64 + 1;
    killed.finish(epochs, 2);
    whole.finish(epochs, 1);
    assert_same_runs(&whole, &killed);
    let rests = content(&killed.run()).into_keys().find(|name| name.contains("/.") || name.starts_with('.'));
    assert_eq!(rests, None);
}

/// Every call of a start, from the empty folder to the first checkpoint.
#[test]
fn killed_at_calls_of_its_start_it_starts_again() {
    let whole = Folder::new();
    let library = library(whole.0.path());
    whole.finish(3, 1);
    for call in (1..).step_by(4) {
        let killed = Folder::new();
        if !is_killed(&killed, &library, call, 1) {
            break;
        }
        assert_ready(&killed.run());
        killed.finish(3, 2);
        assert_same_runs(&whole, &killed);
    }
}
