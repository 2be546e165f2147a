//! The rows of a [`super::KernelBackend`]: the arrays on the device, the commands that wait to be launched, and what the host has
//! read of the rows. Calls that reach the device return its errors.

mod passes; // whole passes on the device

use super::arrays::SearchArrays;
use super::game_slots::DeviceGameSlots;
use super::layout::{BeginCommand, RootRow, SearchLayout, Totals, keep_limit};
use super::packing::pack;
use super::queue::{CommandBatch, Queue, RootBatch};
use super::snapshots;
use super::snapshots::UploadedSnapshot;
use crate::backend::TreeSnapshot;
use crate::backend::device_selfplay::Copied;
use crate::backend::plan::BackendPlan;
use crate::config::Algorithm;
use crate::device::{Device, Program};
use crate::error::{Error, Result};
use crate::game::Sizes;
use crate::net::gpu::network_need::NetworkNeed;
use crate::search::root::{RootSummary, SequentialHalvingSchedule};
use crate::search::{MctsSolver, SearchParams};
use bytemuck::Zeroable;

/// The host's copy of the rows' state since the last pass.
struct HostView {
    /// One bit a row: simulations left.
    unfinished: Vec<u32>,
    num_unfinished: usize,
    /// False where rows may have finished since `unfinished` was read.
    is_fresh: bool,
    /// Rows that have begun a ply and were not summarised since. `[B]`
    is_open: Vec<bool>,
    /// The index of each row's summary in `summaries`. `[B]`
    summary: Vec<Option<u32>>,
    /// As words, so that summaries are aligned.
    summaries: Vec<u32>,
}

/// The schedules of sequential halving on the device, one after the other.
#[derive(Default)]
struct Schedules {
    /// Simulations and index of each.
    indices: Vec<(u32, u32)>,
    numbers: Vec<u32>,
}

/// B rows.
pub struct DeviceRows<D: Device> {
    /// Captured passes with the resident network. The first field, so that it is dropped before the programs it launches.
    graphs: PassGraphs<D::Graph>,
    pub arrays: SearchArrays<D>,
    layout: SearchLayout,
    params: SearchParams,
    queue: Queue,
    /// The commands of the next launch.
    staged: D::Buffer,
    staged_bytes: usize,
    schedules: Schedules,
    snapshot: Option<UploadedSnapshot<D::Buffer>>,
    view: HostView,
    /// Leaves of the pass that the host's network evaluates.
    num_evals: usize,
    /// The constant network output that is on the device, where there is one.
    constant_output: Option<Vec<f32>>,
    /// The attached game slots.
    game_slots: Option<DeviceGameSlots<D>>,
    /// The memory of the resident network.
    network: NetworkNeed,
    /// Bytes copied within passes.
    copied_inside: u64,
}

/// Captured passes.
struct PassGraphs<G> {
    one: Option<G>,
    /// [`passes::SEVERAL`] passes.
    several: Option<G>,
}

impl<G> Default for PassGraphs<G> {
    fn default() -> Self {
        Self { one: None, several: None }
    }
}

impl<D: Device> DeviceRows<D> {
    pub fn new(
        device: D,
        layout: SearchLayout,
        plan: BackendPlan,
        sizes: &Sizes,
        passes: Program,
    ) -> Result<Self> {
        let keep_limit = keep_limit(&plan, sizes);
        let staged_bytes = 1 << 12;
        let staged = device.alloc(staged_bytes)?;
        let b = plan.rows;
        Ok(Self {
            arrays: SearchArrays::new(device, &layout, passes, plan.params, keep_limit)?,
            layout,
            params: plan.params,
            queue: Queue::new(b),
            staged,
            staged_bytes,
            schedules: Schedules::default(),
            snapshot: None,
            view: HostView {
                unfinished: vec![0; b.div_ceil(32)],
                num_unfinished: 0,
                is_fresh: true,
                is_open: vec![false; b],
                summary: vec![None; b],
                summaries: Vec::new(),
            },
            num_evals: 0,
            constant_output: None,
            game_slots: None,
            graphs: PassGraphs::default(),
            network: NetworkNeed::default(),
            copied_inside: 0,
        })
    }

    pub fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) -> Result<()> {
        if history.len() >= self.layout.history_len && !history.is_empty() {
            return Err(Error::mismatch(
                "history keys of a root",
                history.len(),
                format_args!("at most {}", self.layout.history_len - 1),
            ));
        }
        self.close(b);
        self.queue.set_root(b, state, history);
        Ok(())
    }

    pub fn set_root_tree(&mut self, b: usize, snapshot: &TreeSnapshot) -> Result<()> {
        if !self.snapshot.as_ref().is_some_and(|known| known.is(snapshot)) {
            if self.queue.has_clones() {
                self.flush()?;
            }
            self.snapshot = Some(UploadedSnapshot::new(&self.arrays.device, snapshot)?);
        }
        self.close(b);
        self.queue.clone_snapshot(b);
        Ok(())
    }

    pub fn begin(&mut self, command: BeginCommand) {
        let b = command.row as usize;
        self.close(b);
        self.view.is_open[b] = true;
        self.view.is_fresh = false;
        self.queue.begin(command);
    }

    pub fn advance(&mut self, b: usize, action: u16) {
        self.close(b);
        self.queue.advance(b, action);
    }

    /// Row `b` changes: what was read of it is out of date.
    fn close(&mut self, b: usize) {
        self.view.summary[b] = None;
        self.view.is_open[b] = false;
        self.view.is_fresh = false;
    }

    /// The index of the schedule for `simulations`, which is computed and uploaded at its first use.
    pub fn schedule(&mut self, simulations: u32) -> Result<u32> {
        if self.params.algorithm == Algorithm::Puct {
            return Ok(0);
        }
        if let Some(&(_, index)) = self.schedules.indices.iter().find(|(of, _)| *of == simulations) {
            return Ok(index);
        }
        let index = self.schedules.numbers.len() as u32;
        let halving =
            SequentialHalvingSchedule::new(simulations, self.params.max_num_considered_actions as usize);
        self.schedules.indices.push((simulations, index));
        self.schedules.numbers.extend(halving.tables().iter().flatten());
        self.forget_graphs();
        self.arrays.set_schedules(&self.schedules.numbers)?;
        Ok(index)
    }

    /// Launches the commands that wait.
    fn flush(&mut self) -> Result<()> {
        if self.queue.is_empty() {
            return Ok(());
        }
        for batch in self.queue.take() {
            match batch {
                CommandBatch::SetRoot(batch) => self.flush_roots(&batch)?,
                CommandBatch::Begin(commands) => {
                    self.stage(bytemuck::cast_slice(&commands))?;
                    self.arrays.begin_rows(&self.staged, commands.len())?;
                }
                CommandBatch::Advance(commands) => {
                    self.stage(bytemuck::cast_slice(&commands))?;
                    self.arrays.advance_rows(&self.staged, commands.len())?;
                }
                CommandBatch::Clone(rows) => {
                    self.stage(bytemuck::cast_slice(&rows))?;
                    if let Some(snapshot) = &self.snapshot {
                        self.arrays.clone_rows(&self.staged, rows.len(), &snapshot.tree)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn flush_roots(&mut self, batch: &RootBatch) -> Result<()> {
        let parts = [bytemuck::cast_slice(&batch.commands), &batch.states, bytemuck::cast_slice(&batch.keys)];
        let (bytes, [_, states, keys]) = pack(parts);
        self.stage(&bytes)?;
        self.arrays.set_roots(&self.staged, states, keys, batch.commands.len())
    }

    /// Uploads the commands of the next launch.
    fn stage(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.staged_bytes {
            self.staged_bytes = bytes.len().next_power_of_two();
            self.staged = self.arrays.device.alloc(self.staged_bytes)?;
        }
        self.arrays.device.upload(&mut self.staged, 0, bytes)
    }

    /// Sums the rows' work since the last count, and waits for the result.
    fn count(&mut self) -> Result<Totals> {
        self.arrays.count_rows()?;
        let mut bytes = vec![0; SearchArrays::<D>::totals_bytes(self.layout.shape.rows)];
        self.arrays.device.download(&self.arrays.totals, 0, &mut bytes)?;
        let (totals, bits) = bytes.split_at(size_of::<Totals>());
        let totals: Totals = bytemuck::pod_read_unaligned(totals);
        bytemuck::cast_slice_mut::<u32, u8>(&mut self.view.unfinished).copy_from_slice(bits);
        self.view.num_unfinished = totals.unfinished as usize;
        self.view.is_fresh = true;
        Ok(totals)
    }

    /// Brings `unfinished` up to date.
    fn refresh(&mut self) -> Result<()> {
        self.flush()?;
        if !self.view.is_fresh {
            self.count()?;
        }
        Ok(())
    }

    pub fn is_unfinished(&mut self, b: usize) -> Result<bool> {
        self.refresh()?;
        Ok(self.view.unfinished[b / 32] >> (b % 32) & 1 == 1)
    }

    pub fn num_unfinished(&mut self) -> Result<usize> {
        self.refresh()?;
        Ok(self.view.num_unfinished)
    }

    pub fn select(&mut self) -> Result<Totals> {
        self.flush()?;
        self.forget_summaries();
        let before = self.arrays.device.copied();
        self.arrays.select_rows()?;
        self.arrays.number_leaves()?;
        let totals = self.count()?;
        self.copied_inside += self.arrays.device.copied() - before;
        self.num_evals = totals.num_evals as usize;
        Ok(totals)
    }

    /// Summaries of rows that search on are out of date.
    fn forget_summaries(&mut self) {
        self.view.summary.fill(None);
    }

    pub fn observe(&mut self, obs: &mut [f32]) -> Result<()> {
        self.arrays.observe_leaves("observe_leaves", &self.arrays.obs)?;
        self.copied_inside += size_of_val(obs) as u64;
        self.arrays.device.download(&self.arrays.obs, 0, bytemuck::cast_slice_mut(obs))
    }

    /// Takes the evaluations of the host's network, one for each leaf that needs one.
    pub fn expand(&mut self, logits: &[f32], values: &[f32]) -> Result<()> {
        if self.num_evals == 0 {
            return Ok(());
        }
        self.constant_output = None;
        self.copied_inside += (size_of_val(logits) + size_of_val(values)) as u64;
        self.upload_outputs(logits, values)?;
        self.arrays.expand_leaves()
    }

    fn upload_outputs(&mut self, logits: &[f32], values: &[f32]) -> Result<()> {
        self.arrays.device.upload(&mut self.arrays.logits, 0, bytemuck::cast_slice(logits))?;
        self.arrays.device.upload(&mut self.arrays.values, 0, bytemuck::cast_slice(values))
    }

    pub fn backup(&mut self) -> Result<()> {
        self.num_evals = 0;
        // Only a proof ends a ply in a backup.
        self.view.is_fresh = self.params.solver == MctsSolver::Off;
        self.arrays.backup_rows()
    }

    pub fn copied(&self) -> Copied {
        Copied { inside: self.copied_inside, total: self.arrays.device.copied() }
    }

    /// Summarises row `b`, and in the same launch every other row whose ply is done and was not summarised.
    pub fn summarise(&mut self, b: usize, out: &mut RootSummary) -> Result<()> {
        self.refresh()?;
        let size = self.layout.summary_bytes();
        if self.view.summary[b].is_none() {
            let done = |b: usize| self.view.unfinished[b / 32] >> (b % 32) & 1 == 0;
            let rows: Vec<u32> = (0..self.layout.shape.rows)
                .filter(|&r| r == b || (self.view.is_open[r] && done(r)))
                .map(|r| r as u32)
                .collect();
            self.stage(bytemuck::cast_slice(&rows))?;
            self.arrays.summarise_rows(&self.staged, rows.len())?;
            self.view.summaries.resize(rows.len() * size / 4, 0);
            let bytes = bytemuck::cast_slice_mut(&mut self.view.summaries);
            self.arrays.device.download(&self.arrays.summaries, 0, bytes)?;
            self.view.summary.fill(None);
            for (index, &row) in rows.iter().enumerate() {
                self.view.summary[row as usize] = Some(index as u32);
            }
        }
        if let Some(index) = self.view.summary[b] {
            let bytes = &bytemuck::cast_slice(&self.view.summaries)[index as usize * size..][..size];
            self.layout.read_summary(bytes, out);
        }
        Ok(())
    }

    /// Copies row `b` to the host, after keeping its `limit` most visited nodes where there is a limit.
    pub fn snapshot(&mut self, b: usize, limit: Option<usize>, history: &[u64]) -> Result<TreeSnapshot> {
        self.flush()?;
        if let Some(limit) = limit {
            self.arrays.trim_row(b, limit.max(1))?;
        }
        snapshots::download(&self.arrays, &self.layout, b, history)
    }

    pub fn num_nodes(&mut self, b: usize) -> Result<usize> {
        self.flush()?;
        let mut count = [0; 4];
        self.arrays.device.download(&self.arrays.rows.counts, 4 * b, &mut count)?;
        Ok(u32::from_ne_bytes(count) as usize)
    }

    pub fn root_state(&mut self, b: usize) -> Result<Vec<u8>> {
        self.flush()?;
        let mut state = vec![0; self.layout.state_size];
        let at = b * self.layout.row_bytes().arrays.states;
        self.arrays.device.download(&self.arrays.rows.states, at, &mut state)?;
        Ok(state)
    }

    pub fn root_history(&mut self, b: usize) -> Result<Vec<u64>> {
        self.flush()?;
        let mut root = RootRow::zeroed();
        let at = b * size_of::<RootRow>();
        self.arrays.device.download(&self.arrays.rows.roots, at, bytemuck::bytes_of_mut(&mut root))?;
        let mut keys = vec![0u64; root.num_history as usize];
        let at = b * 8 * self.layout.history_len;
        self.arrays.device.download(&self.arrays.rows.histories, at, bytemuck::cast_slice_mut(&mut keys))?;
        Ok(keys)
    }
}
