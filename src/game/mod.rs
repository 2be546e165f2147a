//! The trait of games, and the ten built-in games.
//!
//! Input: options from the configuration, states and actions. Output: rules, observations, symmetries, names. Independent of batches,
//! trees, networks and training. Rules are scalar and pure; [`crate::batch`] applies them to N games.
//!
//! A game of one's own is a type outside of this crate that implements [`Game`], added to a [`crate::registry::Registry`]. A new
//! built-in game is one file here, its `pub mod`, its type in the macro `for_each_built_in`, and one file under `configs/`.

mod built_in; // the list of the built-in games
mod description; // a view with its actions
mod result; // who won, in words
mod rules; // the trait of games
pub mod set_up; // positions that people set up
mod settings; // a game's settings
mod sizes; // the sizes that fix every array, and targets of training
mod solver; // exact solvers
mod source; // texts that come with a game
mod tally; // what people count besides points
mod valuation; // values by what a network predicts of the end
mod whole_turns; // the positions of whole turns
pub mod view; // the look of a position as data

pub mod board; // cell sets, symmetries and coordinates of square boards
pub mod tic_tac_toe;
pub mod connect_four;
pub mod othello;
pub mod hex;
pub mod gomoku;
pub mod go;
pub mod chess;
pub mod clique;
pub mod backgammon;
pub mod blob;

#[cfg(test)]
pub(crate) use built_in::check_device_header;
pub(crate) use built_in::for_each_built_in;
pub use description::{describe, is_known};
pub use result::{result_text, winners, without_minus_zero};
#[cfg(test)]
pub(crate) use rules::device_constants;
pub use rules::{Game, History, MAX_PLAYERS, Turn};
pub use settings::{options_by_section, parse_options, to_options};
pub use sizes::{
    MAX_TARGET_LEN, ObsShape, PointActions, PointOrder, Sizes, Target, TargetKind, TargetShape, ownership,
};
pub use solver::{ExactSolver, PositionSolver};
pub use source::{CudaSource, NamedText};
pub(crate) use source::{configs, embedded_cuda_source};
pub use tally::{TallyCell, TallyTable};
pub use valuation::Valuation;
pub use whole_turns::{Duplicates, MAX_TURN_POSITIONS, TurnPly, WholeTurn, WholeTurns};

#[cfg(test)]
mod tests;
