//! Where a training step's kernels find the logits.

use crate::device_struct::device_struct;
use crate::game::PointOrder;
use crate::model::PointLogits;
use bytemuck::NoUninit;

device_struct! {
    /// Where the logits of a board are in a row of the policy layer's outputs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
    pub struct LogitLayout {
        /// Numbers at one point, padding included.
        pub stride: u32,
        /// Logits at one point, the first of its numbers. Those after them are logits by their means over the points.
        pub planes: u32,
        /// Points.
        pub points: u32,
        /// Rows of the board where actions are numbered by its columns, each from the last row; 0 where they are numbered by its rows.
        pub column: u32,
    }
}

impl LogitLayout {
    /// As `points` says, in rows with `stride` numbers at a point.
    pub fn at_points(points: PointLogits, stride: u32) -> Self {
        let column = if points.order == PointOrder::Columns { points.board[0] as u32 } else { 0 };
        Self { stride, planes: points.planes as u32, points: points.points() as u32, column }
    }

    /// One number for each of `num_actions`: as many points.
    pub fn dense(num_actions: usize) -> Self {
        Self { stride: 1, planes: 1, points: num_actions as u32, column: 0 }
    }
}
