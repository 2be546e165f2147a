//! A game whose actions are not at the points where it says that they are.

use vecaz::contract;
use vecaz::error::Result;
use vecaz::game::tic_tac_toe::{State, TicTacToe};
use vecaz::game::{Game, History, PointActions, PointOrder, Sizes, Turn};

/// Tic-tac-toe, whose actions go row by row; it says `SAYS` of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said<const COLUMNS: bool>(TicTacToe);

impl<const COLUMNS: bool> Game for Said<COLUMNS> {
    type State = State;
    const NAME: &'static str = "said";

    fn from_options(options: &toml::Table) -> Result<Self> {
        TicTacToe::from_options(options).map(Self)
    }

    fn options(&self) -> toml::Table {
        self.0.options()
    }

    fn aim(&self, player: u8) -> String {
        self.0.aim(player)
    }

    fn sizes(&self) -> Sizes {
        let actions = match COLUMNS {
            true => PointActions { planes: 1, order: PointOrder::Columns },
            false => PointActions { planes: 2, order: PointOrder::Rows },
        };
        Sizes { point_actions: Some(actions), ..self.0.sizes() }
    }

    fn init(&self) -> State {
        self.0.init()
    }

    fn turn(&self, state: &State) -> Turn {
        self.0.turn(state)
    }

    fn legal(&self, state: &State, history: History<'_>, out: &mut [u16]) -> usize {
        self.0.legal(state, history, out)
    }

    fn step(&self, state: &mut State, action: u16, history: History<'_>) {
        self.0.step(state, action, history);
    }

    fn observe(&self, state: &State, player: u8, out: &mut [f32]) {
        self.0.observe(state, player, out);
    }

    fn returns(&self, state: &State, out: &mut [f32]) {
        self.0.returns(state, out);
    }

    fn transform(&self, state: &State, symmetry: u64) -> State {
        self.0.transform(state, symmetry)
    }

    fn action_name(&self, state: &State, action: u16) -> String {
        self.0.action_name(state, action)
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        self.0.transform_action(action, symmetry)
    }
}

#[test]
fn actions_elsewhere_than_their_points_are_found() {
    for (found, part) in [
        (contract::check::<Said<true>>(), "channel 0 of what player 0 sees at point"),
        (
            contract::check::<Said<false>>(),
            "point_actions has 2 actions at each of 9 points, num_actions is 9",
        ),
    ] {
        let broken = found.expect_err(part);
        assert_eq!(broken.law, "actions_are_at_their_points", "{broken}");
        assert!(broken.what.contains(part), "{part}: {broken}");
    }
}
