//! Files that were damaged, lost or edited, and files that must not be overwritten: errors name each with the remedy.

use super::*;

/// Changes one bit in the middle of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, &bytes).expect("written");
}

/// Removes the last line of a file.
fn drop_last_line(path: &Path) {
    let text = fs::read_to_string(path).expect("read");
    let end = text[..text.len() - 1].rfind('\n').expect("two lines") + 1;
    fs::write(path, &text[..end]).expect("written");
}

pub(super) fn resume(run: &Path) -> Vec<&str> {
    vec!["run", "--resume", utf8(run), "--epochs", "4"]
}

pub(super) fn accept(run: &Path) {
    let text = vecaz(&["verify", utf8(run), "--accept"]).assert().success();
    let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
    assert!(text.contains(" files accepted, ") && text.ends_with("nothing differs\n"), "{text}");
    vecaz(&["verify", utf8(run)]).assert().success();
}

/// Each kind of file; the second number is 2 if a resumed run reads the content, 1 if it checks only the size.
const FILES: [(&str, u8); 9] = [
    ("config.toml", 2),
    ("best.safetensors", 2),
    ("metrics.jsonl", 2),
    ("games/epoch-000001.jsonl", 1),
    ("checkpoints/epoch-000002/weights.safetensors", 2),
    ("checkpoints/epoch-000002/trainer.safetensors", 2),
    ("checkpoints/epoch-000002/replay-*.safetensors", 2),
    ("checkpoints/epoch-000002/progress.bin", 2),
    ("checkpoints/epoch-000001/replay-*.safetensors", 1),
];

/// A file of [`FILES`] in `run`, the last one with such a name.
fn named(run: &Path, file: &str) -> String {
    let Some((start, end)) = file.split_once('*') else { return file.to_string() };
    let (folder, start) = start.rsplit_once('/').expect("in a folder");
    let entries = fs::read_dir(run.join(folder)).expect("listed");
    let names = entries.map(|entry| entry.expect("listed").file_name().into_string().expect("a name"));
    let last = names.filter(|name| name.starts_with(start) && name.ends_with(end)).max();
    format!("{folder}/{}", last.expect("such a file"))
}

#[test]
fn a_flipped_bit_in_any_file_is_found_and_the_run_is_unchanged() {
    for (file, depth) in FILES {
        let (_folder, run) = run_copy();
        let file = named(&run, file);
        flip(&run.join(&file));
        let before = content(&run);
        let mut commands = vec![vec!["verify", utf8(&run)]];
        if depth == 2 {
            commands.push(resume(&run));
        }
        for arguments in commands {
            let line = refusal(&mut vecaz(&arguments));
            let whole = line.contains(&file) && line.contains("checksum differs (CRC-32C ");
            assert!(whole && line.contains("restore it, or "), "{arguments:?}: {line}");
        }
        assert!(content(&run) == before, "{file}: the run was changed");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_in_place_of_a_file_is_refused_unread() {
    for file in FILES.iter().map(|(file, _)| *file).chain(["manifest.jsonl"]) {
        for kind in ["pipe", "device"] {
            let (_folder, run) = run_copy();
            let file = &named(&run, file);
            let path = run.join(file);
            fs::remove_file(&path).expect("removed");
            match kind {
                "pipe" => {
                    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("runs").success())
                }
                _ => std::os::unix::fs::symlink("/dev/zero", &path).expect("linked"),
            }
            for arguments in [vec!["verify", utf8(&run)], resume(&run)] {
                let line = refusal(&mut vecaz(&arguments));
                // The kind of the folder and sizes are checked first.
                let parts = ["not a regular file", "is not a file", "not a run (it has no config.toml)"];
                assert!(
                    parts.iter().any(|part| line.contains(part)),
                    "{file}, {kind}, {arguments:?}: {line}"
                );
                assert!(line.contains(file.rsplit('/').next().expect("a name")), "{file}, {kind}: {line}");
            }
            // Games and a best network that are not files count as missing, which is accepted.
            let mut accept = vecaz(&["verify", utf8(&run), "--accept"]);
            let accepted = accept.timeout(std::time::Duration::from_secs(60)).output().expect("ends");
            assert!(accepted.status.code().is_some_and(|code| code < 2), "{file}, {kind}: {accepted:?}");
        }
    }
}

#[test]
fn a_missing_or_cut_file_is_named_with_the_remedy() {
    for (file, _) in FILES {
        for cut in [false, true] {
            let (_folder, run) = run_copy();
            let file = named(&run, file);
            let path = run.join(&file);
            match cut {
                true => fs::write(&path, &fs::read(&path).expect("read")[..90]).expect("cut"),
                false => fs::remove_file(&path).expect("removed"),
            }
            let before = content(&run);
            for arguments in [vec!["verify", utf8(&run)], resume(&run)] {
                let line = refusal(&mut vecaz(&arguments));
                if file == "config.toml" && !cut {
                    assert!(line.contains("not a run (it has no config.toml)"), "{line}");
                    continue;
                }
                let what = if cut { "has 90 bytes, manifest.jsonl expects " } else { "is missing" };
                assert!(line.contains(&file) && line.contains(what), "{arguments:?}: {line}");
                let way = match file {
                    _ if file.contains("000002") => "to continue from epoch 1, move ",
                    _ if file.contains("000001/") => "or move ",
                    _ if cut && (file.starts_with("games/") || file == "best.safetensors") => {
                        "or delete it and accept the folder as it is: vecaz verify "
                    }
                    _ => "or accept the folder as it is: vecaz verify ",
                };
                assert!(
                    line.contains(way) && line.trim_end().ends_with(" --accept"),
                    "{arguments:?}: {line}"
                );
            }
            assert!(content(&run) == before, "{file}: the run was changed");
        }
    }
}

/// These files are valid with other content after a cut at the end of a line.
#[test]
fn files_cut_at_the_end_of_a_line_are_not_taken_as_whole() {
    for file in ["config.toml", "metrics.jsonl"] {
        let (_folder, run) = run_copy();
        drop_last_line(&run.join(file));
        for arguments in [vec!["verify", utf8(&run)], resume(&run)] {
            let line = refusal(&mut vecaz(&arguments));
            assert!(line.contains(file) && line.contains(" bytes, manifest.jsonl expects "), "{line}");
        }
    }
}

#[test]
fn the_best_network_is_the_one_that_the_run_wrote_or_none() {
    let (folder, run) = run_copy();
    let best = run.join("best.safetensors");
    let out = folder.path().join("exported");
    let whole = fs::read(&best).expect("read");
    let refused = |what: &str, network: &Path| {
        for arguments in [
            vec!["eval", utf8(network), "--against", "random"],
            vec!["export-weights", utf8(network), "--out", utf8(&out)],
            vec!["play", utf8(network)],
            vec!["bench-scaling", "--run", utf8(network)],
        ] {
            let line = refusal(&mut vecaz(&arguments));
            assert!(line.contains("best.safetensors: ") && line.contains(what), "{arguments:?}: {line}");
        }
    };
    fs::remove_file(&best).expect("removed");
    refused("is missing; restore it, or accept the folder as it is", &run);
    fs::write(&best, &whole).expect("restored");
    for at in (0..whole.len()).step_by(whole.len() / 5) {
        flip_at(&best, &whole, at);
        refused("checksum differs", &run);
    }
    refused("checksum differs", &best);
    fs::write(&best, &whole).expect("restored");
    vecaz(&["export-weights", utf8(&run), "--out", utf8(&out)]).assert().success();
}

fn flip_at(path: &Path, whole: &[u8], at: usize) {
    let mut bytes = whole.to_vec();
    bytes[at] ^= 4;
    fs::write(path, bytes).expect("written");
}

#[test]
fn deleted_games_are_reported() {
    let (_folder, run) = run_copy();
    fs::remove_dir_all(run.join("games")).expect("removed");
    let line = refusal(&mut vecaz(&["verify", utf8(&run)]));
    assert!(line.contains("2 of ") && line.contains("games/epoch-000001.jsonl: is missing"), "{line}");
    accept(&run);
    vecaz(&resume(&run)).assert().success();
    vecaz(&["verify", utf8(&run)]).assert().success();
}

/// A run cut back to an earlier checkpoint gives the same bytes again.
#[test]
fn a_run_can_return_to_its_previous_checkpoint() {
    let (folder, run) = run_copy();
    let damaged = run.join("checkpoints").join("epoch-000002");
    flip(&damaged.join("trainer.safetensors"));
    let line = refusal(&mut vecaz(&resume(&run)));
    let way = format!("move {} away and run: vecaz verify {} --accept", damaged.display(), run.display());
    assert!(line.contains(&way), "{line}");
    assert!(refusal(&mut vecaz(&["verify", utf8(&run), "--accept"])).contains("trainer.safetensors"));
    fs::rename(&damaged, folder.path().join("damaged")).expect("moved");
    accept(&run);
    vecaz(&["run", "--resume", utf8(&run), "--epochs", "2"]).assert().success();
    vecaz(&["verify", utf8(&run)]).assert().success();
    let whole = content(&RUN.path().join("run"));
    for (path, bytes) in content(&run) {
        let name = path.strip_prefix(&run).expect("inside");
        let same_always = name.starts_with("games")
            || name == Path::new("best.safetensors")
            || (name.starts_with("checkpoints") && name.extension().is_some_and(|e| e == "safetensors"));
        assert!(
            !same_always || bytes == whole[&RUN.path().join("run").join(name)],
            "{} differs",
            name.display()
        );
    }
}

#[test]
fn verify_accept_takes_edited_files_but_not_invalid_ones() {
    let (_folder, run) = run_copy();
    let config = run.join("config.toml");
    let text = fs::read_to_string(&config).expect("read");
    fs::write(&config, text.replace("lr = 0.002", "lr = 0.001")).expect("edited");
    let line = refusal(&mut vecaz(&resume(&run)));
    assert!(line.contains("config.toml: its checksum differs"), "{line}");
    accept(&run);
    let before = fs::read(run.join("manifest.jsonl")).expect("read");
    let replay = named(&run, "checkpoints/epoch-000002/replay-*.safetensors");
    flip(&run.join(&replay));
    let line = refusal(&mut vecaz(&["verify", utf8(&run), "--accept"]));
    assert!(line.contains(&replay), "{line}");
    assert_eq!(fs::read(run.join("manifest.jsonl")).expect("read"), before, "nothing was accepted");
}

/// `config.toml` of an earlier version has keys that are gone.
#[test]
fn a_run_with_keys_that_are_gone_goes_on_where_they_have_their_defaults() {
    let (_folder, run) = run_copy();
    let config = run.join("config.toml");
    let text = fs::read_to_string(&config).expect("read");
    let with = |search: &str| {
        let text = text.replace("[search]\n", &format!("[search]\n{search}\n"));
        let text = text.replace("[net]\n", "[net]\nglobal_pool = 0\nse = 0\n");
        fs::write(&config, text.replace("[train]\n", "[train]\naccumulate = 1\noptimizer = \"adamw\"\n"))
            .expect("edited");
    };
    with("engine = \"scalar\"");
    let line = refusal(&mut vecaz(&["verify", utf8(&run), "--accept"]));
    let found = format!("config key search.engine ({}, line ", config.display());
    assert!(
        line.contains(&found) && line.contains("got \"scalar\", expected \"batched\", which is"),
        "{line}"
    );
    with("engine = \"batched\"\nfpu = \"reduced\"");
    accept(&run);
    vecaz(&resume(&run)).assert().success();
    assert!(!fs::read_to_string(&config).expect("read").contains("optimizer"), "written without them");
}

/// A run of an earlier version has no manifest.
#[test]
fn verify_accept_takes_a_run_without_a_manifest() {
    let (_folder, run) = run_copy();
    fs::remove_file(run.join("manifest.jsonl")).expect("removed");
    let before = content(&run);
    let [eval, play] = [vec!["eval", utf8(&run), "--against", "random"], vec!["play", utf8(&run)]];
    for arguments in [resume(&run), vec!["verify", utf8(&run)], eval, play] {
        let line = refusal(&mut vecaz(&arguments));
        assert!(line.contains("has no manifest.jsonl") && line.contains("--accept"), "{arguments:?}: {line}");
    }
    assert!(content(&run) == before, "the run was changed");
    accept(&run);
    flip(&run.join("manifest.jsonl"));
    for arguments in [resume(&run), vec!["verify", utf8(&run)]] {
        assert_refused(&arguments, "manifest.jsonl: truncated or damaged; restore it, or accept ");
    }
    accept(&run);
    vecaz(&resume(&run)).assert().success();
    vecaz(&["verify", utf8(&run)]).assert().success();
}

#[test]
fn a_run_without_checkpoints_is_not_overwritten() {
    let (_folder, run) = run_copy();
    fs::remove_dir_all(run.join("checkpoints")).expect("removed");
    let before = content(&run);
    assert_refused(&["run", "--resume", utf8(&run), "--epochs", "3"], "progress.bin: is missing");
    assert_refused(&["verify", utf8(&run), "--accept"], "has no checkpoint");
    assert_refused(&["run", "--out", utf8(&run), "--epochs", "1"], "the folder already contains a run");
    assert!(content(&run) == before, "the run was changed");
}

/// Weights files outside of runs have no manifest.
#[test]
fn damaged_weights_are_named() {
    let (folder, run) = run_copy();
    let bytes = fs::read(run.join("best.safetensors")).expect("read");
    let mut no_number = bytes.clone();
    let end = no_number.len();
    no_number[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let header_cut = [&u64::MAX.to_le_bytes(), &bytes[8..]].concat();
    let foreign = {
        let header = br#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        [&(header.len() as u64).to_le_bytes(), header.as_slice(), &[0; 4]].concat()
    };
    let replay = named(&run, "checkpoints/epoch-000002/replay-*.safetensors");
    let replay = fs::read(run.join(replay)).expect("read");
    let trainer = fs::read(checkpoint(&run, "trainer.safetensors")).expect("read");
    let [net, out] = ["net.safetensors", "exported"].map(|name| folder.path().join(name));
    for (damaged, part) in [
        (bytes[..bytes.len() - 1].to_vec(), "not a whole safetensors file"),
        (bytes[..1000].to_vec(), "not a whole safetensors file"),
        (Vec::new(), "not a whole safetensors file"),
        (header_cut, "not a whole safetensors file"),
        (no_number, "NaN"),
        (foreign, "not one of vecaz"),
        (replay, "not one of vecaz"),
        (trainer, "its header is not that of a network"),
    ] {
        fs::write(&net, &damaged).expect("written");
        for arguments in [
            vec!["export-weights", utf8(&net), "--out", utf8(&out)],
            vec!["eval", utf8(&net), "--against", "random"],
            vec!["play", utf8(&net)],
        ] {
            let line = refusal(&mut vecaz(&arguments));
            assert!(line.contains(part) && line.contains("net.safetensors"), "{arguments:?}: {line}");
        }
    }
    assert!(!out.exists());
}

#[test]
fn a_folder_with_files_of_others_takes_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("mine");
    fs::create_dir_all(dir.join("games")).expect("made");
    for name in ["config.toml", "report.html", "games/chess.pgn", "notes.txt"] {
        fs::write(dir.join(name), format!("my own {name}")).expect("written");
    }
    let before = content(&dir);
    let config = RUN.path().join("tiny.toml");
    for names in [vec![], vec!["config.toml"], vec!["report.html"]] {
        names.iter().for_each(|name| fs::remove_file(dir.join(name)).expect("removed"));
        let start = ["run", "--config", utf8(&config), "--epochs", "1", "--out", utf8(&dir)];
        assert_refused(&start, "the folder is not empty (it contains ");
    }
    assert!(!dir.join(".lock").exists(), "nothing is written there");
    for (path, bytes) in content(&dir) {
        assert!(bytes == before[&path], "{} was changed", path.display());
    }
}

#[test]
fn no_command_overwrites_a_file_of_a_run_or_its_own_input() {
    let (folder, run) = run_copy();
    let before = content(&run);
    let name = utf8(&run);
    let own: Vec<PathBuf> = [
        "config.toml",
        "manifest.jsonl",
        "best.safetensors",
        "report.html",
        "metrics.jsonl",
        "games/epoch-000001.jsonl",
    ]
    .iter()
    .map(|file| run.join(file))
    .chain([checkpoint(&run, "weights.safetensors"), run.join("games/new.json"), run.join("./config.toml")])
    .collect();
    for path in &own {
        let path = utf8(path);
        for arguments in [
            vec!["export-weights", name, "--out", path],
            vec!["eval", name, "--against", "random", "--games", "2", "--sims", "2", "--json", path],
            vec!["verify", name, "--json", path],
            vec!["inspect", "--json", path],
            vec!["bench-scaling", "--games", "1", "--json", path],
        ] {
            assert_refused(&arguments, "it belongs to the run in ");
        }
    }
    let inside = run.join("games/run");
    assert_refused(&["run", "--epochs", "1", "--out", utf8(&inside)], "it belongs to the run in ");
    assert!(content(&run) == before, "the run was changed");
    let (positions, net) = (folder.path().join("positions.jsonl"), folder.path().join("net.safetensors"));
    fs::write(&positions, "{\"actions\":[0],\"scores\":[null,0,0,0,0,0,0,0,0]}\n").expect("written");
    vecaz(&["export-weights", name, "--out", utf8(&net)]).assert().success();
    let list = format!("@{}", positions.display());
    for arguments in [
        vec!["eval", name, "--positions", utf8(&positions), "--json", utf8(&positions)],
        vec!["inspect", "--actions", &list, "--json", utf8(&positions)],
        vec!["export-weights", utf8(&net), "--out", utf8(&net)],
        vec!["eval", name, "--against", utf8(&net), "--json", utf8(&net)],
    ] {
        assert_refused(&arguments, "the output path is also an input");
    }
    // The default file of the export may be overwritten.
    for _ in 0..2 {
        vecaz(&["export-weights", name]).assert().success();
    }
    vecaz(&["verify", name]).assert().success();
}

/// The epoch in the name of a folder may be any number: no loop counts up to it.
#[test]
fn a_checkpoint_of_an_impossible_epoch_is_refused() {
    let (_folder, run) = run_copy();
    let path = run.join("checkpoints").join(format!("epoch-{}", u64::MAX));
    fs::rename(run.join("checkpoints/epoch-000002"), path).expect("moved");
    let line = refusal(&mut vecaz(&["verify", utf8(&run), "--accept"]));
    assert!(line.contains(&u64::MAX.to_string()), "{line}");
}

/// A run that accepted it would repeat a finished epoch and overwrite its games.
#[test]
fn a_checkpoint_in_the_folder_of_another_epoch_is_refused() {
    let (_folder, run) = run_copy();
    copy(&run.join("checkpoints/epoch-000001"), &run.join("checkpoints/epoch-000002"));
    let before = content(&run);
    assert_refused(&["verify", utf8(&run), "--accept"], "progress.bin: found 1, expected 2");
    assert!(content(&run) == before, "the run was changed");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_the_lock_is_refused() {
    let (_folder, run) = run_copy();
    let lock = run.join(".lock");
    fs::remove_file(&lock).expect("removed");
    assert!(std::process::Command::new("mkfifo").arg(&lock).status().expect("runs").success());
    for arguments in [vec!["verify", utf8(&run), "--accept"], resume(&run)] {
        assert_refused(&arguments, ".lock: not a regular file");
    }
}
