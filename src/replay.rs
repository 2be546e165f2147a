//! The replay buffer: a ring of samples in fixed-shape arrays, in which a new sample overwrites the oldest. Samples
//! come in, batches go out; the rules of their game give the observations. Knows no search, and of a
//! network only its list of heads.

mod baselines;
mod segment;
mod targets;
mod train_batch;

use crate::batch::ErasedRules;
use crate::game::Sizes;
use crate::model::{POLICY, VALUES};
use crate::play::Sample;
use crate::rng::{Key, Purpose};
use rayon::prelude::*;
use targets::CHUNK;

pub use baselines::Baselines;
pub use segment::Segment;
pub use targets::{GameTarget, TargetList};
pub use train_batch::{TargetColumns, TrainBatch};

/// A replay buffer of up to R samples.
pub struct Replay {
    sizes: Sizes,
    state_size: usize,
    capacity: usize,
    /// Samples added in total, overwritten ones included.
    added: u64,
    /// `[R, state bytes]`
    states: Vec<u8>,
    /// `[R]`
    players: Vec<u8>,
    /// `[R]`
    num_legal: Vec<u16>,
    /// `[R, E]`
    actions: Vec<u16>,
    /// `[R, E]`
    policy: Vec<f32>,
    /// `[R, P]`
    values: Vec<f32>,
    /// The targets that a batch has besides policy and values.
    targets: TargetList,
    /// The state in which the sample's game ended, if targets follow from it; otherwise empty. `[R, state bytes]`
    ends: Vec<u8>,
}

/// The arrays of a replay buffer.
#[derive(Clone, Copy)]
pub struct ReplayArrays<'a> {
    /// `[R, state bytes]`
    pub states: &'a [u8],
    /// `[R]`
    pub players: &'a [u8],
    /// `[R]`
    pub num_legal: &'a [u16],
    /// `[R, E]`
    pub actions: &'a [u16],
    /// `[R, E]`
    pub policy: &'a [f32],
    /// `[R, P]`
    pub values: &'a [f32],
}

/// The size of a training batch and the key of the draws that select its samples.
#[derive(Clone, Copy, Debug)]
pub struct BatchPlan {
    /// Samples in the batch.
    pub size: usize,
    /// The run's seed.
    pub seed: u64,
    /// Index of the batch in the run.
    pub number: u64,
    /// The symmetries that are applied.
    pub symmetries: Symmetries,
}

/// Data augmentation of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetries {
    /// A random symmetry of the game, drawn for each sample.
    Random,
    /// No symmetry.
    Identity,
}

impl Replay {
    /// An empty buffer for R = `capacity` samples, whose batches have policy and values.
    pub fn new(game: &dyn ErasedRules, capacity: usize) -> Self {
        Self::with_targets(game, capacity, TargetList::default())
    }

    /// The same with further targets.
    pub fn with_targets(game: &dyn ErasedRules, capacity: usize, targets: TargetList) -> Self {
        Self {
            targets,
            ends: Vec::new(),
            sizes: game.sizes(),
            state_size: game.state_size(),
            capacity,
            added: 0,
            states: Vec::new(),
            players: Vec::new(),
            num_legal: Vec::new(),
            actions: Vec::new(),
            policy: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Bytes per legal action of a sample: its number and its probability.
    pub const ACTION_BYTES: usize = size_of::<u16>() + size_of::<f32>();

    /// Bytes per sample.
    pub fn sample_bytes(sizes: &Sizes, state_size: usize) -> usize {
        state_size + 3 + sizes.max_legal * Self::ACTION_BYTES + sizes.num_players * 4
    }

    /// Number of samples in the buffer.
    pub fn len(&self) -> usize {
        self.players.len()
    }

    /// True if no sample was added yet.
    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
    }

    /// Number of samples added in total, overwritten ones included.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// The arrays of the buffer.
    pub fn arrays(&self) -> ReplayArrays<'_> {
        let Self { states, players, num_legal, actions, policy, values, .. } = self;
        ReplayArrays { states, players, num_legal, actions, policy, values }
    }

    /// Bytes of a state of which targets are made; 0 if there are none.
    fn end_size(&self) -> usize {
        self.targets.sample_bytes(self.state_size)
    }

    /// The state of sample `at` in `states [R, state bytes]`.
    fn state_at<'a>(&self, states: &'a [u8], at: usize) -> &'a [u8] {
        &states[at * self.state_size..][..self.state_size]
    }

    /// Adds a sample of a game that ended in the state `end`; overwrites the oldest if the buffer is full.
    pub fn push(&mut self, sample: &Sample, end: &[u8]) {
        let end_size = self.end_size();
        let (e, p) = (self.sizes.max_legal, self.sizes.num_players);
        let at = (self.added % self.capacity as u64) as usize;
        if at == self.players.len() {
            self.resize(at + 1);
        }
        self.ends[at * end_size..][..end_size].copy_from_slice(&end[..end_size]);
        let n = sample.actions.len();
        self.states[at * self.state_size..][..self.state_size].copy_from_slice(&sample.state);
        self.players[at] = sample.player;
        self.num_legal[at] = n as u16;
        self.actions[at * e..][..n].copy_from_slice(&sample.actions);
        self.actions[at * e + n..(at + 1) * e].fill(0);
        self.policy[at * e..][..n].copy_from_slice(&sample.policy);
        self.policy[at * e + n..(at + 1) * e].fill(0.0);
        self.values[at * p..][..p].copy_from_slice(&sample.values);
        self.added += 1;
    }

    /// Sets the number of rows; new ones are 0.
    fn resize(&mut self, rows: usize) {
        let (e, p, end_size) = (self.sizes.max_legal, self.sizes.num_players, self.end_size());
        self.states.resize(rows * self.state_size, 0);
        self.players.resize(rows, 0);
        self.num_legal.resize(rows, 0);
        self.actions.resize(rows * e, 0);
        self.policy.resize(rows * e, 0.0);
        self.values.resize(rows * p, 0.0);
        self.ends.resize(rows * end_size, 0);
    }

    /// Gathers a batch. The samples and symmetries drawn depend only on the seed and the batch's number.
    pub fn batch(&self, game: &dyn ErasedRules, plan: BatchPlan) -> TrainBatch {
        let (a, p) = (self.sizes.num_actions, self.sizes.num_players);
        let f = self.sizes.obs.len();
        let mut out = TrainBatch {
            obs: vec![0.0; plan.size * f],
            legal: vec![0; plan.size * a],
            targets: TargetColumns::default(),
            weight: vec![1.0; plan.size],
        };
        let (mut policy, mut values) = (vec![0.0; plan.size * a], vec![0.0; plan.size * p]);
        let rows = out
            .obs
            .par_chunks_mut(CHUNK * f)
            .zip(policy.par_chunks_mut(CHUNK * a))
            .zip(out.legal.par_chunks_mut(CHUNK * a))
            .zip(values.par_chunks_mut(CHUNK * p));
        rows.enumerate().for_each(|(chunk, (((obs, policy), legal), values))| {
            let count = obs.len() / f;
            let mut states = vec![0u8; count * self.state_size];
            let mut symmetries = vec![0u64; count];
            let mut observers = vec![0u8; count];
            for i in 0..count {
                let row = chunk * CHUNK + i;
                let (at, symmetry) = self.draw(plan, row);
                symmetries[i] = symmetry;
                observers[i] = game.transform_player(self.players[at], symmetry);
                states[i * self.state_size..][..self.state_size]
                    .copy_from_slice(&self.states[at * self.state_size..][..self.state_size]);
                let legal = &mut legal[i * a..(i + 1) * a];
                self.write_policy(game, at, symmetry, &mut policy[i * a..(i + 1) * a], legal);
                self.write_values(game, at, symmetry, &mut values[i * p..(i + 1) * p]);
            }
            if plan.symmetries == Symmetries::Random {
                game.transform_batch(&mut states, &symmetries);
            }
            game.observe_batch_by(&states, &observers, obs);
        });
        *out.targets.column_mut(POLICY) = policy;
        *out.targets.column_mut(VALUES) = values;
        self.add_columns(game, plan, &mut out.targets);
        out
    }

    /// Draws the sample index and the symmetry of row `row` of a batch.
    pub fn draw(&self, plan: BatchPlan, row: usize) -> (usize, u64) {
        let symmetry = match plan.symmetries {
            Symmetries::Identity => 0,
            Symmetries::Random => {
                let mut rng =
                    Key::new(plan.seed, Purpose::Symmetry).with(plan.number).with(row as u64).stream();
                rng.below(self.sizes.num_symmetries as usize) as u64
            }
        };
        (self.draw_sample(plan, row), symmetry)
    }

    /// Draws the sample index of row `row` of a batch.
    fn draw_sample(&self, plan: BatchPlan, row: usize) -> usize {
        Key::new(plan.seed, Purpose::Batch).with(plan.number).with(row as u64).stream().below(self.len())
    }

    fn write_policy(
        &self,
        game: &dyn ErasedRules,
        at: usize,
        symmetry: u64,
        policy: &mut [f32],
        legal: &mut [u8],
    ) {
        let first = at * self.sizes.max_legal;
        for i in first..first + usize::from(self.num_legal[at]) {
            let image = usize::from(game.transform_action(self.actions[i], symmetry));
            policy[image] = self.policy[i];
            legal[image] = 1;
        }
    }

    /// Writes values in seats relative to the observer, the image of the player to move under the symmetry; 0 for empty seats.
    fn write_values(&self, game: &dyn ErasedRules, at: usize, symmetry: u64, values: &mut [f32]) {
        let (p, seated) = (self.sizes.num_players, game.num_seated(self.state_at(&self.states, at)));
        let observer = usize::from(game.transform_player(self.players[at], symmetry));
        values.fill(0.0);
        for player in 0..seated {
            let image = usize::from(game.transform_player(player as u8, symmetry));
            values[(image + seated - observer) % seated] = self.values[at * p + player];
        }
    }
}
