//! The actions of the game that a law is playing.

use crate::game::Game;
use std::cell::RefCell;

/// The actions of the game that a law is playing.
#[derive(Default)]
pub(super) struct Trail(RefCell<Played>);

/// Actions and their names.
#[derive(Default)]
pub(super) struct Played {
    pub(super) actions: Vec<u16>,
    pub(super) names: Vec<String>,
}

impl Trail {
    /// What was played.
    pub(super) fn into_played(self) -> Played {
        self.0.into_inner()
    }

    /// Forgets the actions: a new game begins, or none is played any more.
    pub(super) fn clear(&self) {
        self.0.take();
    }

    /// `action` is about to be played in `state`.
    pub(super) fn add<G: Game>(&self, game: &G, state: &G::State, action: u16) {
        // Not while the list is borrowed: the name may panic.
        let name = game.action_name(state, action);
        let mut played = self.0.borrow_mut();
        played.actions.push(action);
        played.names.push(name);
    }
}
