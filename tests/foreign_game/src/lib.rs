//! Two games that vecaz does not have: Chomp for two players, and Pig for one player with dice.

mod chomp;
mod pig;

pub use chomp::Chomp;
pub use pig::Pig;

use vecaz::registry::Registry;

/// The built-in games and those of this crate.
///
/// # Errors
/// A name that two games have.
pub fn registry() -> vecaz::Result<Registry> {
    Registry::built_in().with::<Pig>()?.with::<Chomp>()
}
