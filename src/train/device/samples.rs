//! Samples on the device: a whole batch from the host, or drawn there from a copy of the replay.

use crate::batch::ErasedRules;
use crate::device::{Arg, Device};
use crate::device_struct::device_struct;
use crate::error::Result;
use crate::game::Sizes;
use crate::model::{POLICY, VALUES};
use crate::net::gpu_train::arrays::Samples;
use crate::net::gpu_train::passes::warps;
use crate::replay::{BatchPlan, Replay, ReplayArrays, Symmetries};
use crate::train::TrainBatch;
use bytemuck::{NoUninit, cast_slice};
use std::ops::Range;

/// Where the samples are that a batch is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
    /// All of the replay is on the device.
    Device,
    /// On the host, which sends those of each batch.
    Host,
}

device_struct! {
    /// The parameter block of `gather_samples`: the rows to make of a batch, the samples that they are made of, and where they go.
    /// Addresses are those on the device; R is the number of samples that the arrays hold.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub(super) struct GatherBlock {
        /// Rows to make.
        rows: u32,
        /// Index of the first of them in the batch.
        first_row: u32,
        /// The run's seed.
        seed: u64,
        /// The batch's number. It and the seed key all draws.
        number: u64,
        /// Samples that are drawn from.
        len: u64,
        /// 1 where the arrays hold the rows' own samples, in their order; 0 where each row draws one of `len`.
        drawn: u32,
        /// 1 where each row draws a symmetry of the game.
        symmetries: u32,
        /// `[R, state bytes]`
        states: u64 as "const u8*",
        /// The players to move. `[R]`
        players: u64 as "const u8*",
        /// Legal actions. `[R]`
        num_legal: u64 as "const u16*",
        /// `[R, most legal actions]`
        actions: u64 as "const u16*",
        /// `[R, most legal actions]`
        policy: u64 as "const f32*",
        /// `[R, P]`
        values: u64 as "const f32*",
        /// Scratch for the states after a symmetry. `[rows]`
        images: u64 as "State*",
        /// `[rows, F]`
        out_obs: u64 as "f32*",
        /// `[rows, A]`
        out_policy: u64 as "f32*",
        /// `[rows, A]`
        out_legal: u64 as "u8*",
        /// `[rows, P]`
        out_values: u64 as "f32*",
        /// `[rows]`
        out_weight: u64 as "f32*",
    }
}

/// The replay's samples on the device.
pub struct DeviceReplay<B> {
    sizes: Sizes,
    state_size: usize,
    residence: Residence,
    /// Samples that fit: R, or the device's share of a batch.
    capacity: usize,
    /// Samples ever added that are here.
    added: u64,
    /// In the order of [`ReplayArrays`].
    arrays: [B; 6],
    /// States as they are seen.
    images: B,
}

impl<B> DeviceReplay<B> {
    /// Room on `device` for a replay of `capacity` samples of `game`, if that takes no more than half of the free memory; else
    /// for `share` samples, the device's share of a batch.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new<D: Device<Buffer = B>>(
        device: &D,
        game: &dyn ErasedRules,
        capacity: usize,
        share: usize,
    ) -> Result<Self> {
        let (sizes, state_size) = (game.sizes(), game.state_size());
        let need = capacity.saturating_mul(Replay::sample_bytes(&sizes, state_size));
        let free = device.free_bytes()?;
        let residence = if need <= free / 2 { Residence::Device } else { Residence::Host };
        if residence == Residence::Host {
            let [need, free] = [need, free].map(|bytes| bytes as f64 / f64::from(1 << 30));
            tracing::warn!(
                "the replay stays in the host's memory: its {need:.1} GiB are more than half of the {free:.1} GiB that the \
                 device has free"
            );
        }
        let capacity = match residence {
            Residence::Device => capacity,
            Residence::Host => share,
        };
        let [states, players, num_legal, actions, policy, values] =
            row_bytes(&sizes, state_size).map(|bytes| device.alloc(capacity * bytes));
        Ok(Self {
            arrays: [states?, players?, num_legal?, actions?, policy?, values?],
            images: device.alloc(share * state_size)?,
            sizes,
            state_size,
            residence,
            capacity,
            added: 0,
        })
    }

    /// Where the samples are.
    pub fn residence(&self) -> Residence {
        self.residence
    }

    /// Brings what the host has added since the last call.
    fn upload_added<D: Device<Buffer = B>>(&mut self, device: &D, replay: &Replay) -> Result<()> {
        let capacity = self.capacity as u64;
        let begin = self.added.max(replay.added().saturating_sub(capacity));
        let (first, last) = ((begin % capacity) as usize, (replay.added() % capacity) as usize);
        let ranges = match replay.added() - begin {
            0 => [0..0, 0..0],
            _ if first < last => [first..last, 0..0],
            _ => [first..self.capacity, 0..last],
        };
        for range in ranges {
            for ((array, bytes), to) in self.bytes_of(replay.arrays()).into_iter().zip(&mut self.arrays) {
                let end = (range.end * bytes).min(array.len());
                device.upload(to, range.start * bytes, &array[(range.start * bytes).min(end)..end])?;
            }
        }
        self.added = replay.added();
        Ok(())
    }

    /// The samples of rows `rows` of a batch.
    fn send<D: Device<Buffer = B>>(
        &mut self,
        device: &D,
        replay: &Replay,
        plan: BatchPlan,
        rows: Range<usize>,
    ) -> Result<()> {
        let drawn: Vec<usize> = rows.map(|row| replay.draw(plan, row).0).collect();
        for ((array, bytes), to) in self.bytes_of(replay.arrays()).into_iter().zip(&mut self.arrays) {
            let packed: Vec<u8> =
                drawn.iter().flat_map(|&at| &array[at * bytes..(at + 1) * bytes]).copied().collect();
            device.upload(to, 0, &packed)?;
        }
        Ok(())
    }

    /// Every array and the bytes of one sample in it.
    fn bytes_of<'a>(&self, arrays: ReplayArrays<'a>) -> [(&'a [u8], usize); 6] {
        let ReplayArrays { states, players, num_legal, actions, policy, values } = arrays;
        let all: [&[u8]; 6] = [
            states,
            players,
            cast_slice(num_legal),
            cast_slice(actions),
            cast_slice(policy),
            cast_slice(values),
        ];
        let bytes = row_bytes(&self.sizes, self.state_size);
        std::array::from_fn(|i| (all[i], bytes[i]))
    }

    /// Makes rows `rows` of the batch that [`Replay::batch`] makes of `plan`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn gather<D: Device<Buffer = B>>(
        &mut self,
        device: &D,
        replay: &Replay,
        plan: BatchPlan,
        rows: Range<usize>,
        out: &Samples<B>,
    ) -> Result<()> {
        match self.residence {
            Residence::Device => self.upload_added(device, replay)?,
            Residence::Host => self.send(device, replay, plan, rows.clone())?,
        }
        let [states, players, num_legal, actions, policy, values] =
            self.arrays.each_ref().map(|array| device.address(array));
        let block = GatherBlock {
            rows: rows.len() as u32,
            first_row: rows.start as u32,
            seed: plan.seed,
            number: plan.number,
            len: replay.len() as u64,
            drawn: u32::from(self.residence == Residence::Host),
            symmetries: u32::from(plan.symmetries == Symmetries::Random),
            states,
            players,
            num_legal,
            actions,
            policy,
            values,
            images: device.address(&self.images),
            out_obs: device.address(&out.obs),
            out_policy: device.address(&out.policy),
            out_legal: device.address(&out.legal),
            out_values: device.address(&out.values),
            out_weight: device.address(&out.weight),
        };
        device.launch("gather_samples", warps(rows.len()), &[Arg::of(&block)])
    }
}

/// Bytes of one sample in each of [`ReplayArrays`].
fn row_bytes(sizes: &Sizes, state_size: usize) -> [usize; 6] {
    [state_size, 1, 2, 2 * sizes.max_legal, 4 * sizes.max_legal, 4 * sizes.num_players]
}

/// Copies rows `rows` of a batch from the host.
///
/// # Errors
/// Those of the device.
pub(super) fn upload<D: Device>(
    device: &D,
    samples: &mut Samples<D::Buffer>,
    batch: &TrainBatch,
    rows: Range<usize>,
) -> Result<()> {
    let all = batch.weight.len();
    let floats = [
        (&batch.obs[..], &mut samples.obs),
        (&batch.targets[POLICY], &mut samples.policy),
        (&batch.targets[VALUES], &mut samples.values),
        (&batch.weight, &mut samples.weight),
    ];
    for (from, to) in floats {
        let per_row = from.len() / all;
        device.upload(to, 0, cast_slice(&from[rows.start * per_row..rows.end * per_row]))?;
    }
    let actions = batch.legal.len() / all;
    device.upload(&mut samples.legal, 0, &batch.legal[rows.start * actions..rows.end * actions])
}
