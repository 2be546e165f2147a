//! Records of finished games: the data that does not follow from a game's key and the rules, and the replay that computes the rest.

use super::decided_ply::DecidedPly;
use super::finished_game::FinishedGame;
use super::plan::PlayPlan;
use super::sample::{Sample, is_policy, is_value};
use super::slot::{GameSlot, Proof, new_slot};
use crate::batch::ErasedRules;
use crate::game::Turn;
use serde::{Deserialize, Serialize};
use std::iter::{Copied, Peekable};
use std::slice::Iter;

/// Plies of one game, without the data that follows from its key and the rules: the opening, positions, legal actions, players and
/// results. The plies are those after the opening, or those that follow earlier records of the same game.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GameRecord {
    /// The slot it was played in.
    pub slot: u64,
    /// Its number in the slot.
    pub game: u64,
    /// The number in the game of the first of these actions: after the opening, or after those of earlier records.
    pub first: u32,
    /// Everything played and dealt in these plies.
    pub actions: Vec<u16>,
    /// The policy targets of the plies' samples, one after the other. `[samples][legal actions]`
    pub policy: Vec<f32>,
    /// Indices of samples, ascending from the record's first, whose value target is not the game's result: a proven value, or the result of
    /// a round.
    pub valued: Vec<u32>,
    /// The value targets of these samples. `[valued, P]`
    pub values: Vec<f32>,
}

impl GameRecord {
    /// The record of a game with its samples.
    pub fn of(finished: &FinishedGame) -> Self {
        Self::end_of(finished, finished.opening as usize, 0)
    }

    /// The record of the end of a game, from these numbers of an action and a sample on.
    pub fn end_of(finished: &FinishedGame, action: usize, sample: usize) -> Self {
        let FinishedGame { slot, game, ref actions, ref returns, ref samples, .. } = *finished;
        let follows = |(value, z): (&f32, &f32)| value.to_bits() == z.to_bits();
        let is_valued = |i: usize| !samples[i].values.iter().zip(returns).all(follows);
        Self { slot, game, first: action as u32, ..Self::default() }.with(actions, samples, sample, is_valued)
    }

    /// The record of the last plies of a game in progress, from these numbers of an action and a sample on.
    pub fn in_progress(of: &GameSlot, action: usize, sample: usize) -> Self {
        let is_valued = |i: usize| of.proven[i] == Proof::Exact;
        let &GameSlot { slot, game, ref actions, ref samples, .. } = of;
        Self { slot, game, first: action as u32, ..Self::default() }.with(actions, samples, sample, is_valued)
    }

    /// This record with the game's `actions` from its first one on, and the samples from number `first` on.
    fn with(
        mut self,
        actions: &[u16],
        samples: &[Sample],
        first: usize,
        is_valued: impl Fn(usize) -> bool,
    ) -> Self {
        self.actions.extend_from_slice(&actions[self.first as usize..]);
        self.policy.reserve(samples[first..].iter().map(|sample| sample.policy.len()).sum());
        for (i, sample) in samples.iter().enumerate().skip(first) {
            self.policy.extend_from_slice(&sample.policy);
            if is_valued(i) {
                self.valued.push((i - first) as u32);
                self.values.extend_from_slice(&sample.values);
            }
        }
        self
    }

    /// Maximum number of bytes of a record, as postcard writes it, in a game with these sizes.
    pub fn max_bytes(game: &dyn ErasedRules) -> usize {
        /// The longest varint of a u64.
        const NUMBER: usize = 10;
        let sizes = game.sizes();
        let ply = 3 + 4 * sizes.max_legal + 5 + 4 * sizes.num_players;
        sizes.max_plies.saturating_mul(ply).saturating_add(7 * NUMBER)
    }

    /// Plays the game again: opening and chance outcomes by its key, each action only where it is legal. The samples and the result
    /// are those of this replay, so every game that it returns is within the rules.
    ///
    /// # Errors
    /// The first difference between the record and the game.
    pub fn replay(&self, game: &dyn ErasedRules, plan: &PlayPlan) -> Result<FinishedGame, String> {
        let mut slot = new_slot(self.slot);
        slot.game = self.game;
        slot.open(game, plan);
        let finished = self.extend(&mut slot, game, plan)?;
        finished.ok_or_else(|| {
            self.wrong(format!(
                "ends at ply {}, expected plies up to the end of the game",
                slot.actions.len()
            ))
        })
    }

    /// Plays the record's plies in `slot`, and opens its next game where they end this one, which is returned. After an error the slot
    /// must be dropped.
    ///
    /// # Errors
    /// The first difference between the record and the game.
    pub fn play_in(
        &self,
        slot: &mut GameSlot,
        game: &dyn ErasedRules,
        plan: &PlayPlan,
    ) -> Result<Option<FinishedGame>, String> {
        let finished = self.extend(slot, game, plan)?;
        if finished.is_some() {
            slot.open(game, plan);
        }
        Ok(finished)
    }

    /// Plays the record's plies in `slot`. Returns the game where they end it; the slot has none then.
    fn extend(
        &self,
        slot: &mut GameSlot,
        game: &dyn ErasedRules,
        plan: &PlayPlan,
    ) -> Result<Option<FinishedGame>, String> {
        let wrong = |what: String| self.wrong(what);
        if (slot.slot, slot.game) != (self.slot, self.game) {
            return Err(wrong(format!("expected slot {}, game {}", slot.slot, slot.game)));
        }
        let (first, first_sample) = (self.first as usize, slot.samples.len());
        if !(slot.opening as usize..=slot.actions.len()).contains(&first) {
            let (opening, played) = (slot.opening, slot.actions.len());
            return Err(wrong(format!(
                "begins with action {first}, expected one from {opening} to {played}"
            )));
        }
        let mut targets = Targets {
            policies: RecordArrays { rest: &self.policy },
            values: RecordArrays { rest: &self.values },
            valued: self.valued.iter().copied().peekable(),
            no_value: vec![0.0; game.sizes().num_players],
        };
        while let Some(&action) = self.actions.get(slot.actions.len() - first) {
            let ply = slot.actions.len();
            let Turn::Player(player) = game.turn(&slot.state) else {
                return Err(wrong(format!("no player is to move at ply {ply}")));
            };
            let actions = game.legal(&slot.state, slot.history());
            let Ok(action_index) = actions.binary_search(&action) else {
                return Err(wrong(format!("action {action} is not legal at ply {ply}")));
            };
            let Target { policy, value, proven } = targets
                .take(actions.len(), slot.samples.len() - first_sample)
                .map_err(|(found, expected)| wrong(format!("{found} at ply {ply}, expected {expected}")))?;
            let decided = DecidedPly { player, proven, actions: &actions, policy, value, action_index };
            if let Some(finished) = slot.play_on(game, plan, &decided) {
                self.check_dealt(&finished.actions[first..])?;
                targets.check_end().map_err(wrong)?;
                return Ok(Some(finished));
            }
        }
        self.check_dealt(&slot.actions[first..])?;
        targets.check_end().map_err(wrong)?;
        Ok(None)
    }

    /// Compares the record's actions with those that its plies and the key gave.
    fn check_dealt(&self, played: &[u16]) -> Result<(), String> {
        if let Some(i) = (0..played.len().min(self.actions.len())).find(|&i| played[i] != self.actions[i]) {
            let (found, dealt, ply) = (self.actions[i], played[i], self.first as usize + i);
            return Err(
                self.wrong(format!("chance outcome {found} at ply {ply}, expected {dealt} by its key"))
            );
        }
        match (self.actions.len(), played.len()) {
            (found, expected) if found == expected => Ok(()),
            (found, expected) => {
                Err(self.wrong(format!("has {found} plies, expected {expected} to its end")))
            }
        }
    }

    fn wrong(&self, what: String) -> String {
        format!("slot {}, game {}: {what}", self.slot, self.game)
    }
}

/// The targets of one sample.
struct Target<'a> {
    policy: &'a [f32],
    value: &'a [f32],
    proven: bool,
}

/// The targets of a record's samples that are not taken yet.
struct Targets<'a> {
    policies: RecordArrays<'a>,
    values: RecordArrays<'a>,
    valued: Peekable<Copied<Iter<'a, u32>>>,
    /// The value of a sample that has the game's result.
    no_value: Vec<f32>,
}

impl<'a> Targets<'a> {
    /// The targets of the record's sample number `sample`, which has `actions` legal actions. The error is what was found and what was
    /// expected.
    fn take(&mut self, actions: usize, sample: usize) -> Result<Target<'_>, (String, &'static str)> {
        let policy = self.policies.take(actions)?;
        if !is_policy(policy) {
            let total: f32 = policy.iter().sum();
            return Err((format!("a policy target with sum {total}"), "probabilities that sum to 1"));
        }
        if self.valued.next_if(|&i| i as usize == sample).is_none() {
            return Ok(Target { policy, value: &self.no_value, proven: false });
        }
        let value = self.values.take(self.no_value.len())?;
        match value.iter().copied().all(is_value) {
            true => Ok(Target { policy, value, proven: true }),
            false => Err((format!("value targets {value:?}"), "values in [-1, 1]")),
        }
    }

    /// Refuses targets that no sample has taken.
    fn check_end(&mut self) -> Result<(), String> {
        let all =
            self.policies.rest.is_empty() && self.values.rest.is_empty() && self.valued.peek().is_none();
        if all { Ok(()) } else { Err("has targets left after its last sample, expected none".into()) }
    }
}

/// Arrays that follow one another.
struct RecordArrays<'a> {
    rest: &'a [f32],
}

impl<'a> RecordArrays<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [f32], (String, &'static str)> {
        let left = self.rest.len();
        let (part, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| (format!("{left} target elements left for {count}"), "targets of every sample"))?;
        self.rest = rest;
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::registry::any_game;
    use crate::rng::{Key, Purpose};

    /// A finished game at random, some of whose values are proven.
    fn finished(game: &dyn ErasedRules, plan: &PlayPlan, seed: u64) -> FinishedGame {
        let mut slot = GameSlot { game: seed, ..new_slot(7) };
        slot.open(game, plan);
        let mut rng = Key::new(seed, Purpose::Evaluation).stream();
        loop {
            let Turn::Player(player) = game.turn(&slot.state) else { panic!("a decision") };
            let actions = game.legal(&slot.state, slot.history());
            let action_index = rng.below(actions.len());
            let mut policy = vec![0.5 / actions.len() as f32; actions.len()];
            policy[action_index] += 0.5;
            let value = vec![rng.uniform() - 0.5; game.sizes().num_players];
            let (proven, policy, value) = (rng.below(4) == 0, &policy[..], &value[..]);
            let ply = DecidedPly { player, proven, actions: &actions, policy, value, action_index };
            if let Some(game) = slot.play(game, plan, &ply) {
                return game;
            }
        }
    }

    #[test]
    fn a_record_gives_back_the_game_with_its_samples() {
        let mut config = Config::default();
        config.selfplay.opening_plies = 3;
        let whole_games = "players = 5\ncards = 2\nfull = true\nseated = 0";
        for (name, options) in [
            ("connect_four", ""),
            ("clique", ""),
            ("blob", ""),
            ("blob", whole_games),
            ("backgammon", ""),
            ("chess", ""),
            ("go", ""),
            ("gomoku", ""),
        ] {
            let game = any_game(name, &options.parse().expect("TOML")).expect("registered");
            let (game, plan) = (game.as_ref(), PlayPlan::new(&config, &game.sizes()));
            for seed in 0..4 {
                let played = finished(game, &plan, seed);
                let record = GameRecord::of(&played);
                assert_eq!(record.replay(game, &plan).as_ref(), Ok(&played), "{name}");
                let bytes = postcard::to_stdvec(&record).expect("in memory");
                assert!(bytes.len() <= GameRecord::max_bytes(game), "{name}");
                assert!(options == whole_games || record.valued.len() < played.samples.len(), "{name}");
            }
        }
    }

    #[test]
    fn a_record_of_another_game_is_refused_with_what_is_wrong() {
        let mut config = Config::default();
        config.selfplay.opening_plies = 3;
        let game = any_game("backgammon", &toml::Table::new()).expect("registered");
        let (game, plan) = (game.as_ref(), PlayPlan::new(&config, &game.sizes()));
        let record = GameRecord::of(&finished(game, &plan, 3));
        let refused = |change: &dyn Fn(&mut GameRecord), part: &str| {
            let mut changed = record.clone();
            change(&mut changed);
            let error = changed.replay(game, &plan).expect_err(part);
            assert!(error.contains(part), "{error}");
        };
        refused(&|record| record.game += 1, "slot 7, game 4: ");
        refused(
            &|record| record.actions.truncate(record.actions.len() - 1),
            "targets left after its last sample",
        );
        let first = (record.slot, record.game, record.first);
        let begun = |(slot, game, first)| GameRecord { slot, game, first, ..GameRecord::default() };
        refused(&|record| *record = begun(first), "expected plies up to the end");
        refused(&|record| record.first += 1, "begins with action");
        refused(&|record| record.actions.push(0), "to its end");
        refused(&|record| record.actions[0] = u16::MAX, "action 65535 is not legal");
        refused(&|record| record.policy[0] = f32::NAN, "expected probabilities that sum to 1");
        refused(&|record| record.policy[0] += 0.5, "expected probabilities that sum to 1");
        refused(&|record| record.policy.push(0.0), "targets left after its last sample");
        refused(&|record| record.policy.clear(), "expected targets of every sample");
        refused(&|record| record.valued.push(u32::MAX), "targets left after its last sample");
        refused(&|record| record.values[0] = 1.5, "expected values in [-1, 1]");
        let dice = record.actions.iter().position(|&action| action != record.actions[0]).expect("two kinds");
        refused(&|record| record.actions[dice] ^= 1, "slot 7, game 3: ");
    }
}
