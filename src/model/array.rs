//! Named arrays, the form in which weights are passed on.

use std::collections::BTreeMap;

/// One named array of 32-bit floats, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Array {
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// The elements, as many as the product of `shape`.
    pub data: Vec<f32>,
}

/// The tensors of a network by name; names and shapes are those of [`Model::params`](super::Model::params).
pub type Weights = BTreeMap<String, Array>;
