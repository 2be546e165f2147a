//! The `vecaz` program: reads the command line, runs the subcommand, turns an error into one sentence.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    vecaz::cli::program()
}
