//! The look of a position as data, from which terminals, browsers and other programs draw.
//!
//! A game gives board, marks, winning line, dice and notes by [`Game::view`](super::Game::view), and by [`Game::spot`](super::Game::spot) the spot on that board which an action
//! points at. [`describe`](super::describe) adds the legal actions. A view has nothing that its viewer may not know.

use serde::Serialize;

/// Maximum number of columns of a line of text.
const WIDTH: usize = 80;

/// The person or program that a view is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The player with this number.
    Player(u8),
    /// Somebody who knows only what all players know.
    Public,
    /// Somebody who may know everything: the reader of a record.
    All,
}

impl Viewer {
    /// True if the viewer may know what `player` knows.
    pub fn knows_hand_of(self, player: u8) -> bool {
        self == Self::All || self == Self::Player(player)
    }
}

/// One position as its viewer sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View {
    /// The board or the table.
    pub board: Board,
    /// The colour of each player's pieces. `[P]`
    pub colours: Vec<Colour>,
    /// Spots of note.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// The spots that decided the game, if the rules know them: a row of five, a chain between borders, the edges of a clique.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub line: Vec<Spot>,
    /// Faces of dice that are still to be played.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dice: Vec<u8>,
    /// Facts that are not on the board, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The spots of the last player's last actions in a row, as far as the viewer knows them; empty if the earlier game is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<Spot>,
    /// The legal actions, or the possible outcomes of chance; empty if the viewer may not know them.
    pub actions: Vec<ActionView>,
}

impl View {
    /// A view of `board`, for players with `colours`.
    pub fn new(board: Board, colours: &[Colour]) -> Self {
        Self {
            board,
            colours: colours.to_vec(),
            marks: Vec::new(),
            line: Vec::new(),
            dice: Vec::new(),
            notes: Vec::new(),
            last: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// A view of a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Board::Text { text: text.into() }, &Colour::ALL)
    }

    /// The view with `indices` of the board as its winning line.
    pub fn with_line(mut self, indices: impl IntoIterator<Item = usize>) -> Self {
        self.line = indices.into_iter().map(|index| Spot::Place(index as u16)).collect();
        self
    }

    /// The view with a mark on each of `indices`.
    pub fn with_marks(mut self, indices: impl IntoIterator<Item = usize>, meaning: &'static str) -> Self {
        let mark = |index| Mark { at: Spot::Place(index as u16), meaning };
        self.marks.extend(indices.into_iter().map(mark));
        self
    }

    /// The view with one more note.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// A legal action or a possible outcome of chance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionView {
    /// Its number.
    pub action: u16,
    /// Its name.
    pub name: String,
    /// What it points at. Several actions may point at one spot: promotions of a pawn.
    pub spot: Spot,
}

/// Something on a board that an action, a mark or a line points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Spot {
    /// Nothing on the board: a pass, a bid, a roll. It is chosen by its name.
    Button,
    /// A cell of a grid or a slot, by its index.
    Place(u16),
    /// From one place to another.
    Move(u16, u16),
    /// The edge between two vertices of a graph.
    Edge(u16, u16),
    /// A card, by its number.
    Card(u16),
}

/// A spot of note.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Where it is.
    pub at: Spot,
    /// Its meaning in a word or two.
    pub meaning: &'static str,
}

/// The colour of a player's pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // names of colours
pub enum Colour {
    Black,
    White,
    Red,
    Blue,
    Yellow,
    Green,
    Purple,
    Orange,
}

impl Colour {
    /// Colours of up to eight players without black and white pieces.
    pub const ALL: [Self; 8] = [
        Self::Blue,
        Self::Red,
        Self::Green,
        Self::Yellow,
        Self::Purple,
        Self::Orange,
        Self::Black,
        Self::White,
    ];
}

/// The board of a game.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Board {
    /// Squares, hexagons, or points where lines cross.
    Grid(Grid),
    /// Slots that hold stacks of equal pieces: backgammon, mancala.
    Slots(Slots),
    /// Vertices on a circle, with edges that are free or taken.
    Graph(Graph),
    /// Hands and a trick of cards.
    Cards(Cards),
    /// Lines of text.
    Text {
        /// The lines.
        text: String,
    },
}

/// The form of a grid's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GridStyle {
    /// Squares of one colour.
    Squares,
    /// Squares of two colours.
    Checkered,
    /// Points where lines cross.
    Lines,
    /// Columns into which pieces drop: any cell of a column means the lowest that is free.
    Drop,
    /// Hexagons; each row begins half a hexagon further right than the one above it.
    Hexagons,
}

/// A grid of cells, numbered row by row from the top left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grid {
    /// The form of the cells.
    pub style: GridStyle,
    /// The labels of the columns. A column without a label lies between cells.
    pub columns: Vec<String>,
    /// The labels of the rows from the top, empty if rows have none. A row without a label lies between cells.
    pub rows: Vec<String>,
    /// The players whose aim the borders are: top, right, bottom, left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borders: Option<[u8; 4]>,
    /// The kinds of pieces.
    pub pieces: Vec<Piece>,
    /// The index in `pieces` of the piece on each cell. `[rows * columns]`
    pub cells: Vec<Option<u8>>,
}

impl Grid {
    /// A board of `rows` and `columns`, of which those with `is_gap` lie between cells: borders, walls, lines between dots. The others have
    /// letters as labels of columns and numbers as labels of rows. `piece` gives the index in `pieces` of the piece on each cell.
    pub fn labelled(
        style: GridStyle,
        [rows, columns]: [usize; 2],
        is_gap: impl Fn(usize) -> bool,
        pieces: Vec<Piece>,
        piece: impl Fn(usize, usize) -> Option<u8>,
    ) -> Self {
        let labels = |count: usize, label: fn(usize) -> String| {
            let mut numbers = 0..;
            let next = |index| if is_gap(index) { None } else { numbers.next().map(label) };
            (0..count).map(next).map(Option::unwrap_or_default).collect()
        };
        let cells = (0..rows * columns).map(|index| piece(index / columns, index % columns)).collect();
        let letter = |number| char::from(b'a' + (number % 26) as u8).to_string();
        Self {
            style,
            columns: labels(columns, letter),
            rows: labels(rows, |number| (number + 1).to_string()),
            borders: None,
            pieces,
            cells,
        }
    }

    /// True for a border, a wall or a line between cells: its row or column has no label, where others have one.
    pub fn is_between_places(&self, row: usize, column: usize) -> bool {
        [self.rows.get(row), self.columns.get(column)].into_iter().flatten().any(String::is_empty)
    }

    /// The row, from the top, and the column of a cell.
    pub fn row_and_column(&self, index: u16) -> (usize, usize) {
        let columns = self.columns.len().max(1);
        (usize::from(index) / columns, usize::from(index) % columns)
    }
}

/// A kind of piece.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Piece {
    /// The player it belongs to, if any.
    pub owner: Option<u8>,
    /// The character that stands for it in text, unless its name does.
    pub mark: char,
    /// Its shape.
    pub shape: Shape,
    /// Its name: "white knight".
    pub name: String,
}

impl Piece {
    /// The pieces of two players, X and O in text.
    pub fn pair(shapes: [Shape; 2], names: [&str; 2]) -> Vec<Self> {
        (0..2)
            .map(|player| Self {
                owner: Some(player as u8),
                mark: ['X', 'O'][player],
                shape: shapes[player],
                name: names[player].to_string(),
            })
            .collect()
    }

    /// The index in [`Piece::pair`] of the piece on a cell, by the stones of either player.
    pub fn of(first: bool, second: bool) -> Option<u8> {
        match (first, second) {
            (true, _) => Some(0),
            (_, true) => Some(1),
            _ => None,
        }
    }
}

/// The shape of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // names of shapes
pub enum Shape {
    Disc,
    Cross,
    Ring,
    Pawn,
    Knight,
    Bishop,
    Rook,
    Queen,
    King,
    /// The mark of the piece as a letter.
    Letter,
    /// The name of the piece, in text too: the number of a tile.
    Name,
}

/// Slots in rows. The first row is filled from the top, the second from the bottom. They are numbered along the rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slots {
    /// The rows, equally long. `[2]`
    pub rows: [Vec<Slot>; 2],
    /// The kinds of pieces.
    pub pieces: Vec<Piece>,
}

impl Slots {
    /// The slot with this number.
    pub fn slot(&self, index: u16) -> Option<&Slot> {
        self.rows.iter().flatten().nth(usize::from(index))
    }
}

/// A place with a stack of equal pieces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slot {
    /// Its name; slots off the board may share one.
    pub label: String,
    /// Its role.
    pub role: SlotRole,
    /// The index of the pieces that it holds, or that alone may come there.
    pub piece: Option<u8>,
    /// The number of pieces.
    pub count: u8,
}

/// The role of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotRole {
    /// A place on the board.
    Point,
    /// The bar between two halves of the board.
    Bar,
    /// The place of pieces that have left the board.
    Tray,
}

/// Vertices, numbered from 0, and edges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Graph {
    /// The number of vertices.
    pub vertices: u16,
    /// The kinds of pieces that take edges.
    pub pieces: Vec<Piece>,
    /// All edges, taken or free.
    pub edges: Vec<GraphEdge>,
}

/// An edge of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GraphEdge {
    /// The vertices at its ends, the lower first.
    pub ends: [u16; 2],
    /// The index of the piece that takes it.
    pub piece: Option<u8>,
}

/// A table with cards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cards {
    /// What holds for the whole table: round, trump.
    pub caption: String,
    /// The names of the numbers that each player has: bid, tricks, points.
    pub columns: Vec<String>,
    /// The players. `[P]`
    pub seats: Vec<Seat>,
    /// The cards of the present trick in the order of play.
    pub trick: Vec<PlayedCard>,
}

/// A player at a table with cards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seat {
    /// The values of [`Cards::columns`].
    pub values: Vec<String>,
    /// The cards in hand that the viewer may know.
    pub hand: Vec<Card>,
    /// The number of other cards in hand.
    pub hidden: u8,
}

/// A card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// Its number, as in [`Spot::Card`].
    pub number: u16,
    /// Its name: "K♥".
    pub name: String,
}

/// A card of the present trick.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlayedCard {
    /// The player who played it.
    pub player: u8,
    /// The card.
    #[serde(flatten)]
    pub card: Card,
}

/// `sentence` with line breaks between words, so that a line of several words has at most [`WIDTH`] columns.
pub(crate) fn filled(sentence: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            text += "\n  ";
            column = 2;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += length;
    }
    text + "\n"
}
