//! Points, colours and moves of Go, Hex and Gomoku as GTP has them.

use crate::batch::{ErasedRules, Playthrough};
use crate::error::{Error, Result};
use crate::game::view::{Board as Look, Viewer};
use crate::protocol::position::Position;

/// The games of GTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Go: a letter without I and the row from below; passes.
    Go,
    /// Hex as HexGui and MoHex write it: a letter and the row from above; `swap-pieces`.
    Hex,
    /// Gomoku, with the points of Go.
    Gomoku,
}

/// The board of a game.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    /// The game.
    pub kind: Kind,
    /// Rows and columns.
    pub size: u32,
}

/// The player of a colour: 0 is black and begins.
pub fn player_of(colour: &str) -> Option<u8> {
    match colour.to_ascii_lowercase().as_str() {
        "b" | "black" => Some(0),
        "w" | "white" => Some(1),
        _ => None,
    }
}

impl Board {
    /// The board of `game`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another game, and for an opening in which colours are chosen.
    pub fn of(game: &dyn ErasedRules) -> Result<Self> {
        let options = game.options();
        let kind = match game.name() {
            "go" => Kind::Go,
            "hex" => Kind::Hex,
            "gomoku" if options.get("opening").and_then(toml::Value::as_str) == Some("none") => Kind::Gomoku,
            "gomoku" => {
                let why = "it has no command by which a player chooses a colour; set game.opening = \"none\"";
                return Err(Error::unsupported("GTP for Gomoku with the opening swap2", why));
            }
            name => {
                return Err(Error::unsupported(format!("GTP for {name}"), "it is for Go, Hex and Gomoku"));
            }
        };
        let size = options.get("size").and_then(toml::Value::as_integer).unwrap_or_default();
        Ok(Self { kind, size: size as u32 })
    }

    /// The vertex of a legal action.
    pub fn vertex(&self, play: &Playthrough, action: u16) -> String {
        let name = play.game().action_name(play.state(), action);
        match self.kind {
            Kind::Go => name,
            Kind::Hex if name == "swap" => "swap-pieces".into(),
            Kind::Hex => name,
            Kind::Gomoku => self.point(action),
        }
    }

    /// A point as GTP writes it.
    pub fn point(&self, cell: u16) -> String {
        let (row, column) = (u32::from(cell) / self.size, u32::from(cell) % self.size);
        let letter = char::from(b'A' + column as u8 + u8::from(column >= 8));
        format!("{letter}{}", self.size - row)
    }

    /// The cell of a point as GTP writes it.
    pub fn cell(&self, text: &str) -> Option<u16> {
        let mut chars = text.chars();
        let letter = chars.next()?.to_ascii_uppercase();
        if !letter.is_ascii_uppercase() || letter == 'I' {
            return None;
        }
        let column = u32::from(letter) - u32::from('A') - u32::from(letter > 'I');
        let row: u32 = chars.as_str().parse().ok().filter(|row| (1..=self.size).contains(row))?;
        (column < self.size).then(|| ((self.size - row) * self.size + column) as u16)
    }

    /// The legal action that `vertex` names in `play`.
    pub fn find(&self, play: &Playthrough, vertex: &str) -> Option<u16> {
        let legal = || play.legal();
        match self.kind {
            Kind::Gomoku => self.cell(vertex).filter(|cell| legal().contains(cell)),
            Kind::Hex if vertex.eq_ignore_ascii_case("swap-pieces") => play.find("swap"),
            // A number would be read as that of an action.
            Kind::Go | Kind::Hex if vertex.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                play.find(vertex)
            }
            Kind::Go | Kind::Hex => None,
        }
    }

    /// True if `text` can be a vertex on this board.
    pub fn is_vertex(&self, text: &str) -> bool {
        match self.kind {
            Kind::Go => text.eq_ignore_ascii_case("pass") || self.cell(text).is_some(),
            Kind::Gomoku => self.cell(text).is_some(),
            Kind::Hex => text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.len() > 1,
        }
    }

    /// The position with `player` to move. In Go the other one may pass, or a pass may be taken back; after the two passes of the end play
    /// goes on as if they had not been. None in the other games if it is not that player's turn, and where the game is over.
    pub fn turn_of(&self, position: &Position, player: u8) -> Option<Position> {
        if position.player() == Some(player) {
            return Some(position.clone());
        }
        if self.kind != Kind::Go {
            return None;
        }
        let pass = self.pass();
        let passes = position.actions().iter().rev().take_while(|&&action| action == pass).count();
        let mut position = position.back(if position.is_over() { passes.min(2) } else { 0 });
        if position.player()? != player {
            match position.actions().last() {
                Some(&last) if last == pass => position = position.back(1),
                _ => position.step(pass).ok()?,
            }
        }
        (position.player() == Some(player)).then_some(position)
    }

    /// The moves that are searched in `position`, which [`Self::turn_of`] has made of `before`: `moves`, empty for all. A pass that was put in
    /// there is nobody's choice, so that no other pass may answer it and end the game.
    pub fn searched(&self, before: &Position, position: &Position, mut moves: Vec<u16>) -> Vec<u16> {
        let (pass, actions) = (self.pass(), position.actions());
        let is_put_in = actions.len() == before.actions().len() + 1 && actions.last() == Some(&pass);
        if self.kind != Kind::Go || !is_put_in {
            return moves;
        }
        if moves.is_empty() {
            moves = position.play().legal();
        }
        if moves.len() > 1 {
            moves.retain(|&action| action != pass);
        }
        moves
    }

    /// The first stone and the swap after which the second player's one stone of Hex is at `vertex`: HexGui tells a swap by a new board with
    /// that stone on it. None for any other move.
    pub fn before_swap(&self, position: &Position, player: u8, vertex: &str) -> Option<[u16; 2]> {
        if self.kind != Kind::Hex || player != 1 || !position.actions().is_empty() {
            return None;
        }
        let cell = u32::from(self.find(position.play(), vertex)?);
        let first = (cell % self.size * self.size + cell / self.size) as u16;
        let mut position = position.clone();
        position.step(first).ok()?;
        Some([first, self.find(position.play(), "swap-pieces")?])
    }

    /// The pass of Go.
    pub fn pass(&self) -> u16 {
        (self.size * self.size) as u16
    }

    /// The points of a fixed handicap of `stones` in Go, in the order of the specification; None where there are none.
    pub fn handicap(&self, stones: usize) -> Option<Vec<u16>> {
        if !(2..=self.max_handicap()).contains(&stones) {
            return None;
        }
        let line = if self.size < 13 { 3 } else { 4 };
        let (low, middle, high) = (line - 1, self.size / 2, self.size - line);
        // Columns from the left and rows from below.
        let corners = [(low, low), (high, high), (low, high), (high, low)];
        let sides = [(low, middle), (high, middle), (middle, low), (middle, high)];
        let centre = (stones % 2 == 1 && stones > 4).then_some((middle, middle));
        let beside = if stones > 4 { stones - usize::from(centre.is_some()) - 4 } else { 0 };
        let points =
            corners.into_iter().take(stones.min(4)).chain(sides.into_iter().take(beside)).chain(centre);
        Some(points.map(|(column, row)| ((self.size - 1 - row) * self.size + column) as u16).collect())
    }

    /// Maximum number of stones of a fixed handicap.
    pub fn max_handicap(&self) -> usize {
        match self.size {
            ..7 => 0,
            7 => 4,
            size if size % 2 == 0 => 4,
            _ => 9,
        }
    }

    /// The position after black's stones on `points`, between which white passes.
    ///
    /// # Errors
    /// [`Error::IllegalAction`] for a point that is taken.
    pub fn with_handicap(&self, start: &Position, points: &[u16]) -> Result<Position> {
        let mut position = start.clone();
        for (number, &point) in points.iter().enumerate() {
            if number > 0 {
                position.step(self.pass())?;
            }
            position.step(point)?;
        }
        Ok(position)
    }

    /// The groups of stones, a list of their points each.
    pub fn groups(&self, position: &Position) -> Vec<Vec<u16>> {
        let Look::Grid(grid) = position.play().view(Viewer::Public).board else { return Vec::new() };
        let size = self.size as usize;
        let mut seen = vec![false; size * size];
        let mut groups = Vec::new();
        for (first, piece) in grid.cells.iter().enumerate() {
            if piece.is_none() || seen[first] {
                continue;
            }
            let mut group = vec![first];
            seen[first] = true;
            let mut next = 0;
            while let Some(&cell) = group.get(next) {
                let (row, column) = (cell / size, cell % size);
                let beside = [
                    (row > 0).then(|| cell - size),
                    (row + 1 < size).then(|| cell + size),
                    (column > 0).then(|| cell - 1),
                    (column + 1 < size).then(|| cell + 1),
                ];
                for cell in beside.into_iter().flatten() {
                    if !seen[cell] && grid.cells[cell] == *piece {
                        seen[cell] = true;
                        group.push(cell);
                    }
                }
                next += 1;
            }
            groups.push(group.into_iter().map(|cell| cell as u16).collect());
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    fn start(name: &str, options: &str) -> (Board, Position) {
        let position = Position::new(&any_game(name, &options.parse().expect("TOML")).expect("registered"));
        (Board::of(position.game().as_ref()).expect("a game of GTP"), position)
    }

    #[test]
    fn points_skip_the_letter_i_and_count_from_below() {
        let (board, position) = start("go", "size = 19");
        for (text, cell) in [("A19", 0), ("T19", 18), ("a1", 342), ("J10", 9 * 19 + 8), ("H10", 9 * 19 + 7)] {
            assert_eq!(board.cell(text), Some(cell), "{text}");
            assert_eq!(board.find(position.play(), text), Some(cell), "{text}");
            assert_eq!(board.point(cell), text.to_uppercase());
        }
        for text in ["I5", "U1", "A0", "A20", "5", "", "A", "AA", "Ä1", "A-1"] {
            assert_eq!((board.cell(text), board.find(position.play(), text)), (None, None), "{text}");
        }
    }

    /// The points of the specification, section 4.1.1.
    #[test]
    fn fixed_handicaps_are_those_of_the_specification() {
        let names = |size: u32, stones: usize| {
            let board = Board { kind: Kind::Go, size };
            let points = board.handicap(stones)?;
            Some(points.iter().map(|&point| board.point(point)).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names(19, 2).as_deref(), Some("D4 Q16"));
        assert_eq!(names(19, 3).as_deref(), Some("D4 Q16 D16"));
        assert_eq!(names(19, 5).as_deref(), Some("D4 Q16 D16 Q4 K10"));
        assert_eq!(names(19, 6).as_deref(), Some("D4 Q16 D16 Q4 D10 Q10"));
        assert_eq!(names(19, 7).as_deref(), Some("D4 Q16 D16 Q4 D10 Q10 K10"));
        assert_eq!(names(19, 8).as_deref(), Some("D4 Q16 D16 Q4 D10 Q10 K4 K16"));
        assert_eq!(names(19, 9).as_deref(), Some("D4 Q16 D16 Q4 D10 Q10 K4 K16 K10"));
        assert_eq!(names(9, 4).as_deref(), Some("C3 G7 C7 G3"));
        assert_eq!(names(13, 2).as_deref(), Some("D4 K10"));
        for (size, stones) in [(19, 1), (19, 10), (8, 5), (7, 5), (6, 2), (5, 2)] {
            assert_eq!(names(size, stones), None, "{stones} on {size}");
        }
    }

    #[test]
    fn in_go_it_can_be_anybodys_turn() {
        let (board, mut position) = start("go", "size = 5");
        let turn = |position: &Position, player| board.turn_of(position, player).expect("Go");
        position = turn(&position, 1);
        assert_eq!(position.actions(), [25], "black passes");
        position.step(0).expect("legal");
        position = turn(&position, 1);
        assert_eq!(position.actions(), [25, 0, 25]);
        assert_eq!(turn(&position, 0).actions(), [25, 0], "the pass is taken back");
        position.step(25).expect("legal");
        assert!(position.is_over());
        assert_eq!(turn(&position, 0).actions(), [25, 0], "play goes on");
        assert_eq!(turn(&position, 1).actions(), [25, 0, 25]);
        let handicap = board.with_handicap(&start("go", "size = 9").1, &[]).expect("no stones");
        assert_eq!(handicap.player(), Some(0));
        let (hex, position) = start("hex", "size = 5");
        assert!(hex.turn_of(&position, 0).is_some() && hex.turn_of(&position, 1).is_none());
    }
}
