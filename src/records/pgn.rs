//! Portable Game Notation (Edwards 1994), and FEN, for chess.

use super::players::Players;
use crate::batch::{ErasedRules, Playthrough};
use crate::config::KeyInfo;
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::game::chess::{MAX_PLIES, START_FEN, without_clock};
use crate::registry::Registry;
use std::fmt::Write;

/// The game of these formats.
const CHESS: &str = "chess";
/// The tag of vecaz's own with the option `max_plies`, by which the game may have ended.
const PLIES_TAG: &str = "VzPlies";
/// Maximum number of characters of a line of moves.
const WIDTH: usize = 79;

/// True for chess.
pub fn has_format(game: &dyn ErasedRules) -> bool {
    game.name() == CHESS
}

/// The game as a file, with the names of the `players` if they have any.
pub fn write(play: &Playthrough, players: &Players) -> String {
    let result = result(play, players.resigned);
    let mut text = String::new();
    let name_of =
        |player: usize| players.names.get(player).map_or("?", String::as_str).replace(['"', '\\'], "'");
    let (white, black) = (name_of(0), name_of(1));
    let round = players.round.map_or("?".to_string(), |round| round.to_string());
    let tags = [
        ("Event", "?"),
        ("Site", "?"),
        ("Date", "????.??.??"),
        ("Round", &round),
        ("White", &white),
        ("Black", &black),
    ];
    for (name, value) in tags.into_iter().chain([("Result", result)]) {
        let _ = writeln!(text, "[{name} \"{value}\"]");
    }
    let start = play.after(0);
    let fen = start.game().notation(start.state()).map(|(_, fen)| fen);
    if let Some(fen) = fen.as_ref().filter(|fen| *fen != START_FEN) {
        let _ = writeln!(text, "[SetUp \"1\"]\n[FEN \"{fen}\"]");
    }
    let is_limit = |key: &&KeyInfo| key.name == "max_plies" && key.value != key.default;
    if let Some(limit) = play.game().keys().iter().find(is_limit) {
        let _ = writeln!(text, "[{PLIES_TAG} \"{}\"]", limit.value);
    }
    text.push('\n');
    let mut column = 0;
    let (first_number, black_begins) = numbering(fen.as_deref().unwrap_or(""));
    for (index, name) in moves(play).into_iter().enumerate() {
        let ply = index + usize::from(black_begins);
        let number = first_number + ply / 2;
        let word = match (ply % 2, index) {
            (0, _) => format!("{number}. {name}"),
            (_, 0) => format!("{number}... {name}"),
            _ => name,
        };
        push_word(&mut text, &mut column, &word);
    }
    push_word(&mut text, &mut column, result);
    text + "\n"
}

fn push_word(text: &mut String, column: &mut usize, word: &str) {
    if *column > 0 && *column + 1 + word.len() > WIDTH {
        text.push('\n');
        *column = 0;
    } else if *column > 0 {
        text.push(' ');
        *column += 1;
    }
    text.push_str(word);
    *column += word.len();
}

/// The number of the first move, and whether black makes it.
fn numbering(fen: &str) -> (usize, bool) {
    let fields: Vec<&str> = fen.split_whitespace().collect();
    let number = fields.get(5).and_then(|number| number.parse().ok()).unwrap_or(1);
    (number, fields.get(1) == Some(&"b"))
}

/// The moves in SAN.
fn moves(play: &Playthrough) -> Vec<String> {
    let mut names = Vec::with_capacity(play.actions().len());
    let mut again = play.after(0);
    for &action in play.actions() {
        names.push(again.game().record_name(again.state(), action));
        if again.step(action).is_err() {
            break;
        }
    }
    names
}

fn result(play: &Playthrough, resigned: Option<u8>) -> &'static str {
    if let Some(player) = resigned {
        return ["0-1", "1-0"][usize::from(player.min(1))];
    }
    if play.turn() != Turn::Over {
        return "*";
    }
    match play.game().returns(play.state()).as_slice() {
        [white, black] if white > black => "1-0",
        [white, black] if white < black => "0-1",
        _ => "1/2-1/2",
    }
}

/// The position in FEN.
///
/// # Errors
/// [`Error::Unsupported`] for a game without it.
pub fn fen(play: &Playthrough) -> Result<String> {
    let fen = play.game().notation(play.state()).map(|(_, text)| text + "\n");
    fen.ok_or_else(|| Error::unsupported("writing this position as FEN", "its game is not chess"))
}

/// True for a text that has the form of a FEN: one line with eight ranks.
pub fn is_fen(text: &str) -> bool {
    let board = text.split_whitespace().next().unwrap_or("");
    text.lines().count() == 1 && board.split('/').count() == 8
}

/// True for a text that begins with the number of a first move.
pub fn is_moves(text: &str) -> bool {
    text.split_once('.')
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// A game that starts from the position of a FEN.
///
/// # Errors
/// [`Error::Config`] for a wrong one.
pub fn read_fen(text: &str, registry: &Registry) -> Result<Playthrough> {
    begun(Some(text), None, 0, registry)
}

/// Reads the first game of a file. One that went on after a draw by repetition or fifty moves, which nobody claimed, is read up to that
/// draw.
///
/// # Errors
/// [`Error::Unsupported`] for tags of other variants and wrong limits, comments without an end, and moves after another end of the game;
/// [`Error::IllegalAction`].
pub fn read(text: &str, registry: &Registry) -> Result<Playthrough> {
    let mut rest = text.trim_start();
    let (mut fen, mut limit) = (None, None);
    while let Some(tag) = rest.strip_prefix('[') {
        // Values are quoted and may have brackets.
        let mut is_quoted = false;
        let mut is_escaped = false;
        let end = tag.find(|c| {
            is_quoted ^= c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            c == ']' && !is_quoted
        });
        let (tag, after) = tag.split_at(end.ok_or_else(|| wrong("a tag without its end".into()))?);
        let after = &after[1..];
        rest = after.trim_start();
        let Some((name, value)) = tag.split_once(char::is_whitespace) else { continue };
        let value = value.trim().trim_matches('"');
        match name {
            "FEN" => fen = Some(value.to_string()),
            PLIES_TAG => {
                let found = value.parse::<i64>();
                let refused = || wrong(format!("{PLIES_TAG} is {value:?}, expected a number"));
                limit = Some(found.map_err(|_| refused())?);
            }
            "Variant"
                if !["chess", "standard", "from position", ""]
                    .contains(&value.to_ascii_lowercase().as_str()) =>
            {
                return Err(wrong(format!("its variant is {value}, expected standard chess")));
            }
            _ => {}
        }
    }
    let words = words(rest).ok_or_else(|| wrong("a comment or variation without its end".into()))?;
    let names = move_names(&words);
    played(begun(fen.as_deref(), limit, names.len(), registry)?, &names, registry)
}

fn wrong(what: String) -> Error {
    Error::unsupported("reading this file as PGN", what)
}

/// The moves among `words`, up to the result.
fn move_names(words: &[String]) -> Vec<&str> {
    let words = words.iter().map(String::as_str);
    let names = words.take_while(|word| !["1-0", "0-1", "1/2-1/2", "*"].contains(word)).map(|word| {
        // What begins with a digit is castling with zeros, or a number alone.
        let without_number = word.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('.');
        if word.starts_with("0-0") { word } else { without_number }
    });
    // Marks may stand apart from their move.
    names.filter(|name| !name.chars().all(|c| "!?".contains(c)) && *name != "e.p.").collect()
}

/// The start of a game of `plies` so far, or more, that is drawn after `limit` plies: files of other programs do not say after how many.
fn begun(fen: Option<&str>, limit: Option<i64>, plies: usize, registry: &Registry) -> Result<Playthrough> {
    let mut options = toml::Table::new();
    if let Some(fen) = fen {
        options.insert("fen".into(), fen.split_whitespace().collect::<Vec<_>>().join(" ").into());
    }
    if let Some(limit) = limit {
        options.insert("max_plies".into(), limit.into());
    }
    let mut game = registry.game(CHESS, &options)?;
    if limit.is_none() && plies > game.sizes().max_plies {
        options.insert("max_plies".into(), ((2 * plies).min(MAX_PLIES) as i64).into());
        game = registry.game(CHESS, &options)?;
    }
    Ok(Playthrough::new(game))
}

/// The game of the moves `names` from `play` on, up to a draw that nobody has claimed. What follows that draw is played too, as a check.
fn played(mut play: Playthrough, names: &[&str], registry: &Registry) -> Result<Playthrough> {
    let mut drawn = None;
    for (ply, name) in names.iter().enumerate() {
        if play.turn() == Turn::Over {
            let over = || wrong(format!("the game is over by the rules after ply {ply}, before {name}"));
            let resumed = resumed(&play, registry).ok_or_else(over)?;
            let ended = std::mem::replace(&mut play, resumed);
            drawn = drawn.or(Some(ended));
        }
        play.step_text(name).map_err(|error| match error {
            Error::IllegalAction { action, legal, .. } => Error::IllegalAction { ply, action, legal },
            other => other,
        })?;
    }
    Ok(drawn.unwrap_or(play))
}

/// The board of `play` as the start of a game, if `play` was drawn by repetition, by fifty moves or for its length.
fn resumed(play: &Playthrough, registry: &Registry) -> Option<Playthrough> {
    let (_, fen) = play.game().notation(play.state())?;
    read_fen(&without_clock(&fen), registry).ok()
}

/// The words of the moves, without comments, variations and marks; None if one of them does not end.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut depth) = (Vec::new(), String::new(), 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let ends_word = c.is_whitespace() || "{}();$".contains(c);
        if ends_word && !word.is_empty() && depth == 0 {
            words.push(std::mem::take(&mut word));
        }
        match c {
            '{' => drop(chars.find(|&c| c == '}')?),
            ';' => drop(chars.find(|&c| c == '\n')),
            '$' => while chars.next_if(char::is_ascii_digit).is_some() {},
            '(' => depth += 1,
            ')' => depth = i32::max(depth - 1, 0),
            // A tag is that of the next game.
            '[' if depth == 0 && word.is_empty() => return Some(words),
            c if !c.is_whitespace() && depth == 0 && c != '}' => word.push(c),
            _ => {}
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    (depth == 0).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::set_up::PlacedPieces;
    use crate::rng::{Key, Purpose};

    #[test]
    fn games_are_read_as_written() {
        let registry = Registry::built_in();
        for (seed, options) in [(1, ""), (2, ""), (3, "fen = '4k3/7p/8/8/8/8/P7/4K3 b - - 3 20'")] {
            let mut play =
                Playthrough::new(registry.game(CHESS, &options.parse().expect("TOML")).expect("valid"));
            while play.turn() != Turn::Over && play.actions().len() < 120 {
                let legal = play.legal();
                let mut rng = Key::new(seed, Purpose::Evaluation).with(play.actions().len() as u64).stream();
                play.step(legal[rng.below(legal.len())]).expect("legal");
            }
            let text = write(&play, &Players::default());
            assert!(text.lines().all(|line| line.len() <= 80), "{text}");
            let again = read(&text, &registry).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert_eq!((again.actions(), again.state()), (play.actions(), play.state()), "{text}");
            assert_eq!(text.contains("20... "), !options.is_empty());
        }
    }

    #[test]
    fn a_game_from_placed_pieces_has_their_fen() {
        let registry = Registry::built_in();
        let chess = registry.game(CHESS, &toml::Table::new()).expect("valid");
        let cells = format!("{}b{}5{}3", ".".repeat(4), ".".repeat(55), ".".repeat(2));
        let mut play = Playthrough::set_up(chess, &PlacedPieces { cells, player: 0 }).expect("a position");
        play.step_text("O-O").expect("legal");
        let text = write(&play, &Players::default());
        assert!(text.contains("[FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]"), "{text}");
        let again = read(&text, &registry).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!((again.actions(), again.state()), (play.actions(), play.state()), "{text}");
    }

    #[test]
    fn results_name_the_winner() {
        let written = |moves: &str, players: &Players| {
            let play = read(moves, &Registry::built_in()).expect("a game");
            let text = write(&play, players);
            let end = text.split_whitespace().last().map(str::to_string);
            assert!(text.contains(&format!("[Result {:?}]", end.as_deref().expect("a result"))), "{text}");
            end.expect("a result")
        };
        let nobody = Players::default();
        assert_eq!(written("1. f3 e5 2. g4 Qh4#", &nobody), "0-1");
        assert_eq!(written("1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7#", &nobody), "1-0");
        assert_eq!(written("1. e4", &nobody), "*");
        assert_eq!(written("1. e4", &Players { resigned: Some(1), ..Players::default() }), "1-0");
    }

    #[test]
    fn files_of_other_programs_are_read() {
        let text = "[Event \"x\"]\n[Result \"1-0\"]\n\n1.e4 e5 2. Bc4 {a comment (x} Nc6 $1{good} 3. Qh5?! (3. Nf3 $1 Nf6 (3... d6 $6)) 3... Nf6??\n\
                    4. Qxf7# 1-0\n\n[Event \"next\"]\n\n1. d4 *";
        let play = read(text, &Registry::built_in()).expect("a game");
        assert_eq!(play.names(), ["e2e4", "e7e5", "f1c4", "b8c6", "d1h5", "g8f6", "h5f7"]);
        assert_eq!(play.turn(), Turn::Over);
        let marks =
            "[Event \"a [rated] \\\"x\\\" game\"]\n[Variant \"From Position\"]\n\n1. e4 ! e5 ?! 2. Nf3";
        assert_eq!(read(marks, &Registry::built_in()).expect("a game").actions().len(), 3);
        let backslash = "[White \"a\\\\\"]\n[Black \"b\"]\n\n1. e4";
        assert_eq!(read(backslash, &Registry::built_in()).expect("a game").actions().len(), 1);
        let castled =
            read("1. Nf3 Nf6 2. g3 g6 3. Bg2 Bg7 4. 0-0 O-O", &Registry::built_in()).expect("a game");
        assert_eq!(castled.names()[6..], ["e1g1", "e8g8"]);
        let fen = "4k3/7p/8/8/8/8/P7/4K3 b - - 3 20";
        assert!(is_fen(fen));
        let position = read_fen(fen, &Registry::built_in()).expect("a position");
        assert_eq!(super::fen(&position).expect("FEN").trim(), fen);
    }

    /// Players who do not claim a draw play on: moves up to the draw are read, and later ones must be legal.
    #[test]
    fn a_game_with_an_unclaimed_draw_is_read_up_to_it() {
        let registry = Registry::built_in();
        let tour = "Nf3 Nf6 Ng1 Ng8 ";
        let play = read(&format!("1. {} e4 e5 1-0", tour.repeat(5)), &registry).expect("a game");
        assert_eq!((play.actions().len(), play.turn()), (8, Turn::Over));
        assert!(write(&play, &Players::default()).ends_with(" 1/2-1/2\n"));
        let fifty = "[FEN \"6k1/8/8/8/8/8/8/K6R w - - 98 90\"]\n1. Kb1 Kg7 2. Kb2 Kg6 *";
        assert_eq!(read(fifty, &registry).expect("a game").names(), ["a1b1", "g8g7"]);
        let refused = |text: &str| read(text, &registry).err().expect(text).to_string();
        let illegal = refused(&format!("1. {} e5", tour.repeat(2)));
        assert!(illegal.contains("ply 8"), "{illegal}");
        let mated = refused("1. f3 e5 2. g4 Qh4# 3. a3");
        assert!(mated.contains("the game is over by the rules after ply 4, before a3"), "{mated}");
    }

    /// A random game of 600 plies, or of fewer if it ends before: captures are avoided, and a pawn moves every 15 plies.
    fn long_game(seed: u64, registry: &Registry) -> Playthrough {
        let options = "max_plies = 1000".parse().expect("TOML");
        let mut play = Playthrough::new(registry.game(CHESS, &options).expect("valid"));
        while play.turn() != Turn::Over && play.actions().len() < 600 {
            let mut rng = Key::new(seed, Purpose::Evaluation).with(play.actions().len() as u64).stream();
            let is_pawns_turn = play.actions().len().is_multiple_of(15);
            let is_wanted = |&action: &u16| {
                let name = play.game().record_name(play.state(), action);
                !name.contains('x') && name.starts_with(|c: char| c.is_ascii_lowercase()) == is_pawns_turn
            };
            let legal = play.legal();
            let wanted: Vec<u16> = legal.iter().copied().filter(is_wanted).collect();
            let moves = if wanted.is_empty() { legal } else { wanted };
            play.step(moves[rng.below(moves.len())]).expect("legal");
        }
        play
    }

    #[test]
    fn a_game_that_is_longer_than_usual_is_read() {
        let registry = Registry::built_in();
        let mut games = (0..100).map(|seed| long_game(seed, &registry));
        let play = games.find(|play| play.actions().len() == 600).expect("a long one");
        let text = write(&play, &Players::default());
        // Files of other programs have no limit of plies.
        for text in [text.replace("[VzPlies \"1000\"]\n", ""), text] {
            let again = read(&text, &registry).expect("read");
            assert_eq!((again.actions(), again.turn()), (play.actions(), play.turn()));
        }
    }

    #[test]
    fn a_game_that_was_cut_off_is_over_when_it_is_read() {
        let registry = Registry::built_in();
        let game = registry.game(CHESS, &toml::toml! { max_plies = 3 }).expect("valid");
        let mut play = Playthrough::new(game);
        ["e4", "e5", "Nf3"].iter().for_each(|name| play.step_text(name).expect("legal"));
        let text = write(&play, &Players::default());
        let again = read(&text, &registry).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!((again.actions(), again.turn()), (play.actions(), Turn::Over), "{text}");
        assert_eq!(write(&again, &Players::default()), text);
        let usual = write(&read("1. e4", &registry).expect("a game"), &Players::default());
        assert!(!usual.contains(PLIES_TAG), "{usual}");
    }

    #[test]
    fn wrong_files_are_refused() {
        for text in [
            "[x",
            "1. e5",
            "1. e4 {",
            "1. e4 (e5",
            "[FEN \"x\"]\n1. e4",
            "[Variant \"Atomic\"]\n1. e4",
            "[VzPlies \"x\"]\n1. e4",
            "[VzPlies \"0\"]\n1. e4",
        ] {
            assert!(read(text, &Registry::built_in()).is_err(), "{text}");
        }
    }
}
