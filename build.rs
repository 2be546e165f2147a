//! Puts the git commit, where there is one, into the program: figures name the code they were measured on.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=.git/HEAD");
    println!("cargo:rerun-if-changed=.git/refs/heads");
    let output = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output();
    let commit = output
        .ok()
        .filter(|o| o.status.success())
        .and_then(|o| String::from_utf8(o.stdout).ok())
        .map_or_else(|| "unknown".to_string(), |text| text.trim().to_string());
    println!("cargo:rustc-env=VECAZ_COMMIT={commit}");
}
