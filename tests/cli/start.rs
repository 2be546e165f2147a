//! Runs that start from a trained network.

use super::*;

/// `vecaz run --start NETWORK --out OUT` with too few samples for an update.
fn start(network: &str, out: &str, further: &[&str]) -> Command {
    let mut command =
        vecaz(&["run", "--game", "tic_tac_toe", "--start", network, "--out", out, "--epochs", "1"]);
    let without_updates = ["selfplay.samples_per_epoch=64", "train.min_samples=2000"];
    for setting in TINY.iter().chain(&without_updates).chain(further) {
        command.args(["--set", setting]);
    }
    command
}

#[test]
fn a_run_starts_with_the_weights_of_another() {
    let out = sibling_path("started").display().to_string();
    let printed = stdout(&mut start(&run(), &out, &[]));
    assert!(as_on_unix(&printed).contains("starts from the network "), "{printed}");
    assert!(printed.contains("strength: of 20 solved positions, the share where "), "{printed}");
    let file = |run: &str| NetFile::load(&PathBuf::from(run).join("best.safetensors")).expect("a network");
    let (trained, started) = (file(&run()), file(&out));
    assert!(started.weights == trained.weights && started.header.updates == 0);
    stdout(&mut vecaz(&["verify", &out]));
    // Not again when it is resumed.
    let (code, line) =
        refusal(&mut vecaz(&["run", "--resume", &out, "--set", "run.start=other.safetensors"]));
    assert!(code == 2 && line.contains("run.start") && line.contains("first weights"), "{line}");
    stdout(&mut vecaz(&["run", "--resume", &out, "--epochs", "2", "--set", "train.min_samples=100"]));
}

/// A perceptron has no convolutions.
#[test]
fn a_start_may_differ_in_keys_that_the_network_does_not_depend_on() {
    let out = sibling_path("started_without_channels").display().to_string();
    stdout(&mut start(&run(), &out, &["net.policy_channels=3", "net.value_channels=5"]));
    let weights =
        |run: &str| NetFile::load(&PathBuf::from(run).join("best.safetensors")).map(|net| net.weights);
    assert!(weights(&out).expect("a network") == weights(&run()).expect("a network"));
}

#[test]
fn an_edge_network_starts_with_another_number_of_vertices() {
    let run = |n: u32, further: &[&str]| {
        let out = sibling_path(&format!("vertices_{n}")).display().to_string();
        let size = format!("game.n={n}");
        let mut command =
            vecaz(&["run", "--game", "clique", "--epochs", "1", "--quiet", "--set", &size, "--out", &out]);
        for setting in TINY.iter().chain(&["train.min_samples=2000", "net.arch=edge"]) {
            command.args(["--set", setting]);
        }
        stdout(command.args(further));
        NetFile::load(&PathBuf::from(&out).join("best.safetensors")).expect("a network")
    };
    let five = run(5, &["--seed", "2"]);
    let six = run(6, &["--start", &sibling_path("vertices_5").display().to_string()]);
    assert!(six.weights == five.weights && six.header.net != five.header.net);
}

#[test]
fn a_start_that_cannot_be_is_refused_before_anything_is_written() {
    let out = sibling_path("refused").display().to_string();
    for (network, settings, part) in [
        (
            run(),
            vec!["net.channels=8"],
            "net.channels (--set): got 8, expected 16, that of the network of run.start",
        ),
        (run(), vec!["net.arch=resnet"], "net.arch (--set): got resnet, expected mlp"),
        (run(), vec!["net.value_head=wdl"], "net.value_head (--set): got wdl, expected scalar"),
        (run(), vec!["search.algorithm=afterstate"], "what the network of run.start evaluates"),
        (sibling_path("nothing").display().to_string(), vec![], "nothing"),
        (
            concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors").into(),
            vec![],
            "the network's game",
        ),
        (concat!(env!("CARGO_MANIFEST_DIR"), "/README.md").into(), vec![], "README.md"),
    ] {
        // Before the run is described, too.
        let (_, line) = refusal(&mut start(&network, &out, &settings));
        assert!(line.contains(part), "{line}");
        assert!(!Path::new(&out).join("config.toml").exists(), "{line}");
    }
    let (code, _) = refusal(&mut vecaz(&["run", "--start", &run(), "--resume", &run()]));
    assert_eq!(code, 2);
}

#[test]
fn a_start_that_sees_other_things_is_refused_by_the_key() {
    let network = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");
    let out = sibling_path("other_sight").display().to_string();
    let (code, line) = refusal(&mut vecaz(&["run", "--start", network, "--out", &out, "--epochs", "1"]));
    let part = "got \"threats\", expected \"stones\", that of the network of run.start";
    assert!(code == 2 && line.contains("game.network_sees") && line.contains(part), "{line}");
    assert!(!Path::new(&out).join("config.toml").exists());
}

/// The embedded network is older than this option, which its file does not name.
#[test]
fn a_network_of_other_options_is_refused_with_the_options_of_both() {
    let (_, line) = refusal(&mut vecaz(&["play", "--set", "game.network_sees=threats"]));
    let [found, expected] = ["stones", "threats"].map(|sight| format!("network_sees = \"{sight}\""));
    let (before, after) = line.split_once("expected").expect("both");
    assert!(before.contains(&found) && after.contains(&expected), "{line}");
}
