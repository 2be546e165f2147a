//! One game in progress, for command lines and players.

use super::ErasedRules;
use crate::error::{Error, Result};
use crate::game::{History, Turn};
use std::sync::Arc;

/// One game in progress, its type erased: the position, the actions that led to it, and the keys that rules about repetition
/// need. For command lines and players, not for the hot path.
#[derive(Clone)]
pub struct Playthrough {
    game: Arc<dyn ErasedRules>,
    state: Vec<u8>,
    history: Vec<u64>,
    actions: Vec<u16>,
}

impl Playthrough {
    /// A game at its start.
    pub fn new(game: Arc<dyn ErasedRules>) -> Self {
        let state = game.init();
        Self { game, state, history: Vec::new(), actions: Vec::new() }
    }

    /// The rules.
    pub fn game(&self) -> &Arc<dyn ErasedRules> {
        &self.game
    }

    /// The present position's bytes.
    pub fn state(&self) -> &[u8] {
        &self.state
    }

    /// Keys of the positions before the present one (empty where the game keeps none).
    pub fn history(&self) -> &[u64] {
        &self.history
    }

    /// The actions and outcomes so far.
    pub fn actions(&self) -> &[u16] {
        &self.actions
    }

    /// The side that decides next: a player or chance.
    pub fn turn(&self) -> Turn {
        self.game.turn(&self.state)
    }

    /// The legal actions or outcomes, ascending; empty once the game is over.
    pub fn legal(&self) -> Vec<u16> {
        self.game.legal(&self.state, History { played: &self.history, path: &[] })
    }

    /// Plays `action` or deals that outcome.
    ///
    /// # Errors
    /// [`Error::IllegalAction`] with the ply and the legal list.
    pub fn step(&mut self, action: u16) -> Result<()> {
        if !self.legal().contains(&action) {
            return Err(self.illegal(&action.to_string()));
        }
        let before = self.game.sizes().uses_history.then(|| self.game.history_key(&self.state));
        self.game.step(&mut self.state, action, History { played: &self.history, path: &[] });
        self.history.extend(before);
        self.actions.push(action);
        Ok(())
    }

    /// Plays the action that `text` gives as a number or a name.
    ///
    /// # Errors
    /// [`Error::IllegalAction`] with the ply and the legal list.
    pub fn step_text(&mut self, text: &str) -> Result<()> {
        match self.find(text) {
            Some(action) => self.step(action),
            None => Err(self.illegal(text.trim())),
        }
    }

    /// The legal action that `text` gives as a number or a name.
    pub fn find(&self, text: &str) -> Option<u16> {
        let text = text.trim();
        let legal = self.legal();
        let number = text.parse::<u16>().ok().filter(|action| legal.contains(action));
        let named = || {
            let history = History { played: &self.history, path: &[] };
            self.game.parse_action(&self.state, history, text)
        };
        number
            .or_else(|| if legal.is_empty() { None } else { named() })
            .filter(|action| legal.contains(action))
    }

    /// The names of the actions and outcomes so far.
    pub fn names(&self) -> Vec<String> {
        let mut again = Self::new(self.game.clone());
        let name = |&action: &u16| {
            let name = self.game.action_name(&again.state, action);
            let history = History { played: &self.history[..again.history.len()], path: &[] };
            let before = self.game.sizes().uses_history.then(|| self.game.history_key(&again.state));
            self.game.step(&mut again.state, action, history);
            again.history.extend(before);
            name
        };
        self.actions.iter().map(name).collect()
    }

    /// The refusal of `action`, with the ply and the legal actions; of a long list, those whose names or numbers are most similar.
    pub fn illegal(&self, action: &str) -> Error {
        /// The most legal actions that are all named.
        const SHORT: usize = 12;
        /// Actions that are named of a longer list.
        const NEAREST: usize = 5;
        let mut legal: Vec<(u16, String)> =
            self.legal().iter().map(|&a| (a, self.game.action_name(&self.state, a))).collect();
        let count = legal.len();
        if count > SHORT {
            let typed = action.to_lowercase();
            let is_number = typed.bytes().all(|byte| byte.is_ascii_digit());
            legal.sort_by_cached_key(|(action, name)| {
                let by_name = strsim::damerau_levenshtein(&typed, &name.to_lowercase());
                let by_number = strsim::damerau_levenshtein(&typed, &action.to_string());
                if is_number { by_name.min(by_number) } else { by_name }
            });
            legal.truncate(NEAREST);
        }
        let named = |(a, name): &(u16, String)| match *name == a.to_string() {
            true => name.clone(),
            false => format!("{a} ({name})"),
        };
        let list = legal.iter().map(named).collect::<Vec<_>>().join(", ");
        Error::IllegalAction {
            ply: self.actions.len(),
            action: action.to_string(),
            legal: match count {
                0 => "none, the game is over".into(),
                _ if count > SHORT => format!("{list} and {} others", count - NEAREST),
                _ => list,
            },
        }
    }
}
