//! The pooling layers of a network: the convolution before each writes f32, a block of threads a board computes the bias or scale, and a
//! last launch turns both into activations. `kernels/net_pooling.cu` has the kernels, [`crate::net::pooling`] is the reference.

use super::blocks::{LayerBlock, PoolArrays};
use super::board_range::BoardRange;
use super::device_forward::{BLOCK, DeviceForward};
use super::layers::ForwardLayers;
use super::pack::LayerOffsets;
use super::pooling_block::PoolingBlock;
use crate::device::{Arg, Device};
use crate::error::Result;
use crate::model::GlobalPooling;

impl ForwardLayers {
    /// The pooling layer after layer `layer`, 0 or 1, of block `block`, if there is one.
    pub(super) fn pooling(&self, block: usize, layer: usize) -> Option<GlobalPooling> {
        self.model.pooling(self.form.blocks[block].pooling[layer]?)
    }

    /// All pooling layers.
    pub(super) fn all_pooling(&self) -> impl Iterator<Item = GlobalPooling> {
        let layers = (0..self.form.blocks.len()).flat_map(|block| [(block, 0), (block, 1)]);
        layers.filter_map(|(block, layer)| self.pooling(block, layer))
    }
}

impl<D: Device> DeviceForward<D> {
    /// The pooling layer as the kernels see it.
    fn pooling_block(&self, pooling: GlobalPooling) -> PoolingBlock {
        PoolingBlock::new(pooling, self.layers.squares, self.layers.tower.spec.inputs)
    }

    /// Runs the tower's layer at `offsets` with f32 output, then the pooling layer with these parameters that reads it, board by board.
    /// Returns the arrays for the kernel that completes the layer.
    fn pool(
        &self,
        device: &D,
        layer: &PoolingBlock,
        [offsets, params]: [LayerOffsets; 2],
        source: (&D::Buffer, BoardRange<'_, D::Buffer>),
    ) -> Result<PoolArrays> {
        let (work, layers) = (&self.work, &self.layers);
        let block =
            LayerBlock { output: device.address(&work.pooling_input), ..self.block(device, offsets, source) };
        self.layer(device, "conv_f32", &layers.tower, &block)?;
        let values = device.address(&work.pooling);
        let arrays = PoolArrays {
            x: block.output,
            params: self.parameter(device, params.weights),
            values,
            outputs: values + 4 * u64::from(layer.inputs + layer.hidden),
            scale: block.scale,
            offset: block.offset,
            stream: device.address(&work.stream),
            output: 0,
            boards: block.boards,
        };
        let args = [Arg::of(layer), Arg::of(&arrays)];
        self.launch_threads(device, "pool", (arrays.boards, BLOCK as usize), &args)?;
        Ok(arrays)
    }

    /// The first layer of a block, with a pooling layer: `a` -> `b`.
    pub(super) fn pool_relu(
        &self,
        device: &D,
        pooling: GlobalPooling,
        offsets: [LayerOffsets; 2],
        part: BoardRange<'_, D::Buffer>,
    ) -> Result<()> {
        self.pooled_layer(device, "pool_relu", pooling, offsets, [&self.work.a, &self.work.b], part)
    }

    /// The last layer of a block, with a pooling layer: `b` -> the residual stream and `a`.
    pub(super) fn pool_residual_add(
        &self,
        device: &D,
        pooling: GlobalPooling,
        offsets: [LayerOffsets; 2],
        part: BoardRange<'_, D::Buffer>,
    ) -> Result<()> {
        self.pooled_layer(device, "pool_residual_add", pooling, offsets, [&self.work.b, &self.work.a], part)
    }

    /// A layer and its pooling layer, which `kernel` ends.
    fn pooled_layer(
        &self,
        device: &D,
        kernel: &'static str,
        pooling: GlobalPooling,
        offsets: [LayerOffsets; 2],
        [from, to]: [&D::Buffer; 2],
        part: BoardRange<'_, D::Buffer>,
    ) -> Result<()> {
        let layer = self.pooling_block(pooling);
        let arrays = self.pool(device, &layer, offsets, (from, part))?;
        let arrays = PoolArrays { output: device.address(to), ..arrays };
        let args = [Arg::of(&layer), Arg::of(&arrays)];
        self.launch_threads(device, kernel, (arrays.boards, self.tower_words()), &args)
    }

    /// Words of a board's activations in the tower.
    fn tower_words(&self) -> usize {
        self.layers.squares * self.layers.tower.spec.inputs / self.element_type().per_word()
    }
}
