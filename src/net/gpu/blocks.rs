//! The parameter blocks of the forward's kernels: structs that they take by value. Addresses are those on the device; 0 where a kernel
//! does not use the array.

use crate::device_struct::device_struct;
use bytemuck::NoUninit;

device_struct! {
    /// The boards of a launch: slots of the batch, of which those below `*live` are evaluated. The grid of a captured launch is for all
    /// of them.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub(crate) struct Boards {
        /// How many slots of the batch are to be evaluated; 0: all. `[1]`
        pub live: u64 as "const u32*",
        /// Boards.
        pub boards: u32,
        /// The slot of the first board.
        pub first: u32,
    }

    /// One layer of the network.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub(crate) struct LayerBlock {
        /// `[rows, ROW_WORDS]`, rows being squares board by board
        pub input: u64 as "const u32*",
        /// `[COLUMN_BLOCKS, K_TILES, TAPS, WEIGHT_TILE_WORDS]`
        pub weights: u64 as "const u32*",
        /// `[channels]`
        pub bias: u64 as "const f32*",
        /// Of the BatchNorm that reads the residual stream. `[channels]`
        pub scale: u64 as "const f32*",
        /// Of the BatchNorm that reads the residual stream. `[channels]`
        pub offset: u64 as "const f32*",
        /// The messages of vertices. `[boards, vertices, channels]`
        pub messages: u64 as "const f32*",
        /// The residual stream. `[rows, channels]`
        pub stream: u64 as "f32*",
        /// Activations, or 32-bit floats. `[rows, ROW_WORDS]`
        pub output: u64 as "u32*",
        /// `[slots, A]`
        pub logits: u64 as "f32*",
        /// Hidden units of the value head. `[slots, hidden units]`
        pub hidden: u64 as "f32*",
        /// The boards.
        pub boards: Boards as "BoardRange",
    }

    /// The last layer of the value head.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub(crate) struct ValuesBlock {
        /// `[slots, hidden units]`
        pub hidden: u64 as "const f32*",
        /// `[values, hidden units]`
        pub weights: u64 as "const f32*",
        /// `[values]`
        pub bias: u64 as "const f32*",
        /// `[slots, A]`
        pub logits: u64 as "const f32*",
        /// `[slots, P]`
        pub values: u64 as "f32*",
        /// Set to 1 where a logit or a value is not finite. `[1]`
        pub not_finite: u64 as "u32*",
        /// The boards.
        pub boards: Boards as "BoardRange",
    }
}
