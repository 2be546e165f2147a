//! `VECAZ_KERNELS`: kernel sources of a folder instead of those in the program. Each case is this test in a process of its own, since
//! the variable holds for a whole process.

use super::COMPILER;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;
use vecaz::batch::programs::program;
use vecaz::config::DeviceName;
use vecaz::device::cuda::code_for;
use vecaz::device::source::FOLDER_VARIABLE;
use vecaz::registry::any_game;

const NAME: &str = "sources::kernels_are_compiled_from_the_folder_that_the_variable_names";

#[test]
fn kernels_are_compiled_from_the_folder_that_the_variable_names() {
    if std::env::var_os(FOLDER_VARIABLE).is_some() {
        LazyLock::force(&COMPILER);
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("a game");
        let program = program(game.as_ref(), "batch").expect("kernels");
        let code = || code_for(&program, DeviceName::Cuda(0), 90, None);
        println!("{:?}", code().and_then(|_| code()).map(drop).map_err(|error| error.to_string()));
        return;
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let (stdout, stderr) = compiled_from(&own);
    assert!(stdout.contains("Ok(())"), "{stdout}{stderr}");
    let loud = format!(
        "##### VECAZ_KERNELS: kernels are compiled from {}, not from the sources in this program #####",
        own.display()
    );
    assert_eq!(stderr.lines().filter(|line| *line == loud).count(), 1, "{stderr}");

    let (stdout, stderr) = compiled_from(&own.join("nowhere"));
    assert!(stdout.contains("Err(\"VECAZ_KERNELS: reading the kernel sources "), "{stdout}{stderr}");
}

/// Output and errors of this test with the variable set.
fn compiled_from(folder: &Path) -> (String, String) {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command.args(["--exact", NAME, "--nocapture"]).env(FOLDER_VARIABLE, folder);
    let Output { status, stdout, stderr } = command.output().expect("runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(status.success(), "{stdout}{stderr}");
    (stdout, stderr)
}
