//! The interface of networks, and two without weights.

use super::double_buffer::DoubleBufferedNetwork;
use crate::config::{Devices, Precision, TensorCores};
use crate::error::Result;
use crate::model::{IoShape, NetSpec, Weights};
use crate::rng::{Key, Purpose};

/// The description of a network: all that determines its outputs, for a device that computes them where its rows are resident.
#[derive(Clone, Debug)]
pub struct NetworkDesc {
    /// Its sizes.
    pub spec: NetSpec,
    /// Its weights.
    pub weights: Weights,
    /// Its number format.
    pub precision: Precision,
    /// The instructions that multiply 16-bit matrices on a GPU.
    pub tensor_cores: TensorCores,
}

/// Something that gives every observation logits over all actions and a value for every player.
///
/// `&mut self` because an evaluator owns its work space; weights are shared. A network must be batch-invariant: the
/// outputs of a row depend on that row's observation alone, to the bit, whatever else is in the batch.
pub trait Network: Send {
    /// Sizes of the input and output.
    fn shape(&self) -> IoShape;

    /// Evaluates M observations.
    ///
    /// # Shapes
    /// `obs [M, F]`, `logits [M, A]` (raw, legal or not), `values [M, P]` in [-1, 1] in seats relative to the observer:
    /// entry k is for player (observer + k) mod n, of n players; those from n on are not read.
    ///
    /// # Errors
    /// [`crate::Error::NotFinite`] where an output is not a finite number.
    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()>;

    /// Evaluates M observations for their values alone. `logits [M, A]` is work space.
    ///
    /// # Errors
    /// Those of [`Network::forward`].
    fn values(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        self.forward(obs, logits, values)
    }

    /// The probabilities of win, draw and loss for the observer of one observation `[F]`, by the network's own estimate; None where its
    /// value head does not have them.
    ///
    /// # Errors
    /// Those of [`Network::forward`].
    fn outcome(&mut self, obs: &[f32]) -> Result<Option<[f32; 3]>> {
        let _ = obs;
        Ok(None)
    }

    /// False where the outputs do not depend on the observations, which then need not be made.
    fn needs_observations(&self) -> bool {
        true
    }

    /// The number of observations of which a batch should be a multiple so that no tile stays partly empty; None where the gain is small.
    fn batch_multiple(&self) -> Option<usize> {
        None
    }

    /// True where several threads evaluate a batch faster than one: the network is on the CPU.
    fn gains_by_threads(&self) -> bool {
        true
    }

    /// The description from which a backend with its rows on `devices` computes this network's outputs there, without copies to the
    /// host; None where only the network itself computes them.
    fn network_desc_for(&self, devices: &Devices) -> Option<&NetworkDesc> {
        let _ = devices;
        None
    }

    /// The network with two alternating batches of at most `max_leaves` leaves each, of which it evaluates one while the caller fills the
    /// other; None where it has only [`Network::forward`].
    ///
    /// # Errors
    /// Those of the device.
    fn double_buffered(&self, max_leaves: usize) -> Result<Option<Box<dyn DoubleBufferedNetwork>>> {
        let _ = max_leaves;
        Ok(None)
    }

    /// Another evaluator on the same weights, for another thread.
    fn fork(&self) -> Box<dyn Network>;
}

/// All logits and values 0: pure search.
#[derive(Clone, Debug)]
pub struct UniformNet(pub IoShape);

impl Network for UniformNet {
    fn shape(&self) -> IoShape {
        self.0
    }

    fn forward(&mut self, _obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        logits.fill(0.0);
        values.fill(0.0);
        Ok(())
    }

    fn needs_observations(&self) -> bool {
        false
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

/// Logits in [-1.5, 1.5) and values in [-0.9, 0.9) hashed from the observation's bits; for two players the values are
/// opposite.
#[derive(Clone, Debug)]
pub struct HashNet(pub IoShape);

impl Network for HashNet {
    fn shape(&self) -> IoShape {
        self.0
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.0;
        let rows = obs.chunks_exact(obs_len).zip(logits.chunks_exact_mut(num_actions));
        for ((obs, logits), values) in rows.zip(values.chunks_exact_mut(num_players)) {
            let key =
                obs.iter().fold(Key::new(0, Purpose::Evaluation), |key, x| key.with(u64::from(x.to_bits())));
            let mut stream = key.stream();
            logits.fill_with(|| 3.0 * stream.uniform() - 1.5);
            values.fill_with(|| 1.8 * stream.uniform() - 0.9);
            if num_players == 2 {
                values[1] = -values[0];
            }
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}
