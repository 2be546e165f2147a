//! One game of a match: its opening, its luck, the seat of either contestant, and its outcome.

use super::plan::{MatchPlan, group_size, random_step};
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::batch::rollouts::Decision;
use crate::error::Result;
use crate::game::Turn;
use crate::rng::{Key, Purpose};
use crate::search::root::RowKey;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A game of a match.
pub(super) struct MatchGame {
    /// Its number, from 0.
    pub number: usize,
    pub play: Playthrough,
    /// The hash of the position after its opening.
    opening: u64,
    /// Actions of the opening.
    pub opening_len: usize,
    /// Chance outcomes after the opening.
    dealt: u64,
    /// The seat that gave the game up.
    resigned: Option<u8>,
}

/// A finished game of a match.
#[derive(Clone)]
pub struct PlayedGame {
    /// Its number, from 0.
    pub number: usize,
    /// The first contestant's seat.
    pub seat: u8,
    /// The game.
    pub play: Playthrough,
    /// The result of every player. `[P]`
    pub returns: Vec<f32>,
    /// The seat that gave it up.
    pub resigned: Option<u8>,
}

/// The outcome of one game for the first contestant.
#[derive(Clone, Copy)]
pub(super) struct GameOutcome {
    /// In a game for one player, the contestant that played it: 0 or 1.
    pub mover: Option<usize>,
    /// Whether the players share an aim ([`crate::game::Sizes`]).
    pub is_cooperative: bool,
    /// Its seat.
    pub seat: usize,
    /// Its return minus the best one of the other players; 0 where there are none.
    pub margin: f32,
    pub score: f64,
    pub other_score: f64,
    pub own_return: f64,
    /// What chance gave it, in the unit of the return, where that is estimated.
    pub luck: Option<f64>,
    /// False where the game ended before its end by the rules: its scores are returns.
    pub is_scored: bool,
    pub plies: usize,
    /// The hash of the position after the opening.
    pub opening: u64,
    /// The hash of the actions after it.
    pub moves: u64,
}

impl MatchGame {
    /// The game after its opening.
    pub fn begin(game: &Arc<dyn AnyGame>, plan: MatchPlan<'_>, number: usize) -> Result<Self> {
        let group = number / group_size(game.as_ref());
        let play = plan.opening(game, group as u64)?;
        let (opening, opening_len) = (hash_of((play.state(), play.history())), play.actions().len());
        Ok(Self { number, play, opening, opening_len, dealt: 0, resigned: None })
    }

    /// The side that decides next; [`Turn::Over`] once a player has resigned.
    pub fn turn(&self) -> Turn {
        if self.resigned.is_some() { Turn::Over } else { self.play.turn() }
    }

    /// Carries out the decision of the player to move.
    pub fn take(&mut self, decision: Decision) -> Result<()> {
        match (decision, self.turn()) {
            (Decision::Play(action), _) => self.play.step(action),
            (Decision::Resign, Turn::Player(seat)) => {
                self.resigned = Some(seat);
                Ok(())
            }
            (Decision::Resign, Turn::Chance | Turn::Over) => Ok(()),
        }
    }

    /// The results of all players; of a game that was given up, a loss for that seat. `[P]`
    fn returns(&self) -> Vec<f32> {
        let game = self.play.game();
        match self.resigned {
            None => game.returns(self.play.state()),
            Some(loser) => {
                let mut returns = vec![0.0; game.sizes().num_players];
                returns[..game.num_seated(self.play.state())].fill(1.0);
                returns[usize::from(loser)] = -1.0;
                returns
            }
        }
    }

    pub fn played(&self) -> PlayedGame {
        PlayedGame {
            number: self.number,
            seat: self.seat(),
            play: self.play.clone(),
            returns: self.returns(),
            resigned: self.resigned,
        }
    }

    /// The first contestant's seat. In a game for one player it is 0 and 1 alternately, the number of the contestant who plays. Where fewer
    /// players are drawn than have a seat, some seats are its own in more games of a group than others, and in the next group different ones.
    pub fn seat(&self) -> u8 {
        let game = self.play.game();
        let (seats, seated) = (group_size(game.as_ref()), game.num_seated(self.play.state()));
        let (group, seat) = (self.number / seats, self.number % seats);
        (if seated < game.sizes().num_players { (group + seat) % seated } else { seat }) as u8
    }

    /// Deals one chance outcome: the same dice and cards in all games of a group, one after the other, so that every seat has the same luck
    /// however many plies a turn has.
    pub fn deal_once(&mut self, seed: u64) -> Result<()> {
        let group = self.number / group_size(self.play.game().as_ref());
        let key = Key::new(seed, Purpose::Chance).with(group as u64).with(self.dealt);
        self.dealt += 1;
        random_step(&mut self.play, &mut key.stream())
    }

    /// The key of the next ply's random numbers.
    pub fn key(&self, seed: u64) -> RowKey {
        let ply = self.play.actions().len() as u64;
        RowKey { seed, slot: self.number as u64, ply, ..RowKey::default() }
    }
}

impl GameOutcome {
    /// The outcome of a finished game.
    pub fn new(game: &MatchGame) -> Self {
        let (play, seat) = (&game.play, usize::from(game.seat()));
        let returns = game.returns();
        let is_scored = game.resigned.is_none();
        let scores = if is_scored { play.game().scores(play.state()) } else { returns.clone() };
        let mover = (returns.len() == 1).then_some(seat);
        let own = if mover.is_some() { 0 } else { seat };
        let seated = play.game().num_seated(play.state());
        let others = returns[..seated].iter().enumerate().filter(|(seat, _)| *seat != own).map(|(_, &r)| r);
        let best_other = others.reduce(f32::max);
        let total: f32 = scores.iter().sum();
        Self {
            mover,
            is_cooperative: play.game().sizes().cooperative,
            seat: own,
            margin: best_other.map_or(0.0, |best| returns[own] - best),
            score: f64::from(scores[own]),
            other_score: f64::from(total - scores[own]) / (seated - 1).max(1) as f64,
            own_return: f64::from(returns[own]),
            luck: None,
            is_scored,
            plies: play.actions().len(),
            opening: game.opening,
            moves: hash_of(&play.actions()[game.opening_len..]),
        }
    }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
