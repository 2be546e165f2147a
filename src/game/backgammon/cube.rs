//! The doubling cube and matches: rules, and what positions are worth with them.
//!
//! Before a roll the player on roll may double, if the cube is in the middle or that player's own; the other one takes, who then owns the cube, or
//! passes, which loses the stake. Not before the first roll of a game, nor in Crawford's game, nor where the stake wins the match. No beavers,
//! no Jacoby rule. In a match games follow each other until a player has `match_points`.
//!
//! Networks learn games without cube and score, and predict their results (the target [`OUTCOMES`](super::OUTCOMES)), from which
//! [`equity`](super::equity) computes what a position is worth. An observation has what that takes in [`NUM_EXTRAS`] elements at its end.

use super::equity::{Aim, Cube, MAX_DOUBLINGS, MAX_STAKES, Outcomes, Position, Side};
use super::{
    BAR, BOARD_LEN, Backgammon, HOME, OTHER_BAR, PHASE_MOVE, PHASE_OPENING_ROLL, PHASE_OVER, PHASE_ROLL,
    PHASE_STARTER, SHORT_START, START, State, pips, turned,
};

#[cfg(test)]
mod tests;

/// The phase in which the player on roll may double.
pub(super) const PHASE_DOUBLE: u8 = 5;
/// The phase in which the other player takes or passes.
pub(super) const PHASE_TAKE: u8 = 6;
/// In [`PHASE_DOUBLE`]: roll. In [`PHASE_TAKE`]: take.
pub(super) const ROLL_OR_TAKE: u16 = 0;
/// In [`PHASE_DOUBLE`]: double. In [`PHASE_TAKE`]: pass.
pub(super) const DOUBLE_OR_PASS: u16 = 1;

/// The bits of [`State::cube`] that count how often it was turned.
const DOUBLINGS: u8 = 0b111;
/// The bit of player 0 as owner of the cube; the next one is that of player 1.
const OWNER_0: u8 = 0b1000;
/// The bits of both.
const OWNERS: u8 = OWNER_0 | (OWNER_0 << 1);
/// The bit of Crawford's game.
const CRAWFORD: u8 = 0b10_0000;

/// Elements of an observation after those that a network sees.
pub(super) const NUM_EXTRAS: usize = 8;

impl State {
    /// How often the cube was turned.
    pub(super) fn doublings(&self) -> u8 {
        self.cube & DOUBLINGS
    }

    /// What the game is played for: 1, 2, 4, .., 64.
    pub(super) fn stake(&self) -> u32 {
        1 << self.doublings()
    }

    /// The player who alone may turn the cube.
    pub(super) fn owner(&self) -> Option<u8> {
        (0..2).find(|player| self.cube & (OWNER_0 << player) != 0)
    }

    pub(super) fn is_crawford(&self) -> bool {
        self.cube & CRAWFORD != 0
    }

    /// The points that the winner of a finished game has won.
    pub(super) fn points_won(&self) -> u32 {
        u32::from(self.points) * self.stake()
    }

    /// True if the bits of the cube are those of a cube.
    pub(super) fn has_valid_cube(&self) -> bool {
        self.doublings() <= MAX_DOUBLINGS && self.cube < 2 * CRAWFORD && self.cube & OWNERS != OWNERS
    }

    /// The state with players exchanged where player 1 moves, so that player 0 does.
    pub(super) fn with_mover_0(mut self) -> Self {
        if self.mover == 1 {
            self.score.swap(0, 1);
            if self.owner().is_some() {
                self.cube ^= OWNERS;
            }
            self.mover = 0;
        }
        self
    }
}

impl Backgammon {
    /// True if positions have the elements of cube and score.
    #[inline]
    pub(super) fn has_extras(&self) -> bool {
        self.cube || self.match_points > 0
    }

    /// What `player` plays for in `s`.
    fn aim_of(&self, s: &State, player: u8) -> Aim {
        match self.match_points as i32 {
            0 => Aim::Money,
            points => Aim::Match {
                to_go: [player, 1 - player].map(|player| points - i32::from(s.score[usize::from(player)])),
                is_crawford: s.is_crawford(),
                has_cube: self.cube,
            },
        }
    }

    /// The cube of the first game.
    pub(super) fn first_cube(&self) -> u8 {
        if self.cube && self.match_points == 1 { CRAWFORD } else { 0 }
    }

    /// After the end of a turn or of a game: lets the player on roll double, or begins the next game of a match.
    #[inline]
    pub(super) fn end_of_ply(&self, s: &mut State) {
        match s.phase {
            PHASE_ROLL if self.cube && self.may_double(s) => s.phase = PHASE_DOUBLE,
            PHASE_OVER if self.match_points > 0 => self.end_game(s),
            _ => {}
        }
    }

    fn may_double(&self, s: &State) -> bool {
        s.owner().is_none_or(|owner| owner == s.mover)
            && self.aim_of(s, s.mover).allows(s.doublings(), Side::X)
    }

    /// Turns the cube, takes it or passes.
    pub(super) fn decide_cube(&self, s: &mut State, action: u16) {
        match (s.phase, action) {
            (PHASE_DOUBLE, DOUBLE_OR_PASS) => s.phase = PHASE_TAKE,
            (PHASE_TAKE, DOUBLE_OR_PASS) => {
                s.points = 1;
                s.phase = PHASE_OVER;
                self.end_of_ply(s);
            }
            (PHASE_TAKE, _) => {
                s.cube = (s.doublings() + 1) | (OWNER_0 << (1 - s.mover));
                s.phase = PHASE_ROLL;
            }
            _ => s.phase = PHASE_ROLL,
        }
    }

    /// Adds the points of a finished game to the score, and begins the next one if nobody has won the match.
    fn end_game(&self, s: &mut State) {
        let (points, last) = (self.match_points, self.match_points - 1);
        let highest = |s: &State| u32::from(s.score[0].max(s.score[1]));
        let before = highest(s);
        let winner = usize::from(s.mover);
        s.score[winner] = (u32::from(s.score[winner]) + s.points_won()).min(points) as u8;
        if highest(s) < points {
            let cube = if self.cube && before < last && highest(s) == last { CRAWFORD } else { 0 };
            let board = if self.short_game { SHORT_START } else { START };
            let (score, plies) = (s.score, s.plies);
            *s = State { board, dice: [0; 4], phase: PHASE_STARTER, mover: 0, points: 0, cube, plies, score };
        }
    }

    /// The result for the winner, in [0, 1].
    pub(super) fn result_with_extras(&self, s: &State) -> f32 {
        match self.match_points {
            0 => s.points_won() as f32 / MAX_STAKES as f32,
            points => f32::from(u8::from(u32::from(s.score[usize::from(s.mover)]) >= points)),
        }
    }

    /// The player who sees a position before a roll in place of `player`: a network of whole turns learns such positions as the player
    /// sees them who has just moved.
    #[inline]
    pub(super) fn observer(&self, s: &State, player: u8) -> u8 {
        if self.has_extras() && s.phase != PHASE_MOVE { 1 - s.mover } else { player }
    }

    /// Writes the elements of cube and score, from the viewpoint of `player`: whether another player's view is observed; how often the
    /// cube was turned; its owner: 1, -1 for the other player, 0 for neither; the next event: 1 the player on roll may double, 2 the other one takes or
    /// passes, 3 the next game of the match, 0 any other; points to go in the match, own and the other player's; whether it is Crawford's game; cube
    /// efficiency. `[8]`
    pub(super) fn write_extras(&self, s: &State, player: u8, out: &mut [f32]) {
        let is_seen_by_other = self.observer(s, player) != player;
        let owner = s.owner().map_or(0.0, |owner| if owner == player { 1.0 } else { -1.0 });
        let event = match s.phase {
            PHASE_DOUBLE => MAY_DOUBLE,
            PHASE_TAKE => MAY_TAKE,
            PHASE_STARTER | PHASE_OPENING_ROLL if self.match_points > 0 => NEXT_GAME,
            _ => 0.0,
        };
        let to_go = match self.aim_of(s, player) {
            Aim::Money => [0.0; 2],
            Aim::Match { to_go, .. } => to_go.map(|points| points as f32),
        };
        out.copy_from_slice(&[
            f32::from(u8::from(is_seen_by_other)),
            f32::from(s.doublings()),
            owner,
            event,
            to_go[0],
            to_go[1],
            f32::from(u8::from(s.is_crawford())),
            if self.cube { efficiency(&s.board) } else { -1.0 },
        ]);
    }
}

/// The next event of a position, where its equity depends on it: the player on roll may double.
const MAY_DOUBLE: f32 = 1.0;
/// The other player takes or passes.
const MAY_TAKE: f32 = 2.0;
/// Another game of the match begins.
const NEXT_GAME: f32 = 3.0;

/// The values of a position for both players, the observer first, by its elements of cube and score `[8]` and the predictions of its results `[5]`.
/// `[2]`
pub(super) fn values(extras: &[f32], predictions: &[f32], out: &mut [f32]) {
    let &[is_seen_by_other, doublings, owner, event, to_go, of_other, is_crawford, efficiency] = extras
    else {
        return;
    };
    let aim = match to_go > 0.0 || of_other > 0.0 {
        true => Aim::Match {
            to_go: [to_go as i32, of_other as i32],
            is_crawford: is_crawford > 0.0,
            has_cube: efficiency >= 0.0,
        },
        false => Aim::Money,
    };
    let seen = Outcomes::of_predictions(predictions);
    let outcomes = if is_seen_by_other > 0.0 { seen.of_other() } else { seen };
    let owner = match owner {
        1.0 => Some(Side::X),
        -1.0 => Some(Side::Other),
        _ => None,
    };
    let cube = Cube { doublings: doublings as u8, owner };
    let position = Position { outcomes, aim, efficiency: f64::from(efficiency.max(0.0)) };
    // The player on roll decides on the cube, whom the other one sees.
    let on_roll = || match is_seen_by_other > 0.0 {
        true => (position, cube, 1.0),
        false => (position.of_other(), cube.of_other(), -1.0),
    };
    let value = match event {
        MAY_DOUBLE => {
            let (position, cube, sign) = on_roll();
            sign * position.equity_before_double(cube)
        }
        MAY_TAKE => {
            let (position, cube, sign) = on_roll();
            sign * position.equity_of_double(cube)
        }
        NEXT_GAME => aim.equity_before_game(),
        _ => position.equity(cube),
    } as f32;
    out.copy_from_slice(&[value, -value]);
}

/// Janowski's cube efficiency of a board, as GNU Backgammon estimates it: 0.68 with contact; in a race 0.55 and a hundredth for every 8 pips of the
/// player on roll, between 0.6 and 0.7; 0.6 once all checkers are at home.
fn efficiency(board: &[i8; BOARD_LEN]) -> f32 {
    let of_other = turned(board);
    // Indices grow in the direction of travel; the other side's rearmost checker is the one with the highest index.
    let rear = (BAR..OTHER_BAR).find(|&index| board[index] > 0);
    let other_rear = (BAR + 1..=OTHER_BAR).rev().find(|&index| board[index] < 0);
    let is_home = |board: &[i8; BOARD_LEN]| board[BAR..HOME].iter().all(|&n| n <= 0);
    match (rear, other_rear) {
        (Some(rear), Some(other_rear)) if rear < other_rear => 0.68,
        _ if is_home(board) && is_home(&of_other) => 0.6,
        _ => (0.55 + pips(board) as f32 * 0.00125).clamp(0.6, 0.7),
    }
}
