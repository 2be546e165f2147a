//! The role of a parameter: how its first values are drawn, and whether gradients and weight decay apply to it.

/// The spread of first weights: normal with variance gain / fan-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// 2, which keeps the variance through a ReLU (He et al. 2015, eq. 10).
    Hidden,
    /// 0.02 for the output layers, so that training starts from near-uniform policies and near-zero values.
    Output,
    /// 0 for the last layer of a residual block, which begins as the identity (Zhang et al. 2019, Fixup). Otherwise each block adds to the variance,
    /// and products around triangles square their input: six such blocks overflow before the first update.
    Zero,
}

/// The role of a parameter in its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A matrix or kernel: drawn at random, moved by gradients, subject to weight decay.
    Matrix(Gain),
    /// The scale of a normalisation: 1 at first, moved, no weight decay.
    Scale,
    /// A bias or the shift of a normalisation: 0 at first, moved, no weight decay.
    Bias,
    /// The running mean of a normalisation: 0 at first, not moved by gradients.
    RunningMean,
    /// The running variance of a normalisation: 1 at first, not moved by gradients.
    RunningVariance,
}

impl Role {
    /// True for running means and variances.
    pub fn is_statistic(self) -> bool {
        matches!(self, Self::RunningMean | Self::RunningVariance)
    }

    /// True where weight decay applies.
    pub fn decays(self) -> bool {
        matches!(self, Self::Matrix(_))
    }
}
