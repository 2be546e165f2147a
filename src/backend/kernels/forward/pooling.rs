//! The pooling layers of a network: the convolution before each writes f32, a block of threads a board computes the bias or scale, and a
//! last launch turns both into activations. `kernels/net_pooling.cu` has the kernels, [`crate::net::pooling`] is the reference.

use super::pack::LayerPlace;
use super::{BLOCK, BoardRange, DeviceForward, ForwardLayers};
use crate::backend::kernels::device::{Arg, Device};
use crate::backend::kernels::pooling::PoolingBlock;
use crate::error::Result;
use crate::model::Pooling;

impl ForwardLayers {
    /// The pooling layer behind layer `layer`, 0 or 1, of block `block`, if there is one.
    pub(super) fn pooling(&self, block: usize, layer: usize) -> Option<Pooling> {
        self.model.pooling(self.form.blocks[block].pooling[layer]?)
    }

    /// All pooling layers.
    pub(super) fn all_pooling(&self) -> impl Iterator<Item = Pooling> {
        let layers = (0..self.form.blocks.len()).flat_map(|block| [(block, 0), (block, 1)]);
        layers.filter_map(|(block, layer)| self.pooling(block, layer))
    }
}

impl<D: Device> DeviceForward<D> {
    /// The pooling layer as the kernels see it.
    fn pooling_block(&self, pooling: Pooling) -> PoolingBlock {
        PoolingBlock::new(pooling, self.layers.squares, self.layers.tower.spec.inputs)
    }

    /// Runs the tower's layer at `place` with f32 output, then the pooling layer that reads it, board by board. Returns the arguments of the kernels that complete the layer.
    fn pool<'a>(
        &'a self,
        device: &D,
        block: &'a PoolingBlock,
        [place, params]: [LayerPlace; 2],
        (input, part): (&'a D::Buffer, BoardRange<'a, D::Buffer>),
    ) -> Result<[Arg<'a, D::Buffer>; 3]> {
        let (work, layers) = (&self.work, &self.layers);
        let numbers = Arg::Buffer(&work.numbers, 0);
        let rest = [self.parameter(place.bias), numbers];
        self.layer(device, "conv_f32", (&layers.tower, place), (input, part), &rest)?;
        let outputs = Arg::Buffer(&work.pooling, 4 * (block.inputs + block.hidden) as usize);
        let values = Arg::Buffer(&work.pooling, 0);
        let args = [Arg::of(block), numbers, self.parameter(params.weights), values, outputs];
        self.launch_threads(device, "pool", (part, BLOCK as usize), &args)?;
        Ok([Arg::of(block), numbers, outputs])
    }

    /// The first layer of a block, with a pooling layer: `a` -> `b`.
    pub(super) fn pool_relu<'a>(
        &'a self,
        device: &D,
        pooling: Pooling,
        places: [LayerPlace; 2],
        part: BoardRange<'a, D::Buffer>,
    ) -> Result<()> {
        let (work, block) = (&self.work, self.pooling_block(pooling));
        let [block, numbers, outputs] = self.pool(device, &block, places, (&work.a, part))?;
        let args = [block, numbers, outputs, Arg::Buffer(&work.b, 0)];
        self.launch_threads(device, "pool_relu", (part, self.tower_words()), &args)
    }

    /// The last layer of a block, with a pooling layer: `b` -> the residual stream and `a`.
    pub(super) fn pool_residual_add<'a>(
        &'a self,
        device: &D,
        pooling: Pooling,
        places: [LayerPlace; 2],
        part: BoardRange<'a, D::Buffer>,
    ) -> Result<()> {
        let (work, [place, _]) = (&self.work, places);
        let block = self.pooling_block(pooling);
        let [block, numbers, outputs] = self.pool(device, &block, places, (&work.b, part))?;
        let args = [
            block,
            numbers,
            outputs,
            self.parameter(place.scale),
            self.parameter(place.offset),
            Arg::Buffer(&work.stream, 0),
            Arg::Buffer(&work.a, 0),
        ];
        self.launch_threads(device, "pool_residual_add", (part, self.tower_words()), &args)
    }

    /// Words of a board's activations in the tower.
    fn tower_words(&self) -> usize {
        self.layers.squares * self.layers.tower.spec.inputs / self.numbers().per_word()
    }
}
