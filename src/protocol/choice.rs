//! The protocols by name, and the one that the clients of a game speak.

use super::dialogue::{Dialogue, Protocol};
use super::gomocup::Gomocup;
use super::gtp::Gtp;
use super::json::Json;
use super::nboard::NBoard;
use super::uci::Uci;
use crate::error::Result;
use clap::ValueEnum;

/// A protocol. The command line takes it by its name, and shows what stands above each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolName {
    /// Go Text Protocol 2: Go, Hex, Gomoku
    Gtp,
    /// Universal Chess Interface
    Uci,
    /// Gomocup's managers, Piskvork: Gomoku
    Gomocup,
    /// NBoard: Othello
    #[value(name = "nboard")]
    NBoard,
    /// Lines of JSON with the fields of KataGo's analysis engine: every game
    Json,
}

impl ProtocolName {
    /// The protocol of most clients of `game`.
    pub fn of_game(game: &str) -> Self {
        match game {
            "go" | "hex" => Self::Gtp,
            "chess" => Self::Uci,
            "gomoku" => Self::Gomocup,
            "othello" => Self::NBoard,
            _ => Self::Json,
        }
    }

    /// The engine's side of the protocol for the game of `dialogue`.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for a game that the protocol does not have.
    pub fn make(self, dialogue: &mut Dialogue) -> Result<Box<dyn Protocol>> {
        Ok(match self {
            Self::Gtp => Box::new(Gtp::new(dialogue)?),
            Self::Uci => Box::new(Uci::new(dialogue)?),
            Self::Gomocup => Box::new(Gomocup::new(dialogue)?),
            Self::NBoard => Box::new(NBoard::new(dialogue)?),
            Self::Json => Box::new(Json::default()),
        })
    }
}
