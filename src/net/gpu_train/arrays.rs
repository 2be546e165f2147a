//! The arrays of a training pass on the device.

use super::constants::{NUM_LOSSES, NUM_STATS, SUMS_PER_COLUMN};
use super::layers::{Norm, TrainLayer, TrainLayers, VertexLayers};
use super::tiling::splits;
use crate::device::Device;
use crate::error::Result;
use crate::model::NetSpec;

/// Rows of a chunk of which columns are summed, at least.
const CHUNK_ROWS: usize = 64;
/// Chunks at most.
const MAX_CHUNKS: usize = 512;

/// Rows of every chunk but the last, of `rows` rows.
pub fn chunk_rows(rows: usize) -> usize {
    rows.div_ceil(MAX_CHUNKS).max(CHUNK_ROWS)
}

/// The samples of one pass: observations and the targets of policy and value.
pub struct Samples<B> {
    /// `[B, F]`
    pub obs: B,
    /// `[B, A]`
    pub policy: B,
    /// `[B, A]`
    pub legal: B,
    /// `[B, P]`
    pub values: B,
    /// `[B]`
    pub weight: B,
}

impl<B> Samples<B> {
    /// Room for `boards` samples.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new<D: Device<Buffer = B>>(device: &D, spec: &NetSpec, boards: usize) -> Result<Self> {
        let floats = |per_board: usize| device.alloc(4 * boards * per_board);
        Ok(Self {
            obs: floats(spec.obs.len())?,
            policy: floats(spec.num_actions)?,
            legal: device.alloc(boards * spec.num_actions)?,
            values: floats(spec.num_players)?,
            weight: floats(1)?,
        })
    }
}

/// The additional arrays of a pass over an edge network. Rows are positions, a board's together.
pub struct GraphArrays<B> {
    /// Means at vertices, of every block. `[B n, C]`
    pub means: Vec<B>,
    /// The input of the second layer of every block. `[B area, C]`
    pub mixed: Vec<B>,
    /// The messages of vertices, or their gradient. `[B n, C]`
    pub sent: B,
    /// Gradient of the means at vertices. `[B n, C]`
    pub d_means: B,
    /// The messages at the edges, or the gradient of the triangle sums. `[B area, C]`
    pub at_edges: B,
    /// The mean over a board's edges. `[B, C]`
    pub pooled: B,
    /// Its gradient. `[B, C]`
    pub d_pooled: B,
}

impl<B> GraphArrays<B> {
    /// Arrays for `boards` samples of `area` edges and `width` columns, in numbers of `bytes` bytes.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new<D: Device<Buffer = B>>(
        device: &D,
        graph: &VertexLayers,
        [boards, area, width]: [usize; 3],
        bytes: usize,
    ) -> Result<Self> {
        let elements = |rows: usize| device.alloc(boards * rows * width * bytes);
        let of_blocks = |rows: usize| graph.layers.iter().map(|_| elements(rows)).collect::<Result<_>>();
        Ok(Self {
            means: of_blocks(graph.vertices)?,
            mixed: of_blocks(area)?,
            sent: elements(graph.vertices)?,
            d_means: elements(graph.vertices)?,
            at_edges: elements(area)?,
            pooled: elements(1)?,
            d_pooled: elements(1)?,
        })
    }
}

/// The arrays of one pass of `boards` samples. Rows are positions, a board's together.
pub struct TrainArrays<B> {
    /// B.
    pub boards: usize,
    /// The samples.
    pub samples: Samples<B>,
    /// Observations, a position's channels together. `[B area, channels]`
    pub obs: B,
    /// Output of the stem and of every unit. `[B area, width]`
    pub activations: Vec<B>,
    /// The same after normalisation and ReLU; the heads read the last.
    pub active: Vec<B>,
    /// The batch statistics of every normalisation. `[NUM_STATS, width]`
    pub norm_statistics: Vec<B>,
    /// 32-bit floats. `[B, A padded]`; of an edge network `[B area, 8]`, a logit in the first column
    pub logits: B,
    /// Behind the ReLU. `[B, hidden padded]`
    pub hidden: B,
    /// 32-bit floats, before the hyperbolic tangent. `[B, V padded]`
    pub values: B,
    /// Gradients of `logits`, `hidden` and `values`.
    pub d_logits: B,
    /// See `d_logits`.
    pub d_hidden: B,
    /// See `d_logits`.
    pub d_values: B,
    /// Gradient of the ReLU's output of the normalisation above.
    pub d: B,
    /// The same for the normalisation below, being written.
    pub next: B,
    /// Gradient of a layer's output off the residual stream.
    pub dy: B,
    /// Gradient of the residual stream.
    pub stream: B,
    /// Parts of sums.
    pub parts: B,
    /// Losses of every sample. `[B, 3]`
    pub losses: B,
    /// The arrays of an edge network.
    pub graph: Option<GraphArrays<B>>,
}

impl<B> TrainArrays<B> {
    /// Arrays for `boards` samples in numbers of `bytes` bytes.
    pub fn new<D: Device<Buffer = B>>(
        device: &D,
        spec: &NetSpec,
        layers: &TrainLayers,
        boards: usize,
        bytes: usize,
    ) -> Result<Self> {
        let rows = boards * layers.area;
        let elements = |numbers: usize| device.alloc(numbers * bytes);
        let floats = |numbers: usize| device.alloc(numbers * 4);
        let outputs = |layer: &TrainLayer| boards * layer.positions * layer.forward.columns as usize;
        let tower: Vec<&TrainLayer> =
            std::iter::once(&layers.stem).chain(layers.units.iter().map(|unit| &unit.linear)).collect();
        let widest = tower.iter().map(|layer| outputs(layer)).max().unwrap_or(0);
        let parts = layers.linears().map(|layer| Self::part_floats(layer, boards));
        let sums = layers.norms().map(|norm| Self::sum_floats(norm, rows));
        Ok(Self {
            boards,
            samples: Samples::new(device, spec, boards)?,
            obs: elements(rows * layers.obs.1)?,
            activations: tower.iter().map(|layer| elements(outputs(layer))).collect::<Result<_>>()?,
            active: layers.norms().map(|norm| elements(rows * norm.width)).collect::<Result<_>>()?,
            norm_statistics: layers
                .norms()
                .map(|norm| floats(NUM_STATS * norm.width))
                .collect::<Result<_>>()?,
            logits: floats(outputs(&layers.policy))?,
            hidden: elements(outputs(&layers.hidden))?,
            values: floats(outputs(&layers.values))?,
            d_logits: elements(outputs(&layers.policy))?,
            d_hidden: elements(outputs(&layers.hidden))?,
            d_values: elements(outputs(&layers.values))?,
            d: elements(widest)?,
            next: elements(widest)?,
            dy: elements(widest)?,
            stream: elements(widest)?,
            parts: floats(parts.chain(sums).max().unwrap_or(0))?,
            losses: device.alloc(size_of::<f64>() * NUM_LOSSES * boards)?,
            graph: match &layers.graph {
                Some(graph) => {
                    let sizes = [boards, layers.area, layers.stem.forward.columns as usize];
                    Some(GraphArrays::new(device, graph, sizes, bytes)?)
                }
                None => None,
            },
        })
    }

    /// Floats of all parts of a layer's gradient, weights or bias.
    fn part_floats(layer: &TrainLayer, boards: usize) -> usize {
        let rows = boards * layer.positions;
        let bias = rows.div_ceil(chunk_rows(rows)) * layer.forward.columns as usize;
        (splits(&layer.forward, rows) * layer.weights.len()).max(bias)
    }

    fn sum_floats(norm: &Norm, rows: usize) -> usize {
        SUMS_PER_COLUMN * rows.div_ceil(chunk_rows(rows)) * norm.width
    }
}
