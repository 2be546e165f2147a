//! Games outside of vecaz, written with its public interface alone. Each is one module; [`registry`] has them beside the built-in ones.

pub mod breakthrough;
pub mod dots_and_boxes;
pub mod quoridor;
pub mod twenty_forty_eight;
pub mod ultimate_tic_tac_toe;

use vecaz::Result;
use vecaz::registry::Registry;

/// The built-in games of vecaz and those of this crate.
///
/// # Errors
/// [`vecaz::Error::Config`] if two games have one name.
pub fn registry() -> Result<Registry> {
    Registry::built_in()
        .with::<twenty_forty_eight::TwentyFortyEight>()?
        .with::<ultimate_tic_tac_toe::UltimateTicTacToe>()?
        .with::<quoridor::Quoridor>()?
        .with::<dots_and_boxes::DotsAndBoxes>()?
        .with::<breakthrough::Breakthrough>()
}
