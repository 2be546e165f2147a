//! The laws that every game must keep, checked by random play: what search, training and checkpoints rely on.
//!
//! A game of one's own is checked in a test of its crate:
//!
//! ```
//! use vecaz::game::tic_tac_toe::TicTacToe;
//!
//! vecaz::contract::check::<TicTacToe>().unwrap();
//! ```

mod broken_law; // the error
mod check; // one game against all laws
mod history; // the laws of games whose rules look at earlier positions
mod law; // how a law says whether it holds
mod laws; // one function per law
mod looks; // those of a game's look
mod names; // the law of names that people type
mod players;
mod points; // the law of actions at the points of a board
mod targets; // the law of a game's own targets of training
mod trail; // the actions that lead to a broken law
mod walk; // random play

pub use broken_law::BrokenLaw;
pub use check::{check, check_game};
