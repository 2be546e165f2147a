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
    /// Samples so far. Until the game or the round is over their values are those of the search, of which the value targets are made, in strict order
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
    /// It is the result of a stage that ended at a horizon ([`crate::game::Game::is_horizon`]), as is that of every sample before it.
    StageOver,
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
            if game.is_horizon(&self.state) {
                self.end_stage(game, plan);
            }
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
        if plan.samples == SampleKind::Decisions {
            self.record(ply, (ply.actions, ply.policy));
        }
        self.step(game, ply.actions[ply.action_index]);
        let is_after = ![Turn::Player(ply.player), Turn::Over].contains(&game.turn(&self.state));
        if is_after && plan.samples == SampleKind::Afterstates {
            self.record(ply, (&[], &[]));
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
    fn end_stage(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) {
        let first =
            self.proven.iter().rposition(|&proof| proof == Proof::StageOver).map_or(0, |last| last + 1);
        let returns = game.stage_returns(&self.state);
        let (samples, proven) = (&mut self.samples[first..], &mut self.proven[first..]);
        lambda_returns(samples, proven, &returns, plan.td_lambda);
        proven.iter_mut().filter(|proof| **proof == Proof::None).for_each(|proof| *proof = Proof::StageOver);
    }

    /// Moves the finished game from the slot, whose next game has the next number.
    fn finish(&mut self, game: &dyn ErasedRules, plan: &PlayPlan) -> FinishedGame {
        self.end_stage(game, plan);
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

#[cfg(test)]
mod tests;
