//! The card game of `vecaz new` with a view that shows every player all hands: the contract finds it.

#[allow(dead_code, reason = "the game has more than the tests of one law use")]
#[path = "../../src/cli/new/cards.rs"]
mod cards;

use cards::{Rules, State};
use vecaz::Result;
use vecaz::contract;
use vecaz::game::view::{Spot, View, Viewer};
use vecaz::game::{Game, History, Sizes, Turn};
use vecaz::rng::RngStream;

#[derive(Clone)]
struct Leaking(Rules);

impl Game for Leaking {
    type State = State;
    const NAME: &'static str = "leaking";

    fn from_options(options: &toml::Table) -> Result<Self> {
        Rules::from_options(options).map(Self)
    }

    fn options(&self) -> toml::Table {
        self.0.options()
    }

    fn aim(&self, player: u8) -> String {
        self.0.aim(player)
    }

    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }

    fn init(&self) -> State {
        self.0.init()
    }

    fn is_valid(&self, state: &State) -> bool {
        self.0.is_valid(state)
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

    fn determinise(&self, state: &State, player: u8, rng: &mut RngStream) -> State {
        self.0.determinise(state, player, rng)
    }

    fn sees_action(&self, state: &State, action: u16, player: u8) -> bool {
        self.0.sees_action(state, action, player)
    }

    fn returns(&self, state: &State, out: &mut [f32]) {
        self.0.returns(state, out);
    }

    /// Both hands for the players, none for the public.
    fn view(&self, state: &State, viewer: Viewer) -> View {
        let viewer = if viewer == Viewer::Public { viewer } else { Viewer::All };
        self.0.view(state, viewer)
    }

    fn spot(&self, state: &State, action: u16) -> Spot {
        self.0.spot(state, action)
    }

    fn action_name(&self, state: &State, action: u16) -> String {
        self.0.action_name(state, action)
    }
}

#[test]
fn a_view_of_another_hand_is_found() {
    let found = contract::check::<Leaking>().expect_err("hands are shown");
    assert_eq!(found.law, "views_show_nothing_hidden", "{found}");
    assert!(found.what.contains("the view of player"), "{found}");
}
