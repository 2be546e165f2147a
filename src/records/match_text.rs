//! The text of backgammon matches (`.mat`), as Jellyfish began it and GNU Backgammon writes it: a line for a turn of each player, the dice
//! and the moves counted from the mover's side. The doubling cube is read over; games with one have other records.

use super::match_turn::{TurnEnd, finish_turn, play_turn};
use super::players::Players;
use crate::batch::{ErasedRules, Playthrough};
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::registry::Registry;
use std::fmt::Write;

/// The game of this format.
const BACKGAMMON: &str = "backgammon";
/// The column at which the second player's turns begin, after the number of the line.
const SECOND: usize = 34;
/// Maximum number of characters of a player's name.
const LONGEST_NAME: usize = 24;
/// The names of two players without names.
const NAMES: [&str; 2] = ["player 0", "player 1"];

/// What a file begins with: no match to some points, but games for money.
pub const HEAD: &str = " 0 point match\n\n";

/// True for backgammon by its usual rules.
pub fn has_format(game: &dyn ErasedRules) -> bool {
    let usual = |key: &crate::config::KeyInfo| {
        key.value == key.default || key.name == "ply_limit" || game.sight_options().contains(&key.name)
    };
    game.name() == BACKGAMMON && game.keys().iter().all(usual)
}

/// The game as it stands in a file after [`HEAD`] and the games before it, with the names of the `players` if they have any.
///
/// # Errors
/// [`Error::Unsupported`] for a game with other rules.
pub fn write(play: &Playthrough, players: &Players) -> Result<String> {
    if !has_format(play.game().as_ref()) {
        return Err(Error::unsupported(
            "writing this game as a match",
            "it is no backgammon by the usual rules",
        ));
    }
    let name_of = |player: usize| -> String {
        let name = players.names.get(player).map_or(NAMES[player], String::as_str);
        name.chars().take(LONGEST_NAME).map(|c| if c == ':' { '-' } else { c }).collect()
    };
    let (first, second) = (format!("{} : 0", name_of(0)), name_of(1));
    let round = players.round.unwrap_or(1);
    let mut text = format!(" Game {round}\n {first:<width$}{second} : 0\n", width = SECOND - 1);
    let mut turns = turns(play).into_iter().peekable();
    let mut number = 1;
    while turns.peek().is_some() {
        let mut turn_of = |player| turns.next_if(|(mover, _)| *mover == player).map(|(_, text)| text);
        let (first, second) = (turn_of(0).unwrap_or_default(), turn_of(1).unwrap_or_default());
        let first = format!("{number:>3}) {first}");
        let line = format!("{first:<width$} {second}", width = SECOND - 1);
        text += line.trim_end();
        text.push('\n');
        number += 1;
    }
    if play.turn() == Turn::Over {
        let returns = play.game().returns(play.state());
        let points = (returns[0].abs() * 3.0).round();
        let ending = if points == 1.0 { "" } else { "s" };
        let indent = if returns[0] > 0.0 { 6 } else { SECOND };
        if points > 0.0 {
            let _ = writeln!(text, "{:indent$}Wins {points} point{ending}", "");
        }
    }
    text.push('\n');
    Ok(text)
}

/// The turns of both players: who moves, dice and moves.
fn turns(play: &Playthrough) -> Vec<(u8, String)> {
    let mut turns: Vec<(u8, String)> = Vec::new();
    let mut roll = None;
    for (turn, name) in play.turns().into_iter().zip(play.names()) {
        match turn {
            Turn::Chance => roll = name.split_once('-').map(|(high, low)| format!("{high}{low}:")),
            Turn::Player(player) => {
                turns.extend(roll.take().map(|dice| (player, dice)));
                if let Some((_, text)) = turns.last_mut().filter(|_| name != "no move") {
                    text.push(' ');
                    text.push_str(name.split('(').next().unwrap_or(&name));
                }
            }
            Turn::Over => {}
        }
    }
    // The last roll may have no move yet.
    if let (Some(dice), Turn::Player(player)) = (roll, play.turn()) {
        turns.push((player, dice));
    }
    turns
}

/// True for a text that begins as such files do.
pub fn is_match(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with(';'));
    first.is_some_and(|line| line.contains("point match") || line.trim_start().starts_with("Game "))
}

/// Reads the first game of a file, whose last turn may be in progress.
///
/// # Errors
/// [`Error::Unsupported`] for a line that is no turn, [`Error::IllegalAction`].
pub fn read(text: &str, registry: &Registry) -> Result<Playthrough> {
    let mut play = Playthrough::new(registry.game(BACKGAMMON, &toml::Table::new())?);
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with("Game ")).skip(1);
    let mut turns = Vec::new();
    for line in lines.take_while(|line| !line.trim_start().starts_with("Game ")) {
        let Some((number, text)) = line.split_once(')') else { continue };
        if number.trim().is_empty() || !number.trim().bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        turns.extend(rolls(text).into_iter().map(|(at, dice, moves)| (at + number.len(), dice, moves)));
    }
    for (index, (at, dice, moves)) in turns.iter().enumerate() {
        if play.actions().is_empty() {
            play.step(u16::from(*at >= SECOND / 2))?;
        }
        finish_turn(&mut play)?;
        play.step_text(&format!("{}-{}", &dice[..1], &dice[1..]))?;
        let end = if index + 1 == turns.len() { TurnEnd::Open } else { TurnEnd::Complete };
        play_turn(&mut play, moves, end)?;
    }
    finish_turn(&mut play)?;
    match play.actions().is_empty() {
        true => Err(Error::unsupported("reading this file as a backgammon match", "it has no turns")),
        false => Ok(play),
    }
}

/// The turns of a line: where each begins, its dice, and its moves.
fn rolls(line: &str) -> Vec<(usize, &str, &str)> {
    let bytes = line.as_bytes();
    let is_die = |at: usize| bytes.get(at).is_some_and(|byte| (b'1'..=b'6').contains(byte));
    let begins: Vec<usize> = (0..bytes.len().saturating_sub(2))
        .filter(|&at| {
            is_die(at)
                && is_die(at + 1)
                && bytes[at + 2] == b':'
                && (at == 0 || bytes[at - 1].is_ascii_whitespace())
        })
        .collect();
    let end = |index: usize| begins.get(index + 1).copied().unwrap_or(line.len());
    let turn = |(index, &at): (usize, &usize)| (at, &line[at..at + 2], &line[at + 3..end(index)]);
    begins.iter().enumerate().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn games_are_read_as_written() {
        let registry = Registry::built_in();
        for seed in 0..6 {
            let game = registry.game(BACKGAMMON, &toml::Table::new()).expect("valid");
            let mut play = Playthrough::new(game);
            while play.turn() != Turn::Over {
                let legal = play.legal();
                let mut rng = Key::new(seed, Purpose::Evaluation).with(play.actions().len() as u64).stream();
                play.step(legal[rng.below(legal.len())]).expect("legal");
            }
            let text = HEAD.to_string() + &write(&play, &Players::default()).expect("a record");
            assert!(is_match(&text));
            let again = read(&text, &registry).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert_eq!(again.state(), play.state(), "{text}");
            assert!(text.contains("Wins "), "{text}");
            let dice: Vec<&str> = text.lines().flat_map(rolls).map(|(_, dice, _)| dice).collect();
            assert!(
                dice.len() > 10 && dice.iter().all(|dice| dice[..1] >= dice[1..]),
                "higher first: {text}"
            );
        }
    }

    #[test]
    fn games_within_a_turn_are_read_as_written() {
        let registry = Registry::built_in();
        let mut play = Playthrough::new(registry.game(BACKGAMMON, &toml::Table::new()).expect("valid"));
        while play.actions().len() < 40 {
            let legal = play.legal();
            let mut rng = Key::new(7, Purpose::Evaluation).with(play.actions().len() as u64).stream();
            play.step(legal[rng.below(legal.len())]).expect("legal");
        }
        for plies in 2..=40 {
            let mut cut = play.after(plies);
            let text = HEAD.to_string() + &write(&cut, &Players::default()).expect("a record");
            let again = read(&text, &registry).unwrap_or_else(|e| panic!("{e}: {text}"));
            finish_turn(&mut cut).expect("legal");
            assert_eq!((again.state(), again.turn()), (cut.state(), cut.turn()), "{plies} plies: {text}");
        }
    }

    #[test]
    fn compound_moves_are_read() {
        let text = " 7 point match\n\n Game 1\n a : 0                           b : 0\n\
                    \x20 1) 65: 24/13                     11: 8/7(2) 6/5(2)\n\
                    \x20 2) 52: 13/8 24/22                Doubles => 2\n\x20 3)  Takes                         33:\n";
        let open = read(text, &Registry::built_in()).expect("a game in progress");
        assert_eq!((open.names().last().map(String::as_str), open.turn()), (Some("3-3"), Turn::Player(1)));
        let further = format!("{text}  4) 21: 13/11 6/5\n");
        let error = read(&further, &Registry::built_in()).err().expect("the turn has moves").to_string();
        assert!(error.contains("33"), "{error}");
        let text = text.replace("33:", "63: 24/15");
        let play = read(&text, &Registry::built_in()).expect("a game");
        let names = play.names();
        assert_eq!(names[..4], ["player 0", "6-5", "24/18", "18/13"]);
        assert_eq!(names[4..9], ["1-1", "8/7", "8/7", "6/5", "6/5"]);
    }

    #[test]
    fn files_of_gnu_backgammon_are_read() {
        // Exported by GNU Backgammon 1.07.001.
        let text = "; [EventDate \"2026.11.25\"]\n\n 0 point match\n\n Game 1\n human : 0                      human : 0\n\
                    \x20 1)                             63: 13/7 6/3 \n\
                    \x20 2) 22: 24/22* 13/11 8/6 6/4    52: 25/20 8/6 \n\
                    \x20 3) 43: 13/9 9/6                32: 8/6 6/3* \n\
                    \x20 4) 31: 25/24 6/3               66: 24/18 20/14* 14/8 13/7\n\
                    \x20 5) 64: 25/21 8/2               32: 7/5 6/3 \n";
        assert!(is_match(text));
        let play = read(text, &Registry::built_in()).expect("a game");
        let names = play.names();
        assert_eq!(names[..6], ["player 1", "6-3", "13/7", "6/3", "2-2", "24/22"]);
        let rolls = names.iter().filter(|name| name.contains('-')).count();
        assert_eq!((rolls, play.turn()), (9, Turn::Chance));
    }

    #[test]
    fn wrong_files_are_refused() {
        for text in [
            " Game 1\n",
            " Game 1\n  1) 65: 24/12\n",
            " Game 1\n  1) 66: 24/18  21: 6/4\n",
            " Game 1\n  1) 65: x/y\n",
        ] {
            assert!(is_match(text) && read(text, &Registry::built_in()).is_err(), "{text}");
        }
    }
}
