//! The whole network in training mode: the layers, their arrays, and the forward pass.
//!
//! A network is a stem, a row of units `y = linear(relu(norm(x)))` (every second one of the tower adds the residual
//! stream), and a tail `relu(norm(x))` that feeds the policy layer and the value layers. One parallel pass over the
//! pieces of the batch does a unit and the moments that the next normalisation needs.

use super::gemm::{LANES, View, ViewMut};
use super::geometry::Geometry;
use super::layer::{Linear, Moments, Norm};
use super::norm;
use super::params::Params;
use super::split::Split;
use crate::config::Arch;
use crate::isa::Isa;
use crate::net::spec::NetSpec;
use rayon::prelude::*;

/// `y = linear(relu(norm(x)))`, plus what comes in on the residual stream.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub norm: Norm,
    pub linear: Linear,
    pub skip: Skip,
}

/// Whether a unit's output is added to the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    /// It stands alone.
    None,
    /// The input of the unit before is added.
    Residual,
}

/// The arrays of one forward and backward pass; `[boards, positions, width]` in chunks, see the module [`super`].
#[derive(Clone, Debug, Default)]
pub(super) struct Arrays {
    /// Observations, a position's channels together.
    pub obs: Vec<f32>,
    /// Output of the stem and of every unit.
    pub activations: Vec<Vec<f32>>,
    /// What the heads' linear layers read.
    pub tail: Vec<f32>,
    /// `[B, A padded]`
    pub logits: Vec<f32>,
    /// After the ReLU. `[B, hidden padded]`
    pub hidden: Vec<f32>,
    /// Before the tanh. `[B, V padded]`
    pub values: Vec<f32>,
    /// Gradients on their way down.
    pub flow: Flow,
    /// Every piece's own room.
    pub scratch: Vec<Scratch>,
}

/// Gradients on their way down. `[boards, positions, width]` in chunks, as many floats as the widest layer needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Gradient behind the ReLU of the normalisation above.
    pub dz: Vec<f32>,
    /// The same for the normalisation below, being written.
    pub next: Vec<f32>,
    /// Gradient of the residual stream.
    pub stream: Vec<f32>,
}

/// Room of one piece, as many floats as the largest layer needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// A chunk behind its ReLU.
    pub active: Vec<f32>,
    /// The piece's part of a layer's weight gradient. `[taps, inputs, columns]`
    pub weights: Vec<f32>,
}

/// Outputs of a forward pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// Raw logits. `[B, A]`
    pub logits: Vec<f32>,
    /// After the tanh. `[B, V]`
    pub values: Vec<f32>,
}

/// A network in training mode (normalised by the batch), forward and backward.
#[derive(Clone, Debug)]
pub struct Tower {
    pub(super) spec: NetSpec,
    pub(super) params: Params,
    pub(super) isa: Isa,
    pub(super) split: Split,
    pub(super) stem: Linear,
    pub(super) units: Vec<Unit>,
    pub(super) tail: Norm,
    pub(super) policy: Linear,
    pub(super) hidden: Linear,
    pub(super) values: Linear,
    pub(super) arrays: Arrays,
}

impl Tower {
    /// The network of `spec`, with the best instructions this machine has.
    pub fn new(spec: &NetSpec) -> Self {
        Self::build(spec, Isa::detect())
    }

    /// As [`Tower::new`] with other instructions; those that this machine lacks become the portable ones.
    pub fn with_isa(spec: &NetSpec, isa: Isa) -> Self {
        Self::build(spec, if Isa::available().any(|here| here == isa) { isa } else { Isa::Portable })
    }

    fn build(spec: &NetSpec, isa: Isa) -> Self {
        let params = Params::new(spec);
        let c = 0..spec.channels;
        let (height, width) = match spec.arch {
            Arch::Resnet => (spec.obs.height, spec.obs.width),
            Arch::Mlp => (1, 1),
        };
        let (square, layer) = match spec.arch {
            Arch::Resnet => (Geometry::conv3x3(height, width), "conv"),
            Arch::Mlp => (Geometry::pointwise(1), "linear"),
        };
        let stem_inputs = 0..spec.obs.len() / (height * width);
        let stem = Linear::new(&params, &["stem"], square.clone(), stem_inputs);
        let mut units = Vec::new();
        for block in 0..spec.blocks {
            for (half, skip) in [(1, Skip::None), (2, Skip::Residual)] {
                let norm = Norm::new(&params, &[&format!("blocks.{block}.bn{half}")]);
                let name = format!("blocks.{block}.{layer}{half}");
                let linear = Linear::new(&params, &[&name], square.clone(), c.clone());
                units.push(Unit { norm, linear, skip });
            }
        }
        let last = Norm::new(&params, &["bn"]);
        let (tail, area, policy_inputs, hidden_inputs) = match spec.arch {
            Arch::Resnet => {
                let convs = ["policy.conv", "value.conv"];
                let linear = Linear::new(&params, &convs, Geometry::pointwise(height * width), c);
                units.push(Unit { norm: last, linear, skip: Skip::None });
                let value = spec.policy_channels.next_multiple_of(LANES);
                let tail = Norm::new(&params, &["policy.bn", "value.bn"]);
                (tail, height * width, 0..spec.policy_channels, value..value + spec.value_channels)
            }
            Arch::Mlp => (last, 1, c.clone(), c),
        };
        let flat = Geometry::flatten(area);
        let policy = Linear::new(&params, &["policy.linear"], flat.clone(), policy_inputs);
        let hidden = Linear::new(&params, &["value.hidden"], flat, hidden_inputs);
        let values = Linear::new(&params, &["value.out"], Geometry::pointwise(1), 0..spec.value_hidden);
        let split = Split::new(0, 1);
        let arrays = Arrays::default();
        Self { spec: spec.clone(), params, isa, split, stem, units, tail, policy, hidden, values, arrays }
    }

    /// The places of the tensors in the flat arrays.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The instructions in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Multiply-adds of one position's forward pass, taps off the board and padding not counted.
    pub fn products(&self) -> usize {
        let slots = &self.params.slots;
        let outputs = |linear: &Linear| -> usize {
            linear
                .slots()
                .map(|slot| &slots[slot].shape)
                .filter(|shape| shape.len() > 1)
                .map(|shape| shape[0])
                .sum()
        };
        self.linears().map(|linear| linear.geometry.links() * linear.inputs.len() * outputs(linear)).sum()
    }

    /// Sizes the arrays for `boards` boards.
    fn resize(&mut self, boards: usize) {
        if self.split.boards == boards {
            return;
        }
        self.split = Split::new(boards, self.stem.geometry.outputs * self.stem.columns);
        let zeros = |linear: &Linear| vec![0.0; boards * linear.geometry.outputs * linear.columns];
        let activations: Vec<Vec<f32>> = std::iter::once(&self.stem)
            .chain(self.units.iter().map(|unit| &unit.linear))
            .map(zeros)
            .collect();
        let units = self.units.iter();
        let per_board =
            units.clone().map(|unit| unit.linear.geometry.inputs * unit.norm.width).max().unwrap_or(0);
        let linears = units.map(|unit| &unit.linear).chain([&self.stem]);
        let gradient = linears.map(|linear| linear.gradient.len()).max().unwrap_or(0);
        let scratch =
            Scratch { active: vec![0.0; self.split.chunk * per_board], weights: vec![0.0; gradient] };
        let widest = activations.iter().map(Vec::len).max().unwrap_or(0);
        let room = || vec![0.0; widest];
        self.arrays = Arrays {
            flow: Flow { dz: room(), next: room(), stream: room() },
            scratch: vec![scratch; self.split.pieces.len()],
            obs: vec![0.0; boards * self.spec.obs.len()],
            activations,
            tail: vec![0.0; boards * self.policy.geometry.inputs * self.tail.width],
            logits: zeros(&self.policy),
            hidden: zeros(&self.hidden),
            values: zeros(&self.values),
        };
    }

    /// Logits and values of a batch, normalised by the batch's own statistics.
    ///
    /// # Shapes
    /// `parameters` flat as in [`Params`], `obs [B, F]` channels first, B > 0.
    pub fn forward(&mut self, parameters: &[f32], obs: &[f32]) -> Outputs {
        assert_eq!(parameters.len(), self.params.num_parameters, "parameters");
        let boards = obs.len() / self.spec.obs.len();
        self.resize(boards);
        self.pack(parameters);
        self.take_observations(obs);
        let mut moments = self.forward_stem();
        for number in 0..self.units.len() {
            self.units[number].norm.prepare(&self.params, parameters, &moments);
            moments = self.forward_unit(number);
        }
        self.tail.prepare(&self.params, parameters, &moments);
        self.forward_tail();
        self.outputs()
    }

    /// Moves the running statistics towards the last forward pass's batch.
    pub fn update_statistics(&self, statistics: &mut [f32]) {
        let norms = self.units.iter().map(|unit| &unit.norm).chain([&self.tail]);
        norms.for_each(|norm| norm.update_statistics(&self.params, statistics));
    }

    /// All layers with weights, from input to output.
    pub(super) fn linears(&self) -> impl Iterator<Item = &Linear> {
        let units = self.units.iter().map(|unit| &unit.linear);
        std::iter::once(&self.stem).chain(units).chain([&self.policy, &self.hidden, &self.values])
    }

    fn pack(&mut self, parameters: &[f32]) {
        let Self { params, stem, units, policy, hidden, values, .. } = self;
        let units = units.iter_mut().map(|unit| &mut unit.linear);
        let linears: Vec<&mut Linear> =
            std::iter::once(stem).chain(units).chain([policy, hidden, values]).collect();
        linears.into_par_iter().for_each(|linear| linear.pack(params, parameters));
    }

    /// Channels first -> a position's channels together, in chunks.
    fn take_observations(&mut self, obs: &[f32]) {
        let positions = self.stem.geometry.inputs;
        let (floats, channels) = (self.spec.obs.len(), self.stem.inputs.len());
        let (split, parts) = (&self.split, self.split.parts_mut(&mut self.arrays.obs, floats));
        split.pieces.par_iter().zip(parts).for_each(|(piece, part)| {
            let mut rest = part;
            for boards in split.chunks(piece) {
                let (chunk, after) = rest.split_at_mut(boards.len() * floats);
                for (place, row) in chunk.chunks_exact_mut(channels).enumerate() {
                    let (position, board) = (place / boards.len(), boards.start + place % boards.len());
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
        let (x_floats, y_floats) = (arrays.obs.len() / split.boards, stem.geometry.outputs * stem.columns);
        let y = split.parts_mut(&mut arrays.activations[0], y_floats);
        let x = split.parts(&arrays.obs, x_floats);
        let per_piece = split.pieces.par_iter().zip(x).zip(y).map(|((piece, x), y)| {
            let chunk = split.chunk;
            let chunks = x.chunks(chunk * x_floats).zip(y.chunks_mut(chunk * y_floats));
            split
                .chunks(piece)
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
        per_piece.collect::<Vec<_>>().concat()
    }

    fn forward_unit(&mut self, number: usize) -> Vec<Moments> {
        let Self { split, units, arrays, isa, .. } = self;
        let Unit { norm, linear, skip } = &units[number];
        let Arrays { activations, scratch, .. } = arrays;
        let (before, after) = activations.split_at_mut(number + 1);
        let x_floats = linear.geometry.inputs * norm.width;
        let y_floats = linear.geometry.outputs * linear.columns;
        let x = split.parts(&before[number], x_floats);
        let y = split.parts_mut(&mut after[0], y_floats);
        let stream = match skip {
            Skip::None => vec![None; split.pieces.len()],
            Skip::Residual => split.parts(&before[number - 1], y_floats).into_iter().map(Some).collect(),
        };
        let per_piece = split.pieces.par_iter().zip(x).zip(y).zip(stream).zip(scratch).map(
            |((((piece, x), y), stream), scratch)| {
                let mut done = 0;
                split
                    .chunks(piece)
                    .map(|boards| {
                        let rows = boards.len();
                        let x = &x[done * x_floats..(done + rows) * x_floats];
                        let places = done * y_floats..(done + rows) * y_floats;
                        let y = &mut y[places.clone()];
                        let active = &mut scratch.active[..rows * x_floats];
                        norm::normalize_relu(*isa, x, &norm.columns(), active);
                        match stream {
                            Some(stream) => y.copy_from_slice(&stream[places]),
                            None => linear.start(y),
                        }
                        let view = View { data: active, width: norm.width, offset: 0 };
                        linear.forward(
                            *isa,
                            rows,
                            view,
                            ViewMut { data: y, width: linear.columns, offset: 0 },
                        );
                        done += rows;
                        chunk_moments(*isa, y, linear.columns)
                    })
                    .collect::<Vec<_>>()
            },
        );
        per_piece.collect::<Vec<_>>().concat()
    }

    fn forward_tail(&mut self) {
        let Self { split, tail, policy, hidden, values, arrays, isa, .. } = self;
        let Some(x) = arrays.activations.last() else { return };
        let floats = policy.geometry.inputs * tail.width;
        let isa = *isa;
        let inputs = split.parts(x, floats).into_par_iter().zip(split.parts_mut(&mut arrays.tail, floats));
        let outputs = split
            .parts_mut(&mut arrays.logits, policy.columns)
            .into_par_iter()
            .zip(split.parts_mut(&mut arrays.hidden, hidden.columns))
            .zip(split.parts_mut(&mut arrays.values, values.columns));
        split.pieces.par_iter().zip(inputs).zip(outputs).for_each(|((piece, (x, a)), ((logits, h), v))| {
            let mut done = 0;
            for boards in split.chunks(piece) {
                let rows = boards.len();
                let part = |width: usize| done * width..(done + rows) * width;
                let (x, a) = (&x[part(floats)], &mut a[part(floats)]);
                norm::normalize_relu(isa, x, &tail.columns(), a);
                let forward = |linear: &Linear, data: &[f32], width: usize, out: &mut [f32]| {
                    linear.start(out);
                    let out = ViewMut { data: out, width: linear.columns, offset: 0 };
                    linear.forward(isa, rows, View { data, width, offset: 0 }, out);
                };
                forward(policy, a, tail.width, &mut logits[part(policy.columns)]);
                let h = &mut h[part(hidden.columns)];
                forward(hidden, a, tail.width, h);
                h.iter_mut().filter(|h| **h < 0.0).for_each(|h| *h = 0.0);
                forward(values, h, hidden.columns, &mut v[part(values.columns)]);
                done += rows;
            }
        });
    }

    fn outputs(&self) -> Outputs {
        let tight = |padded: &[f32], columns: usize, width: usize| -> Vec<f32> {
            padded.chunks_exact(columns).flat_map(|row| &row[..width]).copied().collect()
        };
        let mut values = tight(&self.arrays.values, self.values.columns, self.spec.num_values());
        values.iter_mut().for_each(|v| *v = v.tanh());
        Outputs { logits: tight(&self.arrays.logits, self.policy.columns, self.spec.num_actions), values }
    }
}

fn chunk_moments(isa: Isa, y: &[f32], width: usize) -> Moments {
    let mut moments = Moments::new(y.len() / width, width);
    norm::moments(isa, y, &mut moments.mean, &mut moments.deviations);
    moments
}
