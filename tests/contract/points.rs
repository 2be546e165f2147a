//! A game whose actions are not at the points where it says that they are.

use crate::as_inside::{assert_broken, rules_as_inside, unobserved_as_inside};
use vecaz::contract;
use vecaz::game::tic_tac_toe::{State, TicTacToe};
use vecaz::game::{Game, ObsShape, PointActions, PointOrder, Sizes};

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

/// Tic-tac-toe with a third channel: the own cells while the first corner is free, then the other player's. In every position some channel of
/// the image has its points, but not the same one in all.
#[derive(Clone, Debug, Default, PartialEq)]
struct Wandering(TicTacToe);

impl Game for Wandering {
    type State = State;
    const NAME: &'static str = "wandering";

    unobserved_as_inside!(TicTacToe);

    fn sizes(&self) -> Sizes {
        let sizes = self.0.sizes();
        Sizes { obs: ObsShape { channels: 3, ..sizes.obs }, ..sizes }
    }

    fn observe(&self, state: &State, player: u8, out: &mut [f32]) {
        self.0.observe(state, player, &mut out[..18]);
        let is_free = out[0] + out[9] == 0.0;
        out.copy_within(if is_free { 0..9 } else { 9..18 }, 18);
    }

    fn returns(&self, state: &State, out: &mut [f32]) {
        self.0.returns(state, out);
    }

    fn transform(&self, state: &State, symmetry: u64) -> State {
        self.0.transform(state, symmetry)
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        self.0.transform_action(action, symmetry)
    }
}

#[test]
fn a_channel_that_is_moved_to_another_one_each_time_is_found() {
    let found = contract::check::<Wandering>();
    assert_broken(found, "actions_are_at_their_points", "of what player 0 sees: symmetry ");
}

#[test]
fn actions_elsewhere_than_their_points_are_found() {
    for (found, part) in [
        (contract::check::<Said<1>>(), "channel 0 of what player 0 sees: symmetry"),
        (contract::check::<Said<2>>(), "point_actions has 2 actions at each of 9 points, num_actions is 9"),
    ] {
        assert_broken(found, "actions_are_at_their_points", part);
    }
}
