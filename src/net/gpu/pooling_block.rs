//! The parameter block of the kernels of pooling layers, of networks and of training.

use crate::device_struct::device_struct;
use crate::model::{ChannelEffect, GlobalPooling, PoolStatistics, board_factor};
use bytemuck::NoUninit;

device_struct! {
    /// A pooling layer's sizes, and the rows that it reads.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct PoolingBlock {
        /// The first channels, whose statistics are taken.
        pub pooled: u32,
        /// Which statistics.
        pub statistics: PoolStatistics,
        /// Numbers that are pooled.
        pub inputs: u32,
        /// Units of the hidden layer; 0 where there is none.
        pub hidden: u32,
        /// Numbers that the output's layer reads.
        pub output_inputs: u32,
        /// Numbers of the output.
        pub outputs: u32,
        /// Inputs, hidden units and outputs.
        pub values_per_board: u32,
        /// What the output does to the channels.
        pub effect: ChannelEffect,
        /// The first of the channels that the output is for.
        pub first: u32,
        /// Squares of the board.
        pub squares: u32,
        /// Numbers of a square's row.
        pub width: u32,
        /// 1 / squares.
        pub per_square: f32,
        /// The factor of a repeated mean.
        pub board_factor: f32,
    }
}

impl PoolingBlock {
    /// Of `pooling` on boards of `squares` rows of `width` numbers.
    pub fn new(pooling: GlobalPooling, squares: usize, width: usize) -> Self {
        Self {
            pooled: pooling.pooled as u32,
            statistics: pooling.statistics,
            inputs: pooling.inputs() as u32,
            hidden: pooling.hidden as u32,
            output_inputs: pooling.output_inputs() as u32,
            outputs: pooling.outputs() as u32,
            values_per_board: pooling.values_per_board() as u32,
            effect: pooling.effect,
            first: pooling.first as u32,
            squares: squares as u32,
            width: width as u32,
            per_square: 1.0 / squares as f32,
            board_factor: board_factor(squares) as f32,
        }
    }
}
