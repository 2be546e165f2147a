//! Which rows one selection visits.

/// Where a selection starts, and how many rows and leaves it visits at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBudget {
    /// The first row; after the last row follows row 0.
    pub first: usize,
    /// Maximum number of rows.
    pub rows: usize,
    /// Maximum number of leaves that need the network; at least one row is visited, whatever its leaves need.
    pub evaluations: usize,
    /// Maximum number of leaves of a row; the search's L where that is less.
    pub leaves: usize,
}

impl RowBudget {
    /// All rows once.
    pub const ALL: Self = Self { first: 0, rows: usize::MAX, evaluations: usize::MAX, leaves: usize::MAX };
}
