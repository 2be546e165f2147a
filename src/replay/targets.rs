//! The targets of a network's heads: how each column of a training batch is made out of stored samples.

use super::{BatchPlan, Replay, TargetColumns};
use crate::batch::ErasedRules;
use crate::error::{Error, Result};
use crate::model::{Head, Model, SAMPLE_TARGETS, VALUES};
use rayon::prelude::*;

/// Rows that one task makes.
pub(super) const CHUNK: usize = 64;

/// One target of a game's own that a network learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameTarget {
    /// Its name.
    pub name: String,
    /// Its number in [`crate::game::Game::targets`].
    pub number: usize,
    /// Elements for one position.
    pub len: usize,
}

/// The targets of a network besides policy and values, which every sample has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetList {
    /// True where a head learns win, draw and loss, which follow from the values.
    pub outcome: bool,
    /// Those that follow from the position and the end of its game.
    pub of_game: Vec<GameTarget>,
}

impl TargetList {
    /// The targets of the heads of `model` for samples of `game`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a head whose target the game does not have.
    pub fn new(game: &dyn ErasedRules, model: &Model) -> Result<Self> {
        let known = game.targets();
        let outcome = model.heads.iter().any(|head| head.target == Head::OUTCOME);
        let mut list = Self { outcome, ..Self::default() };
        for head in model.heads.iter().filter(|head| !SAMPLE_TARGETS.contains(&head.target.as_str())) {
            let (name, len) = (head.target.clone(), model.target_len(head));
            let number = known.iter().position(|target| target.name == name);
            let number = number.ok_or_else(|| {
                Error::mismatch(
                    format_args!("targets of {}", game.name()),
                    format_args!("none called {name}"),
                    "the targets of all heads of the network",
                )
            })?;
            list.of_game.push(GameTarget { name, number, len });
        }
        Ok(list)
    }

    /// Bytes of a stored sample in addition to [`Replay::sample_bytes`].
    pub fn sample_bytes(&self, state_size: usize) -> usize {
        if self.of_game.is_empty() { 0 } else { state_size }
    }
}

impl Replay {
    /// Adds to `columns`, which have policy and values, the others of the batch of `plan`.
    pub(super) fn add_columns(&self, game: &dyn ErasedRules, plan: BatchPlan, columns: &mut TargetColumns) {
        if self.targets.outcome {
            let observers = columns[VALUES].chunks_exact(self.sizes.num_players);
            *columns.column_mut(Head::OUTCOME) = observers.flat_map(|row| Head::outcome_of(row[0])).collect();
        }
        for target in &self.targets.of_game {
            *columns.column_mut(&target.name) = self.game_target(game, plan, target);
        }
    }

    /// A column of the batch of `plan`: a target of the game's own. `[B, len]`
    fn game_target(&self, game: &dyn ErasedRules, plan: BatchPlan, target: &GameTarget) -> Vec<f32> {
        let mut column = vec![0.0; plan.size * target.len];
        column.par_chunks_mut(CHUNK * target.len).enumerate().for_each(|(chunk, rows)| {
            for (i, out) in rows.chunks_exact_mut(target.len).enumerate() {
                let (at, symmetry) = self.draw(plan, chunk * CHUNK + i);
                let mut states = [&self.states, &self.ends].map(|states| self.state_at(states, at).to_vec());
                // The identity changes nothing; other numbers are drawn only where symmetries are applied.
                states.iter_mut().for_each(|state| game.transform_batch(state, &[symmetry]));
                let [position, end] = &states;
                let player = game.transform_player(self.players[at], symmetry);
                game.write_target(target.number, position, end, player, out);
            }
        });
        column
    }
}
