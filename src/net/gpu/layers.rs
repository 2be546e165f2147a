//! All layers of a network with their tiles, for a number of slots.

use super::edge_graph::EdgeGraph;
use super::network::SlotOrder;
use super::{Arithmetic, ForwardLayer, LayerSpec, padded_channels, slot_order};
use crate::device::Limits;
use crate::error::{Error, Result};
use crate::model::{ActivationShape, Model, NetSpec, Tower, ValueFunction};

/// Maximum number of squares that go through the network together: it bounds the memory of activations, and more squares fill the device no
/// better.
const MAX_ROWS: usize = 1 << 19;

/// A network's layers for a number of slots.
#[derive(Clone, Debug)]
pub(super) struct ForwardLayers {
    pub stem: ForwardLayer,
    pub tower: ForwardLayer,
    /// The 1x1 convolutions of both heads, if there are any.
    pub head: Option<ForwardLayer>,
    /// Vertices and their layer, on the edges of a graph.
    pub graph: Option<EdgeGraph>,
    pub dense: ForwardLayer,
    /// Logits among the outputs of `dense`.
    pub dense_logits: usize,
    /// Squares of a board, edges of a graph, or 1.
    pub squares: usize,
    /// Channels of an observation.
    pub planes: usize,
    /// Boards that go through the network together.
    pub boards: usize,
    /// The order of slots that costs least.
    pub order: SlotOrder,
    /// The network.
    pub model: Model,
    /// Which of its layers are which here.
    pub form: Tower,
}

impl ForwardLayers {
    /// The layers of `spec` for `slots` slots.
    ///
    /// # Errors
    /// As [`super::program`].
    pub fn new(spec: &NetSpec, arithmetic: Arithmetic, slots: usize, limits: Limits) -> Result<Self> {
        let model = spec.model()?;
        let form =
            Tower::of(&model).map_err(|why| Error::unsupported("the network's kernels on a GPU", why))?;
        if form.value_function != ValueFunction::Tanh {
            let why = "there are no kernels for its value head yet; set net.device = \"cpu\"";
            return Err(Error::unsupported("the network's kernels on a GPU", why));
        }
        let Arithmetic { element_type, cores } = arithmetic.on(limits.capability)?;
        let stream = model.layers[form.stem].shape;
        let (taps, height, width) = match stream {
            ActivationShape::Board { height, width, .. } => (9, height, width),
            ActivationShape::Vector(_) | ActivationShape::Edges { .. } => (1, stream.positions(), 1),
        };
        let squares = height * width;
        let planes = model.obs().len() / squares;
        // Parts of nearly the same size.
        let boards = slots.max(1).div_ceil(slots.max(1).div_ceil(max_boards(squares)));
        let outputs = stream.channels();
        let tower_row = padded_channels(element_type, outputs);
        let base = LayerSpec { element_type, cores, taps, height, width, inputs: tower_row, outputs };
        let on_boards = |layer: LayerSpec| ForwardLayer::new(layer, boards * squares, limits);
        let (head, dense_inputs) = match form.heads {
            None => (None, tower_row),
            Some(heads) => {
                let outputs = heads.iter().map(|head| model.outputs(head.conv)).sum();
                let head = on_boards(LayerSpec { taps: 1, outputs, ..base })?;
                (Some(head), squares * padded_channels(element_type, outputs))
            }
        };
        let (graph, dense_logits) = match stream {
            ActivationShape::Edges { vertices, .. } => {
                (Some(EdgeGraph::new(&form, vertices, base, boards, limits)?), 0)
            }
            ActivationShape::Vector(_) | ActivationShape::Board { .. } => (None, model.num_actions()),
        };
        let dense = LayerSpec {
            taps: 1,
            height: 1,
            width: 1,
            inputs: dense_inputs,
            outputs: dense_logits + model.outputs(form.hidden),
            ..base
        };
        let mut layers = Self {
            stem: on_boards(LayerSpec { inputs: padded_channels(element_type, planes), ..base })?,
            tower: on_boards(base)?,
            head,
            graph,
            dense: ForwardLayer::new(dense, boards, limits)?,
            dense_logits,
            squares,
            planes,
            boards,
            order: SlotOrder::ByLeaf,
            model,
            form,
        };
        layers.order =
            slot_order::cheapest(slots, layers.launches(slots), |live| layers.cycles(slots, live, limits));
        Ok(layers)
    }

    /// Maximum number of boards that go through the network together, whatever the number of slots.
    pub fn max_boards(&self) -> usize {
        max_boards(self.squares)
    }

    /// Every layer and how often it is launched for a part of the batch.
    fn each(&self) -> impl Iterator<Item = (&ForwardLayer, usize)> {
        let blocks = self.form.blocks.len();
        let vertices = self.graph.iter().map(move |graph| (&graph.layer, blocks));
        let once = [(&self.stem, 1), (&self.tower, 2 * blocks), (&self.dense, 1)];
        once.into_iter().chain(self.head.iter().map(|head| (head, 1))).chain(vertices)
    }

    /// Launches of layers for `slots` slots.
    pub fn launches(&self, slots: usize) -> usize {
        slots.div_ceil(self.boards) * self.each().map(|(_, times)| times).sum::<usize>()
    }

    /// The computed cost of all layers on the first `live` of `slots` slots, in cycles of a multiprocessor.
    pub fn cycles(&self, slots: usize, live: usize, limits: Limits) -> f64 {
        let part = |first: usize| {
            let boards = live.saturating_sub(first).min(self.boards);
            let launch = |(layer, times): (&ForwardLayer, usize)| {
                let rows = boards * layer.spec.height * layer.spec.width;
                times as f64 * layer.cycles(rows, limits)
            };
            self.each().map(launch).sum::<f64>()
        };
        (0..slots).step_by(self.boards).map(part).sum()
    }
}

fn max_boards(squares: usize) -> usize {
    (MAX_ROWS / squares).max(1)
}
