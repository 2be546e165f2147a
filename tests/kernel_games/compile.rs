//! Kernel sources into shared libraries, with the machine's C++ compiler.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vecaz::backend::kernels::device::Program;
use vecaz::backend::kernels::source::FILES;

/// No contraction: the results are to be those of Rust to the bit.
const FLAGS: [&str; 5] = ["-std=c++17", "-O2", "-ffp-contract=off", "-fPIC", "-shared"];

/// What stands below every program's source.
const BELOW: &str = concat!(include_str!("entry.cpp"), include_str!("launch.cpp"));

/// The library that a program of batch kernels is, with the functions of entry.cpp and launch.cpp.
pub fn program(program: &Program) -> libloading::Library {
    library(&program.game, &(program.source.clone() + BELOW), &program.defines)
}

/// The library that `source` is under these constants, built once and kept for as long as nothing changes. `name` tells
/// people what it is.
pub fn library(name: &str, source: &str, defines: &[(String, String)]) -> libloading::Library {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let mut hasher = DefaultHasher::new();
    (FILES, FLAGS, &compiler, source, defines).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{name}-{:016x}.so", hasher.finish()));
    if !path.exists() {
        build(&compiler, name, source, defines, &path);
    }
    // SAFETY: the library was compiled from sources here; loading it runs no code of theirs.
    unsafe { libloading::Library::new(&path) }.unwrap_or_else(|e| panic!("loading {}: {e}", path.display()))
}

fn build(compiler: &str, name: &str, source: &str, defines: &[(String, String)], path: &Path) {
    let unfinished = tempfile::Builder::new()
        .prefix(name)
        .suffix(".so")
        .tempfile_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("a file for the library")
        .into_temp_path();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(compiler);
    command
        .args(FLAGS)
        .args(defines.iter().map(|(name, value)| format!("-D{name}={value}")))
        .arg("-I")
        .arg(root.join("kernels"))
        .args(["-x", "c++", "-", "-o"])
        .arg(unfinished.as_os_str())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("running the C++ compiler {compiler}: {e}"));
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(source.as_bytes()).expect("the compiler reads its input");
    drop(input);
    let output = child.wait_with_output().expect("the compiler ends");
    assert!(output.status.success(), "compiling {name}: {}", String::from_utf8_lossy(&output.stderr));
    unfinished.persist(path).expect("the library in its place");
}
