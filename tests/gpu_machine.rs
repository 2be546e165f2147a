//! `benches/gpu_machine.sh` without a GPU: what it leaves where no part can run, what it shows where all have run, and its limits.
//! Benchmarks and other tests are no executables of this test, so scripts stand in for them; `pack` tries out the real ones.
#![cfg(unix)]

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;
use tempfile::TempDir;
use vecaz::device::kernel_times::KernelTime;
use vecaz::report::scaling_rows::ScalingRow;

const VERBS: [&str; 3] = ["first", "rates", "deep"];
const TESTS: [&str; 3] = [
    "self_play_is_the_same_with_many_rows_and_constant_outputs",
    "another_parity_test",
    "the_networks_kernels_are_candle_within_their_rounding",
];
const PROGRAMS: [&str; 5] =
    ["cuda_parity", "device_candle", "device_forward", "device_games", "device_train"];
const PEERS: [&str; 3] = ["mctx_search.py", "pgx_random_play.py", "torch_resnet.py"];

/// Does what the files beside it say: NAME.log is printed, and NAME.json, NAME.csv and NAME.metrics go where the options name. Of searches,
/// NAME.json has one row, which is repeated for the game, network, S and each N that the options name.
const PROGRAM: &str = "#!/usr/bin/env python3
import json, os, shutil, sys
options = dict(zip(sys.argv[1:], sys.argv[2:]))
if '--json' in options:
    rows = json.load(open(__file__ + '.json'))
    if '--games' in options:
        work = {'game': options['--game'], 'net': options['--net'], 'sims': int(options['--sims'])}
        rows = [{**rows[0], **work, 'games': int(games)} for games in options['--games'].split(',')]
    json.dump(rows, open(options['--json'], 'w'))
if '--log-file' in options:
    shutil.copy(__file__ + '.csv', options['--log-file'])
if '--out' in options:
    os.makedirs(options['--out'])
    shutil.copy(__file__ + '.metrics', options['--out'] + '/metrics.jsonl')
print(open(__file__ + '.log').read())
";

/// False, said loudly, where the machine lacks what the scripts need.
fn has_tools() -> bool {
    let missing: Vec<&str> = ["bash", "python3"]
        .into_iter()
        .filter(|tool| !Command::new(tool).arg("--version").output().is_ok_and(|out| out.status.success()))
        .collect();
    if !missing.is_empty() {
        eprintln!("##### SKIPPED: benches/gpu_machine.sh is not tested, since there is no {missing:?} #####");
    }
    missing.is_empty()
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(path)
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

/// What a pack unpacks to, without programs.
fn unpacked() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let scripts = folder.path().join("gpu_machine");
    fs::create_dir(&scripts).expect("created");
    for entry in fs::read_dir(source("gpu_machine")).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "py") {
            fs::copy(&path, scripts.join(path.file_name().expect("named"))).expect("copied");
        }
    }
    fs::write(folder.path().join("tests"), TESTS.join("\n")).expect("written");
    fs::write(folder.path().join("commit"), "0123456789abcdef\n").expect("written");
    folder
}

/// Packs `files` and runs `verb` with `more` arguments as on the other machine: exit code, page, results.
fn run(files: &Path, verb: &str, more: &[&str], path: Option<&Path>) -> (Option<i32>, String, Value) {
    let pack = tempfile::tempdir().expect("a folder");
    let script = pack.path().join("gpu_machine.sh");
    fs::copy(source("gpu_machine.sh"), &script).expect("copied");
    let archive = pack.path().join("pack.tar.xz");
    let mut packing = Command::new("python3");
    let packed =
        packing.args(["-m", "tarfile", "--create"]).arg(&archive).arg(".").current_dir(files).status();
    assert!(packed.expect("runs").success());
    let out = pack.path().join("out");
    let mut command = Command::new("bash");
    command.arg(&script).arg(verb).arg(&out).args(more);
    // A GPU of this machine is not there for the parts.
    command.env("CUDA_VISIBLE_DEVICES", "").env_remove("VECAZ_KERNELS");
    if let Some(first) = path {
        command.env("PATH", format!("{}:{}", first.display(), std::env::var("PATH").unwrap_or_default()));
    }
    let Output { status, stderr, .. } = command.output().expect("runs");
    let mut left: Vec<_> =
        fs::read_dir(&out).expect("results").map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["logs.tar.gz", "page.md", "results.json"], "{}", String::from_utf8_lossy(&stderr));
    let page = fs::read_to_string(out.join("page.md")).expect("a page");
    let results = fs::read(out.join("results.json")).expect("results");
    (status.code(), page, serde_json::from_slice(&results).expect("JSON"))
}

fn parts(results: &Value) -> &[Value] {
    results["parts"].as_array().expect("parts")
}

#[test]
fn without_a_gpu_every_part_fails_at_once_with_its_reason() {
    if !has_tools() {
        return;
    }
    let files = unpacked();
    symlink(env!("CARGO_BIN_EXE_vecaz"), files.path().join("vecaz")).expect("linked");
    for name in PROGRAMS {
        let program = "#!/bin/sh\nexec \"$(dirname \"$0\")/vecaz\" bench-scaling --device cuda --net uniform --games 1\n";
        write_script(&files.path().join(name), program);
    }
    for path in ["pgx_random_play.py", "peers/mctx_search.py", "peers/torch_resnet.py"] {
        let name = Path::new(path).file_name().expect("named");
        fs::copy(source(path), files.path().join(name)).expect("copied");
    }
    for verb in VERBS {
        let began = Instant::now();
        let (code, page, results) = run(files.path(), verb, &[], None);
        assert!(began.elapsed().as_secs() < 120, "{verb} takes {:?}", began.elapsed());
        assert_eq!(code, Some(1), "{page}");
        let mut stopped = 0;
        for part in parts(&results) {
            let (name, reason) =
                (part["name"].as_str().expect("a name"), part["reason"].as_str().unwrap_or(""));
            assert!(page.contains(&format!("| {name} |")), "{name}: {page}");
            if name == "libraries" {
                continue; // the driver may be there
            }
            assert_ne!(part["exit"], 0, "{name}: {page}");
            assert!(!reason.is_empty(), "{name}: {page}");
            stopped += usize::from(reason == "not run, since both parity tests failed");
            let program = part["command"].as_str().expect("a command").split(' ').next().unwrap_or("");
            if part["exit"] == 1 && (program == "vecaz" || PROGRAMS.contains(&program)) {
                assert!(reason.starts_with("error: device cuda:0: "), "{name}: {reason}");
            }
        }
        // The search row, the forward, the other parity test and random play come after the gate.
        assert_eq!(stopped, if verb == "first" { 5 } else { 0 }, "{page}");
        assert!(page.contains("Not measured."), "{page}");
    }
}

/// What the programs print or write, each with its name and the ending of its file.
fn measurements() -> [(&'static str, &'static str, String); 9] {
    let kernel = |kernel: &str, seconds| KernelTime { kernel: kernel.into(), launches: 10, seconds };
    let row = ScalingRow {
        path: "a path".into(),
        simulations_per_second: 4_321_000.0,
        moves_per_second: 900.0,
        device_busy: Some(0.97),
        kernels: vec![kernel("light", 0.25), kernel("heavy", 0.75)],
        ..ScalingRow::default()
    };
    let train = json!({
        "game": "connect_four", "net": "6x128", "precision": "bf16", "batch": 2048, "updates_per_second": 180.0, "busy": 0.9,
        "kernels": [kernel("linear", 0.5)],
    });
    let forward = |by: &str, tflops: f64| {
        json!({
            "network": "6x128", "tensor_cores": by, "slots": 4096, "positions_per_second": 1e6, "tflops": tflops,
            "tflops_on_board": 350.0,
        })
    };
    let forward = format!("{}\n{}", forward("wgmma", 450.0), forward("mma", 150.0));
    let failed = json!({ "network": "2x32", "slots": 1024, "error": "it does not compile" });
    let peaks = json!({ "mma_tflops": 900.0, "gemm_bf16_error": "no cuBLAS" });
    let play = json!([{ "game": "go", "settings": "size = 19", "slots": 65536, "plies_per_second": 2e9 }]);
    let pgx = json!([{ "game": "go", "settings": "size = 19", "slots": 65536, "plies_per_second": 1e7 }]);
    let mctx = ["2x32", "6x128"].map(|net| {
        json!({
            "game": "connect_four", "net": net, "games": 4096, "sims": 200, "simulations_per_second": 1e6,
            "mean_depth": 3.0,
        })
    });
    let mctx = format!("{}\n{}", mctx[0], mctx[1]);
    let torch = |mode: &str, rate: f64| {
        let mut row = train.clone();
        row["mode"] = mode.into();
        row["updates_per_second"] = rate.into();
        row
    };
    let torch = [torch("eager", 60.0), torch("compiled", 90.0)].map(|row| row.to_string()).join("\n");
    let candle = json!({
        "network": "6x128", "slots": 4096, "element_type": "tf32", "positions_per_second": 3e6,
        "candle_f32_positions_per_second": 1e6, "ratio": 3.0, "logits_differ": 0.001, "values_differ": 0.0005, "at_most": 0.002,
    });
    let epoch = json!({
        "seconds": 90.0, "epoch": 4, "games_per_second": 1000.0, "simulations_per_second": 1e6,
        "strength": { "search_outcome_error": 0.05, "policy_outcome_error": 0.2 },
    });
    [
        ("vecaz", ".json", serde_json::to_string(&[row]).expect("JSON")),
        ("vecaz", ".metrics", epoch.to_string()),
        ("device_candle", ".log", candle.to_string()),
        ("device_forward", ".log", format!("{forward}\n{failed}\n{peaks}")),
        ("device_train", ".log", train.to_string()),
        ("device_games", ".json", play.to_string()),
        ("pgx_random_play.py", ".json", pgx.to_string()),
        ("mctx_search.py", ".log", mctx),
        ("torch_resnet.py", ".log", torch),
    ]
}

/// A folder whose programs print rows such as the real ones measure, and one of NVIDIA's profilers.
fn measured() -> (TempDir, TempDir) {
    let (files, tools) = (unpacked(), tempfile::tempdir().expect("a folder"));
    let at = |name: &str, kind: &str| files.path().join(format!("{name}{kind}"));
    let profile = "noise\n\"ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n\
                   \"0\",\"heavy\",\"Speed\",\"Duration\",\"us\",\"12.5\"\n";
    for name in PROGRAMS.into_iter().chain(PEERS).chain(["vecaz"]) {
        write_script(&at(name, ""), PROGRAM);
        fs::write(at(name, ".log"), "ok\n").expect("written");
    }
    for (name, kind, text) in measurements() {
        fs::write(at(name, kind), text).expect("written");
    }
    for name in ["ncu", "compute-sanitizer"] {
        write_script(&tools.path().join(name), PROGRAM);
        fs::write(tools.path().join(format!("{name}.log")), "ok\n").expect("written");
        fs::write(tools.path().join(format!("{name}.csv")), profile).expect("written");
    }
    (files, tools)
}

#[test]
fn what_was_measured_is_on_the_page() {
    if !has_tools() {
        return;
    }
    let (files, tools) = measured();
    let shown: [&[&str]; 3] = [
        &[
            "| connect_four | uniform, a path | 4096 | 800 | 4.321 | 900 |",
            "| 6x128 | wgmma | 4096 | 1000000 | 450.0 | - | - | 50 |",
            "cuBLAS, bf16: no cuBLAS; mma.sync: 900 TFLOP/s",
            "Failed: 2x32, 1024: it does not compile",
            "S = 800 | million simulations/s | 4.32 | at least 100 | **no** | 60 to 110 | 13.89 times below, why? |",
            "wgmma | TFLOP/s | 450 | - | - | 420 to 520 | within |",
            "| forward 6x128, bf16, N = 32,768 | % of cuBLAS's peak | not measured | at least 60 | - | - | - |",
            "| go | size = 19 | 65536 | 2.000e+09 | 1.000e+07 | 200.0 |",
            "with the least | times pgx | 200 | at least 5 | yes | - | - |",
        ],
        &[
            "10.0 games/s",
            "| games/s | 10 | at least 100 | **no** | - | - |",
            "| copied within a move, all searches | bytes | 0 | at most 0 | yes | - | - |",
            "| connect_four | 6x128 | 4096 | 200 | 4321000 | 1000000 | 4.3 |",
            "| 6x128 | bf16 | 2048 | 180.0 | 90 | 60.0 | 90.0 | 2.00 |",
            "| 6x128 | 4096 | tf32 | 3000000 | 1000000 | 3.0 | 1.0e-03 | 5.0e-04 | 2.0e-03 |",
            "| the same | times mctx | 4.32 | at least 3 | yes | 2 to 3 | 1.44 times above |",
            "| the same | times PyTorch's best | 2 | at least 1 | yes | - | - |",
            "S = 64 | % | 97 | at least 95 | yes | 80 to 90 | 1.08 times above |",
        ],
        &[
            "| connect_four | 6x128 | 4096 | heavy | 10 | 75000.0 | 75 |",
            "| heavy | 12.5 us |",
            "| 1.50 | 4 | 1000 | 1000000 | 5.0 | 20.0 |",
            "| % outcome error of search | 5 | at most 2 | **no** | - | - |",
        ],
    ];
    // The stand-in has no cuBLAS.
    for ((verb, shown), not_measured) in VERBS.into_iter().zip(shown).zip([1, 0, 0]) {
        let (_, page, results) = run(files.path(), verb, &[], Some(tools.path()));
        for part in parts(&results) {
            assert!(part["exit"] == 0 || part["name"] == "libraries", "{part}");
        }
        for line in shown {
            assert!(page.contains(line), "{line} is not on the page: {page}");
        }
        assert_eq!(page.matches("not measured").count(), not_measured, "{page}");
        assert!(!page.contains("not shown") && !page.contains("Not run"), "{page}");
        // The profiled kernels are those that took the most time.
        let profiled = parts(&results).iter().filter(|part| part["name"].as_str() == Some("ncu-2"));
        profiled
            .for_each(|part| assert!(part["command"].to_string().contains("--kernel-name heavy"), "{part}"));
    }
}

/// Runs Python with the scripts' folder in its path, and `packages` after it.
fn python(program: &str, packages: &Path) -> String {
    let mut command = Command::new("python3");
    let path = format!("{}:{}", source("gpu_machine").display(), packages.display());
    command.args(["-B", "-c", program]).env("PYTHONPATH", path).env_remove("LD_LIBRARY_PATH");
    let Output { status, stdout, stderr } = command.output().expect("runs");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("UTF-8")
}

#[test]
fn no_verb_can_outlast_its_call() {
    if !has_tools() {
        return;
    }
    let limits = python(
        "import parts\nfor verb in parts.VERBS.values(): print(verb(['t', *parts.GATE_TESTS]).seconds, parts.CALL_SECONDS)",
        Path::new(""),
    );
    assert_eq!(limits.lines().count(), VERBS.len());
    for line in limits.lines() {
        let (limit, call) = line.split_once(' ').expect("two numbers");
        let (limit, call): (u32, u32) = (limit.parse().expect("a number"), call.parse().expect("a number"));
        assert!(limit <= call && call <= 540, "{line}");
    }
}

#[test]
fn a_part_that_does_not_end_is_ended() {
    if !has_tools() {
        return;
    }
    // One that ends when it is asked to, and one that does not and has a child.
    for (seconds, command) in [(3.0, "sleep 60"), (3.0, "trap '' TERM; sleep 60 & wait; sleep 60; wait")] {
        let began = Instant::now();
        let program = format!(
            "import os, parts, run, tempfile, time\n\
             part = parts.Part('slow', 3, ())\n\
             process = run.Process(part, ('sh', '-c', \"{command}\"), {seconds}, tempfile.mkdtemp(), dict(os.environ))\n\
             while not process.poll(): time.sleep(0.02)\n\
             print(process.exit, process.terminated)"
        );
        let exit = python(&program, Path::new(""));
        assert!(exit.starts_with('-') && exit.trim_end().ends_with("True"), "{command}: {exit}");
        assert!(began.elapsed().as_secs_f64() < seconds + 2.0, "{command}: {:?}", began.elapsed());
    }
}

#[test]
fn a_library_is_one_file_by_each_of_its_names() {
    if !has_tools() {
        return;
    }
    let packages = tempfile::tempdir().expect("a folder");
    // The first folder lacks a part of cuBLAS, so all of cuBLAS comes from the second.
    for (folder, names) in [
        ("nvidia/cu13/lib", &["libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libcublas.so.13"][..]),
        ("nvidia/other/lib", &["libcublas.so.13", "libcublasLt.so.13", "libnvrtc.so.13"][..]),
    ] {
        let folder = packages.path().join(folder);
        fs::create_dir_all(&folder).expect("created");
        names.iter().for_each(|name| fs::write(folder.join(name), name).expect("written"));
    }
    let links = packages.path().join("links");
    let path = python(
        &format!("import libraries; print(libraries.library_path('{}'))", links.display()),
        packages.path(),
    );
    assert!(path.starts_with(&format!("{}:", links.display())), "{path}");
    for (link, target) in [
        ("libnvrtc.so", "nvidia/cu13/lib/libnvrtc.so.13"),
        ("libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc.so.13"),
        ("libnvrtc-builtins.so.13.0", "nvidia/cu13/lib/libnvrtc-builtins.so.13.0"),
        ("libcublas.so", "nvidia/other/lib/libcublas.so.13"),
        ("libcublas.so.13", "nvidia/other/lib/libcublas.so.13"),
        ("libcublasLt.so", "nvidia/other/lib/libcublasLt.so.13"),
    ] {
        assert_eq!(fs::read_link(links.join(link)).expect(link), packages.path().join(target), "{link}");
    }
}

#[test]
fn chosen_parts_run_alone_and_in_their_order() {
    if !has_tools() {
        return;
    }
    let (files, tools) = measured();
    let chosen = ["train", "search-6x6*", "parity-another*", "--seconds", "300"];
    let (code, page, results) = run(files.path(), "parts", &chosen, Some(tools.path()));
    assert_eq!(code, Some(0), "{page}");
    let names: Vec<&str> =
        parts(&results).iter().map(|part| part["name"].as_str().expect("a name")).collect();
    assert_eq!(
        names,
        ["train", "search-6x64-64", "search-6x64-800", "search-6x64", "parity-another_parity_test"]
    );
    // What was not measured is left out.
    assert!(page.contains("## Training beside PyTorch") && page.contains("updates/s | 180 |"), "{page}");
    assert!(!page.contains("Not measured") && !page.contains("not measured"), "{page}");
    for (chosen, said) in [
        (&["no_such_part"] as &[&str], "no part is named no_such_part; there are candle, forward"),
        (&[], "parts are named after `parts OUT`, and there alone"),
        (&["train", "--seconds", "900"], "--seconds is at most 540"),
    ] {
        let script = files.path().join("gpu_machine/run.py");
        let out = files.path().join("out");
        let refused =
            Command::new("python3").arg(script).arg("parts").arg(out).args(chosen).output().expect("runs");
        assert_eq!(refused.status.code(), Some(2));
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(text.contains(said), "{text}");
    }
}
