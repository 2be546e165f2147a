//! Views of positions as text for terminals, at most 80 columns wide for the built-in games.
//!
//! Input: a [`View`] of `game::view`. Output: lines. Knows no game.

use crate::game::Game;
use crate::game::view::{
    Board, Cards, Graph, Grid, GridStyle, Piece, Shape, Slot, SlotRole, Slots, Spot, View, Viewer, filled,
};
use std::fmt::Write;

/// The character of a cell without a piece.
const FREE: char = '.';

/// A position of `game` with everything in it, as lines of text.
pub fn draw<G: Game>(game: &G, state: &G::State) -> String {
    text(&game.view(state, Viewer::All))
}

/// The view as lines of text: the board with the last move in brackets, the spots that decided the game, and the notes.
pub fn text(view: &View) -> String {
    let mut text = match &view.board {
        Board::Grid(grid) => grid_text(grid, &view.last),
        Board::Slots(slots) => slots_text(slots, &view.last),
        Board::Graph(graph) => graph_text(graph, &view.last),
        Board::Cards(cards) => cards_text(cards),
        Board::Text { text } => text.trim_end().to_string() + "\n",
    };
    // Cells of a grid without labels of rows have no names.
    let has_names = !matches!(&view.board, Board::Grid(grid) if grid.rows.is_empty());
    if has_names && !view.line.is_empty() {
        text += &filled(&format!("decided by {}", names(&view.board, &view.line)));
    }
    for marks in view.marks.chunk_by(|a, b| a.meaning == b.meaning) {
        let spots: Vec<Spot> = marks.iter().map(|mark| mark.at).collect();
        text += &filled(&format!("{}: {}", marks[0].meaning, names(&view.board, &spots)));
    }
    view.notes.iter().for_each(|note| text += &filled(note));
    text
}

/// The names of spots by the labels of the board.
fn names(board: &Board, spots: &[Spot]) -> String {
    let name_of = |at: u16| match board {
        Board::Grid(grid) => {
            let (row, column) = grid.row_and_column(at);
            let row = grid.rows.get(row).map_or("", String::as_str);
            format!("{}{row}", grid.columns.get(column).map_or("", String::as_str))
        }
        Board::Slots(slots) => slots.slot(at).map_or_else(|| at.to_string(), |slot| slot.label.clone()),
        Board::Graph(_) | Board::Cards(_) | Board::Text { .. } => at.to_string(),
    };
    let name = |&spot: &Spot| match spot {
        Spot::Button => String::new(),
        Spot::Place(at) | Spot::Card(at) => name_of(at),
        Spot::Move(from, to) => format!("{}-{}", name_of(from), name_of(to)),
        Spot::Edge(a, b) => format!("{a}-{b}"),
    };
    spots.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Lines of characters.
#[derive(Default)]
struct Canvas {
    lines: Vec<Vec<char>>,
}

impl Canvas {
    /// Writes `text` into a line from `column` on.
    fn write(&mut self, line: usize, column: usize, text: &str) {
        self.lines.resize(self.lines.len().max(line + 1), Vec::new());
        let line = &mut self.lines[line];
        line.resize(line.len().max(column + text.chars().count()), ' ');
        line.splice(column..column + text.chars().count(), text.chars());
    }

    /// Writes `text` so that it ends at `column`.
    fn write_right(&mut self, line: usize, column: usize, text: &str) {
        if !text.is_empty() {
            self.write(line, (column + 1).saturating_sub(text.chars().count()), text);
        }
    }

    /// Brackets around a character.
    fn bracket(&mut self, line: usize, column: usize) {
        self.bracket_text(line, column, 1);
    }

    /// Brackets around `width` characters that end at `column`.
    fn bracket_text(&mut self, line: usize, column: usize, width: usize) {
        self.write(line, column - width, "(");
        self.write(line, column + 1, ")");
    }

    fn into_text(self) -> String {
        self.lines.into_iter().flat_map(|line| line.into_iter().chain(['\n'])).collect()
    }
}

/// The mark of a piece, or that of a free cell.
fn mark_of(pieces: &[Piece], piece: Option<u8>) -> char {
    piece.and_then(|index| pieces.get(usize::from(index))).map_or(FREE, |piece| piece.mark)
}

/// The cells, points or squares to which spots lead.
fn ends(spots: &[Spot]) -> impl Iterator<Item = u16> {
    spots.iter().filter_map(|&spot| match spot {
        Spot::Place(at) | Spot::Move(_, at) => Some(at),
        Spot::Button | Spot::Edge(..) | Spot::Card(_) => None,
    })
}

/// The text of a piece, or that of a free cell.
fn text_of(pieces: &[Piece], piece: Option<u8>) -> String {
    match piece.and_then(|index| pieces.get(usize::from(index))) {
        Some(piece) if piece.shape == Shape::Name => piece.name.clone(),
        _ => mark_of(pieces, piece).to_string(),
    }
}

/// Two characters a cell, or one more than the longest name where names are shown, with the labels of rows at the left and those of columns above, or below where pieces drop and on checkered
/// boards.
fn grid_text(grid: &Grid, last: &[Spot]) -> String {
    let mut canvas = Canvas::default();
    let num_rows = grid.cells.len().div_ceil(grid.columns.len().max(1));
    let label_width = grid.rows.iter().map(|label| label.len().max(2)).max().unwrap_or(0);
    let labels_below = matches!(grid.style, GridStyle::Drop | GridStyle::Checkered);
    let label_line = if labels_below { num_rows } else { 0 };
    let line_of = |row: usize| if labels_below { row } else { row + 1 };
    let slant = usize::from(grid.style == GridStyle::Hexagons);
    let texts: Vec<String> =
        (0..grid.pieces.len()).map(|index| text_of(&grid.pieces, Some(index as u8))).collect();
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(1);
    // The last character of a cell.
    let column_of = |row: usize, column: usize| label_width + slant * row + (width + 1) * column + width;
    for (column, label) in grid.columns.iter().enumerate() {
        let last: String = label.chars().last().into_iter().collect();
        canvas.write_right(label_line, column_of(0, column), &last);
    }
    for (row, label) in grid.rows.iter().enumerate() {
        canvas.write_right(line_of(row), label_width + slant * row - 1, label);
    }
    for (at, &piece) in grid.cells.iter().enumerate() {
        let (row, column) = grid.row_and_column(at as u16);
        if piece.is_none() && grid.is_between_places(row, column) {
            continue;
        }
        canvas.write_right(line_of(row), column_of(row, column), &text_of(&grid.pieces, piece));
    }
    for at in ends(last) {
        let (row, column) = grid.row_and_column(at);
        let piece = grid.cells.get(usize::from(at)).copied().flatten();
        let width = text_of(&grid.pieces, piece).chars().count();
        canvas.bracket_text(line_of(row), column_of(row, column), width);
    }
    canvas.into_text()
}

/// Two rows of stacks, three characters a slot, and the slots off the board in a line below.
fn slots_text(slots: &Slots, last: &[Spot]) -> String {
    /// Pieces of a stack that are drawn; the last of them is the count of a higher stack.
    const HEIGHT: usize = 5;
    let mut canvas = Canvas::default();
    let mut at = 0;
    for (row, in_row) in slots.rows.iter().enumerate() {
        let mut column = 0;
        // The labels are outermost, with a free line between both rows.
        let label_line = if row == 0 { 0 } else { 2 * HEIGHT + 2 };
        let line_of = |k: usize| if row == 0 { 1 + k } else { label_line - 1 - k };
        for slot in in_row {
            if slot.role == SlotRole::Bar {
                (0..=HEIGHT).for_each(|k| canvas.write(line_of(k), column, " |"));
                canvas.write(label_line, column, " |");
                column += 2;
            }
            if slot.role == SlotRole::Point {
                column += 3;
                canvas.write_right(label_line, column - 1, &slot.label);
                let count = usize::from(slot.count);
                let mark = |k: usize| if k < count { mark_of(&slots.pieces, slot.piece) } else { FREE };
                (0..HEIGHT).for_each(|k| canvas.write(line_of(k), column - 1, &mark(k).to_string()));
                if count > HEIGHT {
                    canvas.write_right(line_of(HEIGHT - 1), column - 1, &count.to_string());
                }
                if count > 0 && ends(last).any(|end| end == at) {
                    let top = if count > HEIGHT { HEIGHT - 2 } else { count - 1 };
                    canvas.bracket(line_of(top), column - 1);
                }
            }
            at += 1;
        }
    }
    // The bar does not cross the free line, which a board without points in the second row does not have.
    if let Some(line) = canvas.lines.get_mut(HEIGHT + 1) {
        line.clear();
    }
    let off_board = |label: &str| {
        let all = slots.rows.iter().flatten().filter(|slot| slot.label == label);
        let mut counts: Vec<(Option<u8>, String)> = all
            .map(|slot| (slot.piece, format!("{} {}", mark_of(&slots.pieces, slot.piece), slot.count)))
            .collect();
        counts.sort();
        let counts: Vec<String> = counts.into_iter().map(|(_, text)| text).collect();
        format!("{label}: {}", counts.join(", "))
    };
    let mut labels: Vec<&Slot> =
        slots.rows.iter().flatten().filter(|slot| slot.role != SlotRole::Point).collect();
    labels.sort_by_key(|slot| slot.role == SlotRole::Tray);
    labels.dedup_by_key(|slot| &slot.label);
    let lines: Vec<String> = labels.iter().map(|slot| off_board(&slot.label)).collect();
    let off = if lines.is_empty() { String::new() } else { lines.join("; ") + "\n" };
    canvas.into_text() + &off
}

/// The upper half of the adjacency matrix, three characters an edge.
fn graph_text(graph: &Graph, last: &[Spot]) -> String {
    let mut canvas = Canvas::default();
    let column_of = |vertex: u16| 3 * usize::from(vertex) + 2;
    for vertex in 0..graph.vertices {
        let label = vertex.to_string();
        if vertex > 0 {
            canvas.write_right(0, column_of(vertex), &label);
        }
        if vertex + 1 < graph.vertices {
            canvas.write_right(1 + usize::from(vertex), 2, &label);
        }
    }
    for edge in &graph.edges {
        let [a, b] = edge.ends;
        let mark = mark_of(&graph.pieces, edge.piece).to_string();
        canvas.write(1 + usize::from(a), column_of(b), &mark);
    }
    for &spot in last {
        if let Spot::Edge(a, b) = spot {
            canvas.bracket(1 + usize::from(a.min(b)), column_of(a.max(b)));
        }
    }
    canvas.into_text()
}

/// A table of the players with the hands that are known, and the trick.
fn cards_text(cards: &Cards) -> String {
    let width = |column: usize| {
        let values = cards.seats.iter().filter_map(|seat| Some(seat.values.get(column)?.chars().count()));
        values.chain([cards.columns[column].chars().count()]).max().unwrap_or(0)
    };
    let mut text = format!("{}\nplayer", cards.caption);
    for (column, name) in cards.columns.iter().enumerate() {
        let _ = write!(text, "  {name:>width$}", width = width(column));
    }
    text += "  hand\n";
    for (player, seat) in cards.seats.iter().enumerate() {
        let _ = write!(text, "{player:6}");
        for (column, value) in seat.values.iter().enumerate().take(cards.columns.len()) {
            let _ = write!(text, "  {value:>width$}", width = width(column));
        }
        let known = seat.hand.iter().map(|card| card.name.clone());
        let hidden = match seat.hidden {
            0 => None,
            1 => Some("1 card".to_string()),
            hidden => Some(format!("{hidden} cards")),
        };
        let hand: Vec<String> = known.chain(hidden).collect();
        text = format!("{text}  {}", hand.join(" ")).trim_end().to_string() + "\n";
    }
    for played in &cards.trick {
        let _ = writeln!(text, "player {} played {}", played.player, played.card.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::batch::Playthrough;
    use crate::game::view::{
        Board, Grid, GridStyle, Piece, Shape, Slot, SlotRole, Slots, Spot, View, Viewer,
    };
    use crate::registry::any_game;

    /// The position after `actions`, drawn for `viewer`.
    fn drawn(game: &str, options: &str, actions: &str, viewer: Viewer) -> String {
        let game = any_game(game, &options.parse().expect("TOML")).expect("registered");
        let mut play = Playthrough::new(game);
        for action in actions.split(',').filter(|action| !action.is_empty()) {
            play.step_text(action).expect(action);
        }
        text(&play.view(viewer))
    }

    #[test]
    fn grids_have_the_last_move_in_brackets() {
        let board = drawn("tic_tac_toe", "", "b2,c1", Viewer::Public);
        assert_eq!(board, "   a b c\n 1 . .(O)\n 2 . X .\n 3 . . .\n");
        let board = drawn("hex", "size = 3", "b2,c3,a3", Viewer::Public);
        assert_eq!(board, "   a b c\n 1 . . .\n  2 . X .\n   3(X). O\n");
        let board = drawn("connect_four", "rows = 2\ncolumns = 4", "1,1", Viewer::Public);
        assert_eq!(board, " .(O). .\n . X . .\n 0 1 2 3\n");
        let flipped = drawn("othello", "size = 6", "c2", Viewer::Public);
        assert!(flipped.contains("(X)") && flipped.ends_with("discs: X 4, O 1\n"), "{flipped}");
        assert_eq!(flipped.matches(['(', ')']).count(), 2, "{flipped}");
        let go = drawn("go", "size = 5", "A5,B4", Viewer::Public);
        assert_eq!(
            go,
            "   A B C D E\n 5 X . . . .\n 4 .(O). . .\n 3 . . . . .\n 2 . . . . .\n 1 . . . . .\n"
        );
        let chess = drawn("chess", "", "e2e4,d7d5,e4d5", Viewer::Public);
        assert!(chess.contains("\n 5 . . .(P). . . .\n"), "{chess}");
        let castling = drawn("chess", "fen = '4k3/8/8/8/8/8/8/4K2R w K - 0 1'", "e1g1", Viewer::Public);
        assert!(castling.contains(" 1 . . . . . R(K).\n   a b c d e f g h\n4k3"), "{castling}");
        assert!(drawn("chess", "", "f2f3,e7e5,g2g4,d8h4", Viewer::Public).contains("\ncheck: e1\n"));
    }

    #[test]
    fn pieces_that_show_their_names_widen_the_places() {
        let tile =
            |number: u32| Piece { owner: None, mark: '?', shape: Shape::Name, name: number.to_string() };
        let tiles = vec![tile(8), tile(64), tile(1024)];
        let piece = |row: usize, column: usize| [Some(2), None, Some(0), Some(1)][2 * row + column];
        let grid = Grid::labelled(GridStyle::Squares, [2, 2], |_| false, tiles, piece);
        let mut view = View::new(Board::Grid(grid), &[]);
        view.last = vec![Spot::Place(3)];
        assert_eq!(text(&view), "      a    b\n 1 1024    .\n 2    8  (64)\n");
    }

    #[test]
    fn rows_and_columns_between_places_have_no_labels() {
        let bar = Piece { owner: None, mark: '|', shape: Shape::Letter, name: "wall".into() };
        let piece = |row: usize, column: usize| (row.is_multiple_of(2) && column == 1).then_some(0);
        let grid = Grid::labelled(GridStyle::Squares, [3, 3], |i| i % 2 == 1, vec![bar], piece);
        assert_eq!((grid.columns.join("/"), grid.rows.join("/")), ("a//b".into(), "1//2".into()));
        let view = View::new(Board::Grid(grid), &[]).with_marks([0, 8], "corners");
        assert_eq!(text(&view), "   a   b\n 1 . | .\n\n 2 . | .\ncorners: a1 b2\n");
    }

    #[test]
    fn what_decided_the_game_is_named() {
        for (game, options, actions, line) in [
            ("tic_tac_toe", "", "a1,a2,b1,b2,c1", "a1 b1 c1"),
            ("hex", "size = 3", "b1,a1,b2,c3,c1,a2,b3", "b3 b2 b1"),
            ("gomoku", "size = 5", "a1,a2,b1,b2,c1,c2,d1,d2,e1", "a1 b1 c1 d1 e1"),
            ("clique", "n = 5", "0-1,2-3,0-2,1-3,1-2", "0-1 0-2 1-2"),
        ] {
            let board = drawn(game, options, actions, Viewer::Public);
            let decided: Vec<&str> = board.lines().filter_map(|l| l.strip_prefix("decided by ")).collect();
            assert_eq!(decided, [line], "{board}");
        }
        assert!(!drawn("clique", "n = 5", "0-1,2-3", Viewer::Public).contains("decided"));
    }

    #[test]
    fn slots_stand_in_two_rows_around_the_bar() {
        let board = drawn("backgammon", "", "player 0,3-1,8/5", Viewer::Public);
        assert_eq!(
            board,
            " 13 14 15 16 17 18 | 19 20 21 22 23 24\n  X  .  .  .  O  . |  O  .  .  .  .  X\n  X  .  .  .  O  . |  O  .  .  .  .  X
  X  .  .  .  O  . |  O  .  .  .  .  .\n  X  .  .  .  .  . |  O  .  .  .  .  .\n  X  .  .  .  .  . |  O  .  .  .  .  .\n
  O  .  .  .  .  . |  X  .  .  .  .  .\n  O  .  .  .  .  . |  X  .  .  .  .  .\n  O  .  .  .  .  . |  X  .  .  .  .  .
  O  .  .  .  X  . |  X  .  .  .  .  O\n  O  .  .  .  X  . |  X (X) .  .  .  O\n 12 11 10  9  8  7 |  6  5  4  3  2  1
bar: X 0, O 0; off: X 0, O 0\nX (player 0) to play 1\n"
        );
    }

    /// Heaps in one row: a slot beside each other one is off the board.
    #[test]
    fn slots_may_stand_in_one_row() {
        let slot = |label: &str, role, count| Slot { label: label.into(), role, piece: Some(0), count };
        let heaps = ["a", "b"].map(|label| slot(label, SlotRole::Point, 2));
        let off = [0, 1].map(|_| slot("off", SlotRole::Tray, 3));
        let stone = Piece { owner: None, mark: 'o', shape: Shape::Disc, name: "stone".into() };
        let slots = Slots { rows: [heaps.into(), off.into()], pieces: vec![stone] };
        let drawing = text(&View::new(Board::Slots(slots), &[]));
        assert_eq!(drawing, "  a  b\n  o  o\n  o  o\n  .  .\n  .  .\n  .  .\noff: o 3, o 3\n");
    }

    #[test]
    fn graphs_are_half_a_matrix() {
        let board = drawn("clique", "n = 4", "0-1,2-3,0-2", Viewer::Public);
        assert_eq!(board, "     1  2  3\n  0  X (X) .\n  1     .  .\n  2        O\n");
    }

    #[test]
    fn a_table_of_cards_shows_the_hands_that_the_viewer_knows() {
        let deal = "2♠,K♥,Q♥,3♦,9♣,10♥,1,0,2,KH";
        let of = |viewer| drawn("blob", "players = 3\ncards = 2", deal, viewer);
        assert_eq!(
            of(Viewer::Player(2)),
            "round 1 of 1, 2 cards a player, trump ♠, dealer 0\nplayer  bid  taken  points  hand
     0    2      0       0  2 cards\n     1    1      0       0  1 card\n     2    0      0       0  10♥ Q♥
player 1 played K♥\nplayer 2 plays\n"
        );
        assert!(
            !of(Viewer::Public).contains('Q') && of(Viewer::All).contains("2♠ 3♦"),
            "{}",
            of(Viewer::All)
        );
    }

    #[test]
    fn long_sentences_are_broken_at_blanks() {
        let text = text(&View::text("a board").with_note("word ".repeat(20).trim()));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[1].len(), lines[2]), (3, 79, "  word word word word"), "{text}");
    }

    #[test]
    fn a_text_is_drawn_as_it_is() {
        assert_eq!(text(&View::text("17 stones").with_note("a note")), "17 stones\na note\n");
    }
}
