//! The whole program for the games of this crate, beside the built-in ones.

use std::process::ExitCode;

fn main() -> ExitCode {
    match foreign_game::registry() {
        Ok(registry) => vecaz::cli::program_with(registry),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
