//! Smart Game Format 4 for Go, Othello, Gomoku and Hex. <https://www.red-bean.com/sgf/sgf4.html>

use super::players::Players;
use super::sgf_tree::{Node, main_line};
use crate::batch::{ErasedRules, Playthrough};
use crate::config::KeyInfo;
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::game::set_up::PlacedPieces;
use crate::registry::Registry;
use crate::words::{count, two_decimals};
use std::fmt::Write;

/// Games with their numbers in the property GM.
const GAMES: [(&str, &str); 4] = [("go", "1"), ("othello", "2"), ("gomoku", "4"), ("hex", "11")];
/// The options of a game that a record has: all others must be those of the standard rules.
const WRITTEN: [&str; 4] = ["size", "komi", "max_plies", "swap"];
/// The property of vecaz's own with the option `max_plies` of Go, without which a game that ended by it would be one in progress. No property
/// begins with its first two letters, which is all that GNU Go reads of a name.
const MAX_PLIES: &str = "VZPLIES";
/// The property of vecaz's own with the option `swap` of Hex, which no move tells where nobody swapped.
const SWAP: &str = "VZSWAP";
/// Values of a move of Hex that takes the first stone over.
const SWAPS: [&str; 2] = ["swap-pieces", "swap"];
/// The value of a move of Hex after which the players go on with each other's colour.
const SWAP_OF_COLOURS: &str = "swap-sides";
/// Values of a move of Hex with which a player gives up.
const ENDS: [&str; 2] = ["resign", "forfeit"];
/// The properties that set up a position, with the letters of their stones in [`PlacedPieces`].
const SETUP: [(&str, char); 3] = [("AB", '0'), ("AW", '1'), ("AE", '.')];
/// The moves of a line of the file.
const MOVES_PER_LINE: usize = 10;

/// True if records of `game` exist, with its options.
pub fn has_format(game: &dyn ErasedRules) -> bool {
    let is_known = GAMES.iter().any(|(name, _)| *name == game.name());
    let is_usual = |key: &KeyInfo| {
        key.value == key.default || WRITTEN.contains(&key.name) || game.sight_options().contains(&key.name)
    };
    is_known && game.keys().iter().all(is_usual)
}

/// The game as a file, with the names of the `players` if they have any.
///
/// # Errors
/// [`Error::Unsupported`] for a game without such records.
pub fn write(play: &Playthrough, players: &Players) -> Result<String> {
    let game = play.game();
    let number = GAMES.iter().find(|(name, _)| *name == game.name() && has_format(game.as_ref()));
    let (name, number) =
        number.ok_or_else(|| Error::unsupported("writing this game as SGF", "its rules have no records"))?;
    let mut text = format!("(;FF[4]GM[{number}]CA[UTF-8]AP[vecaz:{}]", env!("CARGO_PKG_VERSION"));
    for (key, property) in [("size", "SZ"), ("komi", "KM")] {
        if let Some(found) = game.keys().iter().find(|found| found.name == key) {
            let _ = write!(text, "{property}[{}]", found.value);
        }
    }
    for (key, property) in [("max_plies", MAX_PLIES), ("swap", SWAP)] {
        let is_set = |found: &&KeyInfo| found.name == key && found.value != found.default;
        if let Some(set) = game.keys().iter().find(is_set) {
            let _ = write!(text, "{property}[{}]", set.value);
        }
    }
    for (name, property) in players.names.iter().zip(["PB", "PW"]) {
        let _ = write!(text, "{property}[{}]", escaped(name));
    }
    if let Some(round) = players.round {
        let _ = write!(text, "RO[{round}]");
    }
    if let Some(player) = players.resigned {
        let _ = write!(text, "RE[{}+R]", ["W", "B"][usize::from(player.min(1))]);
    } else if let Some(returns) = &players.returns {
        let _ = write!(text, "RE[{}]", result(returns, returns));
    } else if play.turn() == Turn::Over {
        let returns = game.returns(play.state());
        let _ = write!(text, "RE[{}]", result(&returns, &game.scores(play.state())));
    }
    if let Some(placed) = play.placed() {
        write_placed(&mut text, game.as_ref(), &placed)?;
    }
    let names = play.names();
    for (ply, (turn, action)) in play.turns().iter().zip(play.actions()).enumerate() {
        let colour = if *turn == Turn::Player(0) { 'B' } else { 'W' };
        let point = match (*name, names[ply].as_str()) {
            ("hex", "swap") => "swap-pieces".to_string(),
            ("hex", cell) => cell.to_string(),
            (_, "pass") => String::new(),
            (_, cell) => point(game.as_ref(), *action).unwrap_or_else(|| cell.to_string()),
        };
        let line = if ply % MOVES_PER_LINE == 0 { "\n" } else { "" };
        let _ = write!(text, "{line};{colour}[{point}]");
    }
    Ok(text + ")\n")
}

/// Writes the stones that were set up, and who is to move.
fn write_placed(text: &mut String, game: &dyn ErasedRules, placed: &PlacedPieces) -> Result<()> {
    let pieces = placed.pieces()?;
    for (piece, property) in (0..).zip(["AB", "AW"]) {
        let cells = (0..).zip(&pieces).filter(|(_, found)| **found == Some(piece)).map(|(cell, _)| cell);
        let points: Vec<String> = cells.filter_map(|cell| point_of_cell(game, cell)).collect();
        if !points.is_empty() {
            let _ = write!(text, "{property}[{}]", points.join("]["));
        }
    }
    let _ = write!(text, "PL[{}]", ["B", "W"][usize::from(placed.player.min(1))]);
    Ok(())
}

/// The point of a cell, which is also the action of a stone there.
fn point_of_cell(game: &dyn ErasedRules, cell: u16) -> Option<String> {
    match game.name() {
        "hex" => Some(game.action_name(&game.init(), cell)),
        _ => point(game, cell),
    }
}

/// The position that the first node sets up, if it does; `start` is the start of its game. A value is a point, or two corners of a rectangle.
fn placed(start: &Playthrough, root: &Node, nodes: &[Node]) -> Result<Option<PlacedPieces>> {
    // On an empty board of Go white may begin.
    let has_mover = start.game().name() == "go" && root.value("PL").is_some();
    if !has_mover && SETUP.iter().all(|(name, _)| root.values(name).is_empty()) {
        return Ok(None);
    }
    let side = side(start.game().as_ref()).unwrap_or_default();
    let mut letters = vec![None; usize::from(side * side)];
    for (name, letter) in SETUP {
        for value in root.values(name) {
            let wrong = |what: &str| {
                let what = format!("{name} has {value:?}, which {what}");
                Error::unsupported("reading this file as SGF", what)
            };
            let corner = |text: &str| {
                let cell = action(start, text).filter(|&cell| cell < side * side)?;
                Some([cell % side, cell / side])
            };
            let (first, last) = value.split_once(':').unwrap_or((value, value));
            let corners = corner(first).zip(corner(last));
            let corners = corners.filter(|(first, last)| first[0] <= last[0] && first[1] <= last[1]);
            let ([left, top], [right, bottom]) = corners.ok_or_else(|| wrong("is no point of the board"))?;
            for cell in (top..=bottom).flat_map(|row| row * side + left..=row * side + right) {
                // This also bounds the number of values.
                if letters[usize::from(cell)].replace(letter).is_some() {
                    return Err(wrong("has a point that was given before"));
                }
            }
        }
    }
    // Without PL the first move tells, else black begins, but for a handicap.
    let first = nodes.iter().flat_map(|node| &node.0).find(|(name, _)| name == "B" || name == "W");
    let has_handicap =
        root.value("HA").is_some_and(|stones| stones.parse::<u32>().is_ok_and(|stones| stones > 0));
    let to_move = root.value("PL").or(first.map(|(name, _)| name.as_str()));
    let to_move = to_move.unwrap_or(if has_handicap { "W" } else { "B" });
    let player = u8::from(to_move.eq_ignore_ascii_case("w") || to_move.eq_ignore_ascii_case("white"));
    let cells = letters.into_iter().map(|letter| letter.unwrap_or('.')).collect();
    Ok(Some(PlacedPieces { cells, player }))
}

/// True if these stones of Hex tell that a swap was played.
fn is_swapped(placed: &PlacedPieces) -> bool {
    let [black, white] = ['0', '1'].map(|letter| placed.cells.matches(letter).count());
    match placed.player {
        0 => white == black + 1,
        _ => white == black && black > 0,
    }
}

/// A text as a value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace(']', "\\]")
}

/// The winner by the returns, and by how much if the scores are points.
fn result(returns: &[f32], scores: &[f32]) -> String {
    let winner = match returns {
        [black, white] if black > white => "B",
        [black, white] if black < white => "W",
        _ => return "0".into(),
    };
    match scores {
        [black, white] if scores != returns => format!("{winner}+{}", two_decimals((black - white).abs())),
        _ => format!("{winner}+"),
    }
}

/// The letters of an action's column and row, from the top left.
fn point(game: &dyn ErasedRules, action: u16) -> Option<String> {
    game.sgf_point(action).or_else(|| {
        let side = side(game)?;
        let letter = |index: u16| char::from(b'a' + index as u8);
        (action < side * side).then(|| [action % side, action / side].map(letter).iter().collect())
    })
}

/// Rows and columns of the board.
fn side(game: &dyn ErasedRules) -> Option<u16> {
    game.keys().iter().find(|key| key.name == "size")?.value.parse().ok()
}

/// Reads a file.
///
/// # Errors
/// [`Error::Unsupported`] for other games, positions that cannot come about, and stones that are set up within the game;
/// [`Error::IllegalAction`].
pub fn read(text: &str, registry: &Registry) -> Result<Playthrough> {
    let nodes = main_line(text)?;
    let root = &nodes[0];
    let wrong = |what: String| Error::unsupported("reading this file as SGF", what);
    let number = root.value("GM").unwrap_or("1");
    let named = GAMES.iter().find(|(_, known)| *known == number);
    let (name, _) = named.ok_or_else(|| wrong(format!("GM is {number}, expected 1, 2, 4 or 11")))?;
    let num_set_up = |node: &Node| SETUP.iter().map(|(name, _)| node.values(name).len()).sum::<usize>();
    if let Some(points) = nodes[1..].iter().map(num_set_up).find(|&points| points > 0) {
        return Err(wrong(format!(
            "it sets up {} (AB, AW, AE) within the game, expected them before it",
            count(points, "point")
        )));
    }
    let mut options = options(name, root)?;
    let is_swap = |node: &Node| {
        ["B", "W"].iter().any(|colour| node.value(colour).is_some_and(|value| is_one_of(&SWAPS, value)))
    };
    if *name == "hex" && nodes.iter().any(is_swap) {
        options.insert("swap".into(), true.into());
    }
    let (plies, size) = (num_plies(&nodes), options.get("size"));
    let points = size.and_then(toml::Value::as_integer).map_or(0, |size| size.saturating_mul(size));
    if *name == "go" && plies > points.saturating_mul(2) && !options.contains_key("max_plies") {
        // Files of other programs do not have the number of plies after which their games were to end.
        options.insert("max_plies".into(), plies.into());
    }
    let mut game = registry.game(name, &options)?;
    let placed = placed(&Playthrough::new(game.clone()), root, &nodes)?;
    if *name == "hex" && placed.as_ref().is_some_and(is_swapped) {
        options.insert("swap".into(), true.into());
        game = registry.game(name, &options)?;
    }
    let mut play = match &placed {
        Some(placed) => Playthrough::set_up(game, placed)?,
        None => Playthrough::new(game),
    };
    let moves = nodes.iter().flat_map(|node| &node.0).filter(|(name, _)| name == "B" || name == "W");
    for (colour, values) in moves {
        let value = values.first().map_or("", String::as_str);
        if *name == "hex" && is_one_of(&ENDS, value) {
            break;
        }
        step(&mut play, if colour == "B" { 0 } else { 1 }, value)?;
    }
    Ok(play)
}

/// The plies of a game of Go by the moves of its nodes, at most. Black begins: before a colour that moves twice in a row, or white's first move,
/// there is a pass or a ply that was not played but counts.
fn num_plies(nodes: &[Node]) -> i64 {
    let names = nodes.iter().flat_map(|node| &node.0).map(|(name, _)| name.as_str());
    let mut last = "W";
    names
        .filter(|name| ["B", "W"].contains(name))
        .map(|name| 1 + i64::from(std::mem::replace(&mut last, name) == name))
        .sum()
}

/// True if `value` is one of these `words`, in whatever letters.
fn is_one_of(words: &[&str], value: &str) -> bool {
    words.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// The options that the first node gives.
fn options(name: &str, root: &Node) -> Result<toml::Table> {
    let wrong = |property: &str, value: &str| {
        Error::unsupported("reading this file as SGF", format!("{property} is {value:?}, expected a number"))
    };
    let mut options = toml::Table::new();
    if let Some(size) = root.value("SZ") {
        let number: i64 = size.parse().map_err(|_| wrong("SZ", size))?;
        options.insert("size".into(), number.into());
    }
    if let (Some(komi), "go") = (root.value("KM"), name) {
        let number: f64 = komi.parse().map_err(|_| wrong("KM", komi))?;
        options.insert("komi".into(), number.into());
    }
    if let (Some(limit), "go") = (root.value(MAX_PLIES), name) {
        let number: i64 = limit.parse().map_err(|_| wrong(MAX_PLIES, limit))?;
        options.insert("max_plies".into(), number.into());
    }
    if let (Some(swap), "hex") = (root.value(SWAP), name) {
        let is_set: bool = swap.parse().map_err(|_| {
            let what = format!("{SWAP} is {swap:?}, expected true or false");
            Error::unsupported("reading this file as SGF", what)
        })?;
        options.insert("swap".into(), is_set.into());
    }
    if (root.value("SZ"), name) == (None, "go") {
        // The default of the format, not of vecaz.
        options.insert("size".into(), 19.into());
    }
    Ok(options)
}

/// Plays the move `value` of the player. Some programs leave out the passes of a player who has no other move. After the two passes that end a
/// game of Go a further pass changes nothing, and with a move play goes on as if they had not been.
fn step(play: &mut Playthrough, player: u8, value: &str) -> Result<()> {
    if is_ended_by_passes(play) {
        if is_pass(play.game().as_ref(), value) {
            return Ok(());
        }
        resume(play, player)?;
    }
    if play.game().name() == "hex" && is_one_of(&[SWAP_OF_COLOURS], value) {
        let what = format!("{value} exchanges the colours of the players, expected swap-pieces");
        return Err(Error::unsupported("reading this file as SGF", what));
    }
    let pass = play.find("pass").filter(|_| play.legal().len() == 1);
    if let (true, Some(pass)) = (play.turn() != Turn::Player(player), pass) {
        play.step(pass)?;
    }
    if play.turn() != Turn::Player(player) {
        let what = format!("ply {} is a move of the player who is not to move", play.actions().len());
        return Err(Error::unsupported("reading this file as SGF", what));
    }
    match action(play, value) {
        Some(action) => play.step(action),
        None => Err(play.illegal(value)),
    }
}

/// True for a game of Go that two passes have ended.
fn is_ended_by_passes(play: &Playthrough) -> bool {
    let game = play.game().as_ref();
    let is_over = game.name() == "go" && play.turn() == Turn::Over;
    is_over && side(game).is_some_and(|side| play.actions().ends_with(&[side * side; 2]))
}

/// Takes the two passes back that have ended a game of Go, so that the player can move: the other one may pass before.
fn resume(play: &mut Playthrough, player: u8) -> Result<()> {
    *play = play.after(play.actions().len() - 2);
    match play.find("pass") {
        Some(pass) if play.turn() != Turn::Player(player) => play.step(pass),
        _ => Ok(()),
    }
}

/// True for the value of a pass.
fn is_pass(game: &dyn ErasedRules, value: &str) -> bool {
    let is_nowhere = game.name() == "go" && side(game).is_some_and(|side| side <= 19);
    value.is_empty() || is_one_of(&["pass"], value) || is_nowhere && is_one_of(&["tt"], value)
}

/// The action of a value: two letters, a letter and a number, or a word.
fn action(play: &Playthrough, value: &str) -> Option<u16> {
    let game = play.game();
    if is_pass(game.as_ref(), value) {
        return play.find("pass");
    }
    let value = value.to_ascii_lowercase();
    if SWAPS.contains(&value.as_str()) {
        return play.find("swap");
    }
    let side = side(game.as_ref())?;
    let [column, row] = value.as_bytes() else { return play.find(&value) };
    if row.is_ascii_digit() {
        return play.find(&value);
    }
    let [column, row] = [column, row].map(|letter| u16::from(letter.wrapping_sub(b'a')));
    (column < side && row < side).then(|| row * side + column)
}

#[cfg(test)]
mod tests;
