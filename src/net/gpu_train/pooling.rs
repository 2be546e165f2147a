//! The pooling layers of a block in training, forward and backward. The kernels are `kernels/train/pooling.cuh`;
//! [`crate::net::pooling`] is the reference.

use super::blocks::PoolArrays;
use super::constants::BLOCK;
use super::layers::Pooled;
use super::passes::{TrainPass, blocks, elementwise};
use crate::device::{Arg, Device, LaunchShape};
use crate::error::Result;
use crate::net::gpu::pooling_block::PoolingBlock;

impl<D: Device> TrainPass<'_, D> {
    /// A kernel of the pooling layer `pooled`, which reads rows of `width`.
    fn launch_pooling(
        &self,
        kernel: &'static str,
        shape: LaunchShape,
        (pooled, width): (&Pooled, u32),
        arrays: &PoolArrays,
    ) -> Result<()> {
        let block = PoolingBlock::new(pooled.pooling, self.layers.area, width as usize);
        self.device.launch(kernel, shape, &[Arg::of(&block), Arg::of(arrays)])
    }

    /// One block a board.
    fn per_board(&self) -> LaunchShape {
        blocks(self.arrays.boards, BLOCK)
    }

    /// An elementwise kernel over rows of `width`.
    fn over_rows(&self, width: u32) -> LaunchShape {
        elementwise(self.arrays.boards * self.layers.area * width as usize)
    }

    /// The arrays of pooling layer `pooled`, the first (0) or second (1) of unit `number`, on `x`.
    fn pool_arrays(&self, number: usize, half: usize, pooled: &Pooled, x: &D::Buffer) -> PoolArrays {
        let start = 4 * pooled.start as u64;
        PoolArrays {
            x: self.address(x),
            d: 0,
            residual: 0,
            out: 0,
            stats: 0,
            params: self.address(self.state) + start,
            scratch: self.address(&self.arrays.pooling[number].scratch[half]),
            gradient: self.address(&self.shared.gradient) + start,
            boards: self.arrays.boards as u32,
            padding: 0,
        }
    }

    /// The bias before the ReLU of unit `number`, if it has one.
    pub(super) fn bias_of(&self, number: usize) -> Option<&Pooled> {
        self.layers.units.get(number)?.pooled[0].as_ref()
    }

    /// The activations of unit `number` after its normalisation, whose statistics are ready, and its `bias`.
    pub(super) fn normalise_with_bias(&self, number: usize, bias: &Pooled) -> Result<()> {
        let arrays = self.arrays;
        let of = (bias, self.layers.units[number].norm.width as u32);
        let block = PoolArrays {
            stats: self.address(&arrays.norm_statistics[number]),
            out: self.address(&arrays.active[number]),
            ..self.pool_arrays(number, 0, bias, &arrays.activations[number])
        };
        self.launch_pooling("pool_forward", self.per_board(), of, &block)?;
        self.launch_pooling("norm_bias_relu", self.over_rows(of.1), of, &block)
    }

    /// Backward pass of the bias of unit `number`: `d`, the gradient of its activations, becomes that of its normalised input.
    pub(super) fn bias_backward(&self, number: usize, bias: &Pooled, d: &D::Buffer) -> Result<()> {
        let of = (bias, self.layers.units[number].norm.width as u32);
        let arrays = self.pool_arrays(number, 0, bias, &self.arrays.active[number]);
        let block = PoolArrays { out: self.address(d), ..arrays };
        self.launch_pooling("bias_backward", self.per_board(), of, &block)?;
        self.pool_weight_gradient(of, &block)
    }

    /// The layer of unit `number` on `input`, with its `scale`, added to `residual`.
    pub(super) fn linear_with_scale(
        &self,
        number: usize,
        scale: &Pooled,
        [input, residual]: [&D::Buffer; 2],
    ) -> Result<()> {
        let of = (scale, self.layers.units[number].linear.forward.columns);
        let unscaled = &self.arrays.pooling[number].unscaled;
        self.linear_forward(number + 1, input, None, unscaled)?;
        let block = PoolArrays {
            residual: self.address(residual),
            out: self.address(&self.arrays.activations[number + 1]),
            ..self.pool_arrays(number, 1, scale, unscaled)
        };
        self.launch_pooling("pool_forward", self.per_board(), of, &block)?;
        self.launch_pooling("scale_add", self.over_rows(of.1), of, &block)
    }

    /// The gradient of the output of unit `number`'s layer out of `dy`, that of its scaled output.
    pub(super) fn scale_backward<'a>(&'a self, number: usize, dy: &'a D::Buffer) -> Result<&'a D::Buffer> {
        let unit = &self.layers.units[number];
        let Some(scale) = &unit.pooled[1] else { return Ok(dy) };
        let of = (scale, unit.linear.forward.columns);
        let block = PoolArrays {
            d: self.address(dy),
            out: self.address(&self.arrays.dy),
            ..self.pool_arrays(number, 1, scale, &self.arrays.pooling[number].unscaled)
        };
        self.launch_pooling("scale_backward", self.per_board(), of, &block)?;
        self.pool_weight_gradient(of, &block)?;
        Ok(&self.arrays.dy)
    }

    fn pool_weight_gradient(&self, of: (&Pooled, u32), block: &PoolArrays) -> Result<()> {
        let params: usize = of.0.pooling.param_sizes().iter().sum();
        self.launch_pooling("pool_weight_gradient", blocks(params.div_ceil(BLOCK as usize), BLOCK), of, block)
    }
}
