//! The card game of `vecaz new` with a view that shows every player all hands: the contract finds it.

#[allow(dead_code, reason = "the game has more than the tests of one law use")]
#[path = "../../src/cli/new/cards.rs"]
mod cards;

use crate::as_inside::rules_as_inside;
use cards::{Rules, State};
use vecaz::contract;
use vecaz::game::view::{Spot, View, Viewer};
use vecaz::game::{Game, Sizes};
use vecaz::rng::RngStream;

#[derive(Clone)]
struct Leaking(Rules);

impl Game for Leaking {
    type State = State;
    const NAME: &'static str = "leaking";

    rules_as_inside!(Rules);

    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }

    fn determinise(&self, state: &State, player: u8, rng: &mut RngStream) -> State {
        self.0.determinise(state, player, rng)
    }

    fn sees_action(&self, state: &State, action: u16, player: u8) -> bool {
        self.0.sees_action(state, action, player)
    }

    /// Both hands for the players, none for the public.
    fn view(&self, state: &State, viewer: Viewer) -> View {
        let viewer = if viewer == Viewer::Public { viewer } else { Viewer::All };
        self.0.view(state, viewer)
    }

    fn spot(&self, state: &State, action: u16) -> Spot {
        self.0.spot(state, action)
    }
}

#[test]
fn a_view_of_another_hand_is_found() {
    let found = contract::check::<Leaking>().expect_err("hands are shown");
    assert_eq!(found.law, "views_show_nothing_hidden", "{found}");
    assert!(found.what.contains("the view of player"), "{found}");
}
