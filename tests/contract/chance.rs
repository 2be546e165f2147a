//! The dice game of `vecaz new` with chance broken, and with a horizon at which it has no returns.

#[allow(dead_code, reason = "the game has more than the tests of these laws use")]
#[path = "../../src/cli/new/dice.rs"]
mod dice;

use crate::as_inside::{assert_broken, broken_inside, play_as_inside};
use dice::{Rules, State};
use vecaz::contract;
use vecaz::game::{Game, Sizes, Turn};

/// The defect of a [`Broken`] game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// Every face has the probability 1/4.
    LoadedDie,
    /// `max_chance_run` is 0.
    ChanceRunTooLong,
    /// Every roll is a horizon, and `returns` writes the result of finished games alone.
    NoReturnsAtHorizon,
}

broken_inside!(Rules);

impl<const DEFECT: usize> Game for Broken<DEFECT> {
    type State = State;
    const NAME: &'static str = "broken";

    play_as_inside!(Rules);

    fn sizes(&self) -> Sizes {
        let sizes = self.0.sizes();
        Sizes { max_chance_run: usize::from(!self.has(Defect::ChanceRunTooLong)), ..sizes }
    }

    fn chance_probs(&self, state: &State, outcomes: &[u16], out: &mut [f32]) {
        match self.has(Defect::LoadedDie) {
            true => out[..outcomes.len()].fill(0.25),
            false => self.0.chance_probs(state, outcomes, out),
        }
    }

    fn is_horizon(&self, state: &State) -> bool {
        self.has(Defect::NoReturnsAtHorizon) && self.turn(state) == Turn::Chance
    }

    fn returns(&self, state: &State, out: &mut [f32]) {
        if self.turn(state) == Turn::Over {
            self.0.returns(state, out);
        }
    }
}

#[test]
fn chance_without_a_distribution_and_horizons_without_returns_are_found() {
    for (found, law, part) in [
        (
            contract::check::<Broken<{ Defect::LoadedDie as usize }>>(),
            "chance_is_a_distribution",
            "the probabilities sum to 1.5",
        ),
        (
            contract::check::<Broken<{ Defect::ChanceRunTooLong as usize }>>(),
            "chance_is_a_distribution",
            "1 chance states in a row, max_chance_run is 0",
        ),
        (
            contract::check::<Broken<{ Defect::NoReturnsAtHorizon as usize }>>(),
            "returns_are_bounded",
            "the returns at a horizon are [NaN, NaN], expected one in [-1, 1]",
        ),
    ] {
        let broken = assert_broken(found, law, part);
        assert_eq!(broken.names.last().map(String::as_str), Some("roll"), "{broken}");
    }
}
