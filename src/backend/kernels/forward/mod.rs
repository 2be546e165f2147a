//! The network's own kernels: stem, tower and heads with everything between them, one launch a layer, tensor cores where
//! the device has them. `kernels/net.cu` and `kernels/net/` are the sources.
//!
//! [`DeviceForward`] owns the packed weights and all activations: a forward allocates nothing, waits for nothing and copies
//! nothing, so that it can be captured in a graph; new weights go where the old ones were. A board's answer is the same to the
//! bit in any slot of any batch.

mod edge; // what an edge network has besides
mod evaluator; // for callers on the host
mod double_buffer; // for callers on the host that make one batch while another is answered
mod layer;
mod element_type;
mod pack;

use super::device::{Arg, Code, Device, LaunchShape, Limits, Program};
use super::memory::NetworkNeed;
use super::network::{DeviceNetwork, ObsFormat, Slots};
use super::source;
use crate::config::{Arch, TensorCores};
use crate::error::{Error, Result};
use crate::model::{NetSpec, Weights};
use edge::Graph;
pub use element_type::{Arithmetic, ElementType};
pub use evaluator::DeviceEvaluator;
pub use layer::{Layer, LayerSpec, row_numbers};
use pack::{LayerPlace, Packed};

/// Most squares that go through the network together: what their activations take is bounded, and more of them fill the
/// device no better.
const MOST_ROWS: usize = 1 << 19;
/// Threads of a block of the kernels that are no layers.
const BLOCK: u32 = 128;
const WARP: usize = 32;

/// A network's layers for a number of slots.
#[derive(Clone, Debug)]
struct Layers {
    stem: Layer,
    tower: Layer,
    /// The 1x1 convolutions of both heads (resnet).
    head: Option<Layer>,
    /// What vertices send to their edges (edge).
    graph: Option<Graph>,
    dense: Layer,
    /// Logits among the outputs of `dense`.
    dense_logits: usize,
    /// Squares of a board; 1 for the perceptron, for an edge network the edges.
    squares: usize,
    /// ElementType of an observation at a square.
    planes: usize,
}

impl Layers {
    /// The layers of `spec` for `boards` boards.
    fn new(spec: &NetSpec, arithmetic: Arithmetic, boards: usize, limits: Limits) -> Result<Self> {
        let Arithmetic { numbers, cores } = arithmetic.on(limits.capability)?;
        let (taps, height, width, planes) = match spec.arch {
            Arch::Resnet => (9, spec.obs.height, spec.obs.width, spec.obs.channels),
            Arch::Mlp => (1, 1, 1, spec.obs.len()),
            Arch::Edge => (1, spec.obs.height, spec.obs.width, spec.obs.channels),
        };
        let squares = height * width;
        let tower_row = row_numbers(numbers, spec.channels);
        let base =
            LayerSpec { numbers, cores, taps, height, width, inputs: tower_row, outputs: spec.channels };
        let on_boards = |layer: LayerSpec| Layer::new(layer, boards * squares, limits);
        let head_channels = spec.policy_channels + spec.value_channels;
        let (head, dense_inputs) = match spec.arch {
            Arch::Mlp | Arch::Edge => (None, tower_row),
            Arch::Resnet => (
                Some(on_boards(LayerSpec { taps: 1, outputs: head_channels, ..base })?),
                squares * row_numbers(numbers, head_channels),
            ),
        };
        let (graph, dense_logits) = match spec.arch {
            Arch::Edge => (Some(Graph::new(spec, base, boards, limits)?), 0),
            Arch::Resnet | Arch::Mlp => (None, spec.num_actions),
        };
        let dense = LayerSpec {
            taps: 1,
            height: 1,
            width: 1,
            inputs: dense_inputs,
            outputs: dense_logits + spec.value_hidden,
            ..base
        };
        Ok(Self {
            stem: on_boards(LayerSpec { inputs: row_numbers(numbers, planes), ..base })?,
            tower: on_boards(base)?,
            head,
            graph,
            dense: Layer::new(dense, boards, limits)?,
            dense_logits,
            squares,
            planes,
        })
    }
}

/// The program of `spec` for `slots` slots on a device of these limits.
///
/// # Errors
/// [`Error::Config`] for an edge network on anything but the edges of a complete graph, [`Error::Unsupported`] where the device is
/// too small or lacks the instruction.
pub fn program(
    spec: &NetSpec,
    arithmetic: impl Into<Arithmetic>,
    slots: usize,
    limits: Limits,
) -> Result<Program> {
    let arithmetic = arithmetic.into();
    let layers = Layers::new(spec, arithmetic, boards_at_once(spec, slots), limits)?;
    let units: &[&str] = match spec.arch {
        Arch::Resnet => &["net.cu", "net_tower.cu", "net_head.cu"],
        Arch::Mlp => &["net.cu", "net_tower.cu"],
        Arch::Edge => &["net.cu", "net_edge.cu"],
    };
    let program = source::compose("a network", units, layers.defines(spec, arithmetic.numbers));
    let code = match arithmetic.cores {
        TensorCores::Mma => Code::Common,
        TensorCores::Wgmma => Code::OfArchitecture,
    };
    Ok(Program { code, ..program })
}

/// The program of kernel `measure_peak(out, rounds)`: [`PEAK_BLOCK`] threads a block, of which each warp adds up
/// [`PEAK_PRODUCTS`] products of `numbers` a round and each thread writes one number to `out`.
pub fn peak_program(numbers: ElementType) -> Program {
    source::compose("a product", &["net_peak.cu"], vec![("VZ_NUMBERS".into(), numbers.name().into())])
}

/// Threads of a block of [`peak_program`].
pub const PEAK_BLOCK: u32 = 256;
/// Products of 16-bit numbers that a warp adds up in a round of [`peak_program`].
pub const PEAK_PRODUCTS: u64 = 16 * (16 * 8 * 16);

/// Boards that go through the network together.
fn boards_at_once(spec: &NetSpec, slots: usize) -> usize {
    let squares = if spec.arch == Arch::Mlp { 1 } else { spec.obs.height * spec.obs.width };
    let most = (MOST_ROWS / squares).max(1);
    // Parts of nearly the same size.
    slots.max(1).div_ceil(slots.max(1).div_ceil(most))
}

/// A network on the device `D`, for a fixed number of slots.
pub struct DeviceForward<D: Device> {
    spec: NetSpec,
    arithmetic: Arithmetic,
    layers: Layers,
    module: D::Module,
    slots: usize,
    /// Boards that go through together.
    boards: usize,
    places: Packed,
    parameters: D::Buffer,
    work: Work<D::Buffer>,
}

/// Activations of the boards that go through together.
struct Work<B> {
    /// `[boards, squares, planes]` as words
    planes: B,
    /// `[boards, squares, C]` as words
    a: B,
    /// `[boards, squares, C]` as words
    b: B,
    /// `[boards, squares, C]`, 32-bit floats
    stream: B,
    /// `[boards, squares, head channels]` as words (resnet); `[boards, C]` as words, the mean over edges (edge)
    heads: B,
    /// `[boards, vertices, C]`, 32-bit floats (edge)
    vertices: B,
    /// `[boards, hidden units]`, 32-bit floats
    hidden: B,
    /// One word, not 0 once an answer was no number.
    not_finite: B,
}

/// A network's weights as they will be on a device, and what it takes there, before anything is taken.
pub struct ForwardPlan {
    spec: NetSpec,
    arithmetic: Arithmetic,
    layers: Layers,
    slots: usize,
    places: Packed,
    program: Program,
}

impl ForwardPlan {
    /// The network of `spec` with `weights` for `slots` slots on a device of these limits.
    ///
    /// # Errors
    /// As [`program`]; [`Error::Mismatch`] and [`Error::NotFinite`] for weights that do not fit `spec`.
    pub fn new(
        spec: &NetSpec,
        weights: &Weights,
        arithmetic: impl Into<Arithmetic>,
        slots: usize,
        limits: Limits,
    ) -> Result<Self> {
        let arithmetic = arithmetic.into();
        let layers = Layers::new(spec, arithmetic, boards_at_once(spec, slots), limits)?;
        let places = pack::pack(spec, weights, &layers)?;
        let program = program(spec, arithmetic, slots, limits)?;
        Ok(Self { spec: spec.clone(), arithmetic, layers, slots, places, program })
    }

    /// What it takes on the device.
    pub fn need(&self) -> NetworkNeed {
        NetworkNeed {
            parameters: self.places.bytes.len() as u64,
            board: WorkBytes::new(&self.spec, self.arithmetic.numbers, &self.layers).board() as u64,
            most_boards: (MOST_ROWS / self.layers.squares).max(1),
        }
    }
}

/// Bytes of one board in each of the arrays of [`Work`].
struct WorkBytes {
    planes: usize,
    activations: usize,
    stream: usize,
    heads: usize,
    vertices: usize,
    hidden: usize,
}

impl WorkBytes {
    fn new(spec: &NetSpec, numbers: ElementType, layers: &Layers) -> Self {
        let words = |layer: &Layer, rows: usize| 4 * rows * layer.spec.inputs / numbers.per_word();
        let squares = layers.squares;
        Self {
            planes: words(&layers.stem, squares),
            activations: words(&layers.tower, squares),
            stream: 4 * squares * layers.tower.spec.inputs,
            heads: match spec.arch {
                Arch::Resnet | Arch::Edge => words(&layers.dense, 1),
                Arch::Mlp => 0,
            },
            vertices: layers.graph.map_or(0, |graph| 4 * graph.vertices * graph.layer.spec.inputs),
            hidden: 4 * spec.value_hidden,
        }
    }

    fn board(&self) -> usize {
        let Self { planes, activations, stream, heads, vertices, hidden } = self;
        planes + 2 * activations + stream + heads + vertices + hidden
    }
}

impl<D: Device> DeviceForward<D> {
    /// The network of `spec` with `weights` for `slots` slots, compiled and loaded.
    ///
    /// # Errors
    /// As [`ForwardPlan::new`], and [`Error::Device`] where there is no buffer or the kernels do not compile.
    pub fn new(
        device: &D,
        spec: &NetSpec,
        weights: &Weights,
        arithmetic: impl Into<Arithmetic>,
        slots: usize,
    ) -> Result<Self> {
        Self::planned(device, ForwardPlan::new(spec, weights, arithmetic, slots, device.limits()?)?)
    }

    /// The network that `plan` is for, compiled and loaded.
    ///
    /// # Errors
    /// [`Error::Device`] where there is no buffer or the kernels do not compile.
    pub fn planned(device: &D, plan: ForwardPlan) -> Result<Self> {
        let ForwardPlan { spec, arithmetic, layers, slots, places, program } = plan;
        let module = device.module(&program)?;
        let mut parameters = device.alloc(places.bytes.len())?;
        device.upload(&mut parameters, 0, &places.bytes)?;
        let boards = boards_at_once(&spec, slots);
        let bytes = WorkBytes::new(&spec, arithmetic.numbers, &layers);
        let work = Work {
            planes: device.alloc(boards * bytes.planes)?,
            a: device.alloc(boards * bytes.activations)?,
            b: device.alloc(boards * bytes.activations)?,
            stream: device.alloc(boards * bytes.stream)?,
            heads: device.alloc(boards * bytes.heads)?,
            vertices: device.alloc(boards * bytes.vertices)?,
            hidden: device.alloc(boards * bytes.hidden)?,
            not_finite: device.alloc(4)?,
        };
        Ok(Self { spec, arithmetic, layers, module, slots, boards, places, parameters, work })
    }

    /// True where this is the network of `spec` in this arithmetic, whatever its weights.
    pub fn is_for(&self, spec: &NetSpec, arithmetic: Arithmetic) -> bool {
        self.spec == *spec && self.arithmetic == arithmetic
    }

    /// Takes other weights of the same shape; they go where the old ones are, so that a captured forward has them too.
    ///
    /// # Errors
    /// As for [`DeviceForward::new`]; the old weights then stay.
    pub fn set_weights(&mut self, device: &D, weights: &Weights) -> Result<()> {
        self.places = pack::pack(&self.spec, weights, &self.layers)?;
        device.upload(&mut self.parameters, 0, &self.places.bytes)
    }

    /// The number format in use.
    pub fn numbers(&self) -> ElementType {
        self.arithmetic.numbers
    }

    /// Multiplications that one board needs with all taps, those off the board included; those around an edge network's triangles
    /// are none of weights, and left out.
    pub fn products(&self) -> usize {
        let taps = self.layers.stem.spec.taps;
        self.products_of(self.layers.squares * taps)
    }

    /// The same with the taps on the board alone.
    pub fn products_on_board(&self) -> usize {
        let LayerSpec { taps, height, width, .. } = self.layers.stem.spec;
        self.products_of(if taps == 9 { (3 * height - 2) * (3 * width - 2) } else { height * width })
    }

    /// With so many taps of all squares together.
    fn products_of(&self, taps: usize) -> usize {
        let NetSpec { channels, blocks, policy_channels, value_channels, value_hidden, num_actions, .. } =
            self.spec;
        let squares = self.layers.squares;
        let tower = taps * channels * (self.layers.planes + 2 * blocks * channels);
        let heads = match self.spec.arch {
            Arch::Resnet => {
                squares * (channels * (policy_channels + value_channels))
                    + squares * (policy_channels * num_actions + value_channels * value_hidden)
            }
            Arch::Mlp | Arch::Edge => channels * (num_actions + value_hidden),
        };
        let vertices = self.layers.graph.map_or(0, |graph| graph.vertices * blocks * channels * channels);
        tower + vertices + heads + value_hidden * self.spec.num_values()
    }

    /// Answers the first `num` slots, and whatever else goes through the network with them.
    ///
    /// # Errors
    /// As [`DeviceNetwork::forward`].
    pub fn forward_first(&mut self, device: &D, slots: Slots<'_, D::Buffer>, num: usize) -> Result<()> {
        if slots.num != self.slots || num > self.slots {
            let what = "slots of a network on the device".to_string();
            return Err(Error::Mismatch {
                what,
                found: slots.num.max(num).to_string(),
                expected: self.slots.to_string(),
            });
        }
        for first in (0..num).step_by(self.boards) {
            self.part(device, first, self.boards.min(num - first), &slots)?;
        }
        Ok(())
    }

    /// The word that is not 0 once an answer was no number.
    fn not_finite(&self) -> &D::Buffer {
        &self.work.not_finite
    }

    fn parameter(&self, at: usize) -> Arg<'_, D::Buffer> {
        Arg::Buffer(&self.parameters, at)
    }

    /// One layer on `rows` rows of `input`; `rest` follows weights and rows.
    fn layer<'a>(
        &'a self,
        device: &D,
        kernel: &'static str,
        (layer, place): (&Layer, LayerPlace),
        (input, rows): (&'a D::Buffer, usize),
        rest: &[Arg<'a, D::Buffer>],
    ) -> Result<()> {
        let mut args = vec![Arg::Buffer(input, 0), self.parameter(place.weights), Arg::U32(rows as u32)];
        args.extend_from_slice(rest);
        device.launch_in(&self.module, kernel, layer.launch_shape(rows), &args)
    }

    /// A layer that ends in the residual stream; activations go to `a`.
    fn stream_layer(
        &self,
        device: &D,
        kernel: &'static str,
        (layer, place): (&Layer, LayerPlace),
        source: (&D::Buffer, usize),
    ) -> Result<()> {
        let Work { stream, a, .. } = &self.work;
        let rest = [
            self.parameter(place.bias),
            self.parameter(place.scale),
            self.parameter(place.offset),
            Arg::Buffer(stream, 0),
            Arg::Buffer(a, 0),
        ];
        self.layer(device, kernel, (layer, place), source, &rest)
    }

    /// The blocks of a residual network or perceptron on `rows` rows.
    fn tower(&self, device: &D, rows: usize) -> Result<()> {
        let (tower, work) = (&self.layers.tower, &self.work);
        for [inner, leave] in &self.places.blocks {
            let rest = [self.parameter(inner.bias), Arg::Buffer(&work.b, 0)];
            self.layer(device, "inner", (tower, *inner), (&work.a, rows), &rest)?;
            self.stream_layer(device, "leave", (tower, *leave), (&work.b, rows))?;
        }
        Ok(())
    }

    /// Answers `boards` boards from slot `first` on.
    fn part(&self, device: &D, first: usize, boards: usize, slots: &Slots<'_, D::Buffer>) -> Result<()> {
        let (layers, work, places, spec) = (&self.layers, &self.work, &self.places, &self.spec);
        let rows = boards * layers.squares;
        let logits = Arg::Buffer(&*slots.logits, 4 * first * spec.num_actions);
        let answers = Arg::Buffer(&*slots.answers, 4 * first * spec.num_players);
        self.observe(device, first, boards, slots.obs)?;
        self.stream_layer(device, "stem", (&layers.stem, places.stem), (&work.planes, rows))?;
        let board = match (&layers.head, &layers.graph) {
            (_, Some(graph)) => {
                self.edge_tower(device, graph, boards)?;
                self.edge_heads(device, boards, logits)?;
                &work.heads
            }
            (Some(head), None) => {
                self.tower(device, rows)?;
                let rest = [self.parameter(places.head.bias), Arg::Buffer(&work.heads, 0)];
                self.layer(device, "head", (head, places.head), (&work.a, rows), &rest)?;
                &work.heads
            }
            (None, None) => {
                self.tower(device, rows)?;
                &work.a
            }
        };
        let hidden = Arg::Buffer(&work.hidden, 0);
        let rest = [self.parameter(places.dense.bias), logits, hidden];
        self.layer(device, "dense", (&layers.dense, places.dense), (board, boards), &rest)?;
        let args = [
            hidden,
            self.parameter(places.values.weights),
            self.parameter(places.values.bias),
            logits,
            answers,
            Arg::Buffer(&work.not_finite, 0),
            Arg::U32(boards as u32),
        ];
        device.launch_in(&self.module, "values", threads(boards * WARP), &args)
    }

    /// Observations become rows of words.
    fn observe(&self, device: &D, first: usize, boards: usize, obs: &D::Buffer) -> Result<()> {
        let (kernel, bytes) = match self.format() {
            ObsFormat::F32 => ("take_observations_f32", 4),
            ObsFormat::Bf16 => ("take_observations_bf16", 2),
        };
        let words = self.layers.stem.spec.inputs / self.numbers().per_word();
        let args = [
            Arg::Buffer(obs, bytes * first * self.spec.obs.len()),
            Arg::Buffer(&self.work.planes, 0),
            Arg::U32(boards as u32),
        ];
        device.launch_in(&self.module, kernel, threads(boards * self.layers.squares * words), &args)
    }
}

/// Reads the word that is not 0 once an answer was no number.
fn all_finite(word: [u8; 4]) -> Result<()> {
    if u32::from_ne_bytes(word) == 0 {
        return Ok(());
    }
    Err(Error::NotFinite { what: "a logit or value of the network".into(), value: f32::NAN })
}

/// A launch of so many threads.
fn threads(count: usize) -> LaunchShape {
    LaunchShape { grid: count.div_ceil(BLOCK as usize) as u32, block: BLOCK, shared: 0 }
}

impl<D: Device> DeviceNetwork<D> for DeviceForward<D> {
    /// What the stem rounds to bfloat16 is written as such.
    fn format(&self) -> ObsFormat {
        if self.numbers() == ElementType::Bf16 { ObsFormat::Bf16 } else { ObsFormat::F32 }
    }

    fn forward(&mut self, device: &D, slots: Slots<'_, D::Buffer>) -> Result<()> {
        let num = slots.num;
        self.forward_first(device, slots, num)
    }

    fn check(&self, device: &D) -> Result<()> {
        let mut word = [0; 4];
        device.download(&self.work.not_finite, 0, &mut word)?;
        all_finite(word)
    }
}
