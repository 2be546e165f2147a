//! One parameter of a network: name, shape, role, and its range in one of two flat arrays: parameters that the optimiser moves, and
//! running statistics.

use super::role::Role;
use std::ops::Range;

/// One parameter tensor of a [`Model`](super::Model).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The tensor's name in files.
    pub name: String,
    /// Its shape, in torch's layout.
    pub shape: Vec<usize>,
    /// Its role.
    pub role: Role,
    /// Its range among the flat parameters, or among the flat statistics.
    pub range: Range<usize>,
}

/// Elements of the flat arrays that are assigned so far.
#[derive(Default)]
pub(super) struct FlatRanges {
    parameters: usize,
    statistics: usize,
}

impl FlatRanges {
    /// The next range for a tensor of this shape.
    pub fn take(&mut self, role: Role, shape: &[usize]) -> Range<usize> {
        let end = if role.is_statistic() { &mut self.statistics } else { &mut self.parameters };
        let start = *end;
        *end += shape.iter().product::<usize>();
        start..*end
    }
}
