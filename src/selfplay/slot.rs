//! One game slot: the game in progress, its random opening, its chance outcomes, its samples.

use super::{FinishedGame, Sample};
use crate::backend::device_selfplay::{DecidedPly, PlayPlan, SlotStart};
use crate::batch::AnyGame;
use crate::game::{History, Turn};
use crate::rng::{Key, Purpose};
use crate::search::root::RowKey;
use serde::{Deserialize, Serialize};

/// A game in progress: everything that a checkpoint keeps of a slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GameSlot {
    /// Its number over the whole run.
    pub slot: u64,
    /// Games finished in it.
    pub game: u64,
    /// The present position.
    pub state: Vec<u8>,
    /// Keys of the positions before it.
    pub history: Vec<u64>,
    /// Everything played and dealt so far.
    pub actions: Vec<u16>,
    /// Plies at the front that were drawn at random.
    pub opening: u32,
    /// Samples so far; value targets are filled in at the end.
    pub samples: Vec<Sample>,
    /// Whether each sample's value is proven already. `[samples]`
    pub proven: Vec<Proof>,
}

/// Whether a sample's value target is known before the game is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    /// The value target is the game's result.
    None,
    /// The search proved it.
    Exact,
}

pub(super) fn new_slot(slot: u64) -> GameSlot {
    GameSlot { slot, ..GameSlot::default() }
}

impl GameSlot {
    pub(super) fn key(&self, plan: &PlayPlan, determinisation: u64) -> RowKey {
        RowKey {
            seed: plan.seed,
            slot: self.slot,
            game: self.game,
            determinisation,
            ply: self.actions.len() as u64,
        }
    }

    pub(super) fn start(&self) -> SlotStart<'_> {
        let Self { slot, game, opening, ref state, .. } = *self;
        SlotStart { slot, game, plies: self.actions.len() as u32, opening, state }
    }

    pub(super) fn history(&self) -> History<'_> {
        History { played: &self.history, path: &[] }
    }

    pub(super) fn step(&mut self, game: &dyn AnyGame, action: u16) {
        let before = game.sizes().uses_history.then(|| game.history_key(&self.state));
        game.step(&mut self.state, action, History { played: &self.history, path: &[] });
        self.history.extend(before);
        self.actions.push(action);
    }

    /// Deals chance outcomes until a player is to move or the game is over.
    pub(super) fn deal(&mut self, game: &dyn AnyGame, plan: &PlayPlan) {
        while game.turn(&self.state) == Turn::Chance {
            let outcomes = game.legal(&self.state, self.history());
            let probs = game.chance_probs(&self.state, &outcomes);
            let draw = self.key(plan, 0).key(Purpose::Chance).stream().weighted(&probs);
            self.step(game, outcomes[draw]);
        }
    }

    /// Sets the slot to the start of a game with its random opening. An opening that ends the game is drawn again.
    pub(super) fn open(&mut self, game: &dyn AnyGame, plan: &PlayPlan) {
        for attempt in 0u64.. {
            self.state = game.init();
            self.history.clear();
            self.actions.clear();
            self.deal(game, plan);
            let mut rng =
                Key::new(plan.seed, Purpose::Opening).with(self.slot).with(self.game).with(attempt).stream();
            let none = plan.opening_plies == 0 || rng.uniform() < plan.opening_none || attempt > 100;
            let plies = if none { 0 } else { 1 + rng.below(plan.opening_plies as usize) };
            for _ in 0..plies {
                if game.turn(&self.state) == Turn::Over {
                    break;
                }
                let legal = game.legal(&self.state, self.history());
                self.step(game, legal[rng.below(legal.len())]);
                self.deal(game, plan);
            }
            self.opening = if plies == 0 { 0 } else { self.actions.len() as u32 };
            if game.turn(&self.state) != Turn::Over {
                return;
            }
        }
    }

    /// Plays a decided ply: keeps its sample, steps the game, deals the chance outcomes that follow, and opens the next game where
    /// this one is over, which is returned.
    pub(super) fn play(
        &mut self,
        game: &dyn AnyGame,
        plan: &PlayPlan,
        ply: &DecidedPly<'_>,
    ) -> Option<FinishedGame> {
        if !is_fast(plan, self.key(plan, 0)) {
            self.record(ply);
        }
        self.step(game, ply.actions[ply.place]);
        self.deal(game, plan);
        if game.turn(&self.state) != Turn::Over {
            return None;
        }
        let finished = self.finish(game, plan);
        self.open(game, plan);
        Some(finished)
    }

    /// Keeps the searched position as a sample; its value target is the search's until the game's result is known.
    fn record(&mut self, ply: &DecidedPly<'_>) {
        self.samples.push(Sample {
            state: self.state.clone(),
            player: ply.player,
            actions: ply.actions.to_vec(),
            policy: ply.policy.to_vec(),
            values: ply.value.to_vec(),
        });
        self.proven.push(if ply.proven { Proof::Exact } else { Proof::None });
    }

    /// Takes the finished game out of the slot, whose next game has the next number.
    fn finish(&mut self, game: &dyn AnyGame, plan: &PlayPlan) -> FinishedGame {
        let returns = game.returns(&self.state);
        let mut samples = std::mem::take(&mut self.samples);
        let proven = std::mem::take(&mut self.proven);
        for (sample, proven) in samples.iter_mut().zip(proven) {
            if proven == Proof::None {
                for (value, z) in sample.values.iter_mut().zip(&returns) {
                    *value = (1.0 - plan.value_mix) * z + plan.value_mix * *value;
                }
            }
        }
        let finished = FinishedGame {
            slot: self.slot,
            game: self.game,
            actions: std::mem::take(&mut self.actions),
            opening: self.opening,
            returns,
            samples,
            finding: game.finding(&self.state),
        };
        self.game += 1;
        finished
    }
}

/// True where a ply has the small budget and makes no sample (playout cap randomisation).
pub(super) fn is_fast(plan: &PlayPlan, key: RowKey) -> bool {
    plan.playout_cap_prob > 0.0 && key.key(Purpose::Budget).stream().uniform() < plan.playout_cap_prob
}
