//! The position of a dialogue, with rules whose settings a client may change.

use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::error::Result;
use crate::game::Turn;
use crate::game::set_up::PlacedPieces;
use std::sync::Arc;

/// A position, the moves that led to it, and the rules.
#[derive(Clone)]
pub struct Position {
    game: Arc<dyn AnyGame>,
    play: Playthrough,
}

impl Position {
    /// The start of `game`.
    pub fn new(game: &Arc<dyn AnyGame>) -> Self {
        Self { game: game.clone(), play: Playthrough::new(game.clone()) }
    }

    /// The position of `game` in which the pieces are placed so.
    ///
    /// # Errors
    /// Those of [`crate::game::Game::set_up`].
    pub fn set_up(game: &Arc<dyn AnyGame>, placed: &PlacedPieces) -> Result<Self> {
        Ok(Self { game: game.clone(), play: Playthrough::set_up(game.clone(), placed)? })
    }

    /// The position after `actions`.
    ///
    /// # Errors
    /// [`crate::Error::IllegalAction`].
    pub fn after(game: &Arc<dyn AnyGame>, actions: &[u16]) -> Result<Self> {
        let mut position = Self::new(game);
        actions.iter().try_for_each(|&action| position.play.step(action))?;
        Ok(position)
    }

    /// The rules.
    pub fn game(&self) -> &Arc<dyn AnyGame> {
        &self.game
    }

    /// The position, and the actions that led to it.
    pub fn play(&self) -> &Playthrough {
        &self.play
    }

    /// The actions so far.
    pub fn actions(&self) -> &[u16] {
        self.play.actions()
    }

    /// Plays `action`.
    ///
    /// # Errors
    /// [`crate::Error::IllegalAction`].
    pub fn step(&mut self, action: u16) -> Result<()> {
        self.play.step(action)
    }

    /// The player to move; None at a chance node and once the game is over.
    pub fn player(&self) -> Option<u8> {
        match self.play.turn() {
            Turn::Player(player) => Some(player),
            Turn::Chance | Turn::Over => None,
        }
    }

    /// True once the game is over.
    pub fn is_over(&self) -> bool {
        self.play.turn() == Turn::Over
    }

    /// The position before the last `plies` actions.
    #[must_use]
    pub fn back(&self, plies: usize) -> Self {
        let left = self.actions().len().saturating_sub(plies);
        Self { game: self.game.clone(), play: self.play.after(left) }
    }

    /// The names of the actions `line` that follow.
    pub fn names(&self, line: &[u16], name: impl Fn(&Playthrough, u16) -> String) -> Vec<String> {
        let mut play = self.play.clone();
        let mut names = Vec::with_capacity(line.len());
        for &action in line {
            names.push(name(&play, action));
            if play.step(action).is_err() {
                break;
            }
        }
        names
    }

    /// The name of `action` in the game's own notation.
    pub fn name(&self, action: u16) -> String {
        self.game.action_name(self.play.state(), action)
    }
}
