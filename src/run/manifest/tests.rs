//! The manifest against damage to it and to the files that it lists.

use super::*;

/// A folder with a manifest of some files.
fn folder() -> (tempfile::TempDir, Manifest) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut manifest = Manifest::new(folder.path());
    for name in [CONFIG, BEST, metrics::FILE_NAME] {
        fs::write(folder.path().join(name), name.repeat(20)).expect("written");
        manifest.set(name, FileDigest::of(name.repeat(20).as_bytes()));
    }
    manifest.fix(BTreeMap::from([("game.name".into(), "\"hex\"".into())]));
    manifest.write(3).expect("written");
    (folder, manifest)
}

fn error(manifest: &Manifest, name: &str) -> String {
    manifest.check(name, CheckDepth::Content).expect_err(name).to_string()
}

#[test]
fn a_manifest_is_read_as_it_was_written() {
    let (folder, manifest) = folder();
    assert_eq!(Manifest::load(folder.path()).expect("read"), Some(manifest.clone()));
    for name in manifest.names() {
        manifest.check(&name, CheckDepth::Content).expect("right");
    }
    assert_eq!(manifest.read(BEST).expect("read"), BEST.repeat(20).into_bytes());
}

#[test]
fn any_damage_to_a_manifest_is_noticed() {
    let (folder, _) = folder();
    let path = folder.path().join(MANIFEST);
    let bytes = fs::read(&path).expect("read");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).expect("written");
        let error = Manifest::load(folder.path()).expect_err("damaged").to_string();
        assert!(error.contains("truncated or damaged; restore it, or accept"), "{at}: {error}");
        fs::write(&path, &bytes[..at]).expect("written");
        assert!(Manifest::load(folder.path()).is_err(), "cut at {at}");
    }
}

#[test]
fn a_changed_or_missing_file_is_named_and_a_log_may_grow() {
    let (folder, manifest) = folder();
    let path = |name| folder.path().join(name);
    let mut bytes = BEST.repeat(20).into_bytes();
    bytes[7] ^= 16;
    fs::write(path(BEST), &bytes).expect("written");
    manifest.check(BEST, CheckDepth::Size).expect("the size is right");
    assert!(error(&manifest, BEST).contains("best.safetensors: its checksum differs (CRC-32C "));
    assert!(manifest.read(BEST).is_err());
    fs::remove_file(path(BEST)).expect("removed");
    assert!(error(&manifest, BEST).contains("best.safetensors: is missing; restore it, or accept"));
    fs::write(path(CONFIG), "short").expect("written");
    assert!(error(&manifest, CONFIG).contains("config.toml: has 5 bytes, manifest.jsonl expects 220"));
    let log = metrics::FILE_NAME;
    fs::write(path(log), log.repeat(21)).expect("written");
    manifest.check(log, CheckDepth::Content).expect("it has grown");
    fs::write(path(log), log.repeat(19)).expect("written");
    assert!(error(&manifest, log).contains("expects at least "));
}

/// The states of the folder in which a kill can leave it.
#[test]
fn a_replaced_file_is_right_before_and_after_whenever_the_process_is_killed() {
    let (folder, manifest) = folder();
    let (old, new) = (BEST.repeat(20), "new");
    manifest.clone().replace(BEST, new.as_bytes()).expect("replaced");
    let announced = Manifest::load(folder.path()).expect("read").expect("there");
    for content in [&old, new] {
        fs::write(folder.path().join(BEST), content).expect("written");
        announced.check(BEST, CheckDepth::Content).expect("listed");
        assert_eq!(announced.read(BEST).expect("listed"), content.as_bytes());
    }
    fs::write(folder.path().join(BEST), "other").expect("written");
    assert!(error(&announced, BEST).contains("has 5 bytes"));
    // The next process replaces the pending content by a third one, and is killed before and after that.
    for content in [&old, new] {
        fs::write(folder.path().join(BEST), content).expect("written");
        let mut next = announced.clone();
        next.resolve_pending().expect("read");
        next.replace(BEST, b"third").expect("replaced");
        let announced = Manifest::load(folder.path()).expect("read").expect("there");
        for content in [content.as_bytes(), b"third"] {
            fs::write(folder.path().join(BEST), content).expect("written");
            announced.check(BEST, CheckDepth::Content).expect("listed");
        }
        next.write(4).expect("written");
        let written = Manifest::load(folder.path()).expect("read").expect("there");
        assert_eq!((written.pending.len(), written.files[BEST]), (0, FileDigest::of(b"third")));
    }
}

/// A log that lost its last line grows again before the manifest is written, whole or torn.
#[test]
fn a_shortened_log_is_right_whenever_the_process_is_killed() {
    for content in ["a\nb\n", "a\n", "a\nccc\n", "a\ncc"] {
        let (folder, mut manifest) = folder();
        let log = folder.path().join(metrics::FILE_NAME);
        fs::write(&log, "a\nb\n").expect("written");
        manifest.set(metrics::FILE_NAME, FileDigest::of(b"a\nb\n"));
        manifest.replace(metrics::FILE_NAME, b"a\n").expect("replaced");
        fs::write(&log, content).expect("written");
        let mut next = Manifest::load(folder.path()).expect("read").expect("there");
        next.check(metrics::FILE_NAME, CheckDepth::Content).expect("listed");
        next.resolve_pending().expect("read");
        next.write(4).expect("written");
        next.check(metrics::FILE_NAME, CheckDepth::Content).unwrap_or_else(|e| panic!("{content:?}: {e}"));
    }
}
