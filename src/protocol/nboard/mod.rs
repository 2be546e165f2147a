//! The protocol of NBoard (version 2), for Othello.

mod ggf; // games in the Generic Game Format
mod session; // the commands

pub use session::NBoard;
