//! Layers that compute a bias or a scale of each channel from a whole board, as one form for fused executors.
//!
//! statistics of the first channels over the squares -> a hidden layer with a ReLU, or none -> one output for each of the last channels
//! -> added to that channel at every square, or multiplied with it. The layer's parameters are, in this order: weight and bias of the
//! hidden layer, where there is one; the output's weight; the output's bias, where the effect is a scale.

use crate::device_struct::device_enum;
use bytemuck::NoUninit;

/// The sizes and forms of a pooling layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalPooling {
    /// The first channels, whose statistics are taken.
    pub pooled: usize,
    /// Which statistics.
    pub statistics: PoolStatistics,
    /// Units of the hidden layer; 0 where there is none.
    pub hidden: usize,
    /// The effect of the output on the channels.
    pub effect: ChannelEffect,
    /// The first of the channels that the output is for, up to the last.
    pub first: usize,
    /// All channels.
    pub channels: usize,
}

device_enum! {
    /// The statistics of a channel over the squares of a board.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
    pub enum PoolStatistics: u32 {
        /// The mean of x.
        Mean,
        /// Of relu(x) the mean, the mean times `board_factor`, and the maximum; first the means of all channels.
        ReluMeanMax,
    }
}

device_enum! {
    /// The effect of a pooling layer's output on the channels.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
    pub enum ChannelEffect: u32 {
        /// It is added.
        Bias,
        /// Its sigmoid is a factor.
        Scale,
    }
}

/// The factor by which the mean is repeated, so that a layer can weigh a sum over the board against a mean (Wu 2019, appendix A.1):
/// (b - 14) / 10 on a board of b x b squares.
pub fn board_factor(squares: usize) -> f64 {
    ((squares as f64).sqrt() - 14.0) / 10.0
}

impl GlobalPooling {
    /// The number of statistics: inputs of the first linear layer.
    pub fn inputs(self) -> usize {
        match self.statistics {
            PoolStatistics::Mean => self.pooled,
            PoolStatistics::ReluMeanMax => 3 * self.pooled,
        }
    }

    /// The number of outputs, one for each of the last channels.
    pub fn outputs(self) -> usize {
        self.channels - self.first
    }

    /// The number of inputs of the output's linear layer.
    pub fn output_inputs(self) -> usize {
        if self.hidden > 0 { self.hidden } else { self.inputs() }
    }

    /// Elements of each parameter of the layer, 0 for absent ones: the hidden layer's weight and bias, the output's weight and bias.
    pub fn param_sizes(self) -> [usize; 4] {
        let bias = if self.effect == ChannelEffect::Scale { self.outputs() } else { 0 };
        [self.hidden * self.inputs(), self.hidden, self.outputs() * self.output_inputs(), bias]
    }

    /// Values that are computed for one board: statistics, hidden units, outputs.
    pub fn values_per_board(self) -> usize {
        self.inputs() + self.hidden + self.outputs()
    }

    /// Multiply-adds for one board.
    pub fn multiply_adds(self) -> usize {
        let [hidden, _, output, _] = self.param_sizes();
        hidden + output
    }
}
