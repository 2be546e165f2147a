//! A network as the kernels see it: layers with their shapes, and maps from the flat parameters to the arrays that products
//! read. Columns of every array are padded to whole vectors.

use super::constants::{CHUNK, NOWHERE, VEC};
use super::logits::LogitLayout;
use crate::device_struct::device_struct;
use crate::error::{Error, Result};
use crate::model::{
    CompleteGraph, Connectivity, HeadRole, Loss, Model, Param, PreActivation, Residual, Tower, TrainLinear,
    TrainMessage, TrainTower,
};
use bytemuck::NoUninit;
use std::ops::Range;

device_struct! {
    /// A layer's sizes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
    pub struct LinearShape {
        /// How its positions are linked.
        pub mode: Connectivity,
        /// The board's.
        pub height: u32,
        /// The board's.
        pub width: u32,
        /// Matrices.
        pub taps: u32,
        /// Rows of each matrix.
        pub inputs: u32,
        /// Columns of each matrix.
        pub columns: u32,
        /// Numbers in a row of the input.
        pub x_width: u32,
        /// Where in it the inputs begin.
        pub x_offset: u32,
        /// Numbers in a row of the output.
        pub out_width: u32,
        /// Where in it the columns go.
        pub out_offset: u32,
        /// Columns that have a bias.
        pub biases: u32,
    }
}

/// A layer with weights.
#[derive(Clone, Debug)]
pub struct TrainLayer {
    /// The shape of the forward direction.
    pub forward: LinearShape,
    /// The shape of the backward direction.
    pub backward: LinearShape,
    /// Positions of an output board.
    pub positions: usize,
    /// Positions of an input board.
    pub sources: usize,
    /// The packed weights, and their part of the map. `[taps * inputs, columns]`, rows in the order of sums
    pub weights: Range<usize>,
    /// The packed weights of the backward direction. `[taps * columns, inputs]`, rows in the order of sums
    pub transposed: Range<usize>,
    /// Where the bias begins in the parameters, and its map `[columns]`.
    pub bias: Option<(usize, usize)>,
}

/// A normalisation.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    /// Columns.
    pub width: usize,
    /// Where its maps begin. `[4, width]`
    pub maps: usize,
}

/// `y = linear(relu(norm(x)))`, with the input of the unit before added where it is a block's second.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The normalisation.
    pub norm: Norm,
    /// The layer.
    pub linear: TrainLayer,
    /// Whether the residual stream goes through it.
    pub skips: bool,
}

/// The vertices of K_n, and the layers at them.
#[derive(Clone, Debug)]
pub struct VertexLayers {
    /// n.
    pub vertices: usize,
    /// Columns of every block that are multiplied around triangles: the first ones.
    pub triangle_columns: Vec<usize>,
    /// Factors of the sums at vertices and over triangles.
    pub scales: [f32; 2],
    /// The layer of every block that reads the means at vertices.
    pub layers: Vec<TrainLayer>,
}

/// All layers of a network in training.
#[derive(Clone, Debug)]
pub struct TrainLayers {
    /// The first.
    pub stem: TrainLayer,
    /// The tower, and the convolutions of the heads.
    pub units: Vec<Unit>,
    /// The normalisation whose ReLU output the heads' linear layers read.
    pub tail: Norm,
    /// Logits.
    pub policy: TrainLayer,
    /// Where they are among its outputs.
    pub logits: LogitLayout,
    /// Hidden layer of the values.
    pub hidden: TrainLayer,
    /// Values before the hyperbolic tangent.
    pub values: TrainLayer,
    /// The layers at the vertices of an edge network.
    pub graph: Option<VertexLayers>,
    /// Positions of a board.
    pub area: usize,
    /// Channels of an observation, and the same padded.
    pub obs: (usize, usize),
    /// Blocks of the tower.
    pub blocks: usize,
    /// For every packed number its parameter, then the biases' and the normalisations' maps.
    pub map: Vec<u32>,
    /// Packed numbers.
    pub packed: usize,
}

struct LayersBuilder<'a> {
    model: &'a Model,
    map: Vec<u32>,
    /// Maps of biases and normalisations, which follow those of the packed numbers.
    more: Vec<u32>,
}

fn padded(columns: usize) -> usize {
    columns.next_multiple_of(VEC)
}

/// Tap and input of every row of a layer's matrix, which is the order of its sums. Twin of `Depth` in kernels/train/operands.cuh.
fn order(mode: Connectivity, taps: usize, inputs: usize) -> impl Iterator<Item = (usize, usize)> {
    let chunk = if mode == Connectivity::Conv3x3 { CHUNK } else { inputs };
    let of_chunk =
        move |first: usize, tap: usize| (first..inputs.min(first + chunk)).map(move |input| (tap, input));
    (0..inputs).step_by(chunk).flat_map(move |first| (0..taps).flat_map(move |tap| of_chunk(first, tap)))
}

fn no_kernels(what: impl std::fmt::Display) -> Error {
    let why = format!("there are no kernels for {what} yet; set net.device = \"cpu\"");
    Error::unsupported("training by kernels on a GPU", why)
}

/// Refuses heads that have no kernels.
///
/// # Errors
/// [`Error::Unsupported`] with the name of the head.
pub fn check_heads(model: &Model) -> Result<()> {
    let known = [(HeadRole::Policy, Loss::LegalCrossEntropy), (HeadRole::Value, Loss::SquaredError)];
    match model.heads.iter().find(|head| !known.contains(&(head.role, head.loss))) {
        Some(head) => Err(no_kernels(format!("the {} head", head.name))),
        None => Ok(()),
    }
}

impl TrainLayers {
    /// The layers of `model`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it is not a [`Tower`], or for a head or loss that has no kernel.
    pub fn new(model: &Model) -> Result<Self> {
        let tower =
            Tower::of(model).map_err(|why| Error::unsupported("training by kernels on a GPU", why))?;
        let tower = TrainTower::new(model, &tower);
        check_heads(model)?;
        let [policy_head, value_head, ..] = &tower.heads[..] else {
            return Err(no_kernels("fewer than two heads"));
        };
        let Some(hidden) = &value_head.hidden else {
            return Err(no_kernels("a value head without a hidden layer"));
        };
        let mut build = LayersBuilder { model, map: Vec::new(), more: Vec::new() };
        let stem = build.linear(&tower.stem);
        let units = tower.layers.iter().map(|layer| build.unit(layer)).collect();
        let tail = build.norm(&tower.tail);
        let policy = build.linear(&policy_head.out);
        let stride = policy.forward.columns;
        let logits = policy_head.points.map(|points| LogitLayout::at_points(points, stride));
        let logits = logits.unwrap_or(LogitLayout::dense(model.num_actions()));
        let hidden = build.linear(hidden);
        let values = build.linear(&value_head.out);
        let graph = tower.edges.as_ref().map(|edges| build.graph(edges, &tower.layers));
        let packed = build.map.len();
        let mut layers = Self {
            stem,
            units,
            tail,
            policy,
            logits,
            hidden,
            values,
            graph,
            area: tower.stream.positions(),
            obs: (tower.stem.row[0], padded(tower.stem.row[0])),
            blocks: tower.blocks,
            map: build.map,
            packed,
        };
        layers.map.append(&mut build.more);
        layers.place_maps();
        Ok(layers)
    }

    /// Moves the maps of biases and normalisations to their offset after the packed numbers.
    fn place_maps(&mut self) {
        let packed = self.packed;
        self.linears_mut().filter_map(|linear| linear.bias.as_mut()).for_each(|(_, map)| *map += packed);
        let norms = self.units.iter_mut().map(|unit| &mut unit.norm).chain([&mut self.tail]);
        norms.for_each(|norm| norm.maps += packed);
    }

    fn linears_mut(&mut self) -> impl Iterator<Item = &mut TrainLayer> {
        let units = self.units.iter_mut().map(|unit| &mut unit.linear);
        let heads = [&mut self.policy, &mut self.hidden, &mut self.values];
        let at_vertices = self.graph.as_mut().map_or(&mut [][..], |graph| &mut graph.layers[..]);
        std::iter::once(&mut self.stem).chain(units).chain(heads).chain(at_vertices)
    }

    /// All layers with weights, from input to output, then those at vertices.
    pub fn linears(&self) -> impl Iterator<Item = &TrainLayer> {
        let units = self.units.iter().map(|unit| &unit.linear);
        let heads = [&self.policy, &self.hidden, &self.values];
        std::iter::once(&self.stem).chain(units).chain(heads).chain(self.at_vertices())
    }

    /// The layers at vertices.
    fn at_vertices(&self) -> &[TrainLayer] {
        self.graph.as_ref().map_or(&[], |graph| &graph.layers)
    }

    /// Layer `number` of [`TrainLayers::linears`].
    pub fn linear(&self, number: usize) -> &TrainLayer {
        let units = self.units.len();
        match number {
            0 => &self.stem,
            n if n <= units => &self.units[n - 1].linear,
            n if n == units + 1 => &self.policy,
            n if n == units + 2 => &self.hidden,
            n if n == units + 3 => &self.values,
            n => &self.at_vertices()[n - units - 4],
        }
    }

    /// All normalisations, from input to output.
    pub fn norms(&self) -> impl Iterator<Item = &Norm> {
        self.units.iter().map(|unit| &unit.norm).chain([&self.tail])
    }
}

impl LayersBuilder<'_> {
    fn unit(&mut self, layer: &PreActivation) -> Unit {
        let norm = self.norm(&[layer.norm]);
        let linear = self.linear(&layer.linear);
        Unit { norm, linear, skips: layer.residual == Residual::Add }
    }

    fn linear(&mut self, linear: &TrainLinear) -> TrainLayer {
        let [height, width] = linear.board;
        let area = height * width;
        let mode = linear.connectivity;
        let (taps, positions, sources) = match mode {
            Connectivity::Pointwise => (1, area, area),
            Connectivity::Conv3x3 => (9, area, area),
            Connectivity::Flatten => (area, 1, area),
            Connectivity::Spread => (area, area, 1),
        };
        let start = self.map.len();
        let [wide, columns] = self.map_weights(&linear.weights, mode, taps);
        let size = taps * wide * columns;
        let bias = linear.bias.map(|index| self.bias(index, columns));
        let biases = bias.map_or(0, |_| self.model.params[linear.weights[0]].shape[0]);
        let row = |groups: &[usize]| groups.iter().map(|&channels| padded(channels)).sum::<usize>();
        let (x_width, x_offset) = (row(&linear.row), row(&linear.row[..linear.group]));
        let shape =
            |mode, [inputs, columns, x_width, x_offset, out_width, out_offset]: [usize; 6]| LinearShape {
                mode,
                height: height as u32,
                width: width as u32,
                taps: taps as u32,
                inputs: inputs as u32,
                columns: columns as u32,
                x_width: x_width as u32,
                x_offset: x_offset as u32,
                out_width: out_width as u32,
                out_offset: out_offset as u32,
                biases: 0,
            };
        let forward = shape(mode, [wide, columns, x_width, x_offset, columns, 0]);
        TrainLayer {
            forward: LinearShape { biases: biases as u32, ..forward },
            backward: shape(mode.transposed(), [columns, wide, columns, 0, x_width, x_offset]),
            positions,
            sources,
            weights: start..start + size,
            transposed: start + size..start + 2 * size,
            bias,
        }
    }

    /// Adds the maps of these weights side by side, forward and backward; returns the padded inputs and columns of a tap.
    fn map_weights(&mut self, weights: &[usize], mode: Connectivity, taps: usize) -> [usize; 2] {
        let mut blocks = Vec::new(); // (first column, outputs, first parameter)
        let (mut columns, mut inputs) = (0, 0);
        for &index in weights {
            let Param { shape, range, .. } = &self.model.params[index];
            inputs = range.len() / shape[0] / taps;
            blocks.push((columns, shape[0], range.start));
            columns += padded(shape[0]);
        }
        let parameter = |tap: usize, input: usize, column: usize| {
            let block = blocks.iter().find(|(first, outputs, _)| (*first..first + outputs).contains(&column));
            match block {
                Some((first, _, start)) if input < inputs => {
                    (start + ((column - first) * inputs + input) * taps + tap) as u32
                }
                _ => NOWHERE,
            }
        };
        let wide = padded(inputs);
        for (tap, input) in order(mode, taps, wide) {
            self.map.extend((0..columns).map(|column| parameter(tap, input, column)));
        }
        for (tap, column) in order(mode, taps, columns) {
            // The backward pass reads a neighbour's gradient by the opposite tap.
            let tap = if mode == Connectivity::Conv3x3 { 8 - tap } else { tap };
            self.map.extend((0..wide).map(|input| parameter(tap, input, column)));
        }
        [wide, columns]
    }

    /// The layers at the vertices, and the messages over triangles, of `layers`.
    fn graph(&mut self, edges: &CompleteGraph, layers: &[PreActivation]) -> VertexLayers {
        let mut graph = VertexLayers {
            vertices: edges.vertices,
            triangle_columns: Vec::new(),
            scales: [edges.vertex_scale(), edges.triangle_scale()],
            layers: Vec::new(),
        };
        for layer in layers {
            match &layer.message {
                TrainMessage::None => {}
                TrainMessage::Vertex(linear) => graph.layers.push(self.linear(linear)),
                &TrainMessage::Triangle(columns) => graph.triangle_columns.push(columns),
            }
        }
        graph
    }

    /// Where the bias that is parameter `index` begins, and where its map does.
    fn bias(&mut self, index: usize, columns: usize) -> (usize, usize) {
        let range = self.model.params[index].range.clone();
        let map = self.more.len();
        self.extend_padded(range.clone(), columns);
        (range.start, map)
    }

    fn extend_padded(&mut self, range: Range<usize>, columns: usize) {
        let end = self.more.len() + columns;
        self.more.extend(range.map(|at| at as u32));
        self.more.resize(end, NOWHERE);
    }

    /// The BatchNorm layers `norms` side by side.
    fn norm(&mut self, norms: &[usize]) -> Norm {
        let maps = self.more.len();
        let mut width = 0;
        for number in 0..4 {
            width = 0;
            for &layer in norms {
                let range = self.model.params[self.model.param_index(layer, number)].range.clone();
                let columns = padded(range.len());
                self.extend_padded(range, columns);
                width += columns;
            }
        }
        Norm { width, maps }
    }
}
