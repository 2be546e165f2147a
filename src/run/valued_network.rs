//! A network whose predictions of a target are turned into values by its game.
//!
//! In: a network that predicts the target ([`target_network`](crate::weights::target_network)), and the game's [`Valuation`]. Out: one with the
//! game's own observations and players, which search calls.

use crate::error::Result;
use crate::game::Valuation;
use crate::net::{IoShape, Network};

/// A network of predictions as one of values.
pub(super) struct ValuedNetwork {
    inner: Box<dyn Network>,
    valuation: Valuation,
    shape: IoShape,
    /// What the inner network sees of a batch. `[M, seen]`
    seen: Vec<f32>,
    /// Its outputs. `[M, N]`
    predictions: Vec<f32>,
}

/// [`Network::forward`] or [`Network::values`].
type Forward = fn(&mut dyn Network, &[f32], &mut [f32], &mut [f32]) -> Result<()>;

impl ValuedNetwork {
    /// `inner` in a game whose networks have `shape`.
    pub fn new(inner: Box<dyn Network>, valuation: Valuation, shape: IoShape) -> Self {
        Self { inner, valuation, shape, seen: Vec::new(), predictions: Vec::new() }
    }

    /// Evaluates M observations: `obs [M, F]`, `logits [M, A]`, `values [M, P]`.
    fn evaluate(
        &mut self,
        forward: Forward,
        obs: &[f32],
        logits: &mut [f32],
        values: &mut [f32],
    ) -> Result<()> {
        let Self { inner, valuation, shape, seen, predictions } = self;
        let len = inner.shape().num_players;
        let rows = || obs.chunks_exact(shape.obs_len).map(|row| row.split_at(valuation.seen.len()));
        seen.clear();
        rows().for_each(|(row, _)| seen.extend_from_slice(row));
        predictions.resize(obs.len() / shape.obs_len * len, 0.0);
        forward(inner.as_mut(), seen, logits, predictions)?;
        let outputs = predictions.chunks_exact(len).zip(values.chunks_exact_mut(shape.num_players));
        for ((_, others), (predictions, values)) in rows().zip(outputs) {
            (valuation.values)(others, predictions, values);
        }
        Ok(())
    }
}

impl Network for ValuedNetwork {
    fn shape(&self) -> IoShape {
        self.shape
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        self.evaluate(|net, obs, logits, values| net.forward(obs, logits, values), obs, logits, values)
    }

    fn values(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        self.evaluate(|net, obs, logits, values| net.values(obs, logits, values), obs, logits, values)
    }

    fn batch_multiple(&self) -> Option<usize> {
        self.inner.batch_multiple()
    }

    fn gains_by_threads(&self) -> bool {
        self.inner.gains_by_threads()
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(Self::new(self.inner.fork(), self.valuation, self.shape))
    }
}
