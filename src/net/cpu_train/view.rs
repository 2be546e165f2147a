//! Columns of chunks of activations.

/// Some columns of a chunk `[positions, rows, width]`, from `offset` on.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The whole chunk.
    pub data: &'a [f32],
    /// Units of one row.
    pub width: usize,
    /// First column.
    pub offset: usize,
}

/// As [`View`], to be written.
pub struct ViewMut<'a> {
    /// The whole chunk.
    pub data: &'a mut [f32],
    /// Floats of one row.
    pub width: usize,
    /// First column.
    pub offset: usize,
}
