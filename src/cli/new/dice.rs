//! Your game. Now it is Pig for two: the player to move rolls a die as often as they like and adds the points, or holds and scores them; a 1
//! loses them and the turn. Replace its rules by your own, function by function; `cargo test` says which law a change broke, and with
//! which actions.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{View, Viewer};
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};

section! {
    // The settings of the game, which users give as `--set game.goal=50`.
    Rules {
        /// Points that win.
        goal: u32 [10..=100] = 30,
    }
}

/// Actions of a player. Outcomes of chance are numbered apart, from 0: the faces of the die.
const HOLD: u16 = 0;
const ROLL: u16 = 1;
/// Plies after which the game ends and whoever is ahead has won: every game needs a bound.
const MAX_PLIES: u32 = 400;

/// One position: plain numbers only, always of the same size, whatever the settings.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    score: [u32; 2],
    /// Points of this turn, not yet scored.
    points: u32,
    to_play: u32,
    /// 1 while the die rolls, else 0.
    is_rolling: u32,
    plies: u32,
}

impl Game for Rules {
    type State = State;
    const NAME: &'static str = "NAME";
    // Settings with which the laws are checked, besides the defaults.
    const VARIANTS: &'static [&'static str] = &["goal = 10"];

    options_by_section!();

    fn aim(&self, _: u8) -> String {
        format!("scores {} points first", self.goal)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            num_actions: 2,
            max_legal: 2,
            num_chance: 6,
            max_chance_run: 1,
            max_plies: MAX_PLIES as usize,
            obs: ObsShape { channels: 3, height: 1, width: 1 },
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::zeroed()
    }

    // Can a state with these numbers be observed? States are read from files, too.
    fn is_valid(&self, s: &State) -> bool {
        s.to_play < 2
    }

    fn turn(&self, s: &State) -> Turn {
        match s.is_rolling {
            _ if s.score.iter().any(|&score| score >= self.goal) || s.plies >= MAX_PLIES => Turn::Over,
            0 => Turn::Player(s.to_play as u8),
            _ => Turn::Chance,
        }
    }

    // Where chance decides, these are its outcomes. They are equally likely, unless the game has `chance_probs`.
    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let number = if s.is_rolling == 0 { 2 } else { 6 };
        out.iter_mut().zip(0..number).map(|(out, action)| *out = action).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        let next = State { points: 0, to_play: 1 - s.to_play, is_rolling: 0, plies: s.plies + 1, ..*s };
        *s = match (s.is_rolling, action) {
            (0, HOLD) => {
                let mut score = s.score;
                score[s.to_play as usize] += s.points;
                State { score, ..next }
            }
            (0, ROLL) => State { is_rolling: 1, plies: s.plies + 1, ..*s },
            (_, 0) => next,
            (_, face) => {
                State { points: s.points + u32::from(face) + 1, is_rolling: 0, plies: s.plies + 1, ..*s }
            }
        };
    }

    // What the network sees, always as `player` sees it, in numbers of about 0 to 1.
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let (own, other) = (s.score[usize::from(player)], s.score[usize::from(1 - player)]);
        for (out, x) in out.iter_mut().zip([own, other, s.points]) {
            *out = x as f32 / self.goal as f32;
        }
    }

    // In [-1, 1] for each player: 1 won, -1 lost, 0 drawn.
    fn returns(&self, s: &State, out: &mut [f32]) {
        let first = match s.score[0].cmp(&s.score[1]) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Less => -1.0,
        };
        out.copy_from_slice(&[first, -first]);
    }

    // The look of a position. Boards, cards and dice have forms of their own in `vecaz::game::view`.
    fn view(&self, s: &State, _: Viewer) -> View {
        View::text(format!("{} : {}, {} points in this turn", s.score[0], s.score[1], s.points))
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        match s.is_rolling {
            0 => ["hold", "roll"][usize::from(action)].into(),
            _ => format!("face {}", action + 1),
        }
    }
}
