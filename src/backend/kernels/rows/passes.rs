//! Whole passes: with the network beside the rows or with one answer for all, in game slots that play on by themselves or without; and
//! whether all of that has room.

use super::{Recorded, Result, Rows};
use crate::backend::RootCache;
use crate::backend::device_selfplay::{Decided, PassDriver, PlayPlan, SlotStart};
use crate::backend::kernels::arrays::Arrays;
use crate::backend::kernels::device::Device;
use crate::backend::kernels::game_slots::{DeviceGameSlots, PackedStarts};
use crate::backend::kernels::layout::Totals;
use crate::backend::kernels::memory::{DeviceNeed, NetworkNeed};
use crate::backend::kernels::network::{DeviceNetwork, ObsFormat, SlotOrder, Slots};
use crate::backend::pass_parts::PassParts;
use std::time::Instant;

/// Passes that are recorded together where many are made: a search of 200 simulations is some 20 calls.
pub(super) const SEVERAL: u32 = 16;

impl<D: Device> Rows<D> {
    /// B L.
    pub fn num_slots(&self) -> usize {
        self.layout.shape.rows * self.layout.leaves
    }

    /// Refuses a network that does not fit beside the rows and their game slots, before it is made.
    ///
    /// # Errors
    /// [`Error::Memory`] with the numbers, and what the device says.
    pub fn make_room(&mut self, network: NetworkNeed) -> Result<()> {
        let game_slots = self.game_slots.as_ref();
        let need =
            DeviceNeed { layout: &self.layout, starts: game_slots.map_or(0, |l| l.starts_bytes), network };
        let taken = self.arrays_bytes() + game_slots.map_or(0, |game_slots| game_slots.bytes);
        need.check((self.arrays.device.free_bytes()? as u64).saturating_add(taken))?;
        self.network = network;
        Ok(())
    }

    /// Bytes of the arrays of all rows, and of commands.
    fn arrays_bytes(&self) -> u64 {
        (self.layout.shape.rows * self.layout.row_bytes().total() + self.staged_bytes) as u64
    }

    /// Passes with a network on the device, then one count. The first is made as it stands, the second recorded, and the
    /// recording made again for all others; of many passes several at a time are recorded, so that there are few calls.
    pub fn simulate(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<Totals> {
        self.flush()?;
        self.forget_summaries();
        self.answer = None;
        let before = self.arrays.device.copied();
        let mut left = passes;
        while left > 0 {
            let made = match &self.recorded.one {
                None => {
                    self.pass(network, &mut |_| Ok(()))?;
                    self.recorded.one = Some(self.record(network, 1)?);
                    1
                }
                Some(_) if left >= SEVERAL => {
                    let several = match self.recorded.several.take() {
                        Some(several) => several,
                        None => self.record(network, SEVERAL)?,
                    };
                    self.arrays.device.replay(self.recorded.several.insert(several))?;
                    SEVERAL
                }
                Some(one) => {
                    self.arrays.device.replay(one)?;
                    1
                }
            };
            left -= made;
        }
        self.copied_inside += self.arrays.device.copied() - before;
        self.count()
    }

    /// Passes whose parts are waited for and whose kernels are timed.
    pub fn profile_passes(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<PassParts> {
        self.flush()?;
        self.forget_summaries();
        self.known.is_fresh = false;
        self.arrays.device.begin_timing();
        let mut seconds = [0.0; 4];
        let passed = (0..passes).try_for_each(|_| {
            let parts = self.pass_in_parts(network)?;
            seconds.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part / f64::from(passes));
            Ok(())
        });
        let kernels = self.arrays.device.end_timing();
        passed.and(kernels).map(|kernels| PassParts { seconds, passes, kernels })
    }

    /// One pass whose parts are waited for; the seconds of each.
    fn pass_in_parts(&mut self, network: &mut dyn DeviceNetwork<D>) -> Result<[f64; 4]> {
        self.arrays.device.synchronise()?;
        let (mut seconds, mut part, mut start) = ([0.0; 4], 0, Instant::now());
        self.pass(network, &mut |arrays| {
            arrays.device.synchronise()?;
            let now = Instant::now();
            seconds[part] = (now - start).as_secs_f64();
            (part, start) = (part + 1, now);
            Ok(())
        })?;
        Ok(seconds)
    }

    /// The launches of one pass; after each of its four parts, `after`.
    fn pass(
        &mut self,
        network: &mut dyn DeviceNetwork<D>,
        after: &mut dyn FnMut(&Arrays<D>) -> Result<()>,
    ) -> Result<()> {
        let kernel = match network.format() {
            ObsFormat::F32 => "observe_leaves",
            ObsFormat::Bf16 => "observe_leaves_bf16",
        };
        let (num, order) = (self.num_slots(), network.slot_order());
        self.arrays.select_rows()?;
        if order == SlotOrder::Compact {
            self.arrays.number_leaves()?;
        }
        self.arrays.observe_leaves(kernel, &self.arrays.obs)?;
        after(&self.arrays)?;
        let Arrays { device, num_live, obs, logits, answers, .. } = &mut self.arrays;
        let live = (order == SlotOrder::Compact).then_some(&*num_live);
        network.forward(device, Slots { num, live, obs, logits, answers })?;
        after(&self.arrays)?;
        self.arrays.expand_leaves()?;
        after(&self.arrays)?;
        self.arrays.backup_rows()?;
        self.game_slots.as_ref().map_or(Ok(()), |game_slots| self.arrays.act_game_slots(game_slots))?;
        after(&self.arrays)
    }

    /// So many passes, recorded. A recording that fails is ended all the same.
    fn record(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<D::Graph> {
        self.arrays.device.begin_capture()?;
        let recorded = (0..passes).try_for_each(|_| self.pass(network, &mut |_| Ok(())));
        let recording = self.arrays.device.end_capture();
        recorded.and(recording)
    }

    /// What was recorded counts no more.
    pub fn forget_recording(&mut self) {
        self.recorded = Recorded::default();
    }

    /// The network is gone: so is what was recorded with it, and what it takes.
    pub fn forget_network(&mut self) {
        self.forget_recording();
        self.network = NetworkNeed::default();
    }

    pub fn simulate_constant_net(&mut self, logits: &[f32], values: &[f32], passes: u32) -> Result<Totals> {
        self.flush()?;
        self.forget_summaries();
        let answer = [logits, values].concat();
        if self.answer.as_ref() != Some(&answer) {
            self.upload_answers(logits, values)?;
            self.answer = Some(answer);
        }
        match &self.game_slots {
            None => self.arrays.simulate_rows(None, passes)?,
            Some(game_slots) if game_slots.determinisations == 1 => {
                self.arrays.simulate_rows(Some(game_slots), passes)?
            }
            Some(game_slots) => {
                for _ in 0..passes {
                    self.arrays.simulate_rows(None, 1)?;
                    self.arrays.act_game_slots(game_slots)?;
                }
            }
        }
        self.count()
    }

    /// Takes the game slots over, whose rows are planted and begun.
    pub fn attach_selfplay(
        &mut self,
        plan: &PlayPlan,
        game_slots: &[SlotStart<'_>],
        starts: &RootCache,
    ) -> Result<PassDriver> {
        let schedules = [self.schedule(plan.simulations)?, self.schedule(plan.fast_simulations)?];
        self.flush()?;
        self.forget_recording();
        self.game_slots = None; // its memory first
        let trees = PackedStarts::new(starts);
        let need = DeviceNeed { layout: &self.layout, starts: trees.bytes(), network: self.network };
        let there = self.arrays_bytes() + self.network.bytes(self.num_slots());
        need.check((self.arrays.device.free_bytes()? as u64).saturating_add(there))?;
        let taken =
            DeviceGameSlots::new(&self.arrays.device, &self.layout, plan, schedules, game_slots, &trees)?;
        let most_passes = taken.most_passes;
        self.game_slots = Some(taken);
        Ok(PassDriver::Backend { most_passes })
    }

    /// What follows a pass in the game slots, if there are any.
    pub fn act(&mut self) -> Result<()> {
        let Some(game_slots) = &self.game_slots else { return Ok(()) };
        self.known.is_fresh = false;
        self.arrays.act_game_slots(game_slots)
    }

    pub fn drain_decisions(&mut self, out: &mut Vec<Decided>) -> Result<()> {
        let Some(game_slots) = &mut self.game_slots else { return Ok(()) };
        game_slots.drain_decisions(&self.arrays.device, &self.layout, out)
    }
}
