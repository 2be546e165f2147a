//! What `vecaz verify --accept` takes and refuses of a run that was edited or damaged.

use super::damage::{accept, resume};
use super::*;
use vecaz::files::FileDigest;
use vecaz::run::manifest::Manifest;

#[test]
fn verify_accept_refuses_an_edit_of_a_key_that_is_fixed() {
    let (_folder, run) = run_copy();
    let config = run.join("config.toml");
    let text = fs::read_to_string(&config).expect("read");
    for (from, to, part) in [
        (
            "seed = 1\n",
            "seed = 2\n",
            "got 2, expected 1, that of the resumed run: the games in progress were",
        ),
        (
            "\"in_turns\"",
            "\"overlapped\"",
            "got \"overlapped\", expected \"in_turns\", that of the resumed run",
        ),
        (
            "\nprecision = \"f32\"\nisa",
            "\nprecision = \"bf16\"\nisa",
            "expected \"f32\", that of the resumed run",
        ),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
        fs::write(&config, text.replace(from, to)).expect("edited");
        assert_refused(&["verify", utf8(&run), "--accept"], part);
    }
    fs::write(&config, text.replace("isa = \"native\"", "isa = \"portable\"")).expect("edited");
    accept(&run);
}

/// A kill between the first manifest and the first checkpoint leaves such a folder.
#[test]
fn an_edited_configuration_is_accepted_before_the_first_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    fs::create_dir(&run).expect("made");
    let text = fs::read_to_string(RUN.path().join("run/config.toml")).expect("read");
    let mut manifest = Manifest::new(&run);
    manifest.set("config.toml", FileDigest::of(text.as_bytes()));
    manifest.write(0).expect("written");
    fs::write(run.join("config.toml"), text.replace("lr = 0.002", "lr = 0.001")).expect("edited");
    assert_refused(&resume(&run), "config.toml: its checksum differs");
    vecaz(&["verify", utf8(&run), "--accept"]).assert().success();
    vecaz(&resume(&run)).assert().success();
    vecaz(&["verify", utf8(&run)]).assert().success();
}

#[test]
fn a_damaged_network_or_game_is_deleted_before_the_rest_is_accepted() {
    for file in ["best.safetensors", "games/epoch-000001.jsonl", "opponents/epoch-000001.safetensors"] {
        let (_folder, run) = run_copy();
        let path = run.join(file);
        fs::write(&path, &fs::read(&path).expect("read")[..90]).expect("cut");
        let line = refusal(&mut vecaz(&["verify", utf8(&run)]));
        assert!(line.contains("; restore it, or delete it and accept the folder as it is: "), "{line}");
        let line = refusal(&mut vecaz(&["verify", utf8(&run), "--accept"]));
        assert_eq!(line.matches(file).count(), 1, "{line}");
        fs::remove_file(&path).expect("deleted");
        accept(&run);
    }
}
