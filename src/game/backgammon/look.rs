//! The look of a backgammon board: as player 0 sees it, who moves from point 24 to point 1.

use super::cube::{PHASE_DOUBLE, PHASE_TAKE};
use super::{BAR, Backgammon, OFF, OTHER_BAR, OTHER_OFF, PHASE_MOVE, PHASE_OVER, PHASE_STARTER, State};
use crate::game::view::{Board, Colour, Piece, Shape, Slot, SlotRole, Slots, Spot, View};

/// Slots of a row: two halves of six points, with the bar between them and a tray at the end.
const ROW: usize = 14;
/// The index of the bar in a row.
const ROW_BAR: usize = 6;
/// The index of the tray in a row.
const ROW_TRAY: usize = 13;

/// Points 13 to 24 with the bar of player 0 and the tray of player 1, below them 12 to 1 with the bar of player 1 and the tray of player
/// 0, and what happens next.
pub(super) fn view(game: &Backgammon, s: &State) -> View {
    let board = s.seen_by(0);
    let row = |row: usize| -> Vec<Slot> {
        let upper = row == 0;
        let slot = |index: usize| {
            let off = |label: &str, role, player: u8, count: i8| Slot {
                label: label.into(),
                role,
                piece: Some(player),
                count: count.unsigned_abs(),
            };
            match (index, upper) {
                (ROW_BAR, true) => off("bar", SlotRole::Bar, 0, board[BAR]),
                (ROW_BAR, false) => off("bar", SlotRole::Bar, 1, board[OTHER_BAR]),
                (ROW_TRAY, true) => off("off", SlotRole::Tray, 1, board[OTHER_OFF]),
                (ROW_TRAY, false) => off("off", SlotRole::Tray, 0, board[OFF]),
                _ => {
                    let column = index - usize::from(index > ROW_BAR);
                    let point = if upper { 13 + column } else { 12 - column };
                    let count = board[26 - point];
                    let piece = (count != 0).then_some(u8::from(count < 0));
                    Slot {
                        label: point.to_string(),
                        role: SlotRole::Point,
                        piece,
                        count: count.unsigned_abs(),
                    }
                }
            }
        };
        (0..ROW).map(slot).collect()
    };
    let pieces = Piece::pair([Shape::Disc; 2], ["X", "O"]);
    let slots = Slots { rows: [row(0), row(1)], pieces };
    let mut view =
        View::new(Board::Slots(slots), &[Colour::White, Colour::Black]).with_note(next_event(game, s));
    if game.cube {
        let owner = match s.owner() {
            Some(player) => format!("{}'s", mark(player)),
            None => "in the middle".into(),
        };
        view = view.with_note(format!("the cube is at {}, {owner}", s.stake()));
    }
    if game.match_points > 0 {
        let crawford = if game.match_points > 1 && s.is_crawford() { ", Crawford's game" } else { "" };
        let [x, o] = s.score;
        view = view.with_note(format!("X {x}, O {o} in a match for {}{crawford}", game.match_points));
    }
    view.dice = s.dice.iter().copied().filter(|&die| die > 0).collect();
    view
}

fn mark(player: u8) -> char {
    if player == 0 { 'X' } else { 'O' }
}

fn next_event(game: &Backgammon, s: &State) -> String {
    let name = |player: u8| format!("{} (player {player})", mark(player));
    let player = name(s.mover);
    match s.phase {
        PHASE_STARTER => "the starter is drawn".into(),
        PHASE_MOVE => {
            let dice: Vec<String> = s.dice.iter().filter(|&&d| d > 0).map(u8::to_string).collect();
            format!("{player} to play {}", dice.join("-"))
        }
        PHASE_OVER if s.points == 0 => "ended as a draw at the ply limit".into(),
        PHASE_OVER if game.match_points > 0 => format!("{player} has won the match"),
        PHASE_OVER => format!("{player} has won {}", s.points_won()),
        PHASE_DOUBLE => format!("{player} to double or to roll"),
        PHASE_TAKE => format!("{player} doubles: {} to take or to pass", name(1 - s.mover)),
        _ => format!("{player} to roll"),
    }
}

/// The slots that a checker moves from and to.
pub(super) fn spot(s: &State, action: u16) -> Spot {
    if s.phase != PHASE_MOVE || action < 6 {
        return Spot::Button;
    }
    let (source, die) = (usize::from(action / 6), usize::from(action % 6 + 1));
    let from = if source == BAR { bar(s.mover) } else { slot_of(s.mover, source) };
    let target = source + die;
    let to = if target >= OTHER_BAR { tray(s.mover) } else { slot_of(s.mover, target) };
    Spot::Move(from as u16, to as u16)
}

fn bar(player: u8) -> usize {
    usize::from(player) * ROW + ROW_BAR
}

fn tray(player: u8) -> usize {
    usize::from(1 - player) * ROW + ROW_TRAY
}

/// The slot of an index of [`State::board`] that is a point, seen by `mover`.
fn slot_of(mover: u8, index: usize) -> usize {
    let point = if mover == 0 { 26 - index } else { index - 1 };
    let column = if point > 12 { point - 13 } else { 12 - point };
    let row = usize::from(point <= 12);
    row * ROW + column + usize::from(column >= ROW_BAR)
}
