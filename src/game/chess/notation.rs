//! Chess notation: FEN, UCI and SAN moves; the look of the board.

use super::board::{self, KING, PAWN, QUEEN, ROOK, bit, flip_square, squares};
use super::moves::{OTHER_LONG, OTHER_SHORT, OWN_LONG, OWN_SHORT, State};
use crate::game::set_up::SetUp;
use crate::game::view::{Board, Colour, Grid, GridStyle, Piece, Shape, Spot, View};
use bytemuck::Zeroable;

/// The default initial position.
pub const START_FEN: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// The kinds of pieces as letters, in the order of their bitboards.
pub const LETTERS: [char; 6] = ['p', 'n', 'b', 'r', 'q', 'k'];

/// The kinds of pieces in the order of their bitboards.
const KINDS: [(&str, Shape); 6] = [
    ("pawn", Shape::Pawn),
    ("knight", Shape::Knight),
    ("bishop", Shape::Bishop),
    ("rook", Shape::Rook),
    ("queen", Shape::Queen),
    ("king", Shape::King),
];

/// `fen` with its halfmove clock at 0: where a game goes on after a draw by repetition or fifty moves that nobody has claimed.
pub fn without_clock(fen: &str) -> String {
    let mut fields: Vec<&str> = fen.split(' ').collect();
    if let Some(clock) = fields.get_mut(4) {
        *clock = "0";
    }
    fields.join(" ")
}

/// A defect of a FEN.
#[derive(Debug, PartialEq)]
pub struct Defect {
    /// What the FEN has, and in which part.
    pub found: String,
    /// What that part must have.
    pub expected: String,
}

impl Defect {
    fn new(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { found: found.into(), expected: expected.into() }
    }
}

/// Reads a position in Forsyth-Edwards Notation; the clocks are optional.
///
/// # Errors
/// The defect: invalid text, or an impossible position (kings, pawns on back ranks, too many pieces, the side not to move in check,
/// castling rights or an en passant square without the piece).
pub fn from_fen(fen: &str) -> Result<State, Defect> {
    let fields: Vec<&str> = fen.split_whitespace().collect();
    if !(4..=6).contains(&fields.len()) {
        return Err(Defect::new(format!("{} fields", fields.len()), "4 to 6 fields"));
    }
    let mut s = State::zeroed();
    place_pieces(&mut s, fields[0])?;
    let castling = [('K', OWN_SHORT), ('Q', OWN_LONG), ('k', OTHER_SHORT), ('q', OTHER_LONG)];
    for letter in fields[2].chars().filter(|_| fields[2] != "-") {
        let right = castling.iter().find(|(c, _)| *c == letter);
        let defect = || Defect::new(format!("castling rights {}", fields[2]), "letters of KQkq, or -");
        s.castling |= right.ok_or_else(defect)?.1;
    }
    let number = |at: usize, name: &str, default: u16, max: u16| match fields.get(at) {
        None => Ok(default),
        Some(text) => {
            let value = text.parse().ok().filter(|&v: &u16| v <= max && v >= default);
            value.ok_or_else(|| {
                Defect::new(format!("{name} {text}"), format!("a number from {default} to {max}"))
            })
        }
    };
    s.halfmove_clock = number(4, "halfmove clock", 0, 99)?;
    s.fullmove = number(5, "full move number", 1, 9999)?;
    let white = s;
    match fields[1] {
        "w" => {}
        "b" => s = s.turned(),
        other => return Err(Defect::new(format!("{other} to move"), "w or b")),
    }
    check_material(&white)?;
    check_castling(&white)?;
    if s.other_in_check() {
        return Err(Defect::new("the side not to move in check", "a position that can occur"));
    }
    if fields[3] != "-" {
        s.allow_en_passant(en_passant_square(&s, fields[3])?);
    }
    s.hash = s.fresh_hash();
    Ok(s)
}

fn place_pieces(s: &mut State, text: &str) -> Result<(), Defect> {
    let ranks: Vec<&str> = text.split('/').collect();
    if ranks.len() != 8 {
        return Err(Defect::new(format!("{} ranks", ranks.len()), "8 ranks"));
    }
    for (rank, text) in (0..8u32).rev().zip(ranks) {
        let wrong_length = || Defect::new(format!("{text} in rank {}", rank + 1), "8 squares");
        let mut file = 0;
        for letter in text.chars() {
            if let Some(empty @ 1..=8) = letter.to_digit(10) {
                file += empty;
                continue;
            }
            let kind = LETTERS.iter().position(|&l| l == letter.to_ascii_lowercase());
            let kind = kind
                .ok_or_else(|| Defect::new(format!("{letter} in rank {}", rank + 1), "a piece of pnbrqk"))?;
            if file > 7 {
                return Err(wrong_length());
            }
            let square = bit(file * 8 + rank);
            s.pieces[kind] |= square;
            s.sides[usize::from(letter.is_ascii_lowercase())] |= square;
            file += 1;
        }
        if file != 8 {
            return Err(wrong_length());
        }
    }
    Ok(())
}

fn check_material(white: &State) -> Result<(), Defect> {
    if white.pieces[PAWN] & board::BACK_RANKS != 0 {
        return Err(Defect::new("a pawn on the first or last rank", "pawns on ranks 2 to 7"));
    }
    for (side, name) in white.sides.iter().zip(["white", "black"]) {
        let count = |kind: usize| (white.pieces[kind] & side).count_ones();
        if count(KING) != 1 {
            return Err(Defect::new(format!("{} {name} kings", count(KING)), "one"));
        }
        let extra = |kind: usize, own: u32| count(kind).saturating_sub(own);
        let promoted = extra(board::KNIGHT, 2) + extra(board::BISHOP, 2) + extra(ROOK, 2) + extra(QUEEN, 1);
        if count(PAWN) + promoted > 8 {
            let found = format!("{} {name} pawns and promoted pieces", count(PAWN) + promoted);
            return Err(Defect::new(found, "at most 8"));
        }
    }
    Ok(())
}

fn check_castling(white: &State) -> Result<(), Defect> {
    for (side, view) in [white, &white.turned()].into_iter().enumerate() {
        let own = |kind: usize, square: u32| view.pieces[kind] & view.sides[0] & bit(square) != 0;
        for (right, rook, letters) in
            [(OWN_SHORT, board::ROOK_HOME_H, ["K", "k"]), (OWN_LONG, board::ROOK_HOME_A, ["Q", "q"])]
        {
            if view.castling & right != 0 && !(own(KING, board::KING_HOME) && own(ROOK, rook)) {
                let found = format!("castling right {} without king and rook at home", letters[side]);
                return Err(Defect::new(found, "rights that the pieces allow"));
            }
        }
    }
    Ok(())
}

/// The en passant square, from the view of the side to move, if the last move can have been a pawn's double step over it.
fn en_passant_square(s: &State, text: &str) -> Result<u32, Defect> {
    let wrong = || {
        Defect::new(
            format!("en passant square {text}"),
            "the square passed by a pawn that can have just moved two squares",
        )
    };
    let square = parse_square(text).ok_or_else(wrong)?;
    let square = if s.colour == 0 { square } else { flip_square(square) };
    let is_passed = square % 8 == 5
        && s.pieces[PAWN] & s.sides[1] & bit(square - 1) != 0
        && s.occupied() & (bit(square) | bit(square + 1)) == 0;
    if is_passed { Ok(square) } else { Err(wrong()) }
}

fn parse_square(text: &str) -> Option<u32> {
    match text.as_bytes() {
        [file @ b'a'..=b'h', rank @ b'1'..=b'8'] => Some(u32::from(file - b'a') * 8 + u32::from(rank - b'1')),
        _ => None,
    }
}

/// A square's name in algebraic notation.
pub fn square_name(square: u32) -> String {
    format!("{}{}", char::from(b'a' + (square / 8) as u8), square % 8 + 1)
}

/// The position from white's view.
fn as_white(s: &State) -> State {
    if s.colour == 0 { *s } else { s.turned() }
}

fn letter_on(white: &State, square: u32) -> Option<char> {
    let side = white.sides.iter().position(|side| side & bit(square) != 0)?;
    let letter = LETTERS[white.kind_on(square)];
    Some(if side == 0 { letter.to_ascii_uppercase() } else { letter })
}

/// The position in Forsyth-Edwards Notation. The en passant square is given only where such a capture is legal.
pub fn to_fen(s: &State) -> String {
    let white = as_white(s);
    let mut text = String::new();
    for rank in (0..8).rev() {
        let mut empty = 0;
        for file in 0..8 {
            match letter_on(&white, file * 8 + rank) {
                None => empty += 1,
                Some(letter) => {
                    text += &if empty > 0 { empty.to_string() } else { String::new() };
                    text.push(letter);
                    empty = 0;
                }
            }
        }
        text += &if empty > 0 { empty.to_string() } else { String::new() };
        text += if rank > 0 { "/" } else { "" };
    }
    let rights = [('K', OWN_SHORT), ('Q', OWN_LONG), ('k', OTHER_SHORT), ('q', OTHER_LONG)];
    let castling: String = rights.iter().filter(|(_, r)| white.castling & r != 0).map(|(c, _)| c).collect();
    let en_passant =
        if white.en_passant == 0 { "-".to_string() } else { square_name(u32::from(white.en_passant) - 1) };
    let turn = if s.colour == 0 { "w" } else { "b" };
    let castling = if castling.is_empty() { "-" } else { &castling };
    format!("{text} {turn} {castling} {en_passant} {} {}", s.halfmove_clock, s.fullmove)
}

/// The board with white at the bottom, a king in check marked, and the FEN.
pub fn view(s: &State) -> View {
    let white = as_white(s);
    let pieces = (0..12).map(|index| {
        let (side, kind) = (index / 6, index % 6);
        let letter = LETTERS[kind];
        let (name, shape) = KINDS[kind];
        Piece {
            owner: Some(side as u8),
            mark: if side == 0 { letter.to_ascii_uppercase() } else { letter },
            shape,
            name: format!("{} {name}", ["white", "black"][side]),
        }
    });
    let piece = |cell: u32| {
        let square = square_of(cell);
        let side = white.sides.iter().position(|side| side & bit(square) != 0)?;
        Some((side * 6 + white.kind_on(square)) as u8)
    };
    let grid = Grid {
        style: GridStyle::Checkered,
        columns: ('a'..='h').map(String::from).collect(),
        rows: (1..=8).rev().map(|rank: u32| rank.to_string()).collect(),
        borders: None,
        pieces: pieces.collect(),
        cells: (0..64).map(piece).collect(),
    };
    let (_, in_check) = s.has_move_and_check();
    let king = obs_squares(white.pieces[KING] & white.sides[usize::from(s.colour)]);
    View::new(Board::Grid(grid), &[Colour::White, Colour::Black])
        .with_marks(king.filter(|_| in_check), "check")
        .with_note(to_fen(s))
}

/// The FEN of placed pieces, which have the castling rights of kings and rooks at home.
pub fn fen_of(set_up: SetUp<'_>) -> String {
    let letter = |cell: usize| {
        let piece = set_up.cells.get(cell).copied().flatten()?;
        let letter = *LETTERS.get(usize::from(piece % 6))?;
        Some(if piece < 6 { letter.to_ascii_uppercase() } else { letter })
    };
    let rank = |row: usize| (row * 8..row * 8 + 8).map(|cell| letter(cell).unwrap_or('1')).collect();
    let ranks: Vec<String> = (0..8).map(rank).collect();
    let rights = [('K', 60, 63), ('Q', 60, 56), ('k', 4, 7), ('q', 4, 0)];
    let is_right = |&(right, king, rook): &(char, usize, usize)| {
        let pieces = if right.is_ascii_uppercase() { ['K', 'R'] } else { ['k', 'r'] };
        [letter(king), letter(rook)] == pieces.map(Some)
    };
    let castling: String = rights.iter().filter(|right| is_right(right)).map(|(right, ..)| *right).collect();
    let castling = if castling.is_empty() { "-" } else { &castling };
    format!("{} {} {castling} - 0 1", ranks.join("/"), if set_up.player == 0 { "w" } else { "b" })
}

/// A square of a cell that counts from a8 along the ranks.
fn square_of(cell: u32) -> u32 {
    cell % 8 * 8 + 7 - cell / 8
}

/// The squares that an action leads from and to.
pub fn spot(s: &State, action: u16) -> Spot {
    let (from, to, _) = parts(s, action);
    let cell = |square: u32| ((7 - square % 8) * 8 + square / 8) as u16;
    Spot::Move(cell(from), cell(to))
}

/// An action's squares in absolute terms and the kind it promotes to, if any.
pub fn parts(s: &State, action: u16) -> (u32, u32, Option<usize>) {
    let (from, plane) = (u32::from(action / 73), usize::from(action % 73));
    let to = from.wrapping_add_signed(i32::from(board::PLANE_DELTAS[plane])) & 63;
    let promotes = s.pieces[PAWN] & bit(from) != 0 && bit(to) & board::RANK_8 != 0;
    let kind = promotes.then(|| [ROOK, board::BISHOP, board::KNIGHT, QUEEN][(plane / 3).min(3)]);
    let absolute = |square: u32| if s.colour == 0 { square } else { flip_square(square) };
    (absolute(from), absolute(to), kind)
}

/// The action in UCI notation: `e2e4`, `e1g1` for castling, `e7e8q`.
pub fn uci(s: &State, action: u16) -> String {
    let (from, to, promotion) = parts(s, action);
    let letter = promotion.map_or(String::new(), |kind| LETTERS[kind].to_string());
    format!("{}{}{letter}", square_name(from), square_name(to))
}

/// The action out of `legal` that `text` names in UCI or in SAN (`Nbd7`, `exd8=Q+`, also `exd8Q+`, `O-O`), if exactly one fits.
pub fn parse(s: &State, legal: &[u16], text: &str) -> Option<u16> {
    // `B1d3` is the bishop of the first rank, not the piece on b1.
    let is_bishop = text.starts_with('B') && text.contains(|c: char| c.is_ascii_lowercase());
    if !is_bishop && let Some(&action) = legal.iter().find(|&&a| uci(s, a).eq_ignore_ascii_case(text)) {
        return Some(action);
    }
    let text = text.trim_end_matches(['+', '#', '!', '?']);
    let is_king = |a: &u16| s.pieces[KING] & bit(u32::from(a / 73)) != 0;
    let castles = |files: i8| {
        let found =
            legal.iter().find(|&&a| is_king(&a) && board::PLANE_DELTAS[usize::from(a % 73)] == files * 8);
        found.copied()
    };
    match text {
        "O-O" | "0-0" => return castles(2),
        "O-O-O" | "0-0-0" => return castles(-2),
        _ => {}
    }
    let without_sign = || Some(text.split_at(text.strip_suffix(['N', 'B', 'R', 'Q'])?.len()));
    let (text, promotion) = match text.split_once('=').or_else(without_sign) {
        Some((text, letter)) => (text, Some(kind_of(letter)?)),
        None => (text, None),
    };
    let (kind, text) = match text.strip_prefix(['N', 'B', 'R', 'Q', 'K']) {
        Some(rest) => (kind_of(&text[..1])?, rest),
        None => (PAWN, text),
    };
    let split = text.len().checked_sub(2).filter(|&at| text.is_char_boundary(at))?;
    let (origin, target) = text.split_at(split);
    let target = parse_square(target)?;
    let origin = origin.trim_end_matches('x');
    let mut fitting = legal.iter().copied().filter(|&a| {
        let (from, to, promotes) = parts(s, a);
        to == target
            && promotes == promotion
            && s.kind_on(u32::from(a / 73)) == kind
            && origin.chars().all(|c| square_name(from).contains(c))
    });
    fitting.next().filter(|_| fitting.next().is_none())
}

fn kind_of(letter: &str) -> Option<usize> {
    let mut chars = letter.chars();
    let first = chars.next().filter(|_| chars.next().is_none())?;
    LETTERS.iter().position(|l| l.to_ascii_uppercase() == first)
}

/// The squares of `board` as rows of an observation, the farthest rank first: index = (7 - rank) * 8 + file.
pub fn obs_squares(board: u64) -> impl Iterator<Item = usize> {
    squares(board).map(|square| ((7 - square % 8) * 8 + square / 8) as usize)
}
