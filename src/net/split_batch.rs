//! One batch divided over threads: for few searches with many leaves, where threads cannot have searches of their own.

use super::{IoShape, Network};
use crate::error::Result;
use rayon::prelude::*;

/// A network that evaluates a batch with one evaluator per thread of the rayon pool it is called in. The outputs are those of one
/// evaluator, to the bit, since networks are batch-invariant.
pub struct SplitBatch {
    parts: Vec<Box<dyn Network>>,
}

impl SplitBatch {
    /// Minimum number of observations of a part: below, waking another thread costs more than it saves.
    const MIN_ROWS: usize = 4;

    /// `network` on `threads` threads.
    pub fn new(network: &dyn Network, threads: usize) -> Self {
        Self { parts: (0..threads.max(1)).map(|_| network.fork()).collect() }
    }

    /// The observations of one part of a batch of `m`: equal parts, of whole tiles where they are large enough.
    fn share(&self, m: usize) -> usize {
        let share = m.div_ceil(self.parts.len()).max(Self::MIN_ROWS);
        match self.parts[0].batch_multiple() {
            Some(tile) if share > tile => share.next_multiple_of(tile),
            _ => share,
        }
    }
}

impl Network for SplitBatch {
    fn shape(&self) -> IoShape {
        self.parts[0].shape()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.shape();
        let m = obs.len() / obs_len;
        let share = self.share(m);
        if share >= m {
            return self.parts[0].forward(obs, logits, values);
        }
        let outputs =
            logits.par_chunks_mut(share * num_actions).zip(values.par_chunks_mut(share * num_players));
        let batches = obs.par_chunks(share * obs_len).zip(outputs);
        self.parts
            .par_iter_mut()
            .zip(batches)
            .with_max_len(1)
            .try_for_each(|(part, (obs, (logits, values)))| part.forward(obs, logits, values))
    }

    fn values(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        let IoShape { obs_len, num_actions, num_players } = self.shape();
        let share = self.share(obs.len() / obs_len);
        let outputs =
            logits.par_chunks_mut(share * num_actions).zip(values.par_chunks_mut(share * num_players));
        let batches = obs.par_chunks(share * obs_len).zip(outputs);
        let parts = self.parts.par_iter_mut().zip(batches).with_max_len(1);
        parts.try_for_each(|(part, (obs, (logits, values)))| part.values(obs, logits, values))
    }

    fn outcome(&mut self, obs: &[f32]) -> Result<Option<[f32; 3]>> {
        self.parts[0].outcome(obs)
    }

    fn needs_observations(&self) -> bool {
        self.parts[0].needs_observations()
    }

    fn batch_multiple(&self) -> Option<usize> {
        self.parts[0].batch_multiple()
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(Self::new(self.parts[0].as_ref(), self.parts.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::HashNet;

    #[test]
    fn a_divided_batch_has_the_outputs_of_a_whole_one() {
        let shape = IoShape { obs_len: 5, num_actions: 7, num_players: 2 };
        let mut whole = HashNet(shape);
        let mut divided = SplitBatch::new(&whole, 3);
        for m in [1, 2, 8, 9, 13, 64] {
            let obs: Vec<f32> = (0..m * 5).map(|i| i as f32).collect();
            let outputs = |network: &mut dyn Network| {
                let (mut logits, mut values) = (vec![0.0; m * 7], vec![0.0; m * 2]);
                network.forward(&obs, &mut logits, &mut values).expect("finite");
                (logits, values)
            };
            assert_eq!(outputs(&mut whole), outputs(&mut divided), "{m} observations");
        }
    }
}
