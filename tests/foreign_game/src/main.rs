//! The whole program for two games that vecaz does not have: Chomp for two players, and Pig for one player with dice.

mod chomp;
mod pig;
#[cfg(test)]
mod templates;

use std::process::ExitCode;
use vecaz::registry::Registry;

fn main() -> ExitCode {
    vecaz::cli::program_with(Registry::built_in().with::<pig::Pig>().and_then(Registry::with::<chomp::Chomp>))
}

/// The games that `vecaz new` writes keep the laws.
#[test]
fn the_laws_hold_for_templates() {
    vecaz::contract::check::<templates::board::Rules>().unwrap();
    vecaz::contract::check::<templates::dice::Rules>().unwrap();
    vecaz::contract::check::<templates::cards::Rules>().unwrap();
    vecaz::contract::check::<templates::solo::Rules>().unwrap();
}

#[test]
fn the_laws_hold() {
    vecaz::contract::check::<chomp::Chomp>().unwrap();
    vecaz::contract::check::<pig::Pig>().unwrap();
}
