//! The protocols by which programs of players speak with an engine: GTP, UCI, Gomocup, NBoard, and JSON lines.
//!
//! [`dialogue::converse`] reads lines, gives them to a [`dialogue::Protocol`], and tells it what the search found; a search runs beside the
//! dialogue on a thread of its own ([`player`]), so that every protocol can stop it at any moment. A protocol knows its own texts, clocks
//! and coordinates; rules and search are those of the engine.

pub mod clock; // the time of a move
mod delays; // how late moves are on the client's clock
pub mod position; // the position of a dialogue
pub mod restriction; // moves that a client allows or forbids
pub mod player; // the engine on a thread of its own
pub mod dialogue; // lines in, lines out, searches beside them
pub mod gtp; // Go, Hex, Gomoku
pub mod uci; // chess
pub mod gomocup; // Gomoku
pub mod nboard; // Othello
pub mod json; // every game
pub mod choice; // the protocols by name and by game
pub mod strength; // how strongly another program is to play
