//! The whole program for two games that vecaz does not have: Chomp for two players, and Pig for one player with dice.

mod chomp;
mod pig;

use std::process::ExitCode;
use vecaz::registry::Registry;

fn main() -> ExitCode {
    vecaz::cli::program_with(Registry::built_in().with::<pig::Pig>().and_then(Registry::with::<chomp::Chomp>))
}
