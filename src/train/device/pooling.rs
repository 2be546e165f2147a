//! The pooling layers of a block in training, forward and backward. The kernels are `kernels/train/pooling.cuh`;
//! [`crate::net::pooling`] is the reference.

use super::constants::BLOCK;
use super::layers::Pooled;
use super::passes::{TrainPass, blocks, elementwise};
use crate::backend::kernels::device::{Arg, Device, LaunchShape};
use crate::backend::kernels::pooling::PoolingBlock;
use crate::error::Result;

impl<D: Device> TrainPass<'_, D> {
    /// A kernel of the pooling layer `pooled`, which reads rows of `width`; `args` are its arguments after the layer's block.
    fn launch_pooling(
        &self,
        kernel: &'static str,
        shape: LaunchShape,
        (pooled, width): (&Pooled, u32),
        args: &[Arg<'_, D::Buffer>],
    ) -> Result<()> {
        let block = PoolingBlock::new(pooled.pooling, self.layers.area, width as usize);
        self.device.launch(kernel, shape, &[&[Arg::of(&block)], args].concat())
    }

    /// One block a board.
    fn per_board(&self) -> LaunchShape {
        blocks(self.arrays.boards, BLOCK)
    }

    /// An elementwise kernel over rows of `width`.
    fn over_rows(&self, width: u32) -> LaunchShape {
        elementwise(self.arrays.boards * self.layers.area * width as usize)
    }

    fn boards(&self) -> Arg<'_, D::Buffer> {
        Arg::U32(self.arrays.boards as u32)
    }

    fn scratch(&self, number: usize, half: usize) -> Arg<'_, D::Buffer> {
        Arg::Buffer(&self.arrays.pooling[number].scratch[half], 0)
    }

    fn parameters(&self, pooled: &Pooled) -> Arg<'_, D::Buffer> {
        Arg::Buffer(self.state, 4 * pooled.start)
    }

    /// The bias before the ReLU of unit `number`, if it has one.
    pub(super) fn bias_of(&self, number: usize) -> Option<&Pooled> {
        self.layers.units.get(number)?.pooled[0].as_ref()
    }

    /// The activations of unit `number` behind its normalisation, whose statistics are known, and its `bias`.
    pub(super) fn normalise_with_bias(&self, number: usize, bias: &Pooled) -> Result<()> {
        let arrays = self.arrays;
        let width = self.layers.units[number].norm.width as u32;
        let [x, stats] =
            [&arrays.activations[number], &arrays.norm_statistics[number]].map(|x| Arg::Buffer(x, 0));
        let scratch = self.scratch(number, 0);
        let args = [x, stats, Arg::U32(1), self.parameters(bias), scratch];
        self.launch_pooling("pool_forward", self.per_board(), (bias, width), &args)?;
        let args = [x, self.boards(), stats, scratch, Arg::Buffer(&arrays.active[number], 0)];
        self.launch_pooling("norm_bias_relu", self.over_rows(width), (bias, width), &args)
    }

    /// Backward pass of the bias of unit `number`: `d`, the gradient of its activations, becomes that of its normalised input.
    pub(super) fn bias_backward(&self, number: usize, bias: &Pooled, d: &D::Buffer) -> Result<()> {
        let width = self.layers.units[number].norm.width as u32;
        let active = Arg::Buffer(&self.arrays.active[number], 0);
        let args = [active, self.parameters(bias), self.scratch(number, 0), Arg::Buffer(d, 0)];
        self.launch_pooling("bias_backward", self.per_board(), (bias, width), &args)?;
        self.pool_weight_gradient(number, 0, (bias, width))
    }

    /// The layer of unit `number` on `input`, with its `scale`, added to `residual`.
    pub(super) fn linear_with_scale(
        &self,
        number: usize,
        scale: &Pooled,
        [input, residual]: [&D::Buffer; 2],
    ) -> Result<()> {
        let (arrays, width) = (self.arrays, self.layers.units[number].linear.forward.columns);
        let unscaled = &arrays.pooling[number].unscaled;
        self.linear_forward(number + 1, input, None, unscaled)?;
        let (x, scratch) = (Arg::Buffer(unscaled, 0), self.scratch(number, 1));
        let args = [x, x, Arg::U32(0), self.parameters(scale), scratch];
        self.launch_pooling("pool_forward", self.per_board(), (scale, width), &args)?;
        let out = Arg::Buffer(&arrays.activations[number + 1], 0);
        let args = [x, self.boards(), scratch, Arg::Buffer(residual, 0), out];
        self.launch_pooling("scale_add", self.over_rows(width), (scale, width), &args)
    }

    /// The gradient of the output of unit `number`'s layer out of `dy`, that of its scaled output.
    pub(super) fn scale_backward<'a>(&'a self, number: usize, dy: &'a D::Buffer) -> Result<&'a D::Buffer> {
        let unit = &self.layers.units[number];
        let Some(scale) = &unit.pooled[1] else { return Ok(dy) };
        let (arrays, width) = (self.arrays, unit.linear.forward.columns);
        let [x, d, dx] =
            [&arrays.pooling[number].unscaled, dy, &arrays.dy].map(|array| Arg::Buffer(array, 0));
        let args = [x, d, self.parameters(scale), self.scratch(number, 1), dx];
        self.launch_pooling("scale_backward", self.per_board(), (scale, width), &args)?;
        self.pool_weight_gradient(number, 1, (scale, width))?;
        Ok(&arrays.dy)
    }

    fn pool_weight_gradient(&self, number: usize, half: usize, of: (&Pooled, u32)) -> Result<()> {
        let (pooled, _) = of;
        let gradient = Arg::Buffer(&self.shared.gradient, 4 * pooled.start);
        let params: usize = pooled.pooling.param_sizes().iter().sum();
        let args = [self.boards(), self.scratch(number, half), gradient];
        self.launch_pooling("pool_weight_gradient", blocks(params.div_ceil(BLOCK as usize), BLOCK), of, &args)
    }
}
