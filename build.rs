//! Puts two things into the program: the git commit, where there is one, so that figures name the code they were measured on; and
//! every file under `configs/`, by its name.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_string())
}

/// Writes `configs.rs`: a list of (name, text) of every `configs/<name>.toml`, sorted by name.
fn list_configs() -> std::io::Result<()> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("configs");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut paths: Vec<_> = fs::read_dir(&folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let entry = |path: &Path| {
        format!(
            "    ({:?}, include_str!({path:?})),\n",
            path.file_stem().unwrap_or_default().to_string_lossy()
        )
    };
    let entries: String = paths.iter().map(|path| entry(path)).collect();
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("configs.rs");
    fs::write(out, format!("&[\n{entries}]\n"))
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    list_configs().expect("configs/ is readable and OUT_DIR writable");
    let branch = git(&["rev-parse", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    // A path that does not exist would have the crate built anew every time.
    for name in ["HEAD", &branch, "packed-refs"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).is_file()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(|| "unknown".to_string());
    println!("cargo:rustc-env=VECAZ_COMMIT={commit}");
}
