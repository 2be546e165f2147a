//! Records of games that other programs read: SGF for Go, Hex, Gomoku and Othello, PGN for chess.
//!
//! Input: a game in progress or finished, and the names of its players. Output: text. Knows no search and no network.

mod format; // which format a game has
mod pgn; // Portable Game Notation
mod players; // who played
mod sgf; // Smart Game Format 4

pub use format::Format;
pub use players::Players;
