//! Puts two things into the program: the git commit, where there is one, so that figures name the code they were measured on, and every
//! kernel source under `kernels/` by its path.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_string())
}

/// Every file under `folder` with one of these extensions, and the folders inside.
fn files_under(folder: &Path, extensions: &[&str]) -> io::Result<Vec<PathBuf>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            files.extend(files_under(&path, extensions)?);
        } else if extensions.contains(&&*extension) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Writes `kernels.rs`: a list of (name, text) of every kernel source, sorted by name.
fn embed_kernels() -> io::Result<()> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("kernels");
    let mut files: Vec<_> = files_under(&folder, &["cu", "cuh"])?
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&folder).expect("a file under the folder");
            (name.to_string_lossy().replace('\\', "/"), path)
        })
        .collect();
    files.sort();
    let entry = |(name, path): &(String, PathBuf)| format!("    ({name:?}, include_str!({path:?})),\n");
    let entries: String = files.iter().map(entry).collect();
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("kernels.rs");
    fs::write(out, format!("&[\n{entries}]\n"))
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    embed_kernels().expect("kernels/ is readable and OUT_DIR writable");
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
