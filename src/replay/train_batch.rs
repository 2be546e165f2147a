//! The arrays that one training update reads.

/// Samples for one update, `train.batch x train.accumulate` of them. Arrays are row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainBatch {
    /// Observations. `[B, F]`
    pub obs: Vec<f32>,
    /// Target probabilities, 0 where illegal. `[B, A]`
    pub policy: Vec<f32>,
    /// 1 where legal, 0 elsewhere. `[B, A]`
    pub legal: Vec<u8>,
    /// Target values in [-1, 1], seats relative to the observer. `[B, P]`
    pub values: Vec<f32>,
    /// Weights of the samples, not negative. `[B]`
    pub weight: Vec<f32>,
}
