//! The fused CPU forward of a [`crate::model::Tower`]. [`super::reference`] is the truth to which tests compare it.
//!
//! A chunk of boards small enough for the L2 cache goes through the whole network, stem to heads, before the next one
//! starts. Activations lie as `[position, board, channel]`, so each output position and tap on the board is a small matrix
//! product read in place: no im2col, no padding squares, BatchNorm, residual sum and relu done while sums are in
//! registers. One kernel (`tile`) does every layer; a linear layer on a board is one output position with a tap for
//! every square. If matrices are multiplied (`amx`) and boards fill whole tiles, activations are in the blocked
//! layout, `[position, channel block, board, 16 words]`, and a layer goes over all rows with one block of its weights after the other;
//! its stem alone reads im2col patches (`im2col`).
//!
//! Single-threaded on purpose: callers run one evaluator per thread ([`CpuNet::fork`]) on their own rows. The result is
//! batch-invariant to the bit: each sum takes its products in one fixed order, whatever the batch.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod amx_epilogue;
#[cfg(target_arch = "x86_64")]
mod amx_mma;
#[cfg(target_arch = "x86_64")]
mod amx_strip;
#[cfg(target_arch = "x86_64")]
mod amx_tile;
mod im2col;
mod bf16;
mod board;
mod chunk;
mod format;
mod layer;
mod message_passing;
mod observe;
mod pack;
mod pooled;
mod kernel_set;
mod kernels;
mod portable;
mod tile;
mod tile_loop;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_bf16;
#[cfg(target_arch = "x86_64")]
mod x86_int8;

use super::{IoShape, NetSpec, Network, Weights};
use crate::config::{IsaChoice, Precision};
use crate::error::{Error, Result};
use crate::isa::Isa;
use crate::model::{Model, Tower};
use chunk::ChunkLayout;
use im2col::Boards;
use kernel_set::KernelSet;
use layer::{Buffers, LINE, Line, RowLayout, RowPlacement, lines};
use message_passing::MessageRows;
use observe::Observations;
use pack::PackedLayers;
use pooled::{FusedPooling, PoolingRows};
use std::sync::Arc;

pub use kernel_set::{available_isas, check_precision, choose_isa};

/// A callback with the index and the activations of a tower layer.
type LayerHook<'a> = &'a mut dyn FnMut(usize, &[f32]);

/// A network packed for the CPU. Clones share the weights and own their work space.
pub struct CpuNet {
    net: Arc<Net>,
    work: Workspace,
    /// Observations, logits and values of a chunk that is padded with boards. `[boards, F]`, `[boards, A]`, `[boards, P]`
    padded: [Vec<f32>; 3],
}

/// Work space of one chunk; grows to the largest chunk met.
#[derive(Default)]
struct Workspace {
    /// Observations as the stem reads them, and activations.
    arrays: Vec<Line>,
    /// Scratch on the way from observations to im2col patches.
    boards: Boards,
}

struct Net {
    model: Model,
    tower: Tower,
    packed: PackedLayers,
    kernel_set: KernelSet,
}

impl CpuNet {
    /// Packs `weights` for the fastest instruction set of this machine. bf16 rounds the tower's weights and activations;
    /// sums, the residual stream and, on boards, all linear layers stay f32. Without AVX-512 BF16 it is emulated, with
    /// the same rounding but no faster than f32.
    ///
    /// # Errors
    /// [`Error::Mismatch`] and [`Error::NotFinite`] for weights that do not fit `spec`, [`Error::Unsupported`] for a
    /// precision that this machine or build does not have.
    pub fn new(spec: &NetSpec, weights: &Weights, precision: Precision) -> Result<Self> {
        Self::with_isa(spec, weights, precision, choose_isa(IsaChoice::Native, precision)?)
    }

    /// Packs `weights` for one instruction set.
    ///
    /// # Errors
    /// Those of [`CpuNet::new`]; [`Error::Unsupported`] also if this machine has no kernels of `isa`.
    pub fn with_isa(spec: &NetSpec, weights: &Weights, precision: Precision, isa: Isa) -> Result<Self> {
        let what = || format!("the CPU network in {precision} with {isa}");
        if precision == Precision::Int8 {
            return Err(Error::unsupported(what(), "8-bit weights need observations to calibrate on"));
        }
        let kernel_set = KernelSet::of(isa, precision);
        let kernel_set = kernel_set
            .ok_or_else(|| Error::unsupported(what(), "this machine has no instructions for it"))?;
        Self::pack(spec, weights, kernel_set, &[])
    }

    /// Packs `weights` as 8-bit integers, each output channel with its own step, each layer's activations with one that
    /// lets the largest of `observations` `[M, F]` just fit. Stem, residual stream and, on boards, the linear layers stay
    /// f32. Results are the same to the bit with every instruction set.
    ///
    /// # Errors
    /// Those of [`CpuNet::new`], [`check_precision`] and [`Network::forward`]; [`Error::Unsupported`] without kernels of `isa`;
    /// [`Error::Mismatch`] where there are no observations.
    pub fn int8_with_isa(spec: &NetSpec, weights: &Weights, observations: &[f32], isa: Isa) -> Result<Self> {
        check_precision(&spec.model()?, Precision::Int8)?;
        let kernel_set = KernelSet::of(isa, Precision::Int8);
        let kernel_set = kernel_set
            .ok_or_else(|| Error::unsupported("the CPU network in int8", "no AVX-512 VNNI here"))?;
        if observations.is_empty() {
            let what = "observations to calibrate 8-bit weights on".to_string();
            return Err(Error::Mismatch { what, found: "none".into(), expected: "some".into() });
        }
        let steps = Self::new(spec, weights, Precision::F32)?.activation_steps(observations)?;
        Self::pack(spec, weights, kernel_set, &steps)
    }

    fn pack(spec: &NetSpec, weights: &Weights, kernel_set: KernelSet, steps: &[f32]) -> Result<Self> {
        let model = spec.model()?;
        let tower =
            Tower::of(&model).map_err(|why| Error::unsupported("the fused forward on the CPU", why))?;
        let packed = pack::pack(&model, &tower, weights, kernel_set, steps)?;
        Ok(Self::of(Arc::new(Net { model, tower, packed, kernel_set })))
    }

    /// An evaluator with an empty work space.
    fn of(net: Arc<Net>) -> Self {
        Self { net, work: Workspace::default(), padded: Default::default() }
    }

    /// For each layer of the tower the step that makes its largest activation 255.
    fn activation_steps(&mut self, observations: &[f32]) -> Result<Vec<f32>> {
        let io = self.shape();
        let rows = observations.len() / io.obs_len;
        let (mut logits, mut values) = (vec![0.0; rows * io.num_actions], vec![0.0; rows * io.num_players]);
        let mut largest = vec![0.0_f32; 1 + 2 * self.net.tower.blocks.len()];
        self.forward_with_hook(observations, [&mut logits, &mut values], &mut |layer, activations| {
            largest[layer] = activations.iter().copied().fold(largest[layer], f32::max);
        })?;
        Ok(largest.into_iter().map(|x| if x > 0.0 { x / 255.0 } else { 1.0 }).collect())
    }

    /// [`Network::forward`] that calls `hook` with the index and the activations of each tower layer.
    fn forward_with_hook(
        &mut self,
        obs: &[f32],
        [logits, values]: [&mut [f32]; 2],
        hook: LayerHook<'_>,
    ) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.shape();
        let rows = obs.len() / obs_len;
        check_len("observations", obs.len(), rows * obs_len)?;
        check_len("logits", logits.len(), rows * num_actions)?;
        check_len("values", values.len(), rows * num_players)?;
        let mut first = 0;
        for boards in self.net.chunks(rows) {
            let end = first + boards;
            let obs = &obs[first * obs_len..end * obs_len];
            let outputs = [
                &mut logits[first * num_actions..end * num_actions],
                &mut values[first * num_players..end * num_players],
            ];
            match self.net.whole_tiles(boards) {
                whole if whole == boards => self.net.chunk(&mut self.work, obs, outputs, hook)?,
                whole => self.padded_chunk(whole, obs, outputs, hook)?,
            }
            first = end;
        }
        Ok(())
    }

    /// Pads a chunk to `whole` boards and evaluates it. The padding repeats the last board, so that it adds no infinite output.
    fn padded_chunk(
        &mut self,
        whole: usize,
        obs: &[f32],
        outputs: [&mut [f32]; 2],
        hook: LayerHook<'_>,
    ) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.shape();
        let lengths = [obs_len, num_actions, num_players].map(|each| whole * each);
        let [all_obs, logits, values] = &mut self.padded;
        for (array, length) in [&mut *all_obs, logits, values].into_iter().zip(lengths) {
            array.resize(length, 0.0);
        }
        all_obs[..obs.len()].copy_from_slice(obs);
        let last = &obs[obs.len() - obs_len..];
        all_obs[obs.len()..].chunks_exact_mut(obs_len).for_each(|board| board.copy_from_slice(last));
        self.net.chunk(&mut self.work, all_obs, [&mut *logits, &mut *values], hook)?;
        for (to, from) in outputs.into_iter().zip([logits, values]) {
            to.copy_from_slice(&from[..to.len()]);
        }
        Ok(())
    }

    /// The name of the tower's kernels, e.g. "avx512-bf16".
    pub fn kernel_name(&self) -> &'static str {
        self.net.kernel_set.tower.name
    }

    /// Multiply-adds that one observation needs; only taps on the board count.
    pub fn macs_per_sample(&self) -> usize {
        self.net.model.multiply_adds_in_play()
    }

    /// Runs `rounds` rounds of the tower's kernels at the machine's peak rate, from registers alone. Returns the number of multiply-adds, in
    /// the unit of [`CpuNet::macs_per_sample`].
    pub fn measure_peak(&self, rounds: usize) -> usize {
        let kernels = self.net.kernel_set.tower;
        // SAFETY: the kernels' instructions were detected when the network was packed, and the thread is made ready for them.
        unsafe {
            kernels.matrices.as_ref().inspect(|m| (m.begin)(m.rows));
            std::hint::black_box((kernels.peak)(rounds));
            kernels.matrices.as_ref().inspect(|m| (m.end)());
        }
        rounds * kernels.chains * kernels.lanes * kernels.unit
    }
}

impl Network for CpuNet {
    fn shape(&self) -> IoShape {
        self.net.model.io()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        self.forward_with_hook(obs, [logits, values], &mut |_, _| {})
    }

    fn outcome(&mut self, obs: &[f32]) -> Result<Option<[f32; 3]>> {
        let Self { net, work, padded: [all_obs, logits, _] } = self;
        let io = net.model.io();
        check_len("observations", obs.len(), io.obs_len)?;
        let boards = net.whole_tiles(1);
        *all_obs = obs.repeat(boards);
        logits.resize(boards * io.num_actions, 0.0);
        let out = net.value_outputs(work, all_obs, logits, &mut |_, _| {})?;
        Ok(net.tower.value_function.outcome(&out[..net.model.outputs(net.tower.values)]))
    }

    fn batch_multiple(&self) -> Option<usize> {
        let Net { packed, kernel_set, .. } = self.net.as_ref();
        (packed.messages.is_none() && kernel_set.tower.matrices.is_some())
            .then(|| kernel_set.tower.tile_rows())
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

impl Clone for CpuNet {
    /// Shares the weights; the work space is the clone's own.
    fn clone(&self) -> Self {
        Self::of(self.net.clone())
    }
}

fn check_len(what: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let what = format!("length of a batch's {what}");
    Err(Error::Mismatch { what, found: found.to_string(), expected: expected.to_string() })
}

fn check_finite(what: &str, numbers: &[f32]) -> Result<()> {
    // Without an early exit the compiler vectorises the loop, and nearly all arrays are finite.
    if numbers.iter().fold(true, |finite, x| finite & x.is_finite()) {
        return Ok(());
    }
    let value = numbers.iter().copied().find(|x| !x.is_finite()).unwrap_or(f32::NAN);
    Err(Error::NotFinite { what: format!("{what} of the network"), value })
}

impl Net {
    /// Evaluates one chunk: `obs [boards, F]` to `outputs`, logits `[boards, A]` and values `[boards, P]`.
    fn chunk(
        &self,
        work: &mut Workspace,
        obs: &[f32],
        [logits, values]: [&mut [f32]; 2],
        hook: LayerHook<'_>,
    ) -> Result<()> {
        let out = self.value_outputs(work, obs, logits, hook)?;
        self.store_values(out, values);
        Ok(())
    }

    /// One chunk up to the function of the value head: returns what its last linear layer gives, `[boards, outputs]`.
    fn value_outputs<'a>(
        &self,
        Workspace { arrays, boards: squares }: &'a mut Workspace,
        obs: &[f32],
        logits: &mut [f32],
        hook: LayerHook<'_>,
    ) -> Result<&'a [f32]> {
        if self.kernel_set.tower.unit == 4 {
            // In bytes a NaN would become a number.
            check_finite("an observation", obs)?;
        }
        let boards = obs.len() / self.model.obs().len();
        let layout = self.layout();
        let need = layout.words(boards);
        let total: usize = need.iter().sum();
        if arrays.len() * LINE < total {
            *arrays = lines(total);
        }
        let mut rest: &mut [f32] = bytemuck::cast_slice_mut(arrays);
        let arrays = need.map(|words| {
            let (array, after) = std::mem::take(&mut rest).split_at_mut(words);
            rest = after;
            array
        });
        // SAFETY: the kernels' instructions were detected when the network was packed; the arrays are those of the layout,
        // each for `boards` boards, and distinct.
        let out = unsafe { self.run_layers(&layout, (obs, squares), arrays, &mut *logits, hook) };
        check_finite("a logit", logits)?;
        let out = &out[..boards * self.model.outputs(self.tower.values)];
        check_finite("an output of the value head", out)?;
        Ok(out)
    }

    /// All layers on one chunk: observations -> `logits [boards, A]`. Returns the array of the values before their tanh.
    ///
    /// # Safety
    /// The machine has the kernels' instructions; the arrays are those of [`ChunkLayout::words`] for the boards of `obs`.
    unsafe fn run_layers<'a>(
        &self,
        layout: &ChunkLayout,
        (obs, squares): (&[f32], &mut Boards),
        arrays: [&'a mut [f32]; 13],
        logits: &mut [f32],
        hook: LayerHook<'_>,
    ) -> &'a [f32] {
        let boards = obs.len() / self.model.obs().len();
        let [planes, stream, a, b, heads, hidden, out, sums, ends, pooled, by_edge, numbers, scratch] =
            arrays;
        // SAFETY: the caller's promise; the arrays are distinct.
        unsafe {
            let at = |array: &mut [f32], row| RowLayout::whole(array, boards, row);
            // Messages between the layers of an edge network read whole rows.
            let is_blocked =
                self.packed.messages.is_none() && self.kernel_set.tower.strip_rows(boards).is_some();
            let tower = if is_blocked { RowLayout::blocked } else { RowLayout::whole };
            let planes = self.observe(layout, obs, squares, (planes, tower));
            let stream = tower(stream, boards, layout.stream_row);
            let [a, b] = [a, b].map(|array| tower(array, boards, layout.act_row));
            let (heads, hidden) = (at(heads, layout.head_row), at(hidden, layout.hidden_row));
            let logits = at(logits, self.model.num_actions());
            let values = at(out, layout.value_row);
            let rows = MessageRows {
                sums: at(sums, layout.act_row),
                ends: at(ends, layout.stream_row),
                pooled: at(pooled, layout.stream_row),
                logits: at(by_edge, 1),
            };
            let pooling = PoolingRows {
                numbers: at(numbers, layout.pooling_row),
                scratch: at(scratch, layout.pooling_scratch),
            };
            let matrices = self.kernel_set.tower.matrices.as_ref();
            matrices.inspect(|m| (m.begin)(m.rows));
            self.tower(boards, planes, [stream, a, b], (rows, pooling), hook);
            match &self.packed.messages {
                Some(messages) => self.edge_heads(boards, messages, [a, hidden, logits, values], rows),
                None => self.heads(boards, [a, heads, hidden, logits, values]),
            }
            matrices.inspect(|m| (m.end)());
        }
        out
    }

    /// Writes the stem's input. `tower` is the layout of rows in the tower.
    fn observe(
        &self,
        layout: &ChunkLayout,
        obs: &[f32],
        squares: &mut Boards,
        (planes, tower): (&mut [f32], RowPlacement),
    ) -> RowLayout {
        let (len, positions) = (self.model.obs().len(), layout.positions);
        let (boards, channels) = (obs.len() / len, len / positions);
        if let Some(im2col) = &self.packed.im2col {
            let to = tower(planes, boards, layout.obs_row);
            im2col.rows(obs, squares, planes, to);
            return tower(planes, boards, layout.obs_row);
        }
        let sizes = Observations { boards, channels, positions, row: layout.obs_row };
        match self.kernel_set.stem.unit {
            1 => sizes.f32_units(obs, planes),
            _ => sizes.bf16_units(obs, planes),
        }
        RowLayout::whole(planes, boards, layout.obs_row)
    }

    /// Stem and blocks: observations -> normalised activations in `a`.
    ///
    /// # Safety
    /// The arrays are those of the layout for `boards` boards.
    unsafe fn tower(
        &self,
        boards: usize,
        planes: RowLayout,
        [stream, a, b]: [RowLayout; 3],
        (message_rows, pooling): (MessageRows, PoolingRows),
        hook: LayerHook<'_>,
    ) {
        let ends = message_rows.ends;
        let words = self.layout().positions * a.position;
        // SAFETY: the caller's promise; the output of a layer is never its input; `a` and `b` hold `words` words.
        unsafe {
            // From the first layer on that reads the blocked layout, all layers that multiply matrices run in strips.
            let tower = self.kernel_set.tower;
            let strips = tower.matrices.as_ref().zip(tower.strip_rows(boards));
            strips.filter(|_| planes.is_blocked()).inspect(|(m, rows)| (m.begin)(*rows));
            self.packed.stem.run(boards, Buffers { source: planes, stream, out: a, ends });
            strips.filter(|_| a.is_blocked()).inspect(|(m, rows)| (m.begin)(*rows));
            hook(0, std::slice::from_raw_parts(a.start, words));
            for (i, [first, second]) in self.packed.blocks.iter().enumerate() {
                let [bias, scale] = self.packed.pooled[i].each_ref().map(Option::as_ref);
                if let Some(messages) = &self.packed.messages {
                    messages.send(i, boards, self.activations(), a, message_rows);
                }
                let buffers = Buffers { source: a, stream, out: b, ends };
                FusedPooling::run_after(bias, first, boards, buffers, pooling);
                hook(2 * i + 1, std::slice::from_raw_parts(b.start, words));
                if let Some(messages) = &self.packed.messages {
                    messages.mix(i, boards, self.activations(), b);
                }
                let buffers = Buffers { source: b, stream, out: a, ends };
                FusedPooling::run_after(scale, second, boards, buffers, pooling);
                hook(2 * i + 2, std::slice::from_raw_parts(a.start, words));
            }
        }
    }

    /// Heads: activations -> logits, values before their tanh.
    ///
    /// # Safety
    /// As for `tower`.
    unsafe fn heads(&self, boards: usize, [a, heads, hidden, logits, out]: [RowLayout; 5]) {
        let packed = &self.packed;
        let place = |source, out| Buffers { source, stream: out, out, ends: RowLayout::NONE };
        // SAFETY: the caller's promise; value channels follow the policy channels in a row of `heads`.
        unsafe {
            let (policy, value) = match (&packed.head, self.tower.heads) {
                (Some(head), Some([policy, _])) => {
                    head.run(boards, place(a, heads));
                    let start = heads.start.add(self.model.outputs(policy.conv));
                    (heads, RowLayout { start, ..heads })
                }
                _ => (a, a),
            };
            packed.policy.run(boards, place(policy, logits));
            packed.hidden.run(boards, place(value, hidden));
            packed.value.run(boards, place(hidden, out));
        }
    }

    /// Values of all players, from the outputs of the value head.
    fn store_values(&self, outputs: &[f32], values: &mut [f32]) {
        let (players, function) = (self.model.num_players, self.tower.value_function);
        let opposite = self.model.num_values() < players;
        let rows = outputs.chunks_exact(self.model.outputs(self.tower.values));
        for (outputs, values) in rows.zip(values.chunks_exact_mut(players)) {
            function.apply(outputs, values);
            if let ([v, other], true) = (values, opposite) {
                *other = -*v;
            }
        }
    }
}

#[cfg(test)]
mod tests;
