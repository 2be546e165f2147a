//! A game whose actions are not at the points where it says that they are.

use crate::as_inside::rules_as_inside;
use vecaz::contract;
use vecaz::game::tic_tac_toe::{State, TicTacToe};
use vecaz::game::{Game, PointActions, PointOrder, Sizes};

/// Tic-tac-toe, whose nine actions are the points row by row, and which says that they go by columns, or that there are two at a point.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said<const PLANES: usize>(TicTacToe);

impl<const PLANES: usize> Game for Said<PLANES> {
    type State = State;
    const NAME: &'static str = "said";

    rules_as_inside!(TicTacToe);

    fn sizes(&self) -> Sizes {
        let order = if PLANES == 1 { PointOrder::Columns } else { PointOrder::Rows };
        let actions = PointActions { planes: PLANES, order };
        Sizes { point_actions: Some(actions), ..self.0.sizes() }
    }

    fn transform(&self, state: &State, symmetry: u64) -> State {
        self.0.transform(state, symmetry)
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        self.0.transform_action(action, symmetry)
    }
}

#[test]
fn actions_elsewhere_than_their_points_are_found() {
    for (found, part) in [
        (contract::check::<Said<1>>(), "channel 0 of what player 0 sees: symmetry"),
        (contract::check::<Said<2>>(), "point_actions has 2 actions at each of 9 points, num_actions is 9"),
    ] {
        let broken = found.expect_err(part);
        assert_eq!(broken.law, "actions_are_at_their_points", "{broken}");
        assert!(broken.what.contains(part), "{part}: {broken}");
    }
}
