//! The laws that every game must keep, checked by random play: what search, training and checkpoints rely on.
//!
//! A game of one's own is checked in a test of its crate:
//!
//! ```
//! use vecaz::game::tic_tac_toe::TicTacToe;
//!
//! vecaz::contract::check::<TicTacToe>().unwrap();
//! ```

mod laws;
mod looks;
mod walk;

use crate::game::Game;
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whether a law holds; the error says what was found, and what is right.
type Law = Result<(), String>;

/// Returns an error unless the condition holds, with the condition itself or a message.
macro_rules! holds {
    ($condition:expr $(,)?) => { holds!($condition, "{}", stringify!($condition)) };
    ($condition:expr, $($message:tt)+) => {
        let is_kept: bool = $condition;
        if !is_kept {
            return Err(format!($($message)+));
        }
    };
}

/// Returns an error unless both values are equal.
macro_rules! equal {
    ($left:expr, $right:expr $(,)?) => { equal!($left, $right, "{}", stringify!($left)) };
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) => {
                holds!(left == right, "{}: got {left:?}, expected {right:?}", format_args!($($message)+));
            }
        }
    };
}

pub(crate) use {equal, holds};

/// A law that a game does not keep. Its message names the game, its options, the law, what was found, and the actions that lead there.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokenLaw {
    /// The name of the game.
    pub game: &'static str,
    /// The game's options, as TOML text on one line.
    pub options: String,
    /// The name of the law.
    pub law: &'static str,
    /// What was found and what is right, or the message of a panic.
    pub what: String,
    /// The actions and outcomes of the game in which it was found, from the start.
    pub actions: Vec<u16>,
    /// Their names.
    pub names: Vec<String>,
}

impl fmt::Display for BrokenLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { game, options, law, what, .. } = self;
        let options = if options.is_empty() { String::new() } else { format!(" ({options})") };
        write!(f, "{game}{options} breaks the law {law}: {what}")?;
        match self.actions.as_slice() {
            [] => Ok(()),
            actions => {
                let actions: Vec<String> = actions.iter().map(u16::to_string).collect();
                write!(f, "; after the actions {} ({})", actions.join(","), self.names.join(" "))
            }
        }
    }
}

/// As [`fmt::Display`], which a test that unwraps the result then prints.
impl fmt::Debug for BrokenLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BrokenLaw {}

/// Checks `G` with its default options and with each of its [`Game::VARIANTS`].
///
/// # Errors
/// The first law that does not hold.
pub fn check<G: Game>() -> Result<(), Box<BrokenLaw>> {
    for variant in std::iter::once(&"").chain(G::VARIANTS) {
        let broken = |what: String| {
            Box::new(BrokenLaw {
                game: G::NAME,
                options: variant.replace('\n', ", "),
                law: "variants_are_valid",
                what,
                actions: Vec::new(),
                names: Vec::new(),
            })
        };
        let options: toml::Table = variant.parse().map_err(|e: toml::de::Error| broken(e.to_string()))?;
        check_game(&G::from_options(&options).map_err(|e| broken(e.to_string()))?)?;
    }
    Ok(())
}

/// Checks a game with its settings.
///
/// # Errors
/// The first law that does not hold.
pub fn check_game<G: Game>(game: &G) -> Result<(), Box<BrokenLaw>> {
    for (law, holds) in laws::laws::<G>() {
        let trail = Trail::default();
        let found = catch_unwind(AssertUnwindSafe(|| holds(game, &trail)));
        if let Err(what) = found.unwrap_or_else(|panic| Err(format!("panic: {}", message_of(&*panic)))) {
            let Played { actions, names } = trail.0.into_inner();
            let options = game.options().to_string().trim().replace('\n', ", ");
            return Err(Box::new(BrokenLaw { game: G::NAME, options, law, what, actions, names }));
        }
    }
    Ok(())
}

/// The message of a panic.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// The actions of the game that a law is playing.
#[derive(Default)]
struct Trail(RefCell<Played>);

#[derive(Default)]
struct Played {
    actions: Vec<u16>,
    names: Vec<String>,
}

impl Trail {
    /// Forgets the actions: a new game begins, or none is played any more.
    fn clear(&self) {
        self.0.take();
    }

    /// `action` is about to be played in `state`.
    fn add<G: Game>(&self, game: &G, state: &G::State, action: u16) {
        // Not while the list is borrowed: the name may panic.
        let name = game.action_name(state, action);
        let mut played = self.0.borrow_mut();
        played.actions.push(action);
        played.names.push(name);
    }
}
