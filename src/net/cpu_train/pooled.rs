//! The pooling layers of a pre-activation layer: a bias of channels before its ReLU, a scale of channels after its linear map.

use super::norm::{self, Columns};
use crate::isa::Isa;
use crate::model::{GlobalPooling, Model};
use crate::net::pooling::{BoardRows, PooledLayer};

/// A pooling layer, its parameters and their gradient.
#[derive(Clone, Debug)]
pub(super) struct TrainPooling {
    /// Its forward and backward passes.
    pub layer: PooledLayer,
    /// Its parameters among [`Model::params`].
    slots: Vec<usize>,
    /// The gradient of all of them, one after the other. `[num_params]`
    pub gradient: Vec<f32>,
}

impl TrainPooling {
    /// Layer `index` of `model`, which is `pooling`.
    pub fn new(model: &Model, index: usize, pooling: GlobalPooling) -> Self {
        let layer = PooledLayer::new(pooling);
        let gradient = vec![0.0; layer.num_params()];
        Self { layer, slots: model.layers[index].params.clone().collect(), gradient }
    }

    /// Copies the weights from the flat `parameters [num_parameters]`.
    pub fn pack(&mut self, model: &Model, parameters: &[f32]) {
        let own = self.slots.iter().flat_map(|&slot| &parameters[model.params[slot].range.clone()]);
        self.layer.set_params(own.copied().collect());
    }

    /// Scratch floats per board that the methods need.
    pub fn scratch_len(&self) -> usize {
        2 * self.layer.scratch_len()
    }

    /// `active = relu(bias(normalised x))`, the bias being this layer's. `x` and `active` are `[squares, boards, width]`.
    pub fn normalize_relu(
        &self,
        isa: Isa,
        (x, columns): (&[f32], &Columns<'_>),
        boards: usize,
        active: &mut [f32],
        scratch: &mut [f32],
    ) {
        norm::normalize(isa, x, columns, active);
        self.layer.forward(isa, BoardRows { boards, width: columns.mean.len() }, active, scratch);
        norm::relu(isa, active);
    }

    /// `y = scaled x + stream`, the scale being this layer's. `x`, `stream` and `y` are `[squares, boards, width]`.
    pub fn add_scaled(
        &self,
        isa: Isa,
        rows: BoardRows,
        [x, stream]: [&[f32]; 2],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        y.copy_from_slice(x);
        self.layer.forward(isa, rows, y, scratch);
        norm::add(isa, stream, y);
    }

    /// Adds the gradient to the parts of the flat one, one for each of [`Model::params`].
    pub fn add_gradient(&self, parts: &mut [&mut [f32]]) {
        let mut rest = &self.gradient[..];
        for &slot in &self.slots {
            let (own, after) = rest.split_at(parts[slot].len());
            parts[slot].iter_mut().zip(own).for_each(|(sum, g)| *sum += g);
            rest = after;
        }
    }
}
