//! Backgammon notation.

use super::cube::{PHASE_DOUBLE, PHASE_TAKE, ROLL_OR_TAKE};
use super::{BAR, OTHER_BAR, PHASE_MOVE, PHASE_OPENING_ROLL, PHASE_ROLL, PHASE_STARTER, ROLLS, State};

/// The point of an index, counted by the player to move: 24 down to 1, 25 for the bar, 0 and below for off.
fn point(index: u16) -> i32 {
    26 - i32::from(index)
}

/// The name of a legal action or outcome.
pub(super) fn name(s: &State, action: u16) -> String {
    match s.phase {
        PHASE_STARTER => return format!("player {action}"),
        PHASE_DOUBLE => return if action == ROLL_OR_TAKE { "roll".into() } else { "double".into() },
        PHASE_TAKE => return if action == ROLL_OR_TAKE { "take".into() } else { "pass".into() },
        PHASE_MOVE if action < 6 => return "no move".into(),
        PHASE_MOVE => {}
        _ => {
            let [low, high] = ROLLS.get(usize::from(action)).copied().unwrap_or_default();
            return format!("{high}-{low}");
        }
    }
    let (index, die) = (action / 6, action % 6 + 1);
    let from = if usize::from(index) == BAR { "bar".into() } else { point(index).to_string() };
    match point(index + die) {
        0 => format!("{from}/off"),
        to if to < 0 => format!("{from}/off({die})"),
        to => format!("{from}/{to}"),
    }
}

/// The legal action called `text`.
pub(super) fn parse(s: &State, legal: &[u16], text: &str) -> Option<u16> {
    let text = text.trim().trim_end_matches('*').to_ascii_lowercase();
    let named = |wanted: &str| legal.iter().copied().find(|&a| name(s, a) == wanted);
    if let Some(action) = named(&text) {
        return Some(action);
    }
    match s.phase {
        PHASE_MOVE if text.parse::<u16>().is_ok_and(|a| a < 6) => named("no move"),
        PHASE_MOVE => legal.iter().copied().find(|&a| name(s, a).split('(').next() == Some(&text)),
        PHASE_ROLL | PHASE_OPENING_ROLL => {
            let (a, b) = text.split_once('-')?;
            named(&format!("{b}-{a}"))
        }
        _ => None,
    }
}

/// GNU Backgammon's position ID (its manual, "A technical description of the Position ID"): for the player not to move and then
/// for the player to move, the checkers on the own points 1 to 24 and on the bar, each count in ones followed by a zero; 80 bits,
/// the lowest of each byte first, in base 64.
pub(super) fn position_id(s: &State) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut key = [0u8; 12];
    let mut bit = 0;
    for player in [s.mover ^ 1, s.mover] {
        let board = s.seen_by(player);
        for index in (BAR..OTHER_BAR).rev() {
            for _ in 0..board[index].max(0) {
                key[bit / 8] |= 1 << (bit % 8);
                bit += 1;
            }
            bit += 1;
        }
    }
    let digits = key.chunks_exact(3).flat_map(|three| {
        let bits = three.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63]))
    });
    digits.take(14).collect()
}
