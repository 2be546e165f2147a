//! Whole passes on the device, with the resident network or with a constant network output, with attached game slots or
//! without; the polls of those slots; and whether all of it fits into memory.

use super::{DeviceRows, PassGraphs, Result};
use crate::backend::RootCache;
use crate::backend::decisions::DecisionBlock;
use crate::backend::gpu::arrays::SearchArrays;
use crate::backend::gpu::game_slots::{DeviceGameSlots, PackedStarts};
use crate::backend::gpu::layout::Totals;
use crate::backend::gpu::memory::DeviceNeed;
use crate::backend::gpu::polls::PollCounts;
use crate::backend::pass_parts::PassParts;
use crate::device::Device;
use crate::device::kernel_times::KernelTime;
use crate::error::Error;
use crate::net::gpu::network::{DeviceNetwork, ObsFormat, SlotOrder, Slots};
use crate::net::gpu::network_need::NetworkNeed;
use crate::play::{PlayPlan, SlotStart};
use std::time::Instant;

/// Passes in one graph where many are made: a search of 200 simulations is some 20 calls.
pub(super) const SEVERAL: u32 = 16;
/// Passes whose kernels are timed.
const TIMED: u32 = 8;
/// Passes that are launched before each timed one: while the device makes them, the host launches the kernels of the timed pass. A kernel
/// that the device waits for would count the host's time as its own.
const AHEAD: u32 = 4;

impl<D: Device> DeviceRows<D> {
    /// B L.
    pub fn num_slots(&self) -> usize {
        self.layout.shape.rows * self.layout.leaves
    }

    /// Refuses, before it is allocated, a network that does not fit into the memory that rows and game slots leave.
    ///
    /// # Errors
    /// [`Error::Memory`] with the numbers, and those of the device.
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

    /// Passes with a network on the device, then one count.
    pub fn simulate(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<Totals> {
        self.launch_passes(network, passes)?;
        self.count()
    }

    /// Launches passes with a network on the device. Where launches may be captured, the first is launched kernel by kernel and then
    /// captured, and the graph is launched for all others; of many passes [`SEVERAL`] are captured together, so that there are few calls.
    pub fn launch_passes(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<()> {
        self.prepare_passes()?;
        self.constant_output = None;
        let before = self.arrays.device.copied();
        let mut left = passes;
        while left > 0 {
            let made = match &self.graphs.one {
                _ if !self.arrays.device.may_capture() => {
                    self.pass(network, &mut |_| Ok(()))?;
                    1
                }
                None => {
                    self.pass(network, &mut |_| Ok(()))?;
                    self.graphs.one = Some(self.capture(network, 1)?);
                    1
                }
                Some(_) if left >= SEVERAL => {
                    let several = match self.graphs.several.take() {
                        Some(several) => several,
                        None => self.capture(network, SEVERAL)?,
                    };
                    self.arrays.device.launch_graph(self.graphs.several.insert(several))?;
                    SEVERAL
                }
                Some(one) => {
                    self.arrays.device.launch_graph(one)?;
                    1
                }
            };
            left -= made;
        }
        self.copied_inside += self.arrays.device.copied() - before;
        self.add_passes(passes);
        Ok(())
    }

    /// Runs the commands that wait; what the host knows of the rows is out of date after the passes that follow.
    fn prepare_passes(&mut self) -> Result<()> {
        if let Some(game_slots) = &mut self.game_slots {
            game_slots.polls().begin(&self.arrays.device)?;
        }
        self.flush()?;
        self.forget_summaries();
        self.view.is_fresh = false;
        Ok(())
    }

    /// Counts launched passes for the poll that they belong to.
    fn add_passes(&mut self, passes: u32) {
        if let Some(game_slots) = &mut self.game_slots {
            game_slots.polls().add_passes(passes);
        }
    }

    /// Makes `passes` passes one part at a time, waiting for each, then others whose kernels are timed. No poll has more than `passes`
    /// passes.
    pub fn profile_passes(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<PassParts> {
        let mut seconds = [0.0; 4];
        self.prepare_passes()?;
        for _ in 0..passes {
            let parts = self.profile_pass(network)?;
            seconds.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part / f64::from(passes));
        }
        self.drop_poll(network)?;
        let mut kernels = Vec::new();
        for _ in 0..TIMED {
            kernels.extend(self.time_pass(network, AHEAD.min(passes.saturating_sub(1)))?);
            self.drop_poll(network)?;
        }
        Ok(PassParts { seconds, kernels: KernelTime::together(kernels) })
    }

    /// Ends the poll that the game slots have begun, and leaves out its decisions.
    fn drop_poll(&mut self, network: &mut dyn DeviceNetwork<D>) -> Result<()> {
        if self.game_slots.is_some() {
            self.end_poll(network.not_finite())?;
            self.collect_poll()?;
        }
        Ok(())
    }

    /// Makes a pass after `ahead` others, and times its kernels.
    fn time_pass(&mut self, network: &mut dyn DeviceNetwork<D>, ahead: u32) -> Result<Vec<KernelTime>> {
        self.launch_passes(network, ahead)?;
        self.arrays.device.begin_timing();
        let passed = self.pass(network, &mut |_| Ok(()));
        let kernels = self.arrays.device.end_timing();
        passed.and(kernels)
    }

    /// Makes one pass, waiting for each of its four parts; the seconds of each.
    fn profile_pass(&mut self, network: &mut dyn DeviceNetwork<D>) -> Result<[f64; 4]> {
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

    /// Launches one pass, and calls `after` after each of its four parts.
    fn pass(
        &mut self,
        network: &mut dyn DeviceNetwork<D>,
        after: &mut dyn FnMut(&SearchArrays<D>) -> Result<()>,
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
        let SearchArrays { device, num_live, obs, logits, values, .. } = &mut self.arrays;
        let live = (order == SlotOrder::Compact).then_some(&*num_live);
        network.forward(device, Slots { num, live, obs, logits, values })?;
        after(&self.arrays)?;
        self.arrays.expand_leaves()?;
        after(&self.arrays)?;
        self.arrays.backup_rows()?;
        self.game_slots.as_ref().map_or(Ok(()), |game_slots| self.arrays.act_game_slots(game_slots))?;
        after(&self.arrays)
    }

    /// Captures `passes` passes. A capture that fails is ended as well.
    fn capture(&mut self, network: &mut dyn DeviceNetwork<D>, passes: u32) -> Result<D::Graph> {
        self.arrays.device.begin_capture()?;
        let captured = (0..passes).try_for_each(|_| self.pass(network, &mut |_| Ok(())));
        let graph = self.arrays.device.end_capture();
        captured.and(graph)
    }

    /// Drops the captured passes, whose arguments are out of date.
    pub fn forget_graphs(&mut self) {
        self.graphs = PassGraphs::default();
    }

    /// Forgets the resident network: the passes captured with it and the memory it takes.
    pub fn forget_network(&mut self) {
        self.forget_graphs();
        self.network = NetworkNeed::default();
    }

    /// Passes with one network output for all leaves, then one count.
    pub fn simulate_constant_net(&mut self, logits: &[f32], values: &[f32], passes: u32) -> Result<Totals> {
        self.launch_constant_net(logits, values, passes)?;
        self.count()
    }

    /// Launches passes with one network output for all leaves.
    pub fn launch_constant_net(&mut self, logits: &[f32], values: &[f32], passes: u32) -> Result<()> {
        self.prepare_passes()?;
        let output = [logits, values].concat();
        if self.constant_output.as_ref() != Some(&output) {
            self.upload_outputs(logits, values)?;
            self.constant_output = Some(output);
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
        self.add_passes(passes);
        Ok(())
    }

    /// Attaches the game slots, whose rows have their roots and have begun their plies. A poll that was not collected is discarded;
    /// a failure of its passes is reported here at the latest, since the device is waited for. Returns the maximum number of passes of a poll.
    pub fn attach_selfplay(
        &mut self,
        plan: &PlayPlan,
        game_slots: &[SlotStart<'_>],
        starts: &RootCache,
    ) -> Result<u32> {
        let schedule = self.schedule(plan.simulations)?;
        self.flush()?;
        self.forget_graphs();
        self.game_slots = None; // frees its memory first
        let trees = PackedStarts::new(starts);
        let need = DeviceNeed { layout: &self.layout, starts: trees.bytes(), network: self.network };
        let there = self.arrays_bytes() + self.network.bytes(self.num_slots());
        need.check((self.arrays.device.free_bytes()? as u64).saturating_add(there))?;
        let attached =
            DeviceGameSlots::new(&self.arrays.device, &self.layout, plan, schedule, game_slots, &trees)?;
        let max_passes = attached.max_passes;
        self.game_slots = Some(attached);
        Ok(max_passes)
    }

    /// Ends a pass in the attached game slots, if there are any.
    pub fn act(&mut self) -> Result<()> {
        let Some(game_slots) = &self.game_slots else { return Ok(()) };
        self.view.is_fresh = false;
        self.arrays.act_game_slots(game_slots)
    }

    /// Ends a poll of the attached game slots without waiting for it. `not_finite`: the network's word.
    pub fn end_poll(&mut self, not_finite: Option<&D::Buffer>) -> Result<()> {
        let game_slots = self.game_slots.as_mut().ok_or_else(not_attached)?;
        game_slots.polls().check_room()?;
        self.view.is_fresh = false;
        self.arrays.end_poll(game_slots, not_finite)?;
        game_slots.polls().end(&self.arrays.device)
    }

    /// Waits for the oldest poll that has ended.
    pub fn collect_poll(&mut self) -> Result<PollCounts> {
        let game_slots = self.game_slots.as_mut().ok_or_else(not_attached)?;
        game_slots.collect_poll(&self.arrays.device, &self.layout)
    }

    /// Seconds from the first launch of the poll that was collected last to the end of its last.
    pub fn poll_seconds(&mut self) -> Result<f64> {
        Ok(self.game_slots.as_mut().ok_or_else(not_attached)?.polls().seconds)
    }

    /// The decisions of the poll that was collected last.
    pub fn decisions(&self) -> Result<DecisionBlock<'_>> {
        self.game_slots.as_ref().ok_or_else(not_attached)?.decisions(&self.layout)
    }
}

fn not_attached() -> Error {
    Error::mismatch("game slots attached to the device", "none", "those whose poll is collected")
}
