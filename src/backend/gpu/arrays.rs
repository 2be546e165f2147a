//! The arrays of all rows on the device, and the launchers: one for each kernel of `kernels/search.cu` and `kernels/passes.cu`, with
//! the kernel's name.

use super::game_slots::{DeviceGameSlots, GameSlots};
use super::layout::{PARAMS_PADDING, ParameterBlock, RowArrays, RowBytes, SearchLayout, Totals, TreeParts};
use crate::device::{Arg, Device, LaunchShape, Program, WARP};
use crate::device_struct::device_constants;
use crate::error::Result;
use crate::net::gpu::slot_order::COUNTING_THREADS;
use crate::search::SearchParams;
use bytemuck::Zeroable;

/// Warps of a block where each warp works on its own.
const WARPS: usize = ROW_BLOCK as usize / WARP;

device_constants! {
    fn device_constants;
    /// Threads of a block whose warps work each on its own row.
    const ROW_BLOCK: u32 as "int" = 128;
}

/// Threads of the block that copies one tree.
const COPYING_THREADS: u32 = 256;

/// Everything that stays on the device.
pub struct SearchArrays<D: Device> {
    /// The device, with the program loaded.
    pub device: D,
    /// The program of whole passes in one launch; it is loaded at its first launch.
    passes: (Program, Option<D::Module>),
    /// The arrays of all rows.
    pub rows: RowArrays<D::Buffer>,
    /// Schedules of sequential halving.
    tables: D::Buffer,
    /// The first argument of every kernel.
    block: ParameterBlock,
    /// `[B L, F]`
    pub obs: D::Buffer,
    /// `[B L, A]`
    pub logits: D::Buffer,
    /// `[B L, P]`
    pub values: D::Buffer,
    /// Leaves of the pass that need the network, once they are numbered. `[1]`
    pub num_live: D::Buffer,
    /// Summaries, one for each summarised row. `[B]`
    pub summaries: D::Buffer,
    /// `Totals`, then one bit a row: simulations left.
    pub totals: D::Buffer,
}

/// A tree on the device that rows are cloned from.
pub struct DeviceTree<B> {
    /// All parts, one after the other.
    pub buffer: B,
    /// Where they begin.
    pub parts: TreeParts,
}

impl<D: Device> SearchArrays<D> {
    /// Zeroed arrays on `device`, which has the program of `search.cu` loaded; `passes` is that of `passes.cu`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(
        device: D,
        layout: &SearchLayout,
        passes: Program,
        params: SearchParams,
        keep_limit: u32,
    ) -> Result<Self> {
        let RowBytes { arrays, network, summary } = layout.row_bytes();
        let b = layout.shape.rows;
        let alloc = |bytes: &usize| device.alloc(b * bytes);
        let rows = arrays.try_map(alloc)?;
        let [obs, logits, values] = &network;
        let (obs, logits, values) = (alloc(obs)?, alloc(logits)?, alloc(values)?);
        let summaries = alloc(&summary)?;
        let totals = device.alloc(Self::totals_bytes(b))?;
        let num_live = device.alloc(4)?;
        let tables = device.alloc(4)?;
        let block = ParameterBlock {
            nodes: device.address(&rows.nodes),
            edges: device.address(&rows.edges),
            actions: device.address(&rows.actions),
            values: device.address(&rows.values),
            counts: device.address(&rows.counts),
            states: device.address(&rows.states),
            roots: device.address(&rows.roots),
            keys: device.address(&rows.keys),
            noise: device.address(&rows.noise),
            base_visits: device.address(&rows.base_visits),
            root_sums: device.address(&rows.root_sums),
            histories: device.address(&rows.histories),
            leaves: device.address(&rows.leaves),
            targets: device.address(&rows.targets),
            done: device.address(&rows.done),
            tables: device.address(&tables),
            num_rows: b as u32,
            num_nodes: layout.shape.nodes as u32,
            history_len: layout.history_len as u32,
            keep_limit,
            params,
            padding: [0; PARAMS_PADDING],
        };
        let passes = (passes, None);
        Ok(Self { device, passes, rows, tables, block, obs, logits, values, num_live, summaries, totals })
    }

    /// Replaces the schedules of sequential halving. Passes captured before have the old ones.
    ///
    /// # Errors
    /// Those of the device.
    pub fn set_schedules(&mut self, schedules: &[u32]) -> Result<()> {
        let bytes = bytemuck::cast_slice(schedules);
        self.tables = self.device.alloc(bytes.len().max(4))?;
        self.block.tables = self.device.address(&self.tables);
        self.device.upload(&mut self.tables, 0, bytes)
    }

    /// Bytes of the totals and of the bits after them.
    pub fn totals_bytes(rows: usize) -> usize {
        size_of::<Totals>() + 4 * rows.div_ceil(32)
    }

    fn launch<'a>(
        &'a self,
        kernel: &'static str,
        grid: usize,
        block: u32,
        more: impl IntoIterator<Item = Arg<'a, D::Buffer>>,
    ) -> Result<()> {
        if grid == 0 {
            return Ok(());
        }
        let arguments: Vec<_> = [Arg::of(&self.block)].into_iter().chain(more).collect();
        self.device.launch(kernel, LaunchShape { grid: grid as u32, block, shared: 0 }, &arguments)
    }

    /// Launches `warps` warps, each of which works on its own.
    fn launch_warps<'a>(
        &'a self,
        kernel: &'static str,
        warps: usize,
        more: impl IntoIterator<Item = Arg<'a, D::Buffer>>,
    ) -> Result<()> {
        self.launch(kernel, warps.div_ceil(WARPS), ROW_BLOCK, more)
    }

    /// Sets the roots of rows. `staged` holds `num` commands, the states at byte `states` and the histories at byte `keys`.
    ///
    /// # Errors
    /// The device's; so for all launchers.
    pub fn set_roots(&self, staged: &D::Buffer, states: usize, keys: usize, num: usize) -> Result<()> {
        let parts = [0, states, keys].map(|at| Arg::Buffer(staged, at));
        self.launch_warps("set_roots", num, parts.into_iter().chain([Arg::U32(num as u32)]))
    }

    /// Begins plies. `staged` holds `num` commands.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn begin_rows(&self, staged: &D::Buffer, num: usize) -> Result<()> {
        self.launch_warps("begin_rows", num, [Arg::Buffer(staged, 0), Arg::U32(num as u32)])
    }

    /// Plays actions. `staged` holds `num` commands.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn advance_rows(&self, staged: &D::Buffer, num: usize) -> Result<()> {
        self.launch_warps("advance_rows", num, [Arg::Buffer(staged, 0), Arg::U32(num as u32)])
    }

    /// Selects up to L leaves in every row that has simulations left.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn select_rows(&self) -> Result<()> {
        self.launch_warps("select_rows", self.num_rows(), [])
    }

    /// Numbers the leaves that need the network, 0..M in row order; M goes to `num_live`.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn number_leaves(&self) -> Result<()> {
        self.launch("number_leaves", 1, self.counting_threads(), [Arg::Buffer(&self.num_live, 0)])
    }

    /// Sums the counts of all rows and resets them.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn count_rows(&self) -> Result<()> {
        self.launch("count_rows", 1, self.counting_threads(), [Arg::Buffer(&self.totals, 0)])
    }

    /// B.
    fn num_rows(&self) -> usize {
        self.block.num_rows as usize
    }

    /// B L.
    fn num_leaves(&self) -> usize {
        self.num_rows() * self.block.params.leaves as usize
    }

    /// Threads of the one block that reads all rows.
    fn counting_threads(&self) -> u32 {
        self.num_rows().next_multiple_of(WARP).min(COUNTING_THREADS) as u32
    }

    /// Writes the observations of the leaves, each into its evaluation slot.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn observe_leaves(&self, kernel: &'static str, out: &D::Buffer) -> Result<()> {
        self.launch_warps(kernel, self.num_leaves(), [Arg::Buffer(out, 0)])
    }

    /// Writes the evaluations into the new nodes.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn expand_leaves(&self) -> Result<()> {
        let values = [Arg::Buffer(&self.logits, 0), Arg::Buffer(&self.values, 0)];
        self.launch_warps("expand_leaves", self.num_leaves(), values)
    }

    /// Backs all leaves of the pass up to their roots.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn backup_rows(&self) -> Result<()> {
        self.launch_warps("backup_rows", self.num_rows(), [])
    }

    /// Makes whole passes in one launch with the constant network output in the first slot of `logits` and `values`. Where there
    /// are game slots, of one row each, every pass ends as in [`SearchArrays::act_game_slots`]. The first call loads the program.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`] and [`Device::module`].
    pub fn simulate_rows(&mut self, game_slots: Option<&DeviceGameSlots<D>>, passes: u32) -> Result<()> {
        let module = match self.passes.1.take() {
            Some(module) => module,
            None => self.device.module(&self.passes.0)?,
        };
        let none = GameSlots::zeroed();
        let arguments = [
            Arg::of(&self.block),
            Arg::of(game_slots.map_or(&none, |slots| &slots.block)),
            Arg::Buffer(&self.logits, 0),
            Arg::Buffer(&self.values, 0),
            Arg::U32(passes),
        ];
        let shape = LaunchShape { grid: self.num_rows().div_ceil(WARPS) as u32, block: ROW_BLOCK, shared: 0 };
        let launched = self.device.launch_in(&module, "simulate_rows", shape, &arguments);
        self.passes.1 = Some(module);
        launched
    }

    /// Ends a pass in the game slots: plays the decided plies and begins the next.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn act_game_slots(&self, game_slots: &DeviceGameSlots<D>) -> Result<()> {
        let slots = Arg::of(&game_slots.block);
        self.launch_warps("act_game_slots", game_slots.num, [slots, Arg::U32(game_slots.num as u32)])?;
        self.launch_warps("start_rows", self.num_rows(), [slots])
    }

    /// Ends a poll of the game slots: counts what all rows did and writes the header. `not_finite`: the network's word, which is
    /// cleared.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn end_poll(&self, game_slots: &DeviceGameSlots<D>, not_finite: Option<&D::Buffer>) -> Result<()> {
        const NULL: u64 = 0;
        self.count_rows()?;
        let more = [
            Arg::of(&game_slots.block),
            Arg::Buffer(&self.totals, 0),
            not_finite.map_or(Arg::U64(NULL), |word| Arg::Buffer(word, 0)),
            Arg::U32(game_slots.poll_capacity() as u32),
            Arg::Buffer(game_slots.header(), 0),
        ];
        self.launch("end_poll", 1, WARP as u32, more)
    }

    /// Summarises the `num` rows that `staged` lists.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn summarise_rows(&self, staged: &D::Buffer, num: usize) -> Result<()> {
        let list = [Arg::Buffer(staged, 0), Arg::U32(num as u32), Arg::Buffer(&self.summaries, 0)];
        self.launch_warps("summarise_rows", num, list)
    }

    /// Keeps the most visited nodes of one row.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn trim_row(&self, b: usize, limit: usize) -> Result<()> {
        self.launch("trim_row", 1, WARP as u32, [Arg::U32(b as u32), Arg::U32(limit as u32)])
    }

    /// Gives the `num` rows that `staged` lists a copy of `tree`.
    ///
    /// # Errors
    /// As [`SearchArrays::set_roots`].
    pub fn clone_rows(&self, staged: &D::Buffer, num: usize, tree: &DeviceTree<D::Buffer>) -> Result<()> {
        self.launch(
            "clone_rows",
            num,
            COPYING_THREADS,
            [Arg::Buffer(staged, 0), Arg::Buffer(&tree.buffer, 0), Arg::of(&tree.parts)],
        )
    }
}
