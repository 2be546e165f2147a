//! The executor of every model on any device of candle (the CPU; a GPU with the feature `candle-cuda` or `candle-metal`), forward and by autograd: where
//! a new kind of layer runs and trains first, and the independent check of the fused executors.

pub use super::candle_layers::BatchNormMode;
use super::candle_layers::{GraphTensors, Op};
use super::{IoShape, Network};
use crate::config::DeviceName;
use crate::error::{Error, Result};
use crate::model::{ActivationShape, Model, NetSpec, Param, Weights};
pub use candle_core::Device as CandleDevice;
use candle_core::{Device, Tensor};
use std::sync::Arc;

/// Rows that go through the network together on the CPU. A fixed number, the last ones filled up with zeros: candle's products may sum
/// in another order for another number of rows, and a row's result must not depend on the batch around it.
const CPU_ROWS: usize = 8;
/// The same on a GPU, which fewer rows would not fill.
const GPU_ROWS: usize = 256;

/// The candle device of `name`.
///
/// # Errors
/// [`Error::Unsupported`] for a GPU in a build without candle's kernels; [`Error::Candle`].
pub fn candle_device(name: DeviceName) -> Result<CandleDevice> {
    match name {
        DeviceName::Cpu => Ok(Device::Cpu),
        #[cfg(feature = "candle-cuda")]
        DeviceName::Cuda(number) => Ok(Device::new_cuda(number as usize)?),
        #[cfg(not(feature = "candle-cuda"))]
        DeviceName::Cuda(_) => Err(Error::unsupported(
            format!("candle on {name}"),
            "this build has no candle-cuda; build with --features candle-cuda, or set net.device = \"cpu\"",
        )),
        #[cfg(all(feature = "candle-metal", target_os = "macos"))]
        DeviceName::Metal => Ok(Device::new_metal(0)?),
        #[cfg(not(all(feature = "candle-metal", target_os = "macos")))]
        DeviceName::Metal => Err(Error::unsupported("candle on metal", DeviceName::WITHOUT_METAL)),
    }
}

/// A network of candle's operations. As a [`Network`] it normalises with the running statistics.
#[derive(Clone)]
pub struct CandleNet {
    model: Arc<Model>,
    /// One for each layer.
    ops: Arc<Vec<Op>>,
    /// [`Model::layers_in_play`].
    in_play: Arc<Vec<bool>>,
    device: Device,
}

impl CandleNet {
    /// The network of `spec` with `weights` on the CPU.
    ///
    /// # Errors
    /// As [`Model::new`] and [`Model::check`].
    pub fn new(spec: &NetSpec, weights: &Weights) -> Result<Self> {
        Self::on(&Device::Cpu, spec.model()?, weights)
    }

    /// `model` with `weights` on `device`.
    ///
    /// # Errors
    /// As [`Model::check`], and [`Error::Candle`] where the device has too little memory.
    pub fn on(device: &Device, model: impl Into<Arc<Model>>, weights: &Weights) -> Result<Self> {
        let model = model.into();
        model.check(weights)?;
        let tensor = |param: &Param| {
            Tensor::from_slice(&weights[&param.name].data, param.shape.as_slice(), device)
                .map_err(Error::from)
        };
        let params: Vec<Tensor> = model.params.iter().map(tensor).collect::<Result<_>>()?;
        Self::from_tensors(device, model, &params)
    }

    /// `model` on given tensors, one for each of [`Model::params`], which may be variables that candle follows.
    ///
    /// # Errors
    /// [`Error::Candle`] where a normalisation's tensor has another shape.
    pub fn from_tensors(device: &Device, model: Arc<Model>, params: &[Tensor]) -> Result<Self> {
        let graph = match model.obs() {
            ActivationShape::Edges { vertices, .. } => Some(Arc::new(GraphTensors::new(vertices, device)?)),
            ActivationShape::Vector(_) | ActivationShape::Board { .. } => None,
        };
        let op = |layer: &crate::model::Layer| {
            let input = layer.inputs.first().map_or(layer.shape, |&input| model.layers[input].shape);
            Op::new(layer.kind, input, &params[layer.params.clone()], graph.as_ref())
        };
        let ops = model.layers.iter().map(op).collect::<candle_core::Result<_>>()?;
        let in_play = Arc::new(model.layers_in_play());
        Ok(Self { model, ops: Arc::new(ops), in_play, device: device.clone() })
    }

    /// Logits `[B, A]` and values `[B, V]` of observations `[B, F]`, without the layers that only training uses.
    ///
    /// # Errors
    /// [`Error::Candle`].
    pub fn forward_t(&self, obs: &Tensor, mode: BatchNormMode) -> Result<(Tensor, Tensor)> {
        let done = self.run(obs, mode, &self.in_play)?;
        Ok((done[self.model.policy()].clone(), done[self.model.value()].clone()))
    }

    /// What each head learns, in the order of [`Model::heads`], of observations `[B, F]`. `[heads][B, outputs]`
    ///
    /// # Errors
    /// [`Error::Candle`].
    pub fn heads_t(&self, obs: &Tensor, mode: BatchNormMode) -> Result<Vec<Tensor>> {
        let done = self.layers_t(obs, mode)?;
        Ok(self.model.heads.iter().map(|head| done[head.layer].clone()).collect())
    }

    /// The outputs of all layers.
    pub(super) fn layers_t(&self, obs: &Tensor, mode: BatchNormMode) -> Result<Vec<Tensor>> {
        self.run(obs, mode, &vec![true; self.ops.len()])
    }

    /// The outputs of the layers that are `needed`; of others the observations.
    fn run(&self, obs: &Tensor, mode: BatchNormMode, needed: &[bool]) -> Result<Vec<Tensor>> {
        let mut done: Vec<Tensor> = Vec::with_capacity(self.ops.len());
        for ((layer, op), needed) in self.model.layers.iter().zip(self.ops.iter()).zip(needed) {
            let inputs: Vec<&Tensor> = match layer.inputs[..] {
                [] => vec![obs],
                _ => layer.inputs.iter().map(|&input| &done[input]).collect(),
            };
            done.push(if *needed { op.forward(&inputs, mode)? } else { obs.clone() });
        }
        Ok(done)
    }

    /// Running statistics, flat as in [`Model::flatten`].
    ///
    /// # Errors
    /// [`Error::Candle`].
    pub fn statistics(&self) -> Result<Vec<f32>> {
        let mut flat = Vec::with_capacity(self.model.num_statistics());
        for tensor in self.ops.iter().filter_map(Op::statistics).flatten() {
            flat.extend(tensor.to_vec1::<f32>()?);
        }
        Ok(flat)
    }

    /// Observations as a batch of `rows`, filled up with zeros. `[rows, F]`
    fn padded(&self, obs: &[f32], rows: usize) -> Result<Tensor> {
        let features = self.model.obs().len();
        let mut padded = obs.to_vec();
        padded.resize(rows * features, 0.0);
        Ok(Tensor::from_vec(padded, (rows, features), &self.device)?)
    }

    /// The rows of a batch.
    fn rows(&self) -> usize {
        if self.device.is_cpu() { CPU_ROWS } else { GPU_ROWS }
    }

    /// At most [`Self::rows`] rows, in a batch of as many.
    fn chunk(&self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        let obs = self.padded(obs, self.rows())?;
        let (l, v) = self.forward_t(&obs, BatchNormMode::Eval)?;
        let l = l.flatten_all()?.to_vec1::<f32>()?;
        logits.copy_from_slice(&l[..logits.len()]);
        let v = v.flatten_all()?.to_vec1::<f32>()?;
        if self.model.num_values() < self.model.num_players {
            values.chunks_exact_mut(2).zip(v).for_each(|(pair, v)| pair.copy_from_slice(&[v, -v]));
        } else {
            values.copy_from_slice(&v[..values.len()]);
        }
        Ok(())
    }
}

impl Network for CandleNet {
    fn shape(&self) -> IoShape {
        self.model.io()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.shape();
        let rows = self.rows();
        let outputs = logits.chunks_mut(rows * num_actions).zip(values.chunks_mut(rows * num_players));
        for (obs, (logits, values)) in obs.chunks(rows * obs_len).zip(outputs) {
            self.chunk(obs, logits, values)?;
        }
        check_finite("a logit", logits)?;
        check_finite("a value", values)
    }

    fn outcome(&mut self, obs: &[f32]) -> Result<Option<[f32; 3]>> {
        let model = &self.model;
        let Some(function) = model.layers[model.value()].kind.value_function() else { return Ok(None) };
        if obs.len() != model.obs().len() {
            return Err(Error::mismatch("length of a batch's observations", obs.len(), model.obs().len()));
        }
        let done = self.run(&self.padded(obs, self.rows())?, BatchNormMode::Eval, &self.in_play)?;
        // The other rows are padding.
        let outputs = done[model.value_outputs()].flatten_all()?.to_vec1::<f32>()?;
        let outputs = &outputs[..model.outputs(model.value_outputs())];
        check_finite("an output of the value head", outputs)?;
        Ok(function.outcome(outputs))
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

fn check_finite(what: &str, numbers: &[f32]) -> Result<()> {
    match numbers.iter().find(|x| !x.is_finite()) {
        Some(&value) => Err(Error::NotFinite { what: format!("{what} of the network"), value }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NetConfig;
    use crate::game::{Game, connect_four::ConnectFour};
    use crate::rng::{Key, Purpose};

    #[test]
    fn a_row_keeps_its_bits_in_any_batch() {
        let spec = NetSpec::new(
            &NetConfig { channels: 24, ..NetConfig::default() },
            &ConnectFour::default().sizes(),
        );
        let model = spec.model().expect("a network");
        let weights = model.random_weights(Key::new(1, Purpose::Weights));
        let mut stream = Key::new(2, Purpose::Evaluation).stream();
        let obs: Vec<f32> = (0..29 * spec.obs.len()).map(|_| stream.uniform()).collect();
        let mut net = CandleNet::new(&spec, &weights).expect("network");
        let mut evaluate = |obs: &[f32]| {
            let rows = obs.len() / spec.obs.len();
            let (mut logits, mut values) = (vec![0.0; rows * spec.num_actions], vec![0.0; rows * 2]);
            net.forward(obs, &mut logits, &mut values).expect("finite");
            (logits, values)
        };
        let (logits, values) = evaluate(&obs);
        // Alone, in chunks filled up with zeros, and at other rows of a chunk.
        for rows in [1, 3, 11] {
            let chunks = obs.chunks(rows * spec.obs.len()).map(&mut evaluate);
            let (l, v): (Vec<_>, Vec<_>) = chunks.unzip();
            assert_eq!((l.concat(), v.concat()), (logits.clone(), values.clone()), "{rows} rows");
        }
    }
}
