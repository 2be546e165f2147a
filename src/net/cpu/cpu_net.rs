//! The evaluator: a batch, cut into chunks.

use super::forward::{LayerHook, Workspace};
use super::kernel_set::{KernelSet, check_precision, choose_isa};
use super::pack;
use super::packed_net::Net;
use crate::config::{IsaChoice, Precision};
use crate::error::{Error, Result};
use crate::isa::Isa;
use crate::model::{IoShape, NetSpec, Tower, Weights};
use crate::net::Network;
use std::sync::Arc;

/// A network packed for the CPU. Clones share the weights and own their work space.
pub struct CpuNet {
    net: Arc<Net>,
    work: Workspace,
    /// Observations, logits and values of a chunk that is padded with boards. `[boards, F]`, `[boards, A]`, `[boards, P]`
    padded: [Vec<f32>; 3],
}

impl CpuNet {
    /// Packs `weights` for the fastest instruction set of this machine. bf16 rounds the tower's weights and activations;
    /// sums, the residual stream and, on boards, all linear layers stay f32. Without instructions for bf16 it is emulated,
    /// with the same rounding but no faster than f32.
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
        let what = || format!("the CPU network in int8 with {isa}");
        let kernel_set = kernel_set
            .ok_or_else(|| Error::unsupported(what(), "this machine has no instructions for it"))?;
        if observations.is_empty() {
            return Err(Error::mismatch("observations to calibrate 8-bit weights on", "none", "some"));
        }
        let steps = Self::new(spec, weights, Precision::F32)?.activation_steps(observations)?;
        Self::pack(spec, weights, kernel_set, &steps)
    }

    /// Packs `weights` for these kernels; `steps` are those of bytes.
    ///
    /// # Errors
    /// Those of [`CpuNet::new`].
    pub(super) fn pack(
        spec: &NetSpec,
        weights: &Weights,
        kernel_set: KernelSet,
        steps: &[f32],
    ) -> Result<Self> {
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
    pub(super) fn forward_with_hook(
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
        self.run_chunks(obs, [logits, values], hook)
    }

    /// Evaluates chunk after chunk; `logits` is empty where they are not read.
    fn run_chunks(
        &mut self,
        obs: &[f32],
        [logits, values]: [&mut [f32]; 2],
        hook: LayerHook<'_>,
    ) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.shape();
        let rows = obs.len() / obs_len;
        let mut first = 0;
        for boards in self.net.chunks(rows) {
            let end = first + boards;
            let obs = &obs[first * obs_len..end * obs_len];
            let outputs = [
                logits.get_mut(first * num_actions..end * num_actions).unwrap_or_default(),
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
        let num_actions = if outputs[0].is_empty() { 0 } else { num_actions };
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
        rounds * kernels.peak_macs()
    }
}

impl Network for CpuNet {
    fn shape(&self) -> IoShape {
        self.net.model.io()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        self.forward_with_hook(obs, [logits, values], &mut |_, _| {})
    }

    /// Without the policy head, but for networks on edges.
    fn values(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        if self.net.packed.messages.is_some() {
            return self.forward(obs, logits, values);
        }
        let IoShape { obs_len, num_players, .. } = self.shape();
        check_len("values", values.len(), obs.len() / obs_len * num_players)?;
        self.run_chunks(obs, [&mut [], values], &mut |_, _| {})
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
    Err(Error::mismatch(what, found, expected))
}
