//! Portable Game Notation, with moves in SAN.

use super::players::Players;
use crate::batch::Playthrough;
use crate::game::Turn;
use crate::game::view::{Board, Viewer};
use std::fmt::Write;

/// The longest line of moves, as the standard asks.
const WIDTH: usize = 80;

/// A game of chess as text.
pub fn write(play: &Playthrough, players: &Players<'_>) -> String {
    let result = match players.returns {
        Some([white, black]) if white > black => "1-0",
        Some([white, black]) if white < black => "0-1",
        Some(_) => "1/2-1/2",
        None => "*",
    };
    let mut text = String::new();
    let mut tag = |name: &str, value: &str| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
        let _ = writeln!(text, "[{name} \"{value}\"]");
    };
    tag("Event", "vecaz eval");
    tag("Site", "?");
    tag("Date", "????.??.??");
    tag("Round", &players.round.to_string());
    tag("White", players.names[0]);
    tag("Black", players.names[1]);
    tag("Result", result);
    let start = play.after(0);
    let fen = start.game().notation(start.state()).map(|(_, fen)| fen).unwrap_or_default();
    if fen != crate::game::chess::START_FEN {
        tag("SetUp", "1");
        tag("FEN", &fen);
    }
    let words = moves(play).into_iter().chain([result.to_string()]);
    text + "\n" + &filled(words) + "\n\n"
}

/// The moves with their numbers, a word each.
fn moves(play: &Playthrough) -> Vec<String> {
    let mut words = Vec::new();
    let mut before = play.after(0);
    for &action in play.actions() {
        let fen = before.game().notation(before.state()).map(|(_, fen)| fen).unwrap_or_default();
        let number = fen.split(' ').next_back().unwrap_or("1");
        match before.turn() {
            Turn::Player(0) => words.push(format!("{number}.")),
            _ if words.is_empty() => words.push(format!("{number}...")),
            _ => {}
        }
        words.push(san(&before, action));
        // The actions are those of a game that was played.
        if before.step(action).is_err() {
            break;
        }
    }
    words
}

/// `words` in lines of at most [`WIDTH`] characters.
fn filled(words: impl Iterator<Item = String>) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in words {
        if column > 0 && column + 1 + word.len() > WIDTH {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += &word;
        column += word.len();
    }
    text
}

/// A legal move in Standard Algebraic Notation: `Nbd7`, `exd8=Q+`, `O-O`.
pub fn san(play: &Playthrough, action: u16) -> String {
    let name = |action| play.game().action_name(play.state(), action);
    let uci = name(action);
    let pieces = Pieces::of(play);
    let (from, to) = (&uci[..2], &uci[2..4]);
    let piece = pieces.on(from).map_or('P', |mark| mark.to_ascii_uppercase());
    let captures = pieces.on(to).is_some() || (piece == 'P' && from[..1] != to[..1]);
    let mut text = match (piece, &uci[..4]) {
        ('K', "e1g1" | "e8g8") => "O-O".to_string(),
        ('K', "e1c1" | "e8c8") => "O-O-O".to_string(),
        ('P', _) if captures => format!("{}x{to}", &from[..1]),
        ('P', _) => to.to_string(),
        _ => {
            let others: Vec<String> = play.legal().into_iter().map(name).collect();
            let is_rival = |other: &&String| {
                other[2..4] == *to && other[..2] != *from && pieces.on(&other[..2]) == pieces.on(from)
            };
            let rivals: Vec<&String> = others.iter().filter(is_rival).collect();
            let takes = if captures { "x" } else { "" };
            format!("{piece}{}{takes}{to}", origin(from, &rivals))
        }
    };
    if let Some(kind) = uci.get(4..5) {
        let _ = write!(text, "={}", kind.to_ascii_uppercase());
    }
    text + ending(play, action)
}

/// The part of the square of origin that tells a piece from its rivals, which can go to the same square.
fn origin<'a>(from: &'a str, rivals: &[&String]) -> &'a str {
    let same =
        |part: std::ops::Range<usize>| rivals.iter().any(|rival| rival[part.clone()] == from[part.clone()]);
    match (rivals.is_empty(), same(0..1), same(1..2)) {
        (true, ..) => "",
        (_, false, _) => &from[..1],
        (_, _, false) => &from[1..2],
        _ => from,
    }
}

/// `+` after a check, `#` after a mate.
fn ending(play: &Playthrough, action: u16) -> &'static str {
    let mut after = play.clone();
    if after.step(action).is_err() {
        return "";
    }
    let is_check = after.view(Viewer::All).marks.iter().any(|mark| mark.meaning == "check");
    let is_won = after.turn() == Turn::Over && after.game().returns(after.state()).contains(&1.0);
    match (is_check, is_won) {
        (true, true) => "#",
        (true, false) => "+",
        _ => "",
    }
}

/// The pieces of a position, by the names of their squares.
struct Pieces(Vec<Option<char>>);

impl Pieces {
    fn of(play: &Playthrough) -> Self {
        let Board::Grid(grid) = play.view(Viewer::All).board else { return Self(Vec::new()) };
        let mark = |piece: &Option<u8>| piece.map(|piece| grid.pieces[usize::from(piece)].mark);
        Self(grid.cells.iter().map(mark).collect())
    }

    /// The piece on `square`, whose cells count from a8 along the ranks.
    fn on(&self, square: &str) -> Option<char> {
        let &[file, rank] = square.as_bytes() else { return None };
        let index = usize::from(b'8'.checked_sub(rank)?) * 8 + usize::from(file.checked_sub(b'a')?);
        self.0.get(index).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;
    use crate::rng::{Key, Purpose};

    fn chess(options: &str) -> Playthrough {
        Playthrough::new(any_game("chess", &options.parse().expect("TOML")).expect("registered"))
    }

    fn names(options: &str, moves: &str) -> String {
        let mut play = chess(options);
        moves.split_whitespace().for_each(|name| play.step_text(name).expect("legal"));
        super::moves(&play).join(" ")
    }

    #[test]
    fn moves_are_named_as_in_the_standard() {
        let text = names("", "e2e4 d7d5 e4d5 d8d5 b1c3 d5e5 f1e2 g8f6 g1f3 e5c5 e1g1 b8d7");
        assert_eq!(text, "1. e4 d5 2. exd5 Qxd5 3. Nc3 Qe5+ 4. Be2 Nf6 5. Nf3 Qc5 6. O-O Nbd7");
        assert_eq!(names("", "f2f3 e7e5 g2g4 d8h4"), "1. f3 e5 2. g4 Qh4#");
        let fen = |fen: &str| format!("fen = '{fen}'");
        // Three queens go to one square: file, rank, or both tell them apart.
        let queens = fen("8/7k/8/8/Q2Q4/8/8/Q5K1 w - - 0 1");
        assert_eq!(names(&queens, "a4a3"), "1. Q4a3");
        assert_eq!(names(&queens, "d4d1"), "1. Qdd1");
        assert_eq!(names(&queens, "a4d1"), "1. Qa4d1");
        let pawn = fen("1n5k/2P5/8/8/5pP1/8/8/K7 b - g3 0 7");
        assert_eq!(names(&pawn, "f4g3 c7b8q"), "7... fxg3 8. cxb8=Q+");
        assert_eq!(names(&fen("r3k3/8/8/8/8/8/8/4K3 b q - 0 1"), "e8c8"), "1... O-O-O");
    }

    /// The game's own parser reads every name back, in random games.
    #[test]
    fn every_name_is_read_back() {
        for seed in 0..10 {
            let mut play = chess("");
            let mut rng = Key::new(seed, Purpose::Evaluation).stream();
            while play.turn() != Turn::Over && play.actions().len() < 120 {
                for action in play.legal() {
                    let name = san(&play, action);
                    assert_eq!(play.find(&name), Some(action), "{name} in {:?}", play.names());
                }
                let legal = play.legal();
                play.step(legal[rng.below(legal.len())]).expect("legal");
            }
        }
    }

    #[test]
    fn a_game_has_its_tags_and_short_lines() {
        let mut play = chess("fen = '7k/8/8/8/8/1p6/8/K7 b - - 3 20'");
        play.step_text("h8g8").expect("legal");
        let players =
            Players { names: ["a \"b\"", "c"], returns: Some([0.0, 0.0]), resigned: None, round: 2 };
        let text = write(&play, &players);
        assert_eq!(
            text,
            "[Event \"vecaz eval\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"2\"]\n[White \"a \\\"b\\\"\"]\n[Black \"c\"]\n\
             [Result \"1/2-1/2\"]\n[SetUp \"1\"]\n[FEN \"7k/8/8/8/8/1p6/8/K7 b - - 3 20\"]\n\n20... Kg8 1/2-1/2\n\n"
        );
        let long = filled((0..200).map(|number| format!("{number}.")));
        assert!(long.lines().all(|line| line.len() <= WIDTH) && long.lines().count() > 5, "{long}");
    }
}
