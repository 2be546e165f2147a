//! The pooling layers of a network: the convolution before each writes f32, a block of threads a board computes the bias or scale, and a
//! last launch turns both into activations. `kernels/net_pooling.cu` has the kernels, [`crate::net::pooling`] is the reference.

use super::pack::LayerPlace;
use super::{BLOCK, DeviceForward, Layers, Part};
use crate::backend::kernels::device::{Arg, Device};
use crate::error::Result;
use crate::model::{Effect, PoolStatistics, Pooling, board_factor};

/// The numbers that `pool` writes for one board: statistics, hidden units, outputs.
pub(super) fn scratch_len(pooling: Pooling) -> usize {
    pooling.inputs() + pooling.hidden + pooling.outputs()
}

impl Layers {
    /// The pooling layer behind layer `half` of block `block`, if there is one.
    pub(super) fn pooling(&self, block: usize, half: usize) -> Option<Pooling> {
        self.model.pooling(self.form.blocks[block].pooling[half]?)
    }

    /// All pooling layers.
    pub(super) fn all_pooling(&self) -> impl Iterator<Item = Pooling> {
        let layers = (0..self.form.blocks.len()).flat_map(|block| [(block, 0), (block, 1)]);
        layers.filter_map(|(block, half)| self.pooling(block, half))
    }
}

impl<D: Device> DeviceForward<D> {
    /// The number of the layer `place` of the tower, as f32, and the pooling layer behind it; gives the arguments of the kernels that
    /// complete it.
    fn pool<'a>(
        &'a self,
        device: &D,
        pooling: Pooling,
        [place, params]: [LayerPlace; 2],
        (input, part): (&'a D::Buffer, Part<'a, D::Buffer>),
    ) -> Result<[Arg<'a, D::Buffer>; 6]> {
        let (work, layers) = (&self.work, &self.layers);
        let numbers = Arg::Buffer(&work.numbers, 0);
        let rest = [self.parameter(place.bias), numbers];
        self.layer(device, "numbers", (&layers.tower, place), (input, part), &rest)?;
        let number = |number: usize| Arg::U32(number as u32);
        let statistics = match pooling.statistics {
            PoolStatistics::Mean => 0,
            PoolStatistics::ReluMeanMax => 1,
        };
        let effect = number(match pooling.effect {
            Effect::Bias => 0,
            Effect::Scale => 1,
        });
        let [scratch_len, outputs] = [scratch_len(pooling), pooling.outputs()].map(number);
        let pools = Arg::Buffer(&work.pooling, 4 * (pooling.inputs() + pooling.hidden));
        let args = [
            numbers,
            self.parameter(params.weights),
            number(pooling.pooled),
            number(statistics),
            number(pooling.hidden),
            outputs,
            effect,
            Arg::F32(board_factor(layers.squares) as f32),
            scratch_len,
            Arg::Buffer(&work.pooling, 0),
            pools,
        ];
        self.launch_threads(device, "pool", (part, BLOCK as usize), &args)?;
        Ok([numbers, pools, scratch_len, number(pooling.first), outputs, effect])
    }

    /// The first layer of a block, with a pooling layer: `a` -> `b`.
    pub(super) fn pool_inner<'a>(
        &'a self,
        device: &D,
        pooling: Pooling,
        places: [LayerPlace; 2],
        part: Part<'a, D::Buffer>,
    ) -> Result<()> {
        let work = &self.work;
        let from = self.pool(device, pooling, places, (&work.a, part))?;
        let args = [&from[..], &[Arg::Buffer(&work.b, 0)]].concat();
        self.launch_threads(device, "pool_inner", (part, self.tower_words()), &args)
    }

    /// The last layer of a block, with a pooling layer: `b` -> the residual stream and `a`.
    pub(super) fn pool_leave<'a>(
        &'a self,
        device: &D,
        pooling: Pooling,
        places: [LayerPlace; 2],
        part: Part<'a, D::Buffer>,
    ) -> Result<()> {
        let (work, [place, _]) = (&self.work, places);
        let from = self.pool(device, pooling, places, (&work.b, part))?;
        let into = [
            self.parameter(place.scale),
            self.parameter(place.offset),
            Arg::Buffer(&work.stream, 0),
            Arg::Buffer(&work.a, 0),
        ];
        let args = [&from[..], &into].concat();
        self.launch_threads(device, "pool_leave", (part, self.tower_words()), &args)
    }

    /// Words of a board's activations in the tower.
    fn tower_words(&self) -> usize {
        self.layers.squares * self.layers.tower.spec.inputs / self.numbers().per_word()
    }
}
