//! A network before it is on a device: its packed weights, and the memory that it needs.

use super::element_type::{Arithmetic, ElementType};
use super::layer::ForwardLayer;
use super::layers::ForwardLayers;
use super::network_need::NetworkNeed;
use super::pack::{self, PackedParameters};
use super::program::program;
use crate::device::{Limits, Program};
use crate::error::Result;
use crate::model::{NetSpec, Weights};

/// A network's packed weights, and the memory that it needs on a device, before any of it is allocated.
pub struct ForwardPlan {
    pub(super) spec: NetSpec,
    pub(super) arithmetic: Arithmetic,
    pub(super) layers: ForwardLayers,
    pub(super) slots: usize,
    pub(super) offsets: PackedParameters,
    pub(super) program: Program,
}

impl ForwardPlan {
    /// The network of `spec` with `weights` for `slots` slots on a device of these limits.
    ///
    /// # Errors
    /// As [`program`]; [`crate::Error::Mismatch`] and [`crate::Error::NotFinite`] for weights that do not fit `spec`.
    pub fn new(
        spec: &NetSpec,
        weights: &Weights,
        arithmetic: impl Into<Arithmetic>,
        slots: usize,
        limits: Limits,
    ) -> Result<Self> {
        let arithmetic = arithmetic.into();
        let layers = ForwardLayers::new(spec, arithmetic, slots, limits)?;
        let offsets = pack::pack(weights, &layers)?;
        let program = program(spec, arithmetic, slots, limits)?;
        Ok(Self { spec: spec.clone(), arithmetic, layers, slots, offsets, program })
    }

    /// The memory that it needs on the device.
    pub fn need(&self) -> NetworkNeed {
        NetworkNeed {
            parameters: self.offsets.bytes.len() as u64,
            board: WorkBytes::new(self.arithmetic.element_type, &self.layers).board() as u64,
            max_boards: self.layers.max_boards(),
        }
    }
}

/// Activations of the boards that go through the network together.
pub(super) struct ActivationBuffers<B> {
    /// `[boards, squares, planes]` as words
    pub(super) planes: B,
    /// `[boards, squares, C]` as words
    pub(super) a: B,
    /// `[boards, squares, C]` as words
    pub(super) b: B,
    /// `[boards, squares, C]`, 32-bit floats
    pub(super) stream: B,
    /// `[boards, squares, head channels]` as words; on edges `[boards, C]` as words, the mean over them
    pub(super) heads: B,
    /// On edges. `[boards, vertices, C]`, 32-bit floats
    pub(super) vertices: B,
    /// `[boards, hidden units]`, 32-bit floats
    pub(super) hidden: B,
    /// Not 0 once a logit or value was not finite. `[1]`
    pub(super) not_finite: B,
}

/// Bytes of one board in each of the arrays of [`ActivationBuffers`].
pub(super) struct WorkBytes {
    pub(super) planes: usize,
    pub(super) activations: usize,
    pub(super) stream: usize,
    pub(super) heads: usize,
    pub(super) vertices: usize,
    pub(super) hidden: usize,
}

impl WorkBytes {
    pub(super) fn new(element_type: ElementType, layers: &ForwardLayers) -> Self {
        let words =
            |layer: &ForwardLayer, rows: usize| 4 * rows * layer.spec.inputs / element_type.per_word();
        let squares = layers.squares;
        Self {
            planes: words(&layers.stem, squares),
            activations: words(&layers.tower, squares),
            stream: 4 * squares * layers.tower.spec.inputs,
            heads: match (&layers.head, &layers.graph) {
                (None, None) => 0,
                _ => words(&layers.dense, 1),
            },
            vertices: layers.graph.map_or(0, |graph| 4 * graph.vertices * graph.layer.spec.inputs),
            hidden: 4 * layers.model.outputs(layers.form.hidden),
        }
    }

    pub(super) fn board(&self) -> usize {
        let Self { planes, activations, stream, heads, vertices, hidden } = self;
        planes + 2 * activations + stream + heads + vertices + hidden
    }
}
