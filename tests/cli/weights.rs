//! Networks for other programs, and back.

use super::*;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use vecaz::weights::NumberFormat;

/// The path of `name` beside the run, as text.
fn path(name: &str) -> String {
    sibling_path(name).to_str().expect("UTF-8").to_string()
}

fn export(out: &str, arguments: &[&str]) -> String {
    stdout(vecaz(&["export-weights", &run(), "--out", out]).args(arguments))
}

/// The rest of what `vecaz import-weights FILE --out OUT` prints.
fn import(file: &str, out: &str, arguments: &[&str]) -> String {
    let text = stdout(vecaz(&["import-weights", file, "--out", out]).args(arguments));
    let start = format!("{out}: tic_tac_toe, ");
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}")).trim_end().to_string()
}

fn load(file: &str) -> NetFile {
    NetFile::load(Path::new(file)).expect("a network")
}

/// The tensors of the run's network as another program writes them: in 32 bits, with PyTorch's counters, without metadata.
fn foreign(file: &str, with_check: impl Fn(&str) -> bool) {
    let exported =
        path(&format!("{}.of.safetensors", Path::new(file).file_stem().expect("a name").display()));
    export(&exported, &[]);
    let bytes = std::fs::read(exported).expect("read");
    let tensors = SafeTensors::deserialize(&bytes).expect("whole");
    let counter = 7_i64.to_le_bytes();
    let mut views: HashMap<String, TensorView<'_>> =
        tensors.iter().filter(|(name, _)| with_check(name)).map(|(name, view)| (name.into(), view)).collect();
    let counted = TensorView::new(Dtype::I64, vec![], &counter).expect("a number");
    views.insert("bn.num_batches_tracked".into(), counted);
    std::fs::write(file, safetensors::serialize(views, None).expect("bytes")).expect("written");
}

#[test]
fn exported_weights_are_what_the_other_commands_take() {
    let out = sibling_path("exported.safetensors");
    let out = out.to_str().expect("UTF-8");
    let text = stdout(&mut vecaz(&["export-weights", &run(), "--out", out]));
    let expected = format!("{out}: tic_tac_toe, 24 tensors of {}/best.safetensors (epoch ", run());
    assert!(as_on_unix(&text).starts_with(&as_on_unix(&expected)), "{text}");
    let best = NetFile::load(&PathBuf::from(run()).join("best.safetensors")).expect("read");
    let mut exported = NetFile::load(Path::new(out)).expect("read");
    assert!(exported.header.model.take().is_some(), "the list of layers is only there");
    assert_eq!(exported, best);
    let args = ["--against", "random", "--games", "4", "--sims", "8", "--json", "-"];
    let result_of = |network: &str| {
        let mut row = records(&stdout(vecaz(&["eval", network]).args(args))).remove(0);
        let label = row["network"].take();
        assert!(label.as_str().is_some_and(|label| label.starts_with(network)), "{label}");
        row
    };
    assert_eq!(result_of(out), result_of(&run()), "the same network, the same match");
}

#[test]
fn a_network_that_went_out_and_came_back_is_the_same() {
    let [out, back] = ["out.safetensors", "back.safetensors"].map(path);
    export(&out, &[]);
    let printed = import(&out, &back, &[]);
    assert!(
        printed.starts_with(&format!("24 tensors of {out}; its outputs differ from the self-check")),
        "{printed}"
    );
    let best = NetFile::load(&PathBuf::from(run()).join("best.safetensors")).expect("read");
    assert_eq!(load(&back), best);
    assert_eq!(best.to_bytes(Path::new("a")).expect("bytes"), std::fs::read(&back).expect("read"));
    // The default names are those of FILE.
    let printed = stdout(&mut vecaz(&["import-weights", &out]));
    assert!(printed.starts_with(&path("out.imported.safetensors")), "{printed}");
    assert_eq!(load(&path("out.imported.safetensors")), best);
}

#[test]
fn tensors_of_another_program_play_once_game_and_sizes_are_given() {
    let [file, back] = ["foreign.safetensors", "foreign_back.safetensors"].map(path);
    foreign(&file, |name| !name.starts_with("selfcheck."));
    let sizes = ["--game", "tic_tac_toe", "--set", "net.blocks=1", "--set", "net.channels=16"];
    let run = run();
    let best = NetFile::load(&PathBuf::from(&run).join("best.safetensors")).expect("read");
    for described in [&sizes[..], &["--like", &run]] {
        assert_eq!(import(&file, &back, described), format!("24 tensors of {file}"));
        let mut imported = load(&back);
        assert_eq!(std::mem::replace(&mut imported.header.updates, best.header.updates), 0);
        assert_eq!(imported, best);
    }
    let (code, line) = refusal(&mut vecaz(&["import-weights", &file, "--out", &back]));
    assert!(
        code == 1 && line.contains("it names neither game nor sizes; give --like RUN, or --game G"),
        "{line}"
    );
    let args = ["--against", "random", "--games", "4", "--sims", "8", "--json", "-"];
    let played = |network: &str| {
        let mut row = records(&stdout(vecaz(&["eval", network]).args(args))).remove(0);
        row["network"].take();
        row
    };
    assert_eq!(played(&back), played(&run));
    // One for whole turns, by its configuration or by the network that it is like.
    let turns = path("foreign_turns.safetensors");
    import(&file, &turns, &[&sizes[..], &["--set", "search.algorithm=afterstate"]].concat());
    assert_eq!(load(&turns).header.evaluates, EvaluatedPositions::Afterstates);
    import(&file, &back, &["--like", &turns]);
    assert_eq!(load(&back), load(&turns));
}

/// Outputs that PyTorch wrote beside its weights are compared with those of the network here.
#[test]
fn a_self_check_of_the_other_program_is_run() {
    let [file, back] = ["checked.safetensors", "checked_back.safetensors"].map(path);
    foreign(&file, |_| true);
    let run = run();
    let printed = import(&file, &back, &["--like", &run]);
    assert!(printed.contains("; its outputs differ from the self-check there by at most "), "{printed}");
    let refused = |keep: &dyn Fn(&str) -> bool, part: &str| {
        foreign(&file, keep);
        let (_, line) = refusal(&mut vecaz(&["import-weights", &file, "--like", &run, "--out", &back]));
        assert!(line.contains(part), "{line}");
    };
    refused(&|name| name != "selfcheck.values", "tensor selfcheck.values is missing");
    refused(&|name| name != "selfcheck.obs", "it has tensor selfcheck.logits but no selfcheck.obs");
}

#[test]
fn weights_in_half_precision_are_those_of_the_run_rounded() {
    let best = NetFile::load(&PathBuf::from(run()).join("best.safetensors")).expect("read");
    let whole = path("whole.safetensors");
    export(&whole, &[]);
    for (name, format) in [("f16", NumberFormat::F16), ("bf16", NumberFormat::Bf16)] {
        let [out, back] =
            [format!("{name}.safetensors"), format!("{name}_back.safetensors")].map(|name| path(&name));
        export(&out, &["--precision", name]);
        let half = load(&out);
        for (name, array) in &best.weights {
            let rounded: Vec<f32> = array.data.iter().map(|&x| format.round(x)).collect();
            assert_eq!(half.weights[name].data, rounded, "{name}");
        }
        assert!(
            half.check.obs == best.check.obs && half.check.logits != best.check.logits,
            "its own self-check"
        );
        let bytes = std::fs::read(&out).expect("read");
        let tensors = SafeTensors::deserialize(&bytes).expect("whole");
        let dtype = if format == NumberFormat::F16 { Dtype::F16 } else { Dtype::BF16 };
        for (name, view) in tensors.iter() {
            let expected = if name.starts_with("selfcheck.") { Dtype::F32 } else { dtype };
            assert_eq!(view.dtype(), expected, "{name}");
        }
        stdout(&mut vecaz(&["eval", &out, "--against", "random", "--games", "2", "--sims", "4"]));
        import(&out, &back, &[]);
        assert_eq!(load(&back).weights, half.weights);
    }
}

#[cfg(feature = "onnx")]
#[test]
fn onnx_files_have_a_name_of_their_own_and_the_same_bytes_each_time() {
    let [out, again] = ["net.onnx", "again.onnx"].map(path);
    let printed = export(&out, &["--format", "onnx"]);
    let expected = format!("{out}: tic_tac_toe, 24 tensors of {}/best.safetensors", run());
    assert!(as_on_unix(&printed).starts_with(&as_on_unix(&expected)), "{printed}");
    export(&again, &["--format", "onnx"]);
    let [first, second] = [&out, &again].map(|file| std::fs::read(file).expect("read"));
    assert!(first == second);
    let text = String::from_utf8_lossy(&first);
    assert!(["vecaz", "selfcheck", "policy", "tic_tac_toe"].iter().all(|part| text.contains(part)));
    let best = PathBuf::from(run()).join("best.safetensors");
    let copy = path("copy.safetensors");
    std::fs::copy(best, &copy).expect("copied");
    let printed = stdout(&mut vecaz(&["export-weights", &copy, "--format", "onnx", "--precision", "f16"]));
    assert!(printed.starts_with(&path("copy.exported.onnx")), "{printed}");
    let half = std::fs::read(path("copy.exported.onnx")).expect("read");
    assert!(half.len() < first.len());
    let (code, line) = refusal(&mut vecaz(&["export-weights", &copy, "--precision", "int8"]));
    assert!(code == 2 && line.contains("int8") && line.contains("bf16"), "{line}");
}

/// The built-in configuration of backgammon decides on whole turns; a file of a network that was trained on trees is searched by trees.
#[test]
fn weights_of_trees_are_searched_by_trees() {
    let folder = sibling_path("trees");
    let folder = folder.to_str().expect("UTF-8");
    let mut command = vecaz(&["run", "--game", "backgammon", "--epochs", "1", "--quiet", "--out", folder]);
    for set in TINY.iter().chain(&["game.short_game=true", "search.algorithm=gumbel"]) {
        command.args(["--set", set]);
    }
    command.assert().success();
    let exported = path("trees.safetensors");
    vecaz(&["export-weights", folder, "--out", &exported]).assert().success();
    for network in [folder, &exported] {
        let text = stdout(vecaz(&["play", network, "--sims", "7"]).write_stdin("quit\n"));
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("7 simulations a move"), "{network}: {text}");
    }
}

/// Without the run's folder a network still says that it evaluates positions after a turn, and plays by them.
#[test]
fn weights_of_decisions_on_whole_turns_are_used_so() {
    let folder = sibling_path("whole_turns");
    let folder = folder.to_str().expect("UTF-8");
    let mut command = vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "1", "--quiet", "--out", folder]);
    for set in ["search.algorithm=afterstate", "selfplay.samples_per_epoch=200", "eval.every=0"] {
        command.args(["--set", set]);
    }
    command.assert().success();
    let exported = path("whole_turns.safetensors");
    vecaz(&["export-weights", folder, "--out", &exported]).assert().success();
    let header = load(&exported).header;
    assert_eq!(header.evaluates, EvaluatedPositions::Afterstates);
    assert!(header.meaning.contains("logits: untrained"), "{}", header.meaning);
    let against = ["--against", "random", "--games", "200", "--seed", "3", "--json", "-"];
    let row = |network: &str, more: &[&str]| {
        records(&stdout(vecaz(&["eval", network]).args(against).args(more))).remove(0)
    };
    let of_run = row(folder, &[]);
    let of_file = row(&exported, &[]);
    let by_tree = row(&exported, &["--set", "eval.algorithm=gumbel"]);
    let result = |row: &Value| ["wins", "draws", "losses"].map(|key| row[key].clone());
    assert_eq!(result(&of_run), result(&of_file));
    assert_ne!(result(&of_run), result(&by_tree), "64 simulations of a tree are stronger than one turn");
    assert_eq!((&of_run["simulations"], &by_tree["simulations"]), (&Value::Null, &json!(64)));
    for opponent in ["random", &exported] {
        let (code, line) = refusal(&mut vecaz(&["eval", folder, "--against", opponent, "--sims", "9"]));
        assert!(code == 2 && line.contains("--sims: got 9, expected none: this network compares"), "{line}");
    }
}

/// A checkpoint that was moved stays whole: what is exported of it goes elsewhere, and nothing is written over the weights that are read.
#[test]
fn a_checkpoint_that_is_exported_stays_as_it_is() {
    let checkpoints = Path::new(&run()).join("checkpoints");
    let found = std::fs::read_dir(checkpoints).expect("a run").flatten().next().expect("a checkpoint").path();
    let folder = sibling_path("moved");
    let moved = folder.join("epoch-000009");
    std::fs::create_dir_all(&moved).expect("a folder");
    let weights = moved.join("weights.safetensors");
    std::fs::copy(found.join("weights.safetensors"), &weights).expect("copied");
    let before = std::fs::read(&weights).expect("read");
    let moved = moved.to_str().expect("UTF-8");
    let printed = stdout(vecaz(&["export-weights", moved, "--precision", "f16"]).current_dir(&folder));
    assert!(printed.starts_with("epoch-000009.exported.safetensors: tic_tac_toe, "), "{printed}");
    assert!(folder.join("epoch-000009.exported.safetensors").is_file());
    // The folder that the command runs in has its name too.
    let printed = stdout(vecaz(&["export-weights", "."]).current_dir(moved));
    assert!(printed.starts_with("epoch-000009.exported.safetensors: tic_tac_toe, "), "{printed}");
    let inside = Path::new(moved).join("epoch-000009.exported.safetensors");
    assert!(inside.is_file());
    std::fs::remove_file(inside).expect("removed");
    let target = weights.to_str().expect("UTF-8");
    for arguments in [
        ["export-weights", moved, "--out", target].as_slice(),
        &[
            "import-weights",
            &path("moved/epoch-000009.exported.safetensors"),
            "--like",
            moved,
            "--out",
            target,
        ],
    ] {
        let (code, line) = refusal(&mut vecaz(arguments));
        assert!(code == 1 && line.contains("the output path is also an input"), "{arguments:?}: {line}");
    }
    assert_eq!(std::fs::read(&weights).expect("read"), before);
}

/// A weights file alone is described by its own header, not by the game's built-in configuration.
#[test]
fn settings_beside_a_weights_file_are_compared_with_its_own_sizes() {
    let folder = sibling_path("narrow");
    let folder = folder.to_str().expect("UTF-8");
    let mut command = vecaz(&["run", "--game", "connect_four", "--epochs", "1", "--quiet", "--out", folder]);
    for set in TINY {
        command.args(["--set", set]);
    }
    command.assert().success();
    let exported = path("narrow.safetensors");
    vecaz(&["export-weights", folder, "--out", &exported]).assert().success();
    let channels = load(&exported).header.net.channels;
    assert_ne!(channels, 32, "that of the built-in configuration");
    let play = |value: usize| {
        let set = format!("net.channels={value}");
        vecaz(&["play", &exported, "--sims", "2", "--set", &set])
            .write_stdin("quit\n")
            .output()
            .expect("runs")
    };
    assert!(play(channels).status.success());
    let refused = String::from_utf8(play(32).stderr).expect("UTF-8");
    assert!(
        refused.contains(&format!(
            "net.channels (--set): got 32, expected {channels}, the value of the weights"
        )),
        "{refused}"
    );
}

/// What a file says of itself holds against the command line.
#[test]
fn weights_of_other_positions_are_not_imported() {
    let exported = path("of_decisions.safetensors");
    export(&exported, &[]);
    let out = path("of_turns.safetensors");
    let import = ["import-weights", &exported, "--out", &out, "--game", "tic_tac_toe"];
    let sizes = load(&exported).header.net;
    let mut command = vecaz(&import);
    for (key, value) in sizes.keys() {
        command.args(["--set", &format!("net.{key}={value}")]);
    }
    let (_, line) = refusal(command.args(["--set", "search.algorithm=afterstate"]));
    let expected = "its metadata name positions in which a player decides, expected after a whole turn";
    assert!(line.contains(expected), "{line}");
}
