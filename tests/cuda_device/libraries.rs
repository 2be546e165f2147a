//! Drivers that cannot be used: files that are no library, and libraries that are no driver.

use std::path::Path;
use std::process::Command;
use vecaz::device::cuda::DRIVER_FUNCTIONS;

/// The message of the program where `libcuda.so.1` is the file that `make` writes.
fn refused_driver(make: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    make(&folder.path().join("libcuda.so.1"));
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
    command
        .args(["bench-scaling", "--device", "cuda", "--net", "uniform"])
        .env("LD_LIBRARY_PATH", folder.path());
    let output = command.output().expect("runs");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    text.replace(&folder.path().display().to_string(), "FOLDER")
}

#[test]
fn a_driver_that_is_a_stub_empty_or_foreign_is_refused_with_the_reason() {
    let stub = |path: &Path| {
        let source = path.with_file_name("stub.c");
        std::fs::write(&source, "int x;").expect("written");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let made = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(path).arg(source).status();
        assert!(made.expect("a C compiler").success());
    };
    assert_eq!(
        refused_driver(stub),
        "error: device cuda:0: there is no NVIDIA driver on this machine (libcuda.so.1 is not NVIDIA's: it has no function \
         cuDriverGetVersion); use --device cpu\n"
    );
    let write = |content: &'static str| move |path: &Path| std::fs::write(path, content).expect("written");
    for (content, reason) in
        [("", "FOLDER/libcuda.so.1: file too short"), ("<html>".repeat(20).leak(), "invalid ELF header")]
    {
        let text = refused_driver(write(content));
        assert!(text.contains("(libcuda.so.1 cannot be loaded: ") && text.contains(reason), "{text}");
    }
}

/// The stand-in has every function that the tests of the device call, so a function that the list lacks is in the stand-in alone.
#[test]
fn the_functions_that_are_checked_are_those_of_the_stand_in() {
    let text = include_str!("driver.c");
    let mut defined: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("int cu"))
        .filter_map(|rest| rest.split_once('(').map(|(name, _)| name))
        .collect();
    let mut checked: Vec<&str> = DRIVER_FUNCTIONS
        .split_whitespace()
        .chain(["cuDriverGetVersion"])
        .filter_map(|name| name.strip_prefix("cu"))
        .collect();
    defined.sort_unstable();
    checked.sort_unstable();
    assert_eq!(defined, checked);
}
