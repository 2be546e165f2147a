//! The list of the built-in games, and the check of their headers.

#[cfg(test)]
use super::rules::Game;

/// Calls the macro `$callback` with the types of all built-in games, in the order in which they are listed.
macro_rules! for_each_built_in {
    ($callback:ident) => {
        $callback! {
            $crate::game::tic_tac_toe::TicTacToe,
            $crate::game::connect_four::ConnectFour,
            $crate::game::othello::Othello,
            $crate::game::hex::Hex,
            $crate::game::gomoku::Gomoku,
            $crate::game::go::Go,
            $crate::game::chess::Chess,
            $crate::game::clique::Clique,
            $crate::game::backgammon::Backgammon,
            $crate::game::blob::Blob,
        }
    };
}
pub(crate) use for_each_built_in;

/// Fails where the generated header of `G`'s kernels, `kernels/games/<name>_layout.cuh`, does not have `definitions` in the namespace
/// `<name>`; `preamble` declares the other types that they name.
#[cfg(test)]
pub(crate) fn check_device_header<G: Game>(preamble: &str, definitions: &[crate::device_struct::Definition]) {
    let path = format!("games/{}_layout.cuh", G::NAME);
    crate::device_struct::check_header(&path, G::NAME, preamble, definitions);
}
