//! Pig for one player: in each of some rounds the player rolls a die as often as he likes and adds the points, or scores them; a 1 loses
//! the points of the round.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};

section! {
    /// The number of rounds.
    Pig {
        /// Rounds of the game.
        rounds: u32 [1..=50] = 5,
    }
}

/// Rolls of a round, after which it is scored: a bound on the length of a game.
const MAX_ROLLS: u32 = 20;
/// The score that counts as 1, six twos a round and more.
const FULL_SCORE: u32 = 24;
const HOLD: u16 = 0;

/// A position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    score: u32,
    points: u32,
    rolls: u32,
    rounds_left: u32,
    is_rolling: u32,
}

impl State {
    fn end_round(&mut self) {
        *self = Self { points: 0, rolls: 0, rounds_left: self.rounds_left - 1, ..*self };
    }
}

impl Game for Pig {
    type State = State;
    const NAME: &'static str = "pig";

    options_by_section!();

    fn aim(&self, _: u8) -> String {
        "scores as many points as possible".into()
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_players: 1,
            num_actions: 2,
            max_legal: 2,
            num_chance: 6,
            max_chance_run: 1,
            obs: ObsShape { channels: 4, height: 1, width: 1 },
            max_plies: (self.rounds * (2 * MAX_ROLLS + 1)) as usize,
            zero_sum: false,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { score: 0, points: 0, rolls: 0, rounds_left: self.rounds, is_rolling: 0 }
    }

    fn turn(&self, s: &State) -> Turn {
        match (s.rounds_left, s.is_rolling) {
            (0, _) => Turn::Over,
            (_, 0) => Turn::Player(0),
            _ => Turn::Chance,
        }
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let number = match s.is_rolling {
            0 if s.rolls == MAX_ROLLS => 1,
            0 => 2,
            _ => 6,
        };
        out.iter_mut().zip(0..number).map(|(out, action)| *out = action).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        match (s.is_rolling, u32::from(action) + 1) {
            (0, _) if action == HOLD => {
                s.score += s.points;
                s.end_round();
            }
            (0, _) => s.is_rolling = 1,
            (_, 1) => {
                s.is_rolling = 0;
                s.end_round();
            }
            (_, face) => *s = State { points: s.points + face, rolls: s.rolls + 1, is_rolling: 0, ..*s },
        }
    }

    fn observe(&self, s: &State, _: u8, out: &mut [f32]) {
        let full = (FULL_SCORE * self.rounds) as f32;
        let seen = [s.score as f32 / full, s.points as f32 / 24.0, s.rounds_left as f32 / self.rounds as f32];
        out[..3].copy_from_slice(&seen);
        out[3] = s.rolls as f32 / MAX_ROLLS as f32;
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        out[0] = (2.0 * s.score as f32 / (FULL_SCORE * self.rounds) as f32 - 1.0).min(1.0);
    }

    fn scores(&self, s: &State) -> Vec<f32> {
        vec![s.score as f32]
    }

    fn display(&self, s: &State) -> String {
        format!("score {}, {} points in this round, {} rounds left\n", s.score, s.points, s.rounds_left)
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        match (s.is_rolling, action) {
            (0, HOLD) => "hold".into(),
            (0, _) => "roll".into(),
            _ => (action + 1).to_string(),
        }
    }
}
