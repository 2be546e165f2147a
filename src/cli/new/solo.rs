//! Your game. Now it is "digits": a die is rolled, and the player writes its face into a free place of a number, which is to become as
//! large as possible. Replace its rules by your own, function by function; `cargo test` says which law a change broke, and with which
//! actions.

use bytemuck::{Pod, Zeroable};
use vecaz::config::keys::section;
use vecaz::game::view::{View, Viewer};
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};

section! {
    // The settings of the game, which users give as `--set game.slots=5`.
    Rules {
        /// Digits of the number.
        slots: usize [1..=7] = 4,
    }
}

const FACES: u16 = 6;

/// One position: plain numbers only, always of the same size, whatever the settings.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct State {
    /// The face in each place, 0 while it is free. The first place counts most.
    written: [u8; 8],
    /// The face to write, 0 while the die rolls.
    rolled: u8,
}

impl Rules {
    fn written<'a>(&self, s: &'a State) -> &'a [u8] {
        &s.written[..self.slots]
    }
}

impl Game for Rules {
    type State = State;
    const NAME: &'static str = "NAME";
    // Settings with which the laws are checked, besides the defaults.
    const VARIANTS: &'static [&'static str] = &["slots = 1", "slots = 7"];

    options_by_section!();

    fn aim(&self, _: u8) -> String {
        "writes the largest number".into()
    }

    // One player: results do not sum to 0, and strength is the mean score.
    fn sizes(&self) -> Sizes {
        Sizes {
            num_players: 1,
            zero_sum: false,
            num_actions: self.slots,
            max_legal: self.slots,
            num_chance: usize::from(FACES),
            max_chance_run: 1,
            max_plies: 2 * self.slots,
            obs: ObsShape { channels: 2 * self.slots + 1, height: 1, width: 1 },
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State::zeroed()
    }

    fn turn(&self, s: &State) -> Turn {
        match s.rolled {
            _ if !self.written(s).contains(&0) => Turn::Over,
            0 => Turn::Chance,
            _ => Turn::Player(0),
        }
    }

    // Where chance decides, these are its outcomes. They are equally likely, unless the game has `chance_probs`.
    fn legal(&self, s: &State, _: History<'_>, out: &mut [u16]) -> usize {
        let is_free = |action: &u16| self.written(s).get(usize::from(*action)) == Some(&0);
        let all = (0..FACES.max(self.slots as u16)).filter(|action| match s.rolled {
            0 => *action < FACES,
            _ => is_free(action),
        });
        out.iter_mut().zip(all).map(|(out, action)| *out = action).count()
    }

    fn step(&self, s: &mut State, action: u16, _: History<'_>) {
        if s.rolled == 0 {
            s.rolled = action as u8 + 1;
            return;
        }
        s.written[usize::from(action)] = std::mem::take(&mut s.rolled);
    }

    // What the network sees, in numbers of about 0 to 1.
    fn observe(&self, s: &State, _: u8, out: &mut [f32]) {
        let scale = |face: u8| f32::from(face) / f32::from(FACES);
        let (slots, rolled) = out.split_at_mut(2 * self.slots);
        for (out, &face) in slots.chunks_exact_mut(2).zip(self.written(s)) {
            out.copy_from_slice(&[scale(face), f32::from(u8::from(face == 0))]);
        }
        rolled[0] = scale(s.rolled);
    }

    // In [-1, 1]: -1 for the least number there is, 1 for the largest.
    fn returns(&self, s: &State, out: &mut [f32]) {
        let value = |faces: &mut dyn Iterator<Item = u8>| faces.fold(0.0, |sum, f| 10.0 * sum + f32::from(f));
        let least = value(&mut (0..self.slots).map(|_| 1));
        let number = value(&mut self.written(s).iter().copied());
        out[0] = (number - least) / (5.0 * least) * 2.0 - 1.0;
    }

    // What people see as the result.
    fn scores(&self, s: &State) -> Vec<f32> {
        vec![self.written(s).iter().fold(0.0, |sum, &face| 10.0 * sum + f32::from(face))]
    }

    // The look of a position. Boards, cards and dice have forms of their own in `vecaz::game::view`.
    fn view(&self, s: &State, _: Viewer) -> View {
        let digits =
            self.written(s).iter().map(|&face| if face == 0 { '_' } else { char::from(b'0' + face) });
        let digits: String = digits.collect();
        match s.rolled {
            0 => View::text(digits),
            face => View::text(format!("{digits}, the die shows {face}")),
        }
    }

    fn action_name(&self, s: &State, action: u16) -> String {
        match s.rolled {
            0 => format!("face {}", action + 1),
            _ => format!("place {}", action + 1),
        }
    }
}
