//! Runs that start from a trained network.

use super::*;

/// `vecaz run --start NETWORK --out OUT` with one block more and 24 channels, and too few samples for an update.
fn grow(network: &str, out: &str, further: &[&str]) -> Command {
    let mut command =
        vecaz(&["run", "--game", "tic_tac_toe", "--start", network, "--out", out, "--epochs", "1"]);
    let larger =
        ["net.blocks=2", "net.channels=24", "selfplay.samples_per_epoch=64", "train.min_samples=2000"];
    for setting in TINY.iter().chain(&larger).chain(further) {
        command.args(["--set", setting]);
    }
    command
}

#[test]
fn a_larger_network_starts_from_that_of_a_run() {
    let out = sibling_path("grown").display().to_string();
    let printed = stdout(&mut grow(&run(), &out, &[]));
    assert!(as_on_unix(&printed).contains("starts from the network "), "{printed}");
    let file = |run: &str| NetFile::load(&PathBuf::from(run).join("best.safetensors")).expect("a network");
    let (small, large) = (file(&run()), file(&out));
    assert_eq!((large.header.net.blocks, large.header.net.channels, large.header.updates), (2, 24, 0));
    let (old, new) = (&small.weights["stem.weight"], &large.weights["stem.weight"]);
    assert_eq!((&new.shape[0], &new.data[..old.data.len()]), (&24, &old.data[..]));
    assert!(large.weights["blocks.1.linear2.weight"].data.iter().all(|&x| x == 0.0));
    stdout(&mut vecaz(&["verify", &out]));
    let (code, line) =
        refusal(&mut vecaz(&["run", "--resume", &out, "--set", "run.start=other.safetensors"]));
    assert!(code == 2 && line.contains("run.start") && line.contains("first weights"), "{line}");
}

#[test]
fn a_start_that_cannot_be_is_refused_before_anything_is_written() {
    let out = sibling_path("refused").display().to_string();
    for (network, settings, part) in [
        (run(), vec!["net.channels=8"], "net.channels"),
        (run(), vec!["net.arch=resnet"], "net.arch"),
        (run(), vec!["search.algorithm=afterstate"], "what the network of run.start evaluates"),
        (sibling_path("nothing").display().to_string(), vec![], "nothing"),
        (
            concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors").into(),
            vec![],
            "the network's game",
        ),
        (concat!(env!("CARGO_MANIFEST_DIR"), "/README.md").into(), vec![], "README.md"),
    ] {
        let (_, line, _) = failure(&mut grow(&network, &out, &settings));
        assert!(line.contains(part), "{line}");
        assert!(!Path::new(&out).join("config.toml").exists(), "{line}");
    }
    let (code, _, _) = failure(&mut vecaz(&["run", "--start", &run(), "--resume", &run()]));
    assert_eq!(code, 2);
}
