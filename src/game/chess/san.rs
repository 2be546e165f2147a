//! Moves in Standard Algebraic Notation, as PGN writes them.

use super::board::{self, KING, PAWN, PLANES_OF_A_SQUARE, bit};
use super::moves::{MAX_LEGAL, State};
use super::notation::{LETTERS, parts, square_name};

/// The legal action in SAN: `Nbd7`, `exd8=Q+`, `O-O`, `Qh7#`.
pub fn san(s: &State, action: u16) -> String {
    let mut next = *s;
    next.play(action);
    let mark = match next.has_move_and_check() {
        (false, true) => "#",
        (true, true) => "+",
        _ => "",
    };
    castling(s, action).map_or_else(|| plain(s, action), str::to_string) + mark
}

/// The kind of the piece that moves.
fn kind(s: &State, action: u16) -> usize {
    s.kind_on(u32::from(action / PLANES_OF_A_SQUARE))
}

fn castling(s: &State, action: u16) -> Option<&'static str> {
    // Squares count along the files, eight to each.
    match board::PLANE_DELTAS[usize::from(action % PLANES_OF_A_SQUARE)] {
        16 if kind(s, action) == KING => Some("O-O"),
        -16 if kind(s, action) == KING => Some("O-O-O"),
        _ => None,
    }
}

fn plain(s: &State, action: u16) -> String {
    let (from, to, promotion) = parts(s, action);
    let (from_name, to_name) = (square_name(from), square_name(to));
    let delta = board::PLANE_DELTAS[usize::from(action % PLANES_OF_A_SQUARE)];
    let target = u32::from(action / PLANES_OF_A_SQUARE).wrapping_add_signed(i32::from(delta)) & 63;
    let kind = kind(s, action);
    // A pawn changes its file by captures only, en passant too.
    let captures = s.sides[1] & bit(target) != 0 || kind == PAWN && from / 8 != to / 8;
    let x = if captures { "x" } else { "" };
    if kind == PAWN {
        let file = if captures { &from_name[..1] } else { "" };
        let promoted =
            promotion.map_or(String::new(), |kind| format!("={}", LETTERS[kind].to_ascii_uppercase()));
        return format!("{file}{x}{to_name}{promoted}");
    }
    format!("{}{}{x}{to_name}", LETTERS[kind].to_ascii_uppercase(), origin(s, action, from, to))
}

/// What of the square `from` tells this move from others of equal pieces to the same square: nothing, the file, the rank, or both.
fn origin(s: &State, action: u16, from: u32, to: u32) -> String {
    let mut legal = [0; MAX_LEGAL];
    let count = s.legal(&mut legal);
    let own = kind(s, action);
    let rivals = legal[..count].iter().filter(|&&other| other != action && kind(s, other) == own);
    let rivals = rivals.map(|&other| parts(s, other)).filter(|&(_, target, _)| target == to);
    let rivals: Vec<u32> = rivals.map(|(square, _, _)| square).collect();
    let name = square_name(from);
    if rivals.is_empty() {
        String::new()
    } else if rivals.iter().all(|square| square / 8 != from / 8) {
        name[..1].to_string()
    } else if rivals.iter().all(|square| square % 8 != from % 8) {
        name[1..].to_string()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::super::notation::{from_fen, parse};
    use super::*;

    /// Written by python-chess 1.11.2 from the same positions and moves.
    const WRITTEN: [(&str, &str, &str); 12] = [
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "g1f3", "Nf3"),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", "O-O"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8c8", "O-O-O"),
        ("k7/4P3/8/8/8/8/8/K7 w - - 0 1", "e7e8q", "e8=Q+"),
        ("k2r4/4P3/8/8/8/8/8/K7 w - - 0 1", "e7d8n", "exd8=N"),
        ("k7/8/8/3pP3/8/8/8/K7 w - d6 0 1", "e5d6", "exd6"),
        ("k7/8/8/8/8/8/8/KR5R w - - 0 1", "b1d1", "Rbd1"),
        ("7k/8/8/R7/8/R7/8/7K w - - 0 1", "a5a4", "R5a4"),
        ("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1", "d1d8", "Rd8#"),
        ("6k1/8/8/8/4Q2Q/8/8/K6Q w - - 0 1", "h4e1", "Qh4e1"),
        ("K3k3/8/8/8/3q4/8/8/2q1q3 b - - 0 1", "e1b4", "Qeb4"),
        ("4k3/8/8/2Pp4/8/8/8/4K2b b - - 0 1", "h1g2", "Bg2"),
    ];

    #[test]
    fn moves_are_written_as_python_chess_does() {
        for (fen, uci, expected) in WRITTEN {
            let state = from_fen(fen).expect("a position");
            let mut legal = [0; MAX_LEGAL];
            let count = state.legal(&mut legal);
            let action = parse(&state, &legal[..count], uci).unwrap_or_else(|| panic!("{uci} in {fen}"));
            assert_eq!(san(&state, action), expected, "{fen}");
            assert_eq!(parse(&state, &legal[..count], expected), Some(action), "{fen}");
        }
    }
}
