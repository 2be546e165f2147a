//! One game in progress, for command lines and players.

use super::ErasedRules;
use crate::error::{Error, Result};
use crate::game::set_up::{PlacedPieces, SetUp};
use crate::game::view::{ActionView, View, Viewer};
use crate::game::{History, Turn};
use crate::words;
use std::sync::Arc;

/// One game in progress, its type erased: the position, the actions that led to it, and the keys that rules about repetition
/// need. For command lines and players, not for the hot path.
#[derive(Clone)]
pub struct Playthrough {
    game: Arc<dyn ErasedRules>,
    /// The position before the first action.
    start: Arc<[u8]>,
    state: Vec<u8>,
    history: Vec<u64>,
    actions: Vec<u16>,
}

/// A ply that was played or dealt.
#[derive(Clone, Debug, PartialEq)]
pub struct PastPly {
    /// Who decided.
    pub turn: Turn,
    /// What was played or dealt; None if the viewer does not know it.
    pub known: Option<ActionView>,
}

impl Playthrough {
    /// A game at its start.
    pub fn new(game: Arc<dyn ErasedRules>) -> Self {
        let state = game.init();
        Self { game, start: state.as_slice().into(), state, history: Vec::new(), actions: Vec::new() }
    }

    /// A game that begins at a position which a person has set up.
    ///
    /// # Errors
    /// Those of [`crate::game::Game::set_up`].
    pub fn set_up(game: Arc<dyn ErasedRules>, placed: &PlacedPieces) -> Result<Self> {
        let state = game.set_up(SetUp { cells: &placed.pieces()?, player: placed.player })?;
        Ok(Self { game, start: state.as_slice().into(), state, history: Vec::new(), actions: Vec::new() })
    }

    /// The position before the first action.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// The pieces of the position that was set up, where the game begins there and not at the start of its rules.
    pub fn placed(&self) -> Option<PlacedPieces> {
        if *self.start == *self.game.init() {
            return None;
        }
        let start = self.at_start();
        let Turn::Player(player) = start.turn() else { return None };
        PlacedPieces::of(&start.view(Viewer::All), player)
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
        self.advance(action);
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
        let mut names = Vec::with_capacity(self.actions.len());
        self.replay(|before, action| names.push(self.game.action_name(before, action)));
        names
    }

    /// The actions and outcomes so far with their names; None for those that `viewer` does not know.
    pub fn known_actions(&self, viewer: Viewer) -> Vec<Option<(u16, String)>> {
        let mut known = Vec::with_capacity(self.actions.len());
        self.replay(|before, action| {
            let is_known = self.game.is_known(before, action, viewer);
            known.push(is_known.then(|| (action, self.game.action_name(before, action))));
        });
        known
    }

    /// The plies so far as `viewer` knows them.
    pub fn past(&self, viewer: Viewer) -> Vec<PastPly> {
        let mut past = Vec::with_capacity(self.actions.len());
        self.replay(|before, action| {
            let is_known = self.game.is_known(before, action, viewer);
            let (game, turn) = (&self.game, self.game.turn(before));
            let known = is_known.then(|| ActionView {
                action,
                name: game.action_name(before, action),
                spot: game.spot(before, action),
            });
            past.push(PastPly { turn, known });
        });
        past
    }

    /// The decider of each ply so far.
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns = Vec::with_capacity(self.actions.len());
        self.replay(|before, _| turns.push(self.game.turn(before)));
        turns
    }

    /// The position after the first `plies` actions; the present one if there are fewer.
    pub fn after(&self, plies: usize) -> Self {
        let mut earlier = self.at_start();
        self.actions.iter().take(plies).for_each(|&action| earlier.advance(action));
        earlier
    }

    /// The same game before its first action.
    fn at_start(&self) -> Self {
        let (game, start) = (self.game.clone(), self.start.clone());
        Self { game, state: start.to_vec(), start, history: Vec::new(), actions: Vec::new() }
    }

    /// The look of the present position for `viewer`, with its legal actions and the spots of the last player's last actions.
    pub fn view(&self, viewer: Viewer) -> View {
        let history = History { played: &self.history, path: &[] };
        let mut view = self.game.view(&self.state, history, viewer);
        // The player of the plies in `view.last`; None after an outcome of chance, which begins anew with the next player.
        let mut player = None;
        self.replay(|before, action| {
            let turn = self.game.turn(before);
            if let Turn::Player(_) = turn {
                if player != Some(turn) {
                    view.last.clear();
                }
                if self.game.is_known(before, action, viewer) {
                    view.last.push(self.game.spot(before, action));
                }
            }
            player = Some(turn);
        });
        view
    }

    /// Calls `visit` for all plies so far with the state before it and the action.
    fn replay(&self, mut visit: impl FnMut(&[u8], u16)) {
        let mut again = self.at_start();
        for &action in &self.actions {
            visit(&again.state, action);
            again.advance(action);
        }
    }

    /// Plays a legal action.
    fn advance(&mut self, action: u16) {
        let before = self.game.sizes().uses_history.then(|| self.game.history_key(&self.state));
        self.game.step(&mut self.state, action, History { played: &self.history, path: &[] });
        self.history.extend(before);
        self.actions.push(action);
    }

    /// The refusal of `action`, with the ply and the legal actions; of a long list, those whose names or numbers are most similar.
    pub fn illegal(&self, action: &str) -> Error {
        /// Maximum number of legal actions that are all named.
        const SHORT: usize = 12;
        /// Actions that are named of a longer list.
        const NEAREST: usize = 5;
        let action = beginning(action);
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
            action,
            legal: match count {
                0 => "none, the game is over".into(),
                _ if count > SHORT => format!("{list} and {}", words::count(count - NEAREST, "other")),
                _ => list,
            },
        }
    }
}

/// The beginning of a typed action, with an ellipsis where it goes on.
fn beginning(typed: &str) -> String {
    /// Maximum number of characters.
    const SHOWN: usize = 64;
    match typed.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &typed[..end]),
        None => typed.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    #[test]
    fn a_long_wrong_name_is_cut() {
        let play = Playthrough::new(any_game("chess", &toml::Table::new()).expect("registered"));
        let error = play.illegal(&"é".repeat(10_000)).to_string();
        assert!(error.chars().count() < 300, "{error}");
        assert!(error.contains(&format!("action {}… is not legal", "é".repeat(64))), "{error}");
        let whole = "x".repeat(64);
        assert!(play.illegal(&whole).to_string().contains(&format!("action {whole} is not legal")));
    }
}
