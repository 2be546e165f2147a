//! Limits: memory, sizes that do not fit together, and a stderr that cannot be written.

use super::{refusal, run_copy, utf8, vecaz};
#[cfg(target_os = "linux")]
use assert_cmd::Command;
#[cfg(target_os = "linux")]
use std::path::Path;

/// The program under a shell's `setting`, such as `ulimit -v 100000`.
#[cfg(target_os = "linux")]
fn under(setting: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{setting}; exec \"$0\" \"$@\"")]);
    command.arg(assert_cmd::cargo::cargo_bin("vecaz")).args(arguments).env_remove("VECAZ_LOG");
    command
}

#[cfg(target_os = "linux")]
#[test]
fn a_plan_above_the_limit_of_the_address_space_is_refused_with_its_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    for (limit, shell) in [
        ("ulimit -v 1000000", "ulimit -v leaves of 976 MiB"),
        ("ulimit -d 900000", "ulimit -d leaves of 878 MiB"),
    ] {
        for (arguments, part) in [
            (vec!["run", "--games", "8192", "--sims", "800", "--out", utf8(&out)], "the plan needs "),
            (
                vec!["bench-scaling", "--games", "8192", "--sims", "800", "--net", "uniform"],
                "the plan needs ",
            ),
            (
                vec!["eval", EMBEDDED, "--against", "random", "--sims", "100000"],
                "in 128 trees at once: it needs ",
            ),
            (
                vec!["eval", EMBEDDED, "--against", EMBEDDED, "--sims", "20000"],
                "in 256 trees at once: it needs ",
            ),
        ] {
            // The stacks of many threads may exceed the limit.
            let line = refusal(under(limit, &arguments).args(["--threads", "2"]));
            assert!(line.contains(part) && line.contains(shell), "{limit}: {line}");
        }
    }
    assert!(!out.exists());
}

#[cfg(target_os = "linux")]
const EMBEDDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");

#[test]
fn sizes_that_do_not_fit_together_are_refused_by_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    for (settings, part) in [
        (
            vec!["search.nodes=1"],
            "search.nodes (--set): got 1, expected at least 17, the nodes that a ply of 16 simulations adds",
        ),
        (vec!["replay.capacity=1"], "got 128, expected at most 1, the samples that replay.capacity holds"),
        (
            vec!["train.batch=600000"],
            "train.batch (--set): got 600000, expected at most 500000, the samples that replay.capacity holds",
        ),
        (
            vec!["replay.capacity=5000", "train.min_samples=5001"],
            "train.min_samples (--set): got 5001, expected at most 5000, the samples that replay.capacity holds",
        ),
        (
            vec!["search.algorithm=puct", "search.dirichlet_alpha=0.001"],
            "search.dirichlet_alpha (--set): got 0.001, expected 0 or at least 0.01, as noise of less vanishes in f32",
        ),
        (
            vec![
                "game.name=backgammon",
                "search.algorithm=gumbel",
                "train.td_lambda=1",
                "net.value_head=wdl",
            ],
            "net.value_head (--set): got wdl, expected scalar: results of this game are points, not win, draw and loss alone",
        ),
        (
            vec!["game.name=blob", "net.arch=resnet", "train.batch=1"],
            "train.batch (--set): got 1, expected at least 2 with observations of one cell",
        ),
        (
            vec!["net.arch=mlp", "train.batch=1"],
            "train.batch (--set): got 1, expected at least 2 with net.arch = \"mlp\": normalised over one sample every input is 0",
        ),
        (
            vec!["net.value_head=wdl", "train.td_lambda=0.8"],
            "train.td_lambda (--set): got 0.8, expected 1 with net.value_head = \"wdl\", which learns results",
        ),
    ] {
        let mut command = vecaz(&["run", "--epochs", "1", "--out", utf8(&out)]);
        settings.iter().for_each(|setting| {
            command.args(["--set", setting]);
        });
        let line = refusal(&mut command);
        assert!(line.contains(part), "{settings:?}: {line}");
    }
    let bench = ["bench-scaling", "--net", "uniform", "--sims", "64", "--set", "search.nodes=1"];
    assert!(refusal(&mut vecaz(&bench)).contains("search.nodes: got 1, expected at least 65"));
    // Decisions on whole turns have no trees.
    let whole_turns =
        ["run", "--config", "backgammon", "--set", "search.nodes=5", "--set", "run.memory_mib=1"];
    assert!(refusal(vecaz(&whole_turns).args(["--out", utf8(&out)])).contains("MiB allowed"));
    assert!(!out.exists());
}

#[test]
fn the_part_of_a_plan_that_is_too_large_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    for (setting, part) in [
        ("replay.capacity=1000000000", "the largest part is replay, set by replay.capacity)"),
        (
            "search.cache_entries=4294967296",
            "the largest part is evaluation cache, set by search.cache_entries)",
        ),
        ("net.channels=4096", "the largest part is training, set by train.batch and"),
        (
            "search.simulations=1000000",
            "the largest part is trees, set by selfplay.games, search.simulations and",
        ),
        ("selfplay.games=1048576", "the largest part is games in progress, set by selfplay.games)"),
        (
            "selfplay.passes_per_poll=1000000",
            "the largest part is games of a poll, set by selfplay.games and selfplay.passes_per_poll)",
        ),
    ] {
        let settings = ["--set", "run.memory_mib=300", "--set", setting];
        let line = refusal(vecaz(&["run", "--epochs", "1", "--out", utf8(&out)]).args(settings));
        assert!(
            line.contains(part) && line.contains("more than the 300 MiB allowed (run.memory_mib)"),
            "{line}"
        );
    }
    assert!(!out.exists());
}

#[test]
fn a_run_that_never_reaches_its_first_update_prints_a_note() {
    let (_folder, run) = run_copy();
    let config = run.parent().expect("a folder").join("tiny.toml");
    std::fs::write(&config, super::CONFIG.replace("min_samples = 100", "min_samples = 900"))
        .expect("written");
    let out = run.with_file_name("idle");
    let arguments = ["run", "--config", utf8(&config), "--epochs", "2", "--out", utf8(&out)];
    let output = vecaz(&arguments).assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let text = text.replace("\n  ", " ");
    let note = "2 epochs may end before the first update, which needs 900 samples (train.min_samples, ";
    assert!(text.contains(note), "{text}");
    assert!(text.contains("nothing was learned: ") && text.contains("the first update needs 900"), "{text}");
}

/// Overlapped training sees the samples of earlier epochs alone.
#[test]
fn an_overlapped_run_of_one_epoch_prints_that_nothing_was_learned() {
    let (_folder, run) = run_copy();
    let config = run.parent().expect("a folder").join("tiny.toml");
    std::fs::write(&config, super::CONFIG.replace("[train]", "[train]\nmode = 'overlapped'"))
        .expect("written");
    let out = run.with_file_name("overlapped");
    let arguments = ["run", "--config", utf8(&config), "--epochs", "1", "--out", utf8(&out)];
    let output = vecaz(&arguments).assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let text = text.replace("\n  ", " ");
    for note in [
        "1 epoch may end before the first update, which needs 100 samples of earlier epochs (train.min_samples, ",
        "played, and the first update needs 100 of earlier epochs (train.min_samples, ",
    ] {
        assert!(text.contains(note), "{text}");
    }
}

#[test]
fn invalid_minutes_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    for minutes in ["0", "nan", "-1", "inf"] {
        let line = refusal(&mut vecaz(&["run", "--minutes", minutes, "--out", utf8(&out)]));
        assert!(
            line.contains("--minutes: got ") && line.contains("expected more than 0"),
            "{minutes}: {line}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn stderr_that_cannot_be_written_changes_no_exit_code() {
    assert!(Path::new("/dev/full").exists());
    for (arguments, code) in [
        (vec!["inspect", "--game", "chequers"], 2),
        (vec!["inspect", "--gaem", "hex"], 2),
        (vec!["inspect", "--actions", "3,9"], 1),
        (vec!["inspect"], 0),
    ] {
        for redirection in ["exec 2>/dev/full", "exec 2>&-"] {
            let output = under(redirection, &arguments).env("VECAZ_LOG", "trace").output().expect("runs");
            assert_eq!(output.status.code(), Some(code), "{arguments:?} with {redirection}");
        }
    }
    let output = under("exec >/dev/full", &["--help"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(1), "help that cannot be written");
}

/// Under a limit the program starts itself again with variables for its allocators, which programs that it starts must not inherit.
#[cfg(target_os = "linux")]
#[test]
fn an_opponent_gets_the_environment_that_the_user_had() {
    let (folder, run) = run_copy();
    let file = folder.path().join("environment");
    let opponent = format!("exec:sh -c 'env > {}'", utf8(&file));
    let arguments = ["eval", utf8(&run), "--against", &opponent, "--games", "1", "--threads", "1"];
    let environment = |setting: &str, variables: &[(&str, &str)]| {
        let mut command = under(setting, &arguments);
        command.envs(variables.iter().copied());
        assert!(refusal(&mut command).contains("before it replied"));
        let text = std::fs::read_to_string(&file).expect("written");
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    for variables in [&[][..], &[("MALLOC_ARENA_MAX", "2")], &[("MIMALLOC_ARENA_RESERVE", "1024")]] {
        let unlimited = environment("true", variables);
        assert_eq!(environment("ulimit -v 4000000", variables), unlimited, "{variables:?}");
        assert!(unlimited.iter().filter(|line| line.contains("ARENA")).count() == variables.len());
    }
}

/// The allocators map up to 1 GiB ahead. Under limits just above it the stacks of threads did not fit, which aborted the program. Below
/// its own size no program starts.
#[cfg(target_os = "linux")]
#[test]
fn any_limit_of_the_address_space_leaves_a_result_or_a_sentence() {
    let (_folder, run) = run_copy();
    let program = std::fs::metadata(assert_cmd::cargo::cargo_bin("vecaz")).expect("built").len();
    for kib in [32_768.max(program / 1024 + 1024), 49_152, 65_536, 90_112, 155_648, 286_720, 1_073_152] {
        for arguments in [
            vec!["verify", utf8(&run)],
            vec!["eval", utf8(&run), "--against", "random", "--games", "2", "--sims", "2", "--threads", "2"],
            vec!["run", "--resume", utf8(&run), "--epochs", "2", "--threads", "2"],
        ] {
            let output = under(&format!("ulimit -v {kib}"), &arguments).output().expect("runs");
            let stderr = String::from_utf8_lossy(&output.stderr);
            let lines = stderr.lines().count();
            let ended = matches!((output.status.code(), lines), (Some(0), 0) | (Some(1), 1));
            assert!(ended, "{kib} KiB, {arguments:?}: {:?}: {stderr}", output.status);
        }
    }
    // A limit of 1048 MiB is sufficient for these.
    under("ulimit -v 1073152", &["verify", utf8(&run)]).assert().success();
}
