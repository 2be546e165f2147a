//! Constants that the training kernels share with their launchers.

use crate::device_struct::device_constants;

device_constants! {
    fn definition;
    /// Threads of a block, but for those that make tiles of products.
    pub const BLOCK: u32 = 128;
    /// Numbers that a thread reads or writes at once; all arrays' rows are a multiple of it.
    pub const VEC: usize as "int" = 8;
    /// The absent index in a map.
    pub const NOWHERE: u32 = u32::MAX;
    /// Columns that one block sums.
    pub const GROUP: usize as "int" = 64;
    /// Rows that such a block reads at once.
    pub const ROW_SLOTS: usize as "int" = BLOCK as usize / (GROUP / VEC);
    /// Statistics of every column of a normalisation.
    pub const NUM_STATS: usize as "int" = 6;
    /// Sums of a column that a normalisation takes over a chunk of rows.
    pub const SUMS_PER_COLUMN: usize as "int" = 2;
    /// Statistics of a column that devices exchange.
    pub const NUM_SYNCED: usize as "int" = 3;
    /// Losses of a sample: cross-entropy, entropy of the target, squared error.
    pub const NUM_LOSSES: usize as "int" = 3;
    /// Numbers of the gradient that one block squares.
    pub const SQUARED: usize as "u32" = 4096;
    /// Inputs of a chunk: a convolution takes all taps of a chunk before the next one. One or two steps.
    pub const CHUNK: usize as "u32" = 32;
    /// Threads of a block that makes a tile of products.
    pub const TILE_THREADS: u32 as "int" = 128;
    /// Bytes of one copy to shared memory.
    pub const COPY_BYTES: usize as "int" = 16;
    /// Copies of a row in a step along K.
    pub const COPIES_PER_STEP: usize as "int" = 4;
    /// Steps in shared memory: one in use, the others being loaded.
    pub const STAGES: usize as "int" = 3;
}
