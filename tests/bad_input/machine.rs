//! What the machine and the build do not have: devices and features.

use super::{assert_refused, refusal, vecaz};
use std::path::Path;

#[test]
fn devices_that_cannot_be_are_refused() {
    let none = "gpu is not a device, expected cpu, cuda, cuda:N, or metal";
    assert_refused(&["run", "--device", "gpu"], none);
    assert_refused(&["bench-scaling", "--device", "cuda:x"], "cuda:x is not a device");
    assert_refused(&["run", "--set", "net.device=gpu"], none);
    for (device, why) in [
        ("cpu,cuda:0", "cpu,cuda:0 names the CPU and a GPU, expected cpu or GPUs only"),
        ("cuda:1,cuda:1", "cuda:1,cuda:1 names cuda:1 twice"),
        ("cuda:0,", "cuda:0, has an empty entry, expected GPUs as in cuda:0,cuda:1"),
    ] {
        assert_refused(&["run", "--device", device], why);
    }
    assert_refused(&["run", "--device", "metal"], "run.device: got metal, expected cpu or cuda for games");
    let metal = ["run", "--set", "net.device=metal", "--set", "net.precision=f32"];
    assert_refused(&metal, "got metal, expected cpu or cuda, or net.executor = \"candle\"");
    if !cfg!(feature = "candle-metal") {
        let candle = [metal.as_slice(), &["--set", "net.executor=candle"]].concat();
        assert_refused(
            &candle,
            "got metal, expected cpu: this program was built without the feature candle-metal",
        );
    }
    let few = ["run", "--device", "cuda:0,cuda:1,cuda:2", "--games", "2"];
    assert_refused(&few, "selfplay.games: got 2, expected a whole number from 3 to 1048576");
    // With a driver the command fails for another reason, or succeeds.
    let driverless = match cfg!(target_os = "linux") {
        true => "no NVIDIA driver on this machine (libcuda.so.1 is not found); use --device cpu",
        false => "GPUs are used on Linux only, on Windows in WSL 2; use --device cpu",
    };
    for (arguments, key) in [
        (["run", "--device", "cuda"], "run.device: got cuda:0"),
        (["bench-scaling", "--device", "cuda:1"], "run.device: got cuda:1"),
        (["run", "--device", "cuda:0,cuda:1"], "run.device: got cuda:0"),
        (["run", "--set", "net.device=cuda"], "net.device (--set): got cuda:0"),
    ] {
        if cfg!(feature = "cuda") {
            let precision = ["--set", "net.precision=f32", "--out", "no_such_run"];
            let arguments =
                [arguments.as_slice(), &precision[..if arguments[0] == "run" { 4 } else { 2 }]].concat();
            if !Path::new("/dev/nvidiactl").exists() {
                assert_refused(&arguments, driverless);
                assert!(!Path::new("no_such_run").exists());
            }
        } else {
            let how = "expected cpu: this program was built without the feature cuda (--no-default-features)";
            assert_refused(&arguments, &format!("config key {key}, {how}"));
        }
    }
}

#[test]
fn what_a_build_lacks_is_refused_with_the_name_of_the_feature() {
    let url = "redis://127.0.0.1:1/none";
    for (feature, is_on, arguments) in [
        ("cluster", cfg!(feature = "cluster"), &["work", url, "--threads", "2", "--wait", "0"][..]),
        ("cluster", cfg!(feature = "cluster"), &["top", url, "--once"]),
        ("cluster", cfg!(feature = "cluster"), &["run", "--cluster", url]),
        ("http", cfg!(feature = "http"), &["run", "--metrics", "127.0.0.1"]),
        ("http", cfg!(feature = "http"), &["serve", "none"]),
        ("onnx", cfg!(feature = "onnx"), &["export-weights", "none", "--format", "onnx"]),
    ] {
        let line = refusal(vecaz(arguments).current_dir(tempfile::tempdir().expect("a folder").path()));
        let says_so = line.contains(&format!("built without the feature {feature} (--no-default-features)"));
        assert_eq!(says_so, !is_on, "{arguments:?}: {line}");
    }
}
