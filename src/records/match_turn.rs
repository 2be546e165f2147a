//! A turn of backgammon in a match's text, `24/18*/13 8/5(2)`, as plies of one die each.

use crate::batch::Playthrough;
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::game::view::{Board, SlotRole, Viewer};

/// The point of the bar, from the mover's side.
const BAR: u8 = 25;
/// The point of checkers that are borne off.
const OFF: u8 = 0;
/// Maximum number of checkers that a turn moves.
const MAX_CHECKERS: usize = 4;

/// A checker's move from one point to another, over one die or several.
type CheckerMove = (u8, u8);

/// What a turn leaves of its dice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// None that could be played.
    Complete,
    /// Any: the game was saved within its last turn.
    Open,
}

/// Plays the moves of one turn, whose dice are thrown: as a complete turn where they can be one.
///
/// # Errors
/// [`Error::Unsupported`] where no plies of these dice make the moves.
pub fn play_turn(play: &mut Playthrough, text: &str, end: TurnEnd) -> Result<()> {
    let wrong = || {
        let ply = play.actions().len();
        let dice = play.names().last().cloned().unwrap_or_default().replace('-', "");
        let what = format!("the turn {dice}: {} after ply {ply} is against the rules", text.trim());
        Error::unsupported("reading this file as a backgammon match", what)
    };
    let moves = moves(text).ok_or_else(wrong)?;
    let complete = plies(play, &moves, TurnEnd::Complete);
    let found = complete.or_else(|| plies(play, &moves, end)).ok_or_else(wrong)?;
    found.into_iter().try_for_each(|action| play.step(action))
}

/// Plays "no move" while nothing else is left of a turn.
///
/// # Errors
/// Those of [`Playthrough::step`].
pub fn finish_turn(play: &mut Playthrough) -> Result<()> {
    while let (Turn::Player(_), Some(action)) = (play.turn(), play.find("no move")) {
        play.step(action)?;
    }
    Ok(())
}

/// The moves in a text; None for one that is none.
fn moves(text: &str) -> Option<Vec<CheckerMove>> {
    let mut moves = Vec::new();
    for word in text.split_whitespace() {
        if !word.contains('/') {
            // Words about the cube and results.
            continue;
        }
        let (word, times) = match word.trim_end_matches('*').split_once('(') {
            Some((word, times)) => (word, times.trim_end_matches([')', '*']).parse().ok()?),
            None => (word, 1),
        };
        if !(1..=MAX_CHECKERS).contains(&times) {
            return None;
        }
        let points: Vec<u8> = word.split('/').map(point).collect::<Option<_>>()?;
        for _ in 0..times {
            moves.extend(points.windows(2).map(|pair| (pair[0], pair[1])));
        }
    }
    (moves.len() <= MAX_CHECKERS).then_some(moves)
}

fn point(text: &str) -> Option<u8> {
    match text.trim_end_matches('*').to_ascii_lowercase().as_str() {
        "bar" => Some(BAR),
        "off" => Some(OFF),
        number => number.parse().ok().filter(|point| *point <= BAR),
    }
}

/// The plies that make exactly `moves`, and after which the turn ends so.
fn plies(play: &Playthrough, moves: &[CheckerMove], turn_end: TurnEnd) -> Option<Vec<u16>> {
    let mut next = play.clone();
    finish_turn(&mut next).ok()?;
    if moves.is_empty() && (turn_end == TurnEnd::Open || !matches!(next.turn(), Turn::Player(_))) {
        return Some(next.actions()[play.actions().len()..].to_vec());
    }
    let Turn::Player(player) = play.turn() else { return None };
    for action in play.legal() {
        let name = play.game().action_name(play.state(), action);
        let Some((from, to)) = name.split('(').next().and_then(|name| name.split_once('/')) else { continue };
        let (from, to) = (point(from)?, point(to)?);
        let Some(at) = moves.iter().position(|&(start, end)| start == from && end <= to) else { continue };
        let mut rest = moves.to_vec();
        let (_, end) = rest.remove(at);
        let mut next = play.clone();
        next.step(action).ok()?;
        if end < to {
            // A way that hits in between says so.
            if on_bar(&next, 1 - player) > on_bar(play, 1 - player) {
                continue;
            }
            rest.push((to, end));
        }
        if let Some(mut found) = plies(&next, &rest, turn_end) {
            found.insert(0, action);
            return Some(found);
        }
    }
    None
}

/// The checkers of `player` on the bar.
fn on_bar(play: &Playthrough, player: u8) -> u32 {
    let Board::Slots(slots) = play.view(Viewer::All).board else { return 0 };
    let is_own =
        |piece: Option<u8>| piece.is_some_and(|piece| slots.pieces[usize::from(piece)].owner == Some(player));
    let bars = slots.rows.iter().flatten().filter(|slot| slot.role == SlotRole::Bar && is_own(slot.piece));
    bars.map(|slot| u32::from(slot.count)).sum()
}
