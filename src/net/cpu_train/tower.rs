//! The whole network in training mode: the layers, their arrays, and the forward pass.
//!
//! The layers are those of a [`TrainTower`]. One parallel pass over the partitions of the batch does a layer and the moments that the
//! next normalisation needs.

use super::gemm::padded;
use super::head::{self, HeadArrays, HeadLayers};
use super::layer::{CpuBatchNorm, Linear, Moments};
use super::message::LayerMessage;
use super::norm;
use super::operands::Operands;
use super::preact_layer::{PreActLayer, Scratch};
use super::split::BatchSplit;
use super::view::{View, ViewMut};
use crate::config::IsaChoice;
use crate::error::{Error, Result};
use crate::isa::Isa;
use crate::model::{CompleteGraph, Model, NetSpec, PointLogits, Residual, Tower, TrainLinear, TrainTower};
use crate::net::edge_messages;
use rayon::prelude::*;
use std::sync::Arc;

/// The arrays of one forward and backward pass; `[positions, boards, width]` in chunks, see the module [`super`].
#[derive(Clone, Debug, Default)]
pub(super) struct TowerArrays {
    /// Observations, a position's channels together.
    pub obs: Vec<f32>,
    /// Output of the stem and of every layer.
    pub activations: Vec<Vec<f32>>,
    /// The input of the heads' linear layers. `[positions, boards, width]` in chunks
    pub tail: Vec<f32>,
    /// The mean of it over all edges, which the value layers of an edge network read. `[B, width]`, else empty
    pub pooled: Vec<f32>,
    /// Those of each head.
    pub heads: Vec<HeadArrays>,
    /// Gradients of activations in the backward pass.
    pub flow: GradBuffers,
    /// Every partition's own scratch.
    pub scratch: Vec<Scratch>,
}

/// Gradients of activations in the backward pass. `[positions, boards, width]` in chunks, as many floats as the widest layer needs.
#[derive(Clone, Debug, Default)]
pub(super) struct GradBuffers {
    /// Gradient after the ReLU of the normalisation above.
    pub dz: Vec<f32>,
    /// The same for the normalisation below, being written.
    pub next: Vec<f32>,
    /// Gradient of the residual stream.
    pub stream: Vec<f32>,
}

/// What each head learns of a batch, or the gradients of it, in the order of [`Model::heads`]. `[heads][B, outputs]`
pub type Outputs = Vec<Vec<f32>>;

/// A network in training mode (normalised by the batch), forward and backward.
#[derive(Clone, Debug)]
pub struct CpuTrainNet {
    pub(super) model: Model,
    /// Residual blocks, of two layers each.
    pub(super) blocks: usize,
    pub(super) isa: Isa,
    /// Rows of the products' tallest tile.
    tile_rows: usize,
    pub(super) split: BatchSplit,
    pub(super) stem: Linear,
    pub(super) layers: Vec<PreActLayer>,
    pub(super) tail: CpuBatchNorm,
    /// Where the value layers read the mean over all edges.
    pub(super) pool: Option<Arc<CompleteGraph>>,
    pub(super) heads: Vec<HeadLayers>,
    pub(super) arrays: TowerArrays,
}

impl CpuTrainNet {
    /// The network of `spec`, with the best instructions this machine has; the products of its tower take `operands`.
    ///
    /// # Errors
    /// As [`Model::new`]; [`Error::Unsupported`] where the model is not a [`Tower`].
    pub fn new(spec: &NetSpec, operands: Operands) -> Result<Self> {
        Self::build(spec, operands, operands.isa(IsaChoice::Native))
    }

    /// As [`CpuTrainNet::new`] with the instructions of `isa`.
    ///
    /// # Errors
    /// As [`Model::new`]; [`Error::Unsupported`] where the model is not a [`Tower`], or this machine lacks the instructions.
    pub fn with_isa(spec: &NetSpec, operands: Operands, isa: Isa) -> Result<Self> {
        match isa.is_available() {
            true => Self::build(spec, operands, isa),
            false => Err(Error::unsupported(
                format!("training with {isa}"),
                "this machine has no such instructions",
            )),
        }
    }

    fn build(spec: &NetSpec, operands: Operands, isa: Isa) -> Result<Self> {
        let model = spec.model()?;
        let tower = Tower::of(&model).map_err(|why| Error::unsupported("fused training", why))?;
        let tower = TrainTower::new(&model, &tower);
        let linear = |linear: &TrainLinear| Linear::new(&model, linear);
        let edges = tower.edges.clone().map(Arc::new);
        let layers = tower.layers.iter();
        let layers = layers.map(|layer| PreActLayer::new(&model, layer, operands, edges.as_ref())).collect();
        Ok(Self {
            blocks: tower.blocks,
            isa,
            tile_rows: operands.tile_rows(isa),
            split: BatchSplit::new(0, 1, 1),
            stem: linear(&tower.stem),
            layers,
            tail: CpuBatchNorm::new(&model, &tower.tail),
            pool: edges,
            heads: tower.heads.iter().map(|head| HeadLayers::new(&model, head)).collect(),
            arrays: TowerArrays::default(),
            model,
        })
    }

    /// Floats that a forward and backward pass of `model` keeps for each board: its arrays, the heads' outputs, and the gradients of both; None
    /// where the model is not a [`Tower`].
    pub fn floats_per_board(model: &Model) -> Option<usize> {
        let tower = TrainTower::new(model, &Tower::of(model).ok()?);
        let columns = |linear: &TrainLinear| -> usize {
            linear.weights.iter().map(|&weight| padded(model.params[weight].shape[0])).sum()
        };
        let linears = tower.layers.iter().map(|layer| &layer.linear).chain([&tower.stem]);
        let outputs: Vec<usize> = linears.map(columns).collect();
        let widest = outputs.iter().max().copied().unwrap_or(0);
        let tail: usize = tower.tail.iter().map(|&norm| padded(model.outputs(norm))).sum();
        let pooled = if tower.edges.is_some() { tail } else { 0 };
        let heads = tower.heads.iter().map(|head| {
            let out = columns(&head.out) * head.points.map_or(1, PointLogits::points);
            head.hidden.as_ref().map_or(0, columns) + out
        });
        let learnt: usize = model.heads.iter().map(|head| model.head_outputs(head)).sum();
        // Three arrays of gradients are as wide as the widest layer.
        let in_tower = tower.stream.positions() * (outputs.iter().sum::<usize>() + 3 * widest + tail);
        Some(model.obs().len() + in_tower + pooled + 2 * (heads.sum::<usize>() + learnt))
    }

    /// The network's layers and parameters.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Sizes the arrays for `boards` boards.
    fn resize(&mut self, boards: usize) {
        if self.split.boards == boards {
            return;
        }
        self.split = BatchSplit::new(boards, self.stem.tap_map.outputs * self.stem.columns, self.tile_rows);
        let zeros = |linear: &Linear| vec![0.0; boards * linear.tap_map.outputs * linear.columns];
        let activations: Vec<Vec<f32>> = std::iter::once(&self.stem)
            .chain(self.layers.iter().map(|layer| &layer.linear))
            .map(zeros)
            .collect();
        let layers = self.layers.iter();
        let per_board =
            layers.clone().map(|layer| layer.linear.tap_map.inputs * layer.norm.width).max().unwrap_or(0);
        let messages = layers.clone().map(|layer| &layer.message);
        let operands = layers.clone().map(|layer| layer.operand_words(self.split.chunk)).max();
        let scratch = messages.clone().map(LayerMessage::scratch_len).max().unwrap_or(0);
        let of_messages = messages.filter_map(LayerMessage::linear).map(|linear| linear.gradient.len()).max();
        let linears = layers.map(|layer| &layer.linear).chain([&self.stem]);
        let gradient = linears.map(|linear| linear.gradient.len()).max().unwrap_or(0);
        let scratch = Scratch {
            active: vec![0.0; self.split.chunk * per_board],
            weights: vec![0.0; gradient],
            message: vec![0.0; self.split.chunk * scratch],
            message_weights: vec![0.0; of_messages.unwrap_or(0)],
            operands: vec![0.0; operands.unwrap_or(0)],
        };
        let widest = activations.iter().map(Vec::len).max().unwrap_or(0);
        let sums = || vec![0.0; widest];
        self.arrays = TowerArrays {
            flow: GradBuffers { dz: sums(), next: sums(), stream: sums() },
            scratch: vec![scratch; self.split.partitions.len()],
            obs: vec![0.0; boards * self.model.obs().len()],
            activations,
            tail: vec![0.0; boards * self.tail_floats()],
            pooled: vec![0.0; boards * self.pooled_floats()],
            heads: self.heads.iter().map(|head| head.arrays(boards)).collect(),
        };
    }

    /// Floats a board of the tail.
    pub(super) fn tail_floats(&self) -> usize {
        let end = self.layers.last().map_or(&self.stem, |layer| &layer.linear);
        end.tap_map.outputs * self.tail.width
    }

    /// Floats a board that the value layers read where they do not read the tail itself.
    pub(super) fn pooled_floats(&self) -> usize {
        if self.pool.is_some() { self.tail.width } else { 0 }
    }

    /// The heads' outputs for a batch, normalised by the batch's own statistics.
    ///
    /// # Shapes
    /// `parameters` flat as in [`Model::flatten`], `obs [B, F]` channels first, B > 0.
    pub fn forward(&mut self, parameters: &[f32], obs: &[f32]) -> Outputs {
        assert_eq!(parameters.len(), self.model.num_parameters(), "parameters");
        let boards = obs.len() / self.model.obs().len();
        self.resize(boards);
        self.pack(parameters);
        self.take_observations(obs);
        let mut moments = self.forward_stem();
        for number in 0..self.layers.len() {
            self.layers[number].norm.prepare(&self.model, parameters, &moments);
            moments = self.forward_layer(number);
        }
        self.tail.prepare(&self.model, parameters, &moments);
        self.forward_tail();
        self.outputs()
    }

    /// Moves the running statistics towards the last forward pass's batch.
    pub fn update_statistics(&self, statistics: &mut [f32]) {
        let norms = self.layers.iter().map(|layer| &layer.norm).chain([&self.tail]);
        norms.for_each(|norm| norm.update_statistics(&self.model, statistics));
    }

    /// All layers with weights, from input to output.
    pub(super) fn linears(&self) -> impl Iterator<Item = &Linear> {
        let layers = self.layers.iter();
        let layers = layers.flat_map(|layer| std::iter::once(&layer.linear).chain(layer.message.linear()));
        std::iter::once(&self.stem).chain(layers).chain(self.heads.iter().flat_map(HeadLayers::linears))
    }

    fn pack(&mut self, parameters: &[f32]) {
        let Self { model, stem, layers, heads, .. } = self;
        let layers = layers
            .iter_mut()
            .flat_map(|layer| std::iter::once(&mut layer.linear).chain(layer.message.linear_mut()));
        let linears: Vec<&mut Linear> = std::iter::once(stem)
            .chain(layers)
            .chain(heads.iter_mut().flat_map(HeadLayers::linears_mut))
            .collect();
        linears.into_par_iter().for_each(|linear| linear.pack(model, parameters));
    }

    /// Channels first -> a position's channels together, in chunks.
    fn take_observations(&mut self, obs: &[f32]) {
        let positions = self.stem.tap_map.inputs;
        let (floats, channels) = (self.model.obs().len(), self.stem.inputs.len());
        let (split, parts) = (&self.split, self.split.parts_mut(&mut self.arrays.obs, floats));
        split.partitions.par_iter().zip(parts).for_each(|(partition, part)| {
            let mut rest = part;
            for boards in split.chunks(partition) {
                let (chunk, after) = rest.split_at_mut(boards.len() * floats);
                for (index, row) in chunk.chunks_exact_mut(channels).enumerate() {
                    let (position, board) = (index / boards.len(), boards.start + index % boards.len());
                    for (channel, x) in row.iter_mut().enumerate() {
                        *x = obs[board * floats + channel * positions + position];
                    }
                }
                rest = after;
            }
        });
    }

    fn forward_stem(&mut self) -> Vec<Moments> {
        let Self { split, stem, arrays, isa, .. } = self;
        let (x_floats, y_floats) = (arrays.obs.len() / split.boards, stem.tap_map.outputs * stem.columns);
        let y = split.parts_mut(&mut arrays.activations[0], y_floats);
        let x = split.parts(&arrays.obs, x_floats);
        let per_partition = split.partitions.par_iter().zip(x).zip(y).map(|((partition, x), y)| {
            let chunk = split.chunk;
            let chunks = x.chunks(chunk * x_floats).zip(y.chunks_mut(chunk * y_floats));
            split
                .chunks(partition)
                .zip(chunks)
                .map(|(boards, (x, y))| {
                    stem.start(y);
                    let view = View { data: x, width: stem.inputs.len(), offset: 0 };
                    stem.forward(
                        *isa,
                        boards.len(),
                        view,
                        ViewMut { data: y, width: stem.columns, offset: 0 },
                    );
                    chunk_moments(*isa, y, stem.columns)
                })
                .collect::<Vec<_>>()
        });
        per_partition.collect::<Vec<_>>().concat()
    }

    fn forward_layer(&mut self, number: usize) -> Vec<Moments> {
        let Self { split, layers, arrays, isa, .. } = self;
        let layer = &layers[number];
        let PreActLayer { norm, linear, residual, .. } = layer;
        let TowerArrays { activations, scratch, .. } = arrays;
        let (before, after) = activations.split_at_mut(number + 1);
        let x_floats = linear.tap_map.inputs * norm.width;
        let y_floats = linear.tap_map.outputs * linear.columns;
        let x = split.parts(&before[number], x_floats);
        let y = split.parts_mut(&mut after[0], y_floats);
        let stream = match residual {
            Residual::None => vec![None; split.partitions.len()],
            Residual::Add => split.parts(&before[number - 1], y_floats).into_iter().map(Some).collect(),
        };
        let per_partition = split.partitions.par_iter().zip(x).zip(y).zip(stream).zip(scratch).map(
            |((((partition, x), y), stream), scratch)| {
                let mut done = 0;
                split
                    .chunks(partition)
                    .map(|boards| {
                        let rows = boards.len();
                        let x = &x[done * x_floats..(done + rows) * x_floats];
                        let range = done * y_floats..(done + rows) * y_floats;
                        let y = &mut y[range.clone()];
                        let stream = stream.map(|stream| &stream[range]);
                        layer.forward(*isa, rows, (x, stream), y, scratch);
                        done += rows;
                        chunk_moments(*isa, y, linear.columns)
                    })
                    .collect::<Vec<_>>()
            },
        );
        per_partition.collect::<Vec<_>>().concat()
    }

    fn forward_tail(&mut self) {
        let (floats, pooled_floats) = (self.tail_floats(), self.pooled_floats());
        let Self { split, tail, pool, heads, arrays, isa, .. } = self;
        let Some(x) = arrays.activations.last() else { return };
        let (isa, pool) = (*isa, pool.as_deref());
        let inputs = split.parts(x, floats).into_par_iter().zip(split.parts_mut(&mut arrays.tail, floats));
        let outputs = head::parts_mut(split, heads, &mut arrays.heads)
            .into_par_iter()
            .zip(split.parts_mut(&mut arrays.pooled, pooled_floats));
        split.partitions.par_iter().zip(inputs).zip(outputs).for_each(|((partition, (x, a)), outputs)| {
            let (mut parts, pooled) = outputs;
            let mut done = 0;
            for boards in split.chunks(partition) {
                let rows = boards.len();
                let part = |width: usize| done * width..(done + rows) * width;
                let (x, a) = (&x[part(floats)], &mut a[part(floats)]);
                norm::normalize_relu(isa, x, &tail.columns(), a);
                let pooled = &mut pooled[part(pooled_floats)];
                if let Some(edges) = pool {
                    edge_messages::mean(isa, edges, a, pooled);
                }
                for (head, arrays) in heads.iter().zip(&mut parts) {
                    let data = head.source(a, pooled);
                    head.forward(isa, rows, View { data, width: tail.width, offset: 0 }, arrays, done);
                }
                done += rows;
            }
        });
    }

    fn outputs(&self) -> Outputs {
        self.heads
            .iter()
            .zip(&self.arrays.heads)
            .map(|(head, arrays)| head.outputs(&self.split, arrays))
            .collect()
    }
}

fn chunk_moments(isa: Isa, y: &[f32], width: usize) -> Moments {
    let mut moments = Moments::new(y.len() / width, width);
    norm::moments(isa, y, &mut moments.mean, &mut moments.deviations);
    moments
}
