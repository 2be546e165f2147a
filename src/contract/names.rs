//! The law of names that people type.

use super::law::{Law, equal, holds};
use super::trail::Trail;
use super::walk::{some_actions, walk};
use crate::batch::action_list::MAX_WORDS;
use crate::game::{Game, Turn};

/// What `vecaz play` takes as a command and not as an action.
const COMMANDS: [&str; 7] = ["quit", "q", "exit", "help", "?", "hint", "undo"];

/// A name that is typed, alone or in a list, is read as its action.
pub(super) fn names_are_read_back<G: Game>(game: &G, trail: &Trail) -> Law {
    walk(game, trail, |position, rng| {
        for &action in &position.legal {
            let name = game.action_name(&position.state, action);
            let is_other = name.trim().parse::<u16>().is_ok_and(|number| number != action);
            holds!(!is_other, "the name {name:?} is the number of another action than {action}");
            can_be_typed(&name, action)?;
            let is_command = COMMANDS.contains(&name.to_lowercase().as_str());
            holds!(
                !is_command || position.turn == Turn::Chance,
                "the name {name:?} of action {action} is a command of `vecaz play`, which reads it before actions"
            );
        }
        for action in some_actions(&position.legal, rng) {
            let name = game.action_name(&position.state, action);
            let read = game.parse_action(&position.state, position.history(), &name);
            equal!(read, Some(action), "the name {name:?}");
        }
        let nothing = game.parse_action(&position.state, position.history(), "no such action");
        equal!(nothing, None);
        Ok(())
    })
}

/// What people type reaches [`Game::parse_action`] without blanks at its ends, and out of a list of actions as words with one blank between
/// them. Lists are split at commas and at line ends.
fn can_be_typed(name: &str, action: u16) -> Law {
    let typed = name.split_whitespace().collect::<Vec<_>>().join(" ");
    holds!(!typed.is_empty(), "the name of action {action} is {name:?}, expected a text that can be typed");
    holds!(
        name == typed,
        "the name {name:?} of action {action} is read as {typed:?} where people type it; expected words with \
         one blank between them and none at the ends"
    );
    let words = name.split(' ').count();
    holds!(
        words <= MAX_WORDS,
        "the name {name:?} of action {action} has {words} words, expected at most {MAX_WORDS}"
    );
    holds!(
        !name.contains(','),
        "the name {name:?} of action {action} has a comma; expected none, since commas separate actions"
    );
    Ok(())
}
