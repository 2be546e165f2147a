//! Nim of which one copy has other rules. The game whose type is erased and the batch are made of copies, and the contract compares both
//! with the game itself.

use crate::nim::{Nim, State};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vecaz::Result;
use vecaz::contract;
use vecaz::game::view::{View, Viewer};
use vecaz::game::{Game, History, Sizes, Turn};

/// Nim whose copy number `WRONG`, from 0, lets players take one stone alone.
struct Copied<const WRONG: usize> {
    nim: Nim,
    /// Copies that were made.
    copies: Arc<AtomicUsize>,
}

impl<const WRONG: usize> Clone for Copied<WRONG> {
    fn clone(&self) -> Self {
        let is_wrong = self.copies.fetch_add(1, Ordering::Relaxed) == WRONG;
        let nim = if is_wrong { Nim { max_take: 1, ..self.nim.clone() } } else { self.nim.clone() };
        Self { nim, copies: self.copies.clone() }
    }
}

impl<const WRONG: usize> Game for Copied<WRONG> {
    type State = State;
    const NAME: &'static str = "copied";

    fn from_options(options: &toml::Table) -> Result<Self> {
        Nim::from_options(options).map(|nim| Self { nim, copies: Arc::default() })
    }

    fn options(&self) -> toml::Table {
        self.nim.options()
    }

    fn aim(&self, player: u8) -> String {
        self.nim.aim(player)
    }

    fn sizes(&self) -> Sizes {
        self.nim.sizes()
    }

    fn init(&self) -> State {
        self.nim.init()
    }

    fn is_valid(&self, state: &State) -> bool {
        self.nim.is_valid(state)
    }

    fn turn(&self, state: &State) -> Turn {
        self.nim.turn(state)
    }

    fn legal(&self, state: &State, history: History<'_>, out: &mut [u16]) -> usize {
        self.nim.legal(state, history, out)
    }

    fn step(&self, state: &mut State, action: u16, history: History<'_>) {
        self.nim.step(state, action, history);
    }

    fn observe(&self, state: &State, player: u8, out: &mut [f32]) {
        self.nim.observe(state, player, out);
    }

    fn returns(&self, state: &State, out: &mut [f32]) {
        self.nim.returns(state, out);
    }

    fn view(&self, state: &State, viewer: Viewer) -> View {
        self.nim.view(state, viewer)
    }

    fn action_name(&self, state: &State, action: u16) -> String {
        self.nim.action_name(state, action)
    }
}

#[test]
fn a_copy_with_other_rules_is_found() {
    for (found, law, part) in [
        (contract::check::<Copied<0>>(), "erased_play_is_the_same", "erased.options()"),
        (contract::check::<Copied<1>>(), "batches_keep_finished_games", "slot 0"),
    ] {
        let broken = found.expect_err(law);
        assert_eq!(broken.law, law, "{broken}");
        assert!(broken.what.contains(part), "{part}: {broken}");
    }
    contract::check::<Copied<9>>().unwrap();
}
