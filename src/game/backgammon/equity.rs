//! The equity of a position with a doubling cube: Janowski's interpolation between a cube that nobody turns again and one that is always turned at
//! the best moment ("Take-Points in Money Games", 1993), for money and for matches, as GNU Backgammon has it.
//!
//! In: probabilities of the six results, the cube, the score. Out: equity in [-1, 1] to one player, X; nothing here knows boards.

use super::match_equity::{Stage, match_equity};

/// The cube is turned at most this often, from 1 to 64.
pub(super) const MAX_DOUBLINGS: u8 = 6;
/// The maximum number of points of one game without a match.
pub(super) const MAX_STAKES: f64 = 3.0 * (1 << MAX_DOUBLINGS) as f64;

/// One of the two players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// X, to whom equity is counted.
    X,
    /// The other player.
    Other,
}

impl Side {
    fn opposite(self) -> Self {
        match self {
            Self::X => Self::Other,
            Self::Other => Self::X,
        }
    }
}

/// The cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cube {
    /// How often it was turned: the stake is 2 to this power.
    pub doublings: u8,
    /// Who alone may turn it; None: both.
    pub owner: Option<Side>,
}

impl Cube {
    /// The same cube where the other player is X.
    pub fn of_other(self) -> Self {
        Self { owner: self.owner.map(Side::opposite), ..self }
    }
}

/// The probabilities of results for X, the outputs of GNU Backgammon's networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcomes {
    /// Of a win.
    pub win: f64,
    /// Of a gammon or a backgammon.
    pub gammon: f64,
    /// Of a backgammon.
    pub backgammon: f64,
    /// Of a lost gammon or backgammon.
    pub lost_gammon: f64,
    /// Of a lost backgammon.
    pub lost_backgammon: f64,
}

impl Outcomes {
    /// Those that a network predicted, as numbers 2 p - 1, made to agree with each other. `[5]`
    pub fn of_predictions(predictions: &[f32]) -> Self {
        let p = |index: usize| ((1.0 + f64::from(predictions[index])) / 2.0).clamp(0.0, 1.0);
        let win = p(0);
        let (gammon, lost_gammon) = (p(1).min(win), p(3).min(1.0 - win));
        Self {
            win,
            gammon,
            backgammon: p(2).min(gammon),
            lost_gammon,
            lost_backgammon: p(4).min(lost_gammon),
        }
    }

    /// The same results for the other player.
    pub fn of_other(self) -> Self {
        Self {
            win: 1.0 - self.win,
            gammon: self.lost_gammon,
            backgammon: self.lost_backgammon,
            lost_gammon: self.gammon,
            lost_backgammon: self.backgammon,
        }
    }
}

/// What is played for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Aim {
    /// Points: each is worth 1 / [`MAX_STAKES`].
    Money,
    /// The match.
    Match {
        /// Points that X and the other player lack before this game.
        to_go: [i32; 2],
        /// True in Crawford's game, in which nobody doubles.
        is_crawford: bool,
        /// False in a match without a cube.
        has_cube: bool,
    },
}

impl Aim {
    /// What X has once X has won this many points, or lost them.
    pub fn equity(self, points: i32) -> f64 {
        match self {
            Self::Money => f64::from(points) / MAX_STAKES,
            Self::Match { to_go: [own, other], is_crawford, has_cube } => {
                let stage = match has_cube {
                    false => Stage::WithoutCube,
                    true if is_crawford || own == 1 || other == 1 => Stage::PostCrawford,
                    true => Stage::PreCrawford,
                };
                2.0 * match_equity([own - points.max(0), other - (-points).max(0)], stage) - 1.0
            }
        }
    }

    /// What X has before the game begins.
    pub fn equity_before_game(self) -> f64 {
        match self {
            Self::Money => 0.0,
            Self::Match { to_go, is_crawford, has_cube } => {
                let stage = match has_cube {
                    false => Stage::WithoutCube,
                    true if !is_crawford && to_go.contains(&1) => Stage::PostCrawford,
                    true => Stage::PreCrawford,
                };
                2.0 * match_equity(to_go, stage) - 1.0
            }
        }
    }

    /// The same aim where the other player is X.
    fn of_other(self) -> Self {
        match self {
            Self::Money => Self::Money,
            Self::Match { to_go: [own, other], is_crawford, has_cube } => {
                Self::Match { to_go: [other, own], is_crawford, has_cube }
            }
        }
    }

    /// True if `side` may turn the cube after `doublings` turns and gains by it: not in Crawford's game, nor where the stake wins the match.
    pub fn allows(self, doublings: u8, side: Side) -> bool {
        let gains = match self {
            Self::Money => true,
            Self::Match { to_go: [own, other], is_crawford, has_cube } => {
                let to_go = if side == Side::X { own } else { other };
                has_cube && !is_crawford && to_go > 1 << doublings
            }
        };
        gains && doublings < MAX_DOUBLINGS
    }
}

/// A position before a roll, or before chance in general.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The results of play without a cube.
    pub outcomes: Outcomes,
    /// What is played for.
    pub aim: Aim,
    /// Janowski's cube efficiency: 0 where nobody turns the cube again, 1 where it is always turned at the best moment.
    pub efficiency: f64,
}

impl Position {
    /// The same position where the other player is X.
    pub fn of_other(self) -> Self {
        Self { outcomes: self.outcomes.of_other(), aim: self.aim.of_other(), ..self }
    }

    /// What X has if nobody turns the cube before the next roll.
    pub fn equity(&self, cube: Cube) -> f64 {
        let p = self.outcomes.win;
        let [lost, won] = self.ends(cube.doublings);
        let dead = lost + (won - lost) * p;
        dead + self.efficiency * (self.live(cube, p) - dead)
    }

    /// What X, who may turn the cube, has after the better of both decisions, and the answer to it.
    pub fn equity_before_double(&self, cube: Cube) -> f64 {
        self.equity(cube).max(self.equity_of_double(cube))
    }

    /// What X has after turning the cube and the other player's answer.
    pub fn equity_of_double(&self, cube: Cube) -> f64 {
        let taken = Cube { doublings: cube.doublings + 1, owner: Some(Side::Other) };
        self.equity(taken).min(self.aim.equity(1 << cube.doublings))
    }

    /// What X has on average after a loss, and after a win, where the cube stays.
    fn ends(&self, doublings: u8) -> [f64; 2] {
        let Outcomes { win, gammon, backgammon, lost_gammon, lost_backgammon } = self.outcomes;
        let stake = 1 << doublings;
        let mean = |all: f64, gammon: f64, backgammon: f64, stake: i32| {
            let equity = |points| self.aim.equity(points * stake);
            match all > 0.0 {
                true => {
                    ((all - gammon) * equity(1) + (gammon - backgammon) * equity(2) + backgammon * equity(3))
                        / all
                }
                false => equity(1),
            }
        };
        [mean(1.0 - win, lost_gammon, lost_backgammon, -stake), mean(win, gammon, backgammon, stake)]
    }

    fn may_double(&self, cube: Cube, side: Side) -> bool {
        cube.owner.is_none_or(|owner| owner == side) && self.aim.allows(cube.doublings, side)
    }

    /// What X has with the probability `p` of a win, where everybody always doubles exactly when the other one is indifferent between taking and
    /// passing: linear between those points, at which the other one passes.
    fn live(&self, cube: Cube, p: f64) -> f64 {
        let [lost, won] = self.ends(cube.doublings);
        let stake = 1 << cube.doublings;
        let of_other = self
            .may_double(cube, Side::Other)
            .then(|| (1.0 - self.cash_point(cube.doublings, Side::Other), self.aim.equity(-stake)));
        let of_x = self
            .may_double(cube, Side::X)
            .then(|| (self.cash_point(cube.doublings, Side::X), self.aim.equity(stake)));
        let mut before = (0.0, lost);
        for after in [of_other, of_x, Some((1.0, won))].into_iter().flatten() {
            if p <= after.0 {
                let width = (after.0 - before.0).max(f64::MIN_POSITIVE);
                return before.1 + (after.1 - before.1) * (p - before.0) / width;
            }
            before = after;
        }
        won
    }

    /// What X has after a loss and after a win, as what `side` has after its own.
    fn of_side(side: Side, [lost, won]: [f64; 2]) -> [f64; 2] {
        match side {
            Side::X => [lost, won],
            Side::Other => [-won, -lost],
        }
    }

    /// The probability of a win from which on the other player passes when `side` turns the cube. For money with a cube that may be turned for
    /// ever, which makes it the same at every stake; in a match counted back from the stake at which the cube is dead.
    fn cash_point(&self, doublings: u8, side: Side) -> f64 {
        if self.aim == Aim::Money {
            let [lost, won] = Self::of_side(side, self.ends(0)).map(|equity| equity * MAX_STAKES);
            return (1.0 - lost) / (won - lost + 0.5);
        }
        let sign = if side == Side::X { 1 } else { -1 };
        let of_side = |equity: f64| f64::from(sign) * equity;
        let stake = 1 << doublings;
        let [lost, won] = Self::of_side(side, self.ends(doublings + 1));
        let passed = of_side(self.aim.equity(sign * stake));
        // The other player, who takes, has the cube at twice the stake, and turns it at a point of its own.
        let turned = Cube { doublings: doublings + 1, owner: Some(side.opposite()) };
        let (p, equity) = match self.may_double(turned, side.opposite()) {
            true => (
                1.0 - self.cash_point(doublings + 1, side.opposite()),
                of_side(self.aim.equity(-sign * 2 * stake)),
            ),
            false => (0.0, lost),
        };
        let slope = (1.0 - p) / (won - equity).max(f64::MIN_POSITIVE);
        (p + (passed - equity) * slope).clamp(0.0, 1.0)
    }
}
