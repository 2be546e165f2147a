//! Weights as two flat arrays: what the optimiser moves, and the running statistics.

use crate::error::Result;
use crate::net::spec::{Array, NetSpec, Weights};
use std::ops::Range;

/// What a tensor is to the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A matrix or kernel: moved, and subject to weight decay.
    Matrix,
    /// A bias, or a scale or shift of a normalisation: moved, no weight decay.
    Vector,
    /// A running mean or variance: not moved by gradients.
    Statistic,
}

/// One tensor's place.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The tensor's name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// What it is to the optimiser.
    pub kind: Kind,
    /// Its place in the parameters, or in the statistics.
    pub range: Range<usize>,
}

/// The places of all tensors of a network, in the order of [`NetSpec::tensors`].
#[derive(Clone, Debug)]
pub struct Params {
    spec: NetSpec,
    /// All tensors.
    pub slots: Vec<Slot>,
    /// Numbers the optimiser moves.
    pub num_parameters: usize,
    /// Running means and variances.
    pub num_statistics: usize,
}

impl Params {
    /// The places for `spec`.
    pub fn new(spec: &NetSpec) -> Self {
        let mut params = Self { spec: spec.clone(), slots: Vec::new(), num_parameters: 0, num_statistics: 0 };
        for (name, shape) in spec.tensors() {
            let kind = match shape.len() {
                1 if name.contains("running_") => Kind::Statistic,
                1 => Kind::Vector,
                _ => Kind::Matrix,
            };
            let total = match kind {
                Kind::Statistic => &mut params.num_statistics,
                _ => &mut params.num_parameters,
            };
            let range = *total..*total + shape.iter().product::<usize>();
            *total = range.end;
            params.slots.push(Slot { name, shape, kind, range });
        }
        params
    }

    /// The number of the tensor called `name` in [`Params::slots`].
    ///
    /// # Panics
    /// Where there is none; the names come from this crate's own networks.
    pub(super) fn find(&self, name: &str) -> usize {
        self.slots.iter().position(|slot| slot.name == name).unwrap_or_else(|| panic!("no tensor {name}"))
    }

    /// Parameters and statistics out of `weights`.
    ///
    /// # Errors
    /// As [`NetSpec::check`].
    pub fn flatten(&self, weights: &Weights) -> Result<(Vec<f32>, Vec<f32>)> {
        self.spec.check(weights)?;
        let mut parameters = vec![0.0; self.num_parameters];
        let mut statistics = vec![0.0; self.num_statistics];
        for slot in &self.slots {
            let flat = if slot.kind == Kind::Statistic { &mut statistics } else { &mut parameters };
            flat[slot.range.clone()].copy_from_slice(&weights[&slot.name].data);
        }
        Ok((parameters, statistics))
    }

    /// The weights by name again.
    pub fn unflatten(&self, parameters: &[f32], statistics: &[f32]) -> Weights {
        let array = |slot: &Slot| {
            let flat = if slot.kind == Kind::Statistic { statistics } else { parameters };
            Array { shape: slot.shape.clone(), data: flat[slot.range.clone()].to_vec() }
        };
        self.slots.iter().map(|slot| (slot.name.clone(), array(slot))).collect()
    }

    /// The parts of a flat array of parameters, one for each slot (empty for statistics).
    pub(super) fn parts_mut<'a>(&self, mut parameters: &'a mut [f32]) -> Vec<&'a mut [f32]> {
        let mut parts = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let len = if slot.kind == Kind::Statistic { 0 } else { slot.range.len() };
            let (part, rest) = parameters.split_at_mut(len);
            parts.push(part);
            parameters = rest;
        }
        parts
    }
}
