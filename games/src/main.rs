//! The program of vecaz with the games of this crate beside the built-in ones.

use std::process::ExitCode;

fn main() -> ExitCode {
    vecaz::cli::program_with(vecaz_games::registry())
}
