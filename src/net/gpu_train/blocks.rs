//! The parameter blocks of the training kernels: one struct by value a family of kernels. Addresses are those on the device; 0 where a
//! kernel does not use the array.

use crate::device_struct::{device_enum, device_struct};
use bytemuck::NoUninit;

device_enum! {
    /// The activation function of a linear layer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
    pub enum Activation: u32 {
        /// None.
        Identity,
        /// max(0, x).
        Relu,
    }
}

device_struct! {
    /// A linear layer, forward, or backward to its input: `out = activation(x W + bias + residual)`, and 0 where `relu_mask` is not
    /// positive. Rows are those of the output.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct LinearBlock {
        /// One.
        pub shape: u64 as "const LinearShape*",
        /// `[rows of the input, x_width]`
        pub x: u64 as "const Element*",
        /// `[taps * inputs, columns]`
        pub weights: u64 as "const Element*",
        /// `[biases]`
        pub bias: u64 as "const f32*",
        /// Added to the sums; may be `out`. `[rows, out_width]`, or 0
        pub residual: u64 as "const Element*",
        /// `[rows, out_width]`, or 0
        pub relu_mask: u64 as "const Element*",
        /// `[rows, out_width]`
        pub out: u64 as "Element*",
        /// The outputs of a head, instead of `out`. `[rows, out_width]`
        pub outputs: u64 as "f32*",
        /// Rows.
        pub rows: u32,
        /// The activation function.
        pub activation: Activation,
    }

    /// The gradient of a layer's weights, as partial sums over ranges of rows.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct WeightGradientBlock {
        /// That of the layer's forward. One.
        pub shape: u64 as "const LinearShape*",
        /// `[rows of the input, x_width]`
        pub x: u64 as "const Element*",
        /// Gradient of the output. `[rows, out_width]`
        pub dy: u64 as "const Element*",
        /// `[splits, taps * inputs, columns]`
        pub parts: u64 as "f32*",
        /// Rows of the output.
        pub rows: u32,
        /// Ranges of rows.
        pub splits: u32,
    }

    /// A normalisation with its ReLU, forward and backward.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct NormBlock {
        /// The input. `[rows, width]`
        pub x: u64 as "const Element*",
        /// The gradient of the ReLU's output. `[rows, width]`
        pub d: u64 as "const Element*",
        /// Added to the gradient of the input; may be `out`. `[rows, width]`, or 0
        pub residual: u64 as "const Element*",
        /// The output, or the gradient of the input. `[rows, width]`
        pub out: u64 as "Element*",
        /// Sums over chunks of rows. `[chunks, SUMS_PER_COLUMN, width]`
        pub parts: u64 as "f32*",
        /// Indices of weight and bias in `parameters`, of running mean and variance in `running`. `[4, width]`
        pub maps: u64 as "const u32*",
        /// The flat parameters.
        pub parameters: u64 as "const f32*",
        /// The flat running statistics.
        pub running: u64 as "f32*",
        /// The statistics of this batch. `[NUM_STATS, width]`
        pub stats: u64 as "f32*",
        /// Sums of all devices, where there are several. `[devices, NUM_SYNCED, width]`
        pub sync_stats: u64 as "f64*",
        /// The gradient of the flat parameters.
        pub gradient: u64 as "f32*",
        /// One.
        pub report: u64 as "UpdateReport*",
        /// Rows.
        pub rows: u32,
        /// Rows of a chunk.
        pub chunk_rows: u32,
        /// Columns.
        pub width: u32,
        /// This device's index among all.
        pub device: u32,
        /// Devices.
        pub devices: u32,
        /// Up to a multiple of 8 bytes, as CUDA pads a struct that has addresses.
        pub padding: u32 as "",
    }
}

device_enum! {
    /// Which products around a triangle are summed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
    pub enum TriangleTerms: u32 {
        /// a (i, k) b (j, k): the forward.
        Forward,
        /// The same and b (i, k) a (j, k): with the output's gradient as a, the gradient of b.
        Backward,
    }
}

device_struct! {
    /// Message passing on K_n: sums at vertices, over the endpoints of edges, and over triangles. Rows are edges or vertices.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct MessageBlock {
        /// `[boards, edges or vertices, width]`
        pub a: u64 as "const Element*",
        /// The second factor of triangles. `[boards, edges, width]`
        pub b: u64 as "const Element*",
        /// `[boards, edges or vertices, width]`
        pub out: u64 as "Element*",
        /// Boards.
        pub boards: u32,
        /// n.
        pub vertices: u32,
        /// Elements of a row.
        pub width: u32,
        /// The first columns, which are mixed over triangles.
        pub columns: u32,
        /// Factor of all sums.
        pub scale: f32,
        /// Which products are summed.
        pub terms: TriangleTerms,
    }

    /// The arrays of an update's first and last kernels: zeroed sums, the gradient's norm, the optimiser.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct UpdateBlock {
        /// One.
        pub settings: u64 as "const Settings*",
        /// Parameters, first and second moments before the update. `[3, num_parameters]`
        pub from: u64 as "const f32*",
        /// The same after it. `[3, num_parameters]`
        pub to: u64 as "f32*",
        /// 1 for parameters with weight decay, 0 for others. `[num_parameters]`
        pub decayed: u64 as "const f32*",
        /// `[num_parameters]`
        pub gradient: u64 as "f32*",
        /// Sums of squares of the gradient's parts. `[num_parts]`
        pub squares: u64 as "f64*",
        /// Running statistics before the update. `[num_statistics]`
        pub old_statistics: u64 as "const f32*",
        /// The same after it. `[num_statistics]`
        pub new_statistics: u64 as "f32*",
        /// One.
        pub report: u64 as "UpdateReport*",
        /// Parameters of the network.
        pub num_parameters: u32,
        /// Running statistics of the network.
        pub num_statistics: u32,
        /// Parts of the gradient, of `SQUARED` numbers each.
        pub num_parts: u32,
        /// Up to a multiple of 8 bytes, as CUDA pads a struct that has addresses.
        pub padding: u32 as "",
    }
}
