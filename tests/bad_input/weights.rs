//! Weights of other programs that are not those of the network: errors name the tensor, what was found and what was expected.

use super::*;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// A tensor of a file: its name, the type and shape of its numbers, and their bytes.
type Tensor = (String, Dtype, Vec<usize>, Vec<u8>);

/// The tensors of the run's network without those of the self-check.
fn tensors(run: &Path) -> Vec<Tensor> {
    let bytes = fs::read(run.join("best.safetensors")).expect("read");
    let file = SafeTensors::deserialize(&bytes).expect("whole");
    let own = file.iter().filter(|(name, _)| !name.starts_with("selfcheck."));
    let mut tensors: Vec<Tensor> = own
        .map(|(name, view)| (name.to_string(), view.dtype(), view.shape().to_vec(), view.data().to_vec()))
        .collect();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    tensors
}

fn write(path: &Path, tensors: &[Tensor]) {
    let mut views = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        views.push((name.clone(), TensorView::new(*dtype, shape.clone(), bytes).expect("its bytes")));
    }
    fs::write(path, safetensors::serialize(views, None).expect("bytes")).expect("written");
}

#[test]
fn tensors_that_are_not_the_networks_are_refused_by_name() {
    let (folder, run) = run_copy();
    let [file, out] = ["trained.safetensors", "imported.safetensors"].map(|name| folder.path().join(name));
    let whole = tensors(&run);
    let import = ["import-weights", utf8(&file), "--like", utf8(&run), "--out", utf8(&out)];
    let refused = |change: &dyn Fn(&mut Vec<Tensor>), part: &str| {
        let mut tensors = whole.clone();
        change(&mut tensors);
        write(&file, &tensors);
        let line = refusal(&mut vecaz(&import));
        assert!(line.contains("trained.safetensors: ") && line.contains(part), "{line}");
    };
    let at = |name: &str| whole.iter().position(|tensor| tensor.0 == name).expect("its own");
    let (stem, bias) = (at("stem.weight"), at("stem.bias"));
    refused(&|tensors| drop(tensors.remove(bias)), "tensor stem.bias: found none, expected [16]");
    refused(
        &|tensors| tensors.push(("head.extra".into(), Dtype::F32, vec![1], vec![0; 4])),
        "tensors of the network: found head.extra, expected only those of its architecture",
    );
    refused(
        &|tensors| tensors[stem].2.reverse(),
        "tensor stem.weight: found [18, 16] (288 numbers), expected [16, 18]",
    );
    refused(
        &|tensors| tensors[bias].3[..4].copy_from_slice(&f32::NAN.to_le_bytes()),
        "tensor stem.bias is not finite (NaN)",
    );
    let variance = at("bn.running_var");
    refused(
        &|tensors| tensors[variance].3[..4].copy_from_slice(&(-0.5_f32).to_le_bytes()),
        "tensor bn.running_var: found -0.5, expected variances from 0",
    );
    for (dtype, size, name) in [(Dtype::F64, 8, "F64"), (Dtype::I8, 1, "I8"), (Dtype::BOOL, 1, "BOOL")] {
        let other = (format!("tensor stem.bias holds {name}, expected F32, BF16 or F16"), vec![0; 16 * size]);
        refused(
            &|tensors| {
                tensors[bias].1 = dtype;
                tensors[bias].3 = other.1.clone();
            },
            &other.0,
        );
    }
    assert!(!out.exists());
    write(&file, &whole);
    vecaz(&import).assert().success();
    vecaz(&["eval", utf8(&out), "--against", "random", "--games", "2", "--sims", "2"]).assert().success();
}

#[test]
fn what_is_no_whole_file_of_tensors_is_refused() {
    let (folder, run) = run_copy();
    let [file, out] = ["trained.safetensors", "imported.safetensors"].map(|name| folder.path().join(name));
    write(&file, &tensors(&run));
    let whole = fs::read(&file).expect("read");
    let import = ["import-weights", utf8(&file), "--like", utf8(&run), "--out", utf8(&out)];
    let huge = [&(1_u64 << 40).to_le_bytes(), &whole[8..]].concat();
    let cases = [0, 4, 8, 100, whole.len() / 2, whole.len() - 1].map(|len| whole[..len].to_vec());
    let longer = [&whole[..], b"more"].concat();
    for bytes in cases.into_iter().chain([huge, longer, b"PK\x03\x04 a zip file of PyTorch".to_vec()]) {
        fs::write(&file, &bytes).expect("written");
        assert_refused(&import, "trained.safetensors: not a whole safetensors file (");
    }
    let trainer = run.join("checkpoints/epoch-000002/trainer.safetensors");
    assert_refused(
        &["import-weights", utf8(&trainer), "--out", utf8(&out)],
        "its header is not that of a network",
    );
    assert_refused(&["import-weights", utf8(&run), "--out", utf8(&out)], "reading ");
    let absent = folder.path().join("absent");
    assert_refused(&["import-weights", utf8(&absent), "--out", utf8(&out)], "(os error 2)");
    assert!(!out.exists());
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_is_not_read_as_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let [pipe, out] = ["pipe", "imported.safetensors"].map(|name| folder.path().join(name));
    assert_refused(
        &["import-weights", "/dev/zero", "--out", utf8(&out)],
        "reading /dev/zero: not a regular file",
    );
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    assert_refused(&["import-weights", utf8(&pipe), "--out", utf8(&out)], "pipe: not a regular file");
    assert!(!out.exists());
}

#[test]
fn an_import_overwrites_neither_its_input_nor_a_run() {
    let (folder, run) = run_copy();
    let file = folder.path().join("trained.safetensors");
    write(&file, &tensors(&run));
    let before = content(&run);
    let to = |out: &Path| {
        ["import-weights", utf8(&file), "--like", utf8(&run), "--out", utf8(out)].map(String::from)
    };
    for (out, part) in [
        (file.clone(), "the output path is also an input"),
        (run.join("best.safetensors"), "it belongs to the run in "),
        (run.join("games/new.safetensors"), "it belongs to the run in "),
    ] {
        let arguments = to(&out);
        assert_refused(&arguments.each_ref().map(String::as_str), part);
    }
    assert!(content(&run) == before, "the run was changed");
    let sizes = ["import-weights", utf8(&file), "--game", "tic_tac_toe", "--set", "net.channels=17"];
    assert_refused(&sizes, "tensor ");
    let both = ["import-weights", utf8(&file), "--game", "hex", "--like", utf8(&run)];
    let line = String::from_utf8(vecaz(&both).assert().failure().code(2).get_output().stderr.clone());
    assert!(line.expect("UTF-8").contains("cannot be used with"));
}
