//! Records of finished games: what does not follow from a game's key and the rules, and the replay that gives back the rest.

use super::slot::{is_fast, new_slot};
use super::{FinishedGame, is_policy, is_value};
use crate::backend::device_selfplay::{DecidedPly, PlayPlan};
use crate::batch::AnyGame;
use crate::game::Turn;
use serde::{Deserialize, Serialize};

/// A finished game without what its key and the rules give: the opening, positions, legal actions, players and results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GameRecord {
    /// The slot it was played in.
    pub slot: u64,
    /// Its number in the slot.
    pub game: u64,
    /// Everything played and dealt after the opening.
    pub actions: Vec<u16>,
    /// The policy targets of all samples, one after the other. `[samples][legal actions]`
    pub policy: Vec<f32>,
    /// The samples, ascending, whose value target is not the game's result, since the search has proven another.
    pub valued: Vec<u32>,
    /// The value targets of these samples. `[valued, P]`
    pub values: Vec<f32>,
}

impl GameRecord {
    /// The record of a game with its samples.
    pub fn of(finished: &FinishedGame) -> Self {
        let FinishedGame { slot, game, ref actions, opening, ref returns, ref samples, .. } = *finished;
        let mut record =
            Self { slot, game, actions: actions[opening as usize..].to_vec(), ..Self::default() };
        record.policy.reserve(samples.iter().map(|sample| sample.policy.len()).sum());
        for (i, sample) in (0..).zip(samples) {
            record.policy.extend_from_slice(&sample.policy);
            let follows = |(value, z): (&f32, &f32)| value.to_bits() == z.to_bits();
            if !sample.values.iter().zip(returns).all(follows) {
                record.valued.push(i);
                record.values.extend_from_slice(&sample.values);
            }
        }
        record
    }

    /// The most bytes of a record, as postcard writes it, in a game with these sizes.
    pub fn most_bytes(game: &dyn AnyGame) -> usize {
        /// The longest varint of a u64.
        const NUMBER: usize = 10;
        let sizes = game.sizes();
        let ply = 3 + 4 * sizes.max_legal + 5 + 4 * sizes.num_players;
        sizes.max_plies.saturating_mul(ply).saturating_add(6 * NUMBER)
    }

    /// Plays the game again: opening and chance outcomes by its key, each action only where it is legal. The samples and the result
    /// are those that this gives, so no record leads to a game outside the rules.
    ///
    /// # Errors
    /// What the record says that the game does not give.
    pub fn replay(&self, game: &dyn AnyGame, plan: &PlayPlan) -> Result<FinishedGame, String> {
        let num_players = game.sizes().num_players;
        let wrong = |what: String| format!("slot {}, game {}: {what}", self.slot, self.game);
        let mut policies = Parts { rest: &self.policy };
        let mut values = Parts { rest: &self.values };
        let mut valued = self.valued.iter().copied().peekable();
        let mut slot = new_slot(self.slot);
        slot.game = self.game;
        slot.open(game, plan);
        let opening = slot.opening as usize;
        let no_value = vec![0.0; num_players];
        loop {
            let ply = slot.actions.len();
            let Some(&action) = self.actions.get(ply - opening) else {
                return Err(wrong(format!("ends at ply {ply}, where it is not over")));
            };
            let Turn::Player(player) = game.turn(&slot.state) else {
                return Err(wrong(format!("no player is to move at ply {ply}")));
            };
            let actions = game.legal(&slot.state, slot.history());
            let Ok(place) = actions.binary_search(&action) else {
                return Err(wrong(format!("action {action} is not legal at ply {ply}")));
            };
            let (mut policy, mut value): (&[f32], &[f32]) = (&[], &no_value);
            let mut proven = false;
            if !is_fast(plan, slot.key(plan, 0)) {
                policy = policies.take(actions.len()).map_err(wrong)?;
                if !is_policy(policy) {
                    return Err(wrong(format!("no probabilities that sum to 1 at ply {ply}")));
                }
                if valued.next_if(|&i| i as usize == slot.samples.len()).is_some() {
                    (value, proven) = (values.take(num_players).map_err(wrong)?, true);
                    if !value.iter().copied().all(is_value) {
                        return Err(wrong(format!("a value target beyond [-1, 1] at ply {ply}")));
                    }
                }
            }
            let decided = DecidedPly { player, proven, actions: &actions, policy, value, place };
            let Some(finished) = slot.play_on(game, plan, &decided) else { continue };
            if finished.actions[opening..] != self.actions {
                return Err(wrong(
                    "has chance outcomes that its key does not deal, or plies after its end".into(),
                ));
            }
            if !(policies.rest.is_empty() && values.rest.is_empty() && valued.peek().is_none()) {
                return Err(wrong(format!(
                    "has targets of more than its {} samples",
                    finished.samples.len()
                )));
            }
            return Ok(finished);
        }
    }
}

/// Arrays that lie one behind the other.
struct Parts<'a> {
    rest: &'a [f32],
}

impl<'a> Parts<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [f32], String> {
        let (part, rest) =
            self.rest.split_at_checked(count).ok_or_else(|| "has targets of too few samples".to_string())?;
        self.rest = rest;
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::any_game;
    use crate::config::Config;
    use crate::rng::{Key, Purpose};
    use crate::selfplay::slot::GameSlot;

    /// A finished game at random, some of whose plies are fast and some of whose values are proven.
    fn finished(game: &dyn AnyGame, plan: &PlayPlan, seed: u64) -> FinishedGame {
        let mut slot = GameSlot { game: seed, ..new_slot(7) };
        slot.open(game, plan);
        let mut rng = Key::new(seed, Purpose::Evaluation).stream();
        loop {
            let Turn::Player(player) = game.turn(&slot.state) else { panic!("a decision") };
            let actions = game.legal(&slot.state, slot.history());
            let place = rng.below(actions.len());
            let mut policy = vec![0.5 / actions.len() as f32; actions.len()];
            policy[place] += 0.5;
            let value = vec![rng.uniform() - 0.5; game.sizes().num_players];
            let (proven, policy, value) = (rng.below(4) == 0, &policy[..], &value[..]);
            let ply = DecidedPly { player, proven, actions: &actions, policy, value, place };
            if let Some(game) = slot.play(game, plan, &ply) {
                return game;
            }
        }
    }

    #[test]
    fn a_record_gives_back_the_game_with_its_samples() {
        let mut config = Config::default();
        config.selfplay.opening_plies = 3;
        config.selfplay.playout_cap_prob = 0.25;
        for name in ["connect_four", "clique", "blob", "backgammon", "chess", "go", "gomoku"] {
            let game = any_game(name, &toml::Table::new()).expect("registered");
            let (game, plan) = (game.as_ref(), PlayPlan::new(&config, &game.sizes()));
            for seed in 0..4 {
                let played = finished(game, &plan, seed);
                let record = GameRecord::of(&played);
                assert_eq!(record.replay(game, &plan).as_ref(), Ok(&played), "{name}");
                let bytes = postcard::to_stdvec(&record).expect("in memory");
                assert!(bytes.len() <= GameRecord::most_bytes(game), "{name}");
                assert!(record.valued.len() < played.samples.len(), "{name}");
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
        refused(&|record| record.actions.truncate(record.actions.len() - 1), "where it is not over");
        refused(&|record| record.actions.push(0), "plies after its end");
        refused(&|record| record.actions[0] = u16::MAX, "action 65535 is not legal");
        refused(&|record| record.policy[0] = f32::NAN, "no probabilities that sum to 1");
        refused(&|record| record.policy[0] += 0.5, "no probabilities that sum to 1");
        refused(&|record| record.policy.push(0.0), "targets of more than its");
        refused(&|record| record.policy.clear(), "targets of too few samples");
        refused(&|record| record.valued.push(u32::MAX), "targets of more than its");
        refused(&|record| record.values[0] = 1.5, "a value target beyond [-1, 1]");
        let dice = record.actions.iter().position(|&action| action != record.actions[0]).expect("two kinds");
        refused(&|record| record.actions[dice] ^= 1, "slot 7, game 3: ");
    }
}
