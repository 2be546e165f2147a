//! Games as text files that people and other programs read and write: vecaz's own JSON for every game, SGF (Smart Game Format 4) for Go,
//! Gomoku, Othello and Hex, PGN and FEN for chess, the text of backgammon matches (`.mat`).
//!
//! Input: a game in progress, or a text. Output: a text, or the game with its actions. A game may begin at a position that was set
//! up: `placed` in JSON, `AB`, `AW` and `PL` in SGF, FEN in PGN. Knows no network.

mod players; // what a record says of the players
mod json; // vecaz's own
mod sgf_tree; // properties of SGF's main line
mod sgf; // Smart Game Format
mod pgn; // Portable Game Notation, and FEN
mod match_turn; // one turn of a match
mod match_text; // matches of backgammon
mod format; // which game has which format

pub use format::{Format, read};
pub use players::Players;
