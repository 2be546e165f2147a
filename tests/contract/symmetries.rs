//! Tic-tac-toe with its symmetries broken, and with a target that does not follow them.

use crate::as_inside::{assert_broken, broken_inside, rules_as_inside};
use vecaz::contract;
use vecaz::game::tic_tac_toe::{State, TicTacToe};
use vecaz::game::{Game, Sizes, Target, ownership};

/// The defect of a [`Broken`] game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// Symmetry 1 moves all actions to action 0.
    AllActionsMoveToOne,
    /// Symmetry 7 is symmetry 6.
    TwoAreAlike,
    /// States stay as they are, and their actions move.
    StatesStay,
    /// A target that has the first point for the player to move, in every image.
    TargetStays,
}

broken_inside!(TicTacToe);

impl<const DEFECT: usize> Game for Broken<DEFECT> {
    type State = State;
    const NAME: &'static str = "broken";

    rules_as_inside!(TicTacToe);

    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }

    fn transform(&self, state: &State, symmetry: u64) -> State {
        if self.has(Defect::StatesStay) { *state } else { self.0.transform(state, symmetry) }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        match symmetry {
            1 if self.has(Defect::AllActionsMoveToOne) => 0,
            7 if self.has(Defect::TwoAreAlike) => self.0.transform_action(action, 6),
            _ => self.0.transform_action(action, symmetry),
        }
    }

    fn targets(&self) -> Vec<Target> {
        if self.has(Defect::TargetStays) { vec![ownership()] } else { Vec::new() }
    }

    fn write_target(&self, _: usize, _: &State, _: &State, _: u8, out: &mut [f32]) {
        out.fill(0.0);
        out[0] = 1.0;
    }
}

#[test]
fn symmetries_of_another_game_are_found() {
    for (found, law, part) in [
        (
            contract::check::<Broken<{ Defect::AllActionsMoveToOne as usize }>>(),
            "symmetries_are_distinct_bijections",
            "symmetry 1: got [0, 0, 0",
        ),
        (
            contract::check::<Broken<{ Defect::TwoAreAlike as usize }>>(),
            "symmetries_are_distinct_bijections",
            "symmetries 6 and 7 are the same",
        ),
        (
            contract::check::<Broken<{ Defect::StatesStay as usize }>>(),
            "symmetries_commute_with_play",
            " of\nState { cells:",
        ),
        (
            contract::check::<Broken<{ Defect::TargetStays as usize }>>(),
            "targets_are_complete",
            "target ownership of the position after 0 plies, symmetry 1: point ",
        ),
    ] {
        assert_broken(found, law, part);
    }
}
