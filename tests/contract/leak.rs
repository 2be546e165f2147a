//! The card game of `vecaz new` with views that show hidden hands, and with draws that change what a player sees: the contract finds both.

#[allow(dead_code, reason = "the game has more than the tests of these laws use")]
#[path = "../../src/cli/new/cards.rs"]
mod cards;

use crate::as_inside::{assert_broken, broken_inside, rules_as_inside};
use cards::{Rules, State};
use vecaz::contract;
use vecaz::game::view::{Spot, View, Viewer};
use vecaz::game::{Game, Sizes};
use vecaz::rng::RngStream;

/// The defect of a [`Broken`] game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// Players see both hands, the public none.
    HandsAreShown,
    /// A player's draw is that of the other player, and so changes the own hand.
    OwnHandIsDrawn,
    /// `determinise` gives the true hands.
    NothingIsDrawn,
    /// `determinise` gives the other player no cards.
    DrawsLackCards,
}

broken_inside!(Rules);

impl<const DEFECT: usize> Game for Broken<DEFECT> {
    type State = State;
    const NAME: &'static str = "broken";

    rules_as_inside!(Rules);

    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }

    fn determinise(&self, state: &State, player: u8, rng: &mut RngStream) -> State {
        if self.has(Defect::NothingIsDrawn) {
            return *state;
        }
        if self.has(Defect::DrawsLackCards) {
            // The hands are the first numbers of a state.
            let mut drawn = *state;
            bytemuck::cast_slice_mut::<State, u16>(std::slice::from_mut(&mut drawn))
                [usize::from(1 - player)] = 0;
            return drawn;
        }
        let observer = if self.has(Defect::OwnHandIsDrawn) { 1 - player } else { player };
        self.0.determinise(state, observer, rng)
    }

    fn sees_action(&self, state: &State, action: u16, player: u8) -> bool {
        self.0.sees_action(state, action, player)
    }

    fn view(&self, state: &State, viewer: Viewer) -> View {
        let is_shown = self.has(Defect::HandsAreShown) && viewer != Viewer::Public;
        self.0.view(state, if is_shown { Viewer::All } else { viewer })
    }

    fn spot(&self, state: &State, action: u16) -> Spot {
        self.0.spot(state, action)
    }
}

#[test]
fn a_view_of_another_hand_and_a_draw_of_the_own_hand_are_found() {
    for (found, law, part) in [
        (
            contract::check::<Broken<{ Defect::DrawsLackCards as usize }>>(),
            "hidden_draws_keep_what_is_seen",
            "no action is legal though the game is not over",
        ),
        (
            contract::check::<Broken<{ Defect::HandsAreShown as usize }>>(),
            "views_show_nothing_hidden",
            "the view of player",
        ),
        (
            contract::check::<Broken<{ Defect::OwnHandIsDrawn as usize }>>(),
            "hidden_draws_keep_what_is_seen",
            ": got [",
        ),
        (
            contract::check::<Broken<{ Defect::NothingIsDrawn as usize }>>(),
            "hidden_draws_keep_what_is_seen",
            "whether determinise changes states, against hidden_information: got false, expected true",
        ),
    ] {
        assert_broken(found, law, part);
    }
}
