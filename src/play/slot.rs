//! One game slot: the game in progress, its random opening, its chance outcomes, its samples.

use super::decided_ply::DecidedPly;
use super::finished_game::FinishedGame;
use super::plan::{MAX_OPENING_ATTEMPTS, MAX_UNDECIDED_GAMES, PlayPlan, SampleKind};
use super::sample::Sample;
use crate::batch::ErasedRules;
use crate::config::FirstGame;
use crate::game::{History, Turn};
use crate::math;
use crate::rng::{Key, Purpose};
use crate::search::root::RowKey;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A game in progress: everything that a checkpoint keeps of a slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GameSlot {
    /// Its number over the whole run.
    pub slot: u64,
    /// The number of its present game: of those before it, finished here or ended by their deals.
    pub game: u64,
    /// The present position.
    pub state: Vec<u8>,
    /// Keys of the positions before it.
    pub history: Vec<u64>,
    /// Everything played and dealt so far.
    pub actions: Vec<u16>,
    /// Plies at the front that were drawn at random.
    pub opening: u32,
    /// Samples so far. Until the game is over their values are those of the search, of which the value targets are made, in strict order
    /// 0 unless they are proven.
    pub samples: Vec<Sample>,
    /// Whether each sample's value target is known already. `[samples]`
    pub proven: Vec<Proof>,
}

/// Whether a sample's value target is known before the game is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    /// The value target follows from the end of the game.
    None,
    /// The search proved it.
    Exact,
    /// It was settled at a horizon ([`crate::game::Game::is_horizon`]), as were those before it.
    Settled,
}

/// The state of a game slot when it is attached to a device.
#[derive(Clone, Copy, Debug)]
pub struct SlotStart<'a> {
    /// Its number over the whole run.
    pub slot: u64,
    /// The number of its present game.
    pub game: u64,
    /// Plies played and dealt so far.
    pub plies: u32,
    /// Plies at the front that were drawn at random.
    pub opening: u32,
    /// The present state, hidden information included.
    pub state: &'a [u8],
}

pub(crate) fn new_slot(slot: u64) -> GameSlot {
    GameSlot { slot, ..GameSlot::default() }
}

/// `count` slots at the start of their first games, numbered from `first` on. A slot of a game that (nearly) every deal ends may be left with
/// a game that is over.
pub fn new_slots(first: u64, count: usize, game: &dyn ErasedRules, plan: &PlayPlan) -> Vec<GameSlot> {
    let opened = |slot| {
        let mut slot = new_slot(slot);
        slot.open(game, plan);
        slot
    };
    (first..first + count as u64).into_par_iter().map(opened).collect()
}

impl GameSlot {
    pub(crate) fn key(&self, plan: &PlayPlan, determinisation: u64) -> RowKey {
        RowKey {
            seed: plan.seed,
            slot: self.slot,
            game: self.game,
            determinisation,
            ply: self.actions.len() as u64,
        }
    }

    pub(crate) fn start(&self) -> SlotStart<'_> {
        let Self { slot, game, opening, ref state, .. } = *self;
        SlotStart { slot, game, plies: self.actions.len() as u32, opening, state }
    }

    /// Replays the game and compares the result with the slot's fields: the check of a slot that was read from a file.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, game: &dyn ErasedRules, slot: u64) -> std::result::Result<(), String> {
        let sizes = game.sizes();
        let wrong = |what: &str| Err(format!("slot {slot}: {what}"));
        if self.slot != slot {
            return wrong(&format!("is numbered {}", self.slot));
        }
        if self.actions.len() > sizes.max_plies || self.opening as usize > self.actions.len() {
            return wrong("has more plies than a game, or a longer opening than plies");
        }
        if self.samples.len() != self.proven.len() {
            return wrong("has more samples than values or the other way round");
        }
        let mut samples = self.samples.iter().peekable();
        let mut replayed = new_slot(slot);
        replayed.state = game.init();
        for (ply, &action) in self.actions.iter().enumerate() {
            let legal = game.legal(&replayed.state, replayed.history());
            if !legal.contains(&action) {
                return wrong(&format!("action {action} is not legal at ply {ply}"));
            }
            samples.next_if(|sample| sample.is_of(game, &replayed.state, &legal));
            let turn = game.turn(&replayed.state);
            replayed.step(game, action);
            if let Turn::Player(player) = turn {
                samples.next_if(|sample| sample.is_after(game, &replayed.state, player));
            }
        }
        if samples.peek().is_some() {
            return wrong("a sample is of no position of the game");
        }
        if replayed.state != self.state || replayed.history != self.history {
            return wrong("the position is not the one to which its actions lead");
        }
        match game.turn(&self.state) {
            Turn::Player(_) => Ok(()),
            Turn::Chance | Turn::Over => wrong("no player is to move"),
        }
    }

    /// The game without its samples: all that search and rules need of it.
    pub fn without_samples(&self) -> Self {
        let Self { slot, game, ref state, ref history, ref actions, opening, .. } = *self;
        let (state, history, actions) = (state.clone(), history.clone(), actions.clone());
        Self { slot, game, state, history, actions, opening, ..Self::default() }
    }

    pub(super) fn history(&self) -> History<'_> {
        History { played: &self.history, path: &[] }
    }

    pub(super) fn step(&mut self, game: &dyn ErasedRules, action: u16) {
        let before = game.sizes().uses_history.then(|| game.history_key(&self.state));
        game.step(&mut self.state, action, History { played: &self.history, path: &[] });
        self.history.extend(before);
        self.actions.push(action);
    }

    /// Deals chance outcomes until a player is to move or the game is over.
    pub(super) fn deal(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) {
        while game.turn(&self.state) == Turn::Chance {
            let outcomes = game.legal(&self.state, self.history());
            let probs = game.chance_probs(&self.state, &outcomes);
            let draw = self.key(plan, 0).key(Purpose::Chance).stream().weighted(&probs);
            self.step(game, outcomes[draw]);
        }
    }

    /// Sets the slot to the start of a game with its random opening. An opening that ends the game is drawn again. The first game may
    /// begin [within](Self::open_within) a random one.
    pub(super) fn open(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) {
        self.begin_decided(game, plan);
        if self.game == 0 && plan.first_game == FirstGame::Within {
            return self.open_within(game, plan);
        }
        let openings = Key::new(plan.seed, Purpose::Opening).with(self.slot).with(self.game);
        for attempt in 0..MAX_OPENING_ATTEMPTS {
            let mut rng = openings.with(attempt).stream();
            // Drawn once, so that the share of games without an opening is the one that is set.
            if attempt == 0 && (plan.opening_plies == 0 || rng.uniform() < plan.opening_none) {
                break;
            }
            for _ in 0..1 + rng.below(plan.opening_plies as usize) {
                if game.turn(&self.state) == Turn::Over {
                    break;
                }
                let legal = game.legal(&self.state, self.history());
                self.step(game, legal[rng.below(legal.len())]);
                self.deal(game, plan);
            }
            self.opening = self.actions.len() as u32;
            if game.turn(&self.state) != Turn::Over {
                return;
            }
            self.begin(game, plan);
        }
        self.opening = self.actions.len() as u32;
    }

    /// Sets the slot to a uniformly random ply of a random game that begins as the present one. First games that all begin at the start
    /// end together, so that there is no sample for the time of a game.
    fn open_within(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) {
        let mut rng =
            Key::new(plan.seed, Purpose::Opening).with(self.slot).with(self.game).with(u64::MAX).stream();
        let mut plies = Vec::new();
        while game.turn(&self.state) != Turn::Over {
            plies.push(self.actions.len());
            let legal = game.legal(&self.state, self.history());
            self.step(game, legal[rng.below(legal.len())]);
            self.deal(game, plan);
        }
        let actions = std::mem::take(&mut self.actions);
        let ply = if plies.is_empty() { 0 } else { rng.below(plies.len()) };
        self.begin(game, plan);
        let dealt = self.actions.len();
        actions[dealt..plies.get(ply).copied().unwrap_or(dealt)]
            .iter()
            .for_each(|&action| self.step(game, action));
        self.opening = self.actions.len() as u32;
    }

    /// Sets the slot to the first decision of its game. A game that its deal ends has none, and is passed over: the slot's next one is begun.
    /// After [`MAX_UNDECIDED_GAMES`] of them the slot keeps one that is over.
    fn begin_decided(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) {
        self.begin(game, plan);
        for _ in 0..MAX_UNDECIDED_GAMES {
            if game.turn(&self.state) != Turn::Over {
                return;
            }
            self.game += 1;
            self.begin(game, plan);
        }
    }

    /// Sets the slot to the start of its game, with what chance deals before the first decision.
    fn begin(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) {
        self.state = game.init();
        self.history.clear();
        self.actions.clear();
        self.deal(game, plan);
    }

    /// Plays a decided ply as [`GameSlot::play_on`], and opens the next game where this one is over, which is returned.
    pub(crate) fn play(
        &mut self,
        game: &dyn ErasedRules,
        plan: &PlayPlan,
        ply: &DecidedPly<'_>,
    ) -> Option<FinishedGame> {
        let finished = self.play_on(game, plan, ply)?;
        self.open(game, plan);
        Some(finished)
    }

    /// Plays a decided ply: keeps its sample, steps the game and deals the chance outcomes that follow. Returns the game if it is over.
    pub(super) fn play_on(
        &mut self,
        game: &dyn ErasedRules,
        plan: &PlayPlan,
        ply: &DecidedPly<'_>,
    ) -> Option<FinishedGame> {
        let is_sampled = !is_fast(plan, self.key(plan, 0));
        if is_sampled && plan.samples == SampleKind::Decisions {
            self.record(ply, (ply.actions, ply.policy));
        }
        self.step(game, ply.actions[ply.action_index]);
        let is_after = ![Turn::Player(ply.player), Turn::Over].contains(&game.turn(&self.state));
        if is_sampled && is_after && plan.samples == SampleKind::Afterstates {
            self.record(ply, (&[], &[]));
        }
        if game.is_horizon(&self.state) {
            self.settle(game, plan);
        }
        self.deal(game, plan);
        if game.turn(&self.state) != Turn::Over {
            return None;
        }
        Some(self.finish(game, plan))
    }

    /// Keeps the present position as a sample, with the search's values until the game's result is known.
    fn record(&mut self, ply: &DecidedPly<'_>, (actions, policy): (&[u16], &[f32])) {
        self.samples.push(Sample {
            state: self.state.clone(),
            player: ply.player,
            actions: actions.to_vec(),
            policy: policy.to_vec(),
            values: ply.value.to_vec(),
        });
        self.proven.push(if ply.proven { Proof::Exact } else { Proof::None });
    }

    /// Replaces the search's values of the samples since the last horizon by their targets, at a horizon or at the end of the game.
    fn settle(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) {
        let settled =
            self.proven.iter().rposition(|&proof| proof == Proof::Settled).map_or(0, |last| last + 1);
        let returns = game.stage_returns(&self.state);
        let (samples, proven) = (&mut self.samples[settled..], &mut self.proven[settled..]);
        lambda_returns(samples, proven, &returns, plan.td_lambda);
        proven.iter_mut().filter(|proof| **proof == Proof::None).for_each(|proof| *proof = Proof::Settled);
    }

    /// Moves the finished game from the slot, whose next game has the next number.
    fn finish(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) -> FinishedGame {
        self.settle(game, plan);
        let returns = game.returns(&self.state);
        let samples = std::mem::take(&mut self.samples);
        self.proven.clear();
        let finished = FinishedGame {
            slot: self.slot,
            game: self.game,
            actions: std::mem::take(&mut self.actions),
            opening: self.opening,
            returns,
            end: self.state.clone(),
            samples,
            finding: game.finding(&self.state),
        };
        self.game += 1;
        finished
    }
}

/// Replaces the search's values of the samples of a finished stage by their targets. The target of a sample is the lambda return: `lambda` of the
/// next sample's return and the rest of the next sample's value; at the end of its stage the result. Where a value is proven it is the target of its own
/// sample, while the return that goes back to earlier samples is the one without it.
fn lambda_returns(samples: &mut [Sample], proven: &[Proof], returns: &[f32], lambda: f32) {
    let mut target = returns.to_vec();
    for (sample, proven) in samples.iter_mut().zip(proven).rev() {
        for (value, target) in sample.values.iter_mut().zip(&mut target) {
            let (own, of_next) = (*value, *target);
            // With lambda = 1 the result goes back without rounding.
            *target = if lambda == 1.0 { of_next } else { math::mul_add(lambda, of_next - own, own) };
            *value = if *proven == Proof::Exact { own } else { of_next };
        }
    }
}

/// True where a ply has the small budget and makes no sample (playout cap randomisation).
pub(crate) fn is_fast(plan: &PlayPlan, key: RowKey) -> bool {
    plan.playout_cap_prob > 0.0 && key.key(Purpose::Budget).stream().uniform() < plan.playout_cap_prob
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::registry::any_game;
    use crate::rng::RngStream;

    /// A game in progress after `plies` decided plies at random, with a sample of each.
    fn played(game: &dyn ErasedRules, plan: &PlayPlan, plies: usize) -> GameSlot {
        let mut slot = new_slot(5);
        slot.open(game, plan);
        let mut rng = Key::new(3, Purpose::Evaluation).stream();
        for _ in 0..plies {
            let actions = game.legal(&slot.state, slot.history());
            let policy = vec![1.0 / actions.len() as f32; actions.len()];
            let Turn::Player(player) = game.turn(&slot.state) else { panic!("a decision") };
            let action_index = rng.below(actions.len());
            let value = vec![0.25; game.sizes().num_players];
            let (actions, policy, value) = (&actions[..], &policy[..], &value[..]);
            slot.play(
                game,
                plan,
                &DecidedPly { player, proven: action_index == 0, actions, policy, value, action_index },
            );
        }
        slot
    }

    /// The bytes of a slot as a checkpoint has them, with a few of them changed.
    fn forged(bytes: &[u8], rng: &mut RngStream) -> Option<GameSlot> {
        let mut bytes = bytes.to_vec();
        for _ in 0..1 + rng.below(3) {
            let extremes = [0, 1, 127, 128, 255, rng.below(256) as u8];
            let index = rng.below(bytes.len());
            bytes[index] = extremes[rng.below(extremes.len())];
        }
        postcard::from_bytes(&bytes).ok()
    }

    #[test]
    fn targets_are_lambda_returns() {
        let sample = |values: &[f32]| Sample { values: values.to_vec(), ..Sample::default() };
        let search = [[0.5, -0.5], [0.25, -0.25], [-0.75, 0.75]].map(|values| sample(&values));
        let targets = |proven: [Proof; 3], lambda: f32| {
            let mut samples = search.to_vec();
            lambda_returns(&mut samples, &proven, &[1.0, -1.0], lambda);
            samples.iter().map(|sample| sample.values[0]).collect::<Vec<f32>>()
        };
        let none = [Proof::None; 3];
        assert_eq!(targets(none, 1.0), [1.0, 1.0, 1.0], "the result");
        assert_eq!(targets(none, 0.0), [0.25, -0.75, 1.0], "the next value");
        // Backwards: 1; half of -0.75 and 1; half of 0.25 and 0.125.
        assert_eq!(targets(none, 0.5), [0.1875, 0.125, 1.0]);
        let proven = [Proof::None, Proof::Exact, Proof::None];
        assert_eq!(targets(proven, 0.5), [0.1875, 0.25, 1.0], "a proven value stays");
        assert_eq!(targets(proven, 1.0), [1.0, 0.25, 1.0]);
    }

    /// Where search ends at a horizon, so do the value targets.
    #[test]
    fn targets_of_a_round_are_its_own_result() {
        let game = any_game("blob", &"players = 3\ncards = 2\nfull = true".parse().expect("TOML"));
        let game = game.expect("registered");
        let (game, mut config) = (game.as_ref(), Config::default());
        (config.selfplay.opening_plies, config.selfplay.first_game) = (0, FirstGame::Start);
        let plan = PlayPlan::new(&config, &game.sizes());
        let mut slot = new_slot(3);
        slot.open(game, &plan);
        let (mut rng, mut results, mut decided) =
            (Key::new(9, Purpose::Evaluation).stream(), Vec::new(), Vec::new());
        let finished = loop {
            let Turn::Player(player) = game.turn(&slot.state) else { panic!("a decision") };
            let actions = game.legal(&slot.state, slot.history());
            let policy = vec![1.0 / actions.len() as f32; actions.len()];
            let action_index = rng.below(actions.len());
            let mut after = slot.state.clone();
            game.step(&mut after, actions[action_index], slot.history());
            decided.push(results.len());
            if game.turn(&after) == Turn::Over || game.is_horizon(&after) {
                results.push(game.stage_returns(&after));
            }
            let (actions, policy, value) = (&actions[..], &policy[..], &[0.5, 0.25, -0.75][..]);
            let ply = DecidedPly { player, proven: false, actions, policy, value, action_index };
            if let Some(finished) = slot.play(game, &plan, &ply) {
                break finished;
            }
        };
        assert_eq!(results.len(), 5, "rounds of 2, 1, 1, 1 and 2 cards");
        assert!(results.iter().any(|result| *result != finished.returns));
        for (sample, round) in finished.samples.iter().zip(decided) {
            assert_eq!(sample.values, results[round], "round {round}");
        }
    }

    #[test]
    fn first_games_begin_at_all_plies_of_random_games_and_later_ones_at_the_start() {
        let config = Config::default();
        for name in ["chess", "backgammon", "blob", "hex"] {
            let game = any_game(name, &toml::Table::new()).expect("registered");
            let plan = PlayPlan::new(&config, &game.sizes());
            let slots = new_slots(0, 200, game.as_ref(), &plan);
            let mut lengths: Vec<u32> = slots.iter().map(|slot| slot.opening).collect();
            lengths.sort_unstable();
            // Counted from the first decision: Blob deals all cards before it.
            let dealt = lengths.iter().find(|&&length| length > 0).map_or(0, |length| length - 1);
            lengths.iter_mut().for_each(|length| *length = length.saturating_sub(dealt));
            let longest = lengths[199];
            assert!(
                lengths[50] < longest / 2 && lengths[150] > longest / 5 && lengths[10] < longest / 8,
                "{name}: {lengths:?}"
            );
            for (number, mut slot) in (0..).zip(slots) {
                assert_eq!(slot.check(game.as_ref(), number), Ok(()), "{name}");
                slot.game = 1;
                slot.open(game.as_ref(), &plan);
                assert_eq!(slot.opening as usize, slot.actions.len(), "{name}");
            }
        }
    }

    /// Openings that end their games are drawn again, which must not give them another chance to be none.
    #[test]
    fn the_share_of_games_without_an_opening_is_the_one_that_is_set() {
        let mut config = Config::default();
        config.selfplay.first_game = FirstGame::Start;
        config.selfplay.opening_plies = 9;
        config.selfplay.opening_none = 0.25;
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let slots = new_slots(0, 4000, game.as_ref(), &PlayPlan::new(&config, &game.sizes()));
        let none = slots.iter().filter(|slot| slot.opening == 0).count() as f64 / 4000.0;
        assert!((none - 0.25).abs() < 0.03, "{none}");
        assert!(slots.iter().all(|slot| game.turn(&slot.state) != Turn::Over));
    }

    #[test]
    fn a_slot_is_taken_only_as_the_game_that_its_actions_make() {
        let mut config = Config::default();
        config.selfplay.opening_plies = 3;
        let mut rng = Key::new(4, Purpose::Evaluation).stream();
        for name in ["clique", "blob", "backgammon", "chess", "go", "gomoku"] {
            let game = any_game(name, &toml::Table::new()).expect("registered");
            let plan = PlayPlan::new(&config, &game.sizes());
            let slot = played(game.as_ref(), &plan, 9);
            assert_eq!(slot.check(game.as_ref(), 5), Ok(()), "{name}");
            assert!(slot.check(game.as_ref(), 4).is_err());
            let bytes = postcard::to_stdvec(&slot).expect("in memory");
            let (mut refused, mut taken) = (0, 0);
            for mut changed in (0..400).filter_map(|_| forged(&bytes, &mut rng)) {
                if changed.check(game.as_ref(), 5).is_err() {
                    refused += 1;
                    continue;
                }
                // Only fields on which play does not depend have changed.
                taken += 1;
                assert_eq!((&changed.state, &changed.actions), (&slot.state, &slot.actions), "{name}");
                changed.finish(game.as_ref(), &plan);
            }
            assert!(refused > 50, "{name}: {refused} refused, {taken} taken");
        }
    }
}
