//! Counts of one selection over all rows.

/// Counts of one selection, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassStats {
    /// Rows that it visited, with or without simulations left.
    pub visited: usize,
    /// Rows that selected a leaf.
    pub rows: usize,
    /// Leaves of any kind.
    pub leaves: usize,
    /// M: leaves that need the network.
    pub evaluations: usize,
    /// Leaves whose evaluation was in the evaluation cache or is that of an earlier leaf of the pass.
    pub cached: usize,
    /// Leaves that are simulations (the evaluation of a new root is not one).
    pub simulations: usize,
    /// Sum of the leaves' depths.
    pub depth_sum: u64,
    /// Depth of the deepest leaf.
    pub depth_max: u64,
}

impl PassStats {
    /// The counts of two sets of rows, or of two passes, together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            visited: self.visited + other.visited,
            rows: self.rows + other.rows,
            leaves: self.leaves + other.leaves,
            evaluations: self.evaluations + other.evaluations,
            cached: self.cached + other.cached,
            simulations: self.simulations + other.simulations,
            depth_sum: self.depth_sum + other.depth_sum,
            depth_max: self.depth_max.max(other.depth_max),
        }
    }
}
