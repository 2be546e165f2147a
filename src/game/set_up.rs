//! Positions that people set up by placing pieces, and what games of two players' stones check alike.

use super::view::{Board, View};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The number of kinds of pieces that [`PlacedPieces`] can name.
const KINDS: u32 = 36;

/// Pieces placed on the grid of [`Game::view`](super::Game::view).
#[derive(Clone, Copy, Debug)]
pub struct SetUp<'a> {
    /// The index of the piece on each cell in the grid's list of pieces. `[rows * columns]`
    pub cells: &'a [Option<u8>],
    /// The player to move.
    pub player: u8,
}

/// A [`SetUp`] as text, for files and links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacedPieces {
    /// A character for each cell: `.` for none, else the piece's index, 0 to 9 and a to z.
    pub cells: String,
    /// The player to move.
    pub player: u8,
}

impl PlacedPieces {
    /// The pieces of a view, with `player` to move; None for a board that is no grid.
    pub fn of(view: &View, player: u8) -> Option<Self> {
        let Board::Grid(grid) = &view.board else { return None };
        let letter = |cell: &Option<u8>| match cell {
            None => Some('.'),
            Some(piece) => char::from_digit(u32::from(*piece), KINDS),
        };
        Some(Self { cells: grid.cells.iter().map(letter).collect::<Option<_>>()?, player })
    }

    /// The pieces of the cells.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another character.
    pub fn pieces(&self) -> Result<Vec<Option<u8>>> {
        let piece = |letter: char| match letter {
            '.' => Ok(None),
            letter => letter.to_digit(KINDS).map(|piece| Some(piece as u8)).ok_or_else(|| {
                Error::unsupported(
                    "the cells of a position",
                    format!("got {letter:?}, expected ., 0 to 9 or a to z"),
                )
            }),
        };
        self.cells.chars().map(piece).collect()
    }
}

impl SetUp<'_> {
    /// The cells of each of two players, on a board of `num_cells` cells with one kind of piece each. `[P]`
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another number of cells, other pieces and other players.
    pub fn stones(&self, game: &str, num_cells: usize) -> Result<[Vec<usize>; 2]> {
        self.check(game, num_cells, 2)?;
        let of = |piece: u8| (0..num_cells).filter(|&cell| self.cells[cell] == Some(piece)).collect();
        Ok([of(0), of(1)])
    }

    /// Checks the sizes, for a board with `num_pieces` kinds of pieces.
    ///
    /// # Errors
    /// As [`SetUp::stones`].
    pub fn check(&self, game: &str, num_cells: usize, num_pieces: u8) -> Result<()> {
        if self.cells.len() != num_cells {
            let why = format!("it has {} cells, and the board has {num_cells}", self.cells.len());
            return Err(refused(game, why));
        }
        if let Some(piece) = self.cells.iter().flatten().find(|&&piece| piece >= num_pieces) {
            return Err(refused(game, format!("it has piece {piece}, expected 0 to {}", num_pieces - 1)));
        }
        if self.player > 1 {
            return Err(refused(game, format!("player {} is to move, expected 0 or 1", self.player)));
        }
        Ok(())
    }

    /// Checks that the player to move is the one whose turn it is where players put down a stone each in turn, player 0 first.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the numbers of stones.
    pub fn check_turn(&self, game: &str, [first, second]: [usize; 2]) -> Result<()> {
        let expected = match first.checked_sub(second) {
            Some(0) => 0,
            Some(1) => 1,
            _ => {
                let why = format!(
                    "player 0 has {first} and player 1 has {second} on the board, and they put down one each in turn"
                );
                return Err(refused(game, why));
            }
        };
        match self.player == expected {
            true => Ok(()),
            false => {
                let why = format!("with {first} and {second} on the board player {expected} is to move");
                Err(refused(game, why))
            }
        }
    }
}

/// The refusal of a position of `game`.
pub fn refused(game: &str, why: impl Into<String>) -> Error {
    Error::unsupported(format!("this position of {game}"), why)
}
