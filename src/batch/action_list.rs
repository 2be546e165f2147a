//! Lists of actions as people type them: numbers or names, separated by commas or line ends, or by blanks where there is no comma.

use super::Playthrough;
use crate::error::Result;

/// Plays `list` and calls `visit` after every action with the position, the action and its name.
///
/// # Errors
/// [`crate::Error::IllegalAction`] with ply and legal list; those of `visit`.
pub fn play_list(
    play: &mut Playthrough,
    list: &str,
    visit: &mut dyn FnMut(&Playthrough, u16, String) -> Result<()>,
) -> Result<()> {
    for entry in entries(list) {
        let mut words: Vec<&str> = entry.split_whitespace().collect();
        while !words.is_empty() {
            let (action, taken) = next_action(play, list, &words)?;
            let name = play.game().action_name(play.state(), action);
            play.step(action)?;
            words.drain(..taken);
            visit(play, action, name)?;
        }
    }
    Ok(())
}

/// The entries of a list: between commas and line ends.
fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', '\n']).map(str::trim).filter(|entry| !entry.is_empty())
}

/// Maximum number of words of an action's name.
pub(crate) const MAX_WORDS: usize = 8;

/// The action named by the first of `words`, and the number of words of its name. The longest name wins: "no move" and "bid 1" have two
/// words.
fn next_action(play: &Playthrough, list: &str, words: &[&str]) -> Result<(u16, usize)> {
    let named =
        (1..=words.len().min(MAX_WORDS)).rev().find_map(|n| Some((play.find(&words[..n].join(" "))?, n)));
    // In a list with commas the error shows the whole entry.
    let shown = if list.contains(',') { words.join(" ") } else { words[0].to_string() };
    named.ok_or_else(|| play.illegal(&shown))
}
