//! The error of a game that does not keep a law.

use std::fmt;

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
