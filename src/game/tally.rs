//! What people count in games besides points.

/// A table in which one player's part of a game, or of one round of it, counts in one cell: bids by how they ended, wins by their height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyTable {
    /// What is counted, such as "Bids".
    pub title: &'static str,
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The names of the columns.
    pub columns: &'static [&'static str],
}

/// A cell of a [`TallyTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyCell {
    /// The number of its row.
    pub row: usize,
    /// The number of its column.
    pub column: usize,
}
