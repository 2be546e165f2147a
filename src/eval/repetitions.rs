//! Groups of games that repeat earlier ones. Two deterministic players play a position alike each time, so a second game from it is no further
//! evidence of strength.

use super::match_game::GameOutcome;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The groups of a match so far, in the order of their numbers.
#[derive(Default)]
pub(super) struct Repetitions {
    /// The games of each opening's first group, by their hashes.
    first: HashMap<u64, Vec<u64>>,
    /// True once an opening was played in two ways: players or rules are random, and equal games are independent samples.
    varies: bool,
}

impl Repetitions {
    /// The `groups` of a match that count: all of them where an opening was played in two ways, else the first of each opening.
    pub fn counted<'a>(groups: impl Iterator<Item = &'a [GameOutcome]>) -> Vec<&'a [GameOutcome]> {
        let mut found = Self::default();
        let groups: Vec<(&[GameOutcome], bool)> =
            groups.map(|group| (group, found.is_repetition(group))).collect();
        groups.into_iter().filter(|(_, repeats)| found.varies || !repeats).map(|(group, _)| group).collect()
    }

    /// True once an opening was played in two ways: earlier repetitions count, too.
    pub fn varies(&self) -> bool {
        self.varies
    }

    /// True for a group with the opening and the games of an earlier one, in a match in which each opening has been played alike so far. The
    /// last group may be incomplete.
    pub fn is_repetition(&mut self, group: &[GameOutcome]) -> bool {
        let Some(first) = group.first().filter(|_| !self.varies) else { return false };
        let moves: Vec<u64> = group.iter().map(|game| game.moves).collect();
        match self.first.entry(first.opening) {
            Entry::Vacant(entry) => {
                entry.insert(moves);
                false
            }
            Entry::Occupied(entry) => {
                self.varies = !entry.get().starts_with(&moves);
                !self.varies
            }
        }
    }
}
