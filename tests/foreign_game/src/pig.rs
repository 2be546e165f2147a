//! Pig for one player: in each round the player rolls a die as often as they like and adds the points, or scores them; a 1 loses them.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{View, Viewer};
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};

section! {
    Pig {
        /// Rounds of the game.
        rounds: u32 [1..=50] = 5,
    }
}

/// Rolls after which a round must be scored, and the mean score of a round whose return is 1.
const MAX_ROLLS: u32 = 20;
const FULL_SCORE: u32 = 24;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    score: u32,
    points: u32,
    rolls: u32,
    rounds_left: u32,
    is_rolling: u32,
}

impl Game for Pig {
    type State = State;
    const NAME: &'static str = "pig";
    options_by_section!();

    fn aim(&self, _: u8) -> String {
        "scores as many points as possible".into()
    }

    fn sizes(&self) -> Sizes {
        let max_plies = (self.rounds * (2 * MAX_ROLLS + 1)) as usize;
        let obs = ObsShape { channels: 4, height: 1, width: 1 };
        let sizes = Sizes { num_actions: 2, max_legal: 2, obs, max_plies, ..Sizes::default() };
        Sizes { num_players: 1, num_chance: 6, max_chance_run: 1, zero_sum: false, ..sizes }
    }

    fn init(&self) -> State {
        State { rounds_left: self.rounds, ..Zeroable::zeroed() }
    }

    fn turn(&self, s: &State) -> Turn {
        match (s.rounds_left, s.is_rolling) {
            (0, _) => Turn::Over,
            (_, 0) => Turn::Player(0),
            _ => Turn::Chance,
        }
    }

    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let number = if s.is_rolling != 0 { 6 } else { 2 - u16::from(s.rolls == MAX_ROLLS) };
        out.iter_mut().zip(0..number).map(|(out, action)| *out = action).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        let ended = State { points: 0, rolls: 0, rounds_left: s.rounds_left - 1, is_rolling: 0, ..*s };
        *s = match (s.is_rolling, u32::from(action) + 1) {
            (0, 1) => State { score: s.score + s.points, ..ended },
            (0, _) => State { is_rolling: 1, ..*s },
            (_, 1) => ended,
            (_, face) => State { points: s.points + face, rolls: s.rolls + 1, is_rolling: 0, ..*s },
        };
    }

    fn observe(&self, s: &State, _: u8, out: &mut [f32]) {
        let max = [FULL_SCORE * self.rounds, FULL_SCORE, MAX_ROLLS, self.rounds];
        let seen = [s.score, s.points, s.rolls, s.rounds_left];
        out.iter_mut().zip(seen.iter().zip(max)).for_each(|(out, (&x, max))| *out = x as f32 / max as f32);
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        out[0] = (2.0 * s.score as f32 / (FULL_SCORE * self.rounds) as f32 - 1.0).min(1.0);
    }

    fn scores(&self, s: &State) -> Vec<f32> {
        vec![s.score as f32]
    }

    fn view(&self, s: &State, _: Viewer) -> View {
        let State { score, points, rounds_left, .. } = s;
        View::text(format!("score {score}, {points} points in this round, {rounds_left} rounds left"))
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        match s.is_rolling {
            0 => ["hold", "roll"][usize::from(action)].into(),
            _ => format!("face {}", action + 1),
        }
    }
}
