//! All executors on the same models, weights and observations: every kind of layer, every number format, within stated bounds of the
//! reference. The kernels of GPUs are held to Rust in `tests/kernels/net`, on networks listed there.

use super::candle::BatchNormMode;
use super::cpu::{CpuNet, available_isas};
use super::reference::{self, difference};
use super::{CandleNet, Network, SplitBatch};
use crate::config::{Arch, Precision, ValueHead};
use crate::game::{ObsShape, PointActions, PointOrder, Target, TargetKind, TargetShape};
use crate::model::{Array, HeadRole, LayerKind, Model, NetSpec, Tower, Weights};
use crate::rng::{Key, Purpose};
use candle_core::{Device, Tensor};
use std::collections::BTreeSet;

/// Sizes that are pairwise different and never 1, so that no two axes can be confused.
fn spec(arch: Arch) -> NetSpec {
    NetSpec {
        arch,
        blocks: 2,
        channels: 20,
        policy_channels: 3,
        value_channels: 9,
        value_hidden: 11,
        obs: ObsShape { channels: 5, height: 6, width: 7 },
        num_actions: 8,
        num_players: 4,
        zero_sum_pair: false,
        ..NetSpec::default()
    }
}

/// A network for two players that learns win, draw and loss.
fn wdl(arch: Arch) -> NetSpec {
    NetSpec { value_head: ValueHead::Wdl, num_players: 2, zero_sum_pair: true, ..spec(arch) }
}

/// A network with logits at points: `planes` at each in this order, and `others` at none.
fn at_points(order: PointOrder, planes: usize, others: usize) -> NetSpec {
    let spec = spec(Arch::Resnet);
    let num_actions = planes * spec.obs.height * spec.obs.width + others;
    NetSpec { num_actions, point_actions: Some(PointActions { planes, order }), ..spec }
}

/// A target for each point, and a vector.
fn auxiliary() -> Vec<Target> {
    vec![
        Target::new("owner", TargetShape::Points, TargetKind::Sign),
        Target::new("margin", TargetShape::Vector(3), TargetKind::Amount),
    ]
}

/// Networks that have every kind of layer together.
pub(crate) fn specs() -> Vec<NetSpec> {
    let edges = ObsShape { channels: 5, height: 21, width: 1 };
    vec![
        spec(Arch::Resnet),
        NetSpec { num_players: 2, zero_sum_pair: true, channels: 33, ..spec(Arch::Resnet) },
        at_points(PointOrder::Rows, 1, 0),
        at_points(PointOrder::Columns, 19, 0),
        at_points(PointOrder::Columns, 3, 2),
        spec(Arch::Mlp),
        NetSpec { auxiliary: auxiliary(), ..spec(Arch::Resnet) },
        wdl(Arch::Resnet),
        NetSpec { channels: 33, ..wdl(Arch::Mlp) },
        NetSpec { obs: edges, num_actions: 21, ..wdl(Arch::Edge) },
        NetSpec { auxiliary: auxiliary(), ..spec(Arch::Mlp) },
        NetSpec { obs: edges, num_actions: 21, ..spec(Arch::Edge) },
    ]
}

/// A network with its model, random weights and observations.
pub(crate) struct Case {
    pub spec: NetSpec,
    pub model: Model,
    pub weights: Weights,
    /// `[ROWS, F]`
    pub obs: Vec<f32>,
}

pub(crate) const ROWS: usize = 13;

impl Case {
    pub fn new(spec: NetSpec) -> Self {
        let model = spec.model().expect("a network");
        let mut weights = model.random_weights(Key::new(7, Purpose::Weights));
        // Products around triangles must not grow from block to block.
        for layer in model.layers.iter().filter(|layer| layer.kind == LayerKind::EdgeMessage) {
            for param in &model.params[layer.params.clone()] {
                let array = weights.get_mut(&param.name).expect("its own");
                array.data.iter_mut().for_each(|x| *x *= 0.3);
            }
        }
        let mut stream = Key::new(8, Purpose::Evaluation).stream();
        let obs = (0..ROWS * spec.obs.len()).map(|_| stream.uniform() * 2.0 - 1.0).collect();
        Self { spec, model, weights, obs }
    }

    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.obs.chunks_exact(self.spec.obs.len())
    }

    /// Logits and values by the reference.
    fn reference(&self) -> [Vec<f32>; 2] {
        let (mut logits, mut values) = (vec![], vec![]);
        for row in self.rows() {
            let (l, v) = reference::forward(&self.model, &self.weights, row).expect("finite");
            logits.extend(l);
            values.extend(v);
        }
        [logits, values]
    }

    fn check(&self, net: &mut dyn Network, expected: &[Vec<f32>; 2], bound: f32, what: &str) {
        let mut found = expected.clone().map(|numbers| vec![9.0; numbers.len()]);
        let [logits, values] = &mut found;
        net.forward(&self.obs, logits, values).expect("finite");
        for (found, expected) in found.iter().zip(expected) {
            let off = difference(found, expected);
            assert!(off < bound, "{what}, {:?}: off by {off}", self.spec);
        }
    }
}

/// How far a number format's outputs may be from the reference's.
fn bound(precision: Precision) -> f32 {
    match precision {
        Precision::F32 => 2e-5,
        Precision::Bf16 => 2e-2,
        Precision::Int8 => 6e-2,
        Precision::F16 | Precision::Tf32 => panic!("{precision} is a format of GPUs"),
    }
}

#[test]
fn every_executor_agrees_with_the_reference() {
    for case in specs().into_iter().map(Case::new) {
        let (spec, weights, expected) = (&case.spec, &case.weights, case.reference());
        let mut candle = CandleNet::new(spec, weights).expect("every layer");
        case.check(&mut candle, &expected, bound(Precision::F32), "candle");
        Tower::of(&case.model).expect("a network of these architectures");
        for precision in [Precision::F32, Precision::Bf16] {
            for isa in available_isas(precision) {
                let mut net = CpuNet::with_isa(spec, weights, precision, isa).expect("available");
                case.check(&mut net, &expected, bound(precision), &format!("{isa:?} in {precision}"));
            }
        }
        if spec.arch != Arch::Edge {
            for isa in available_isas(Precision::Int8) {
                let mut net = CpuNet::int8_with_isa(spec, weights, &case.obs, isa).expect("available");
                case.check(&mut net, &expected, bound(Precision::Int8), &format!("{isa:?} in int8"));
            }
        }
    }
}

/// Each block is the identity at first, so that sums, and products of products, do not grow with the depth.
#[test]
fn networks_of_any_depth_begin_near_uniform() {
    for (arch, height) in [(Arch::Edge, 21), (Arch::Resnet, 3), (Arch::Mlp, 3)] {
        for blocks in [1, 3, 6, 40] {
            let obs = ObsShape { channels: 4, height, width: 1 };
            let mut case = Case::new(NetSpec { blocks, obs, num_actions: 21, ..spec(arch) });
            case.weights = case.model.initial_weights(1);
            let [logits, values] = case.reference();
            assert!(
                logits.iter().chain(&values).all(|x| x.abs() < 1.0),
                "{arch} {blocks}: {logits:?} {values:?}"
            );
        }
    }
}

/// Without the policy head the values are the same, to the bit, in whole batches and in divided ones of any length.
#[test]
fn values_alone_are_those_of_a_whole_forward() {
    for case in specs().into_iter().map(Case::new) {
        let (spec, weights) = (&case.spec, &case.weights);
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            for isa in available_isas(precision) {
                let net = match precision {
                    Precision::Int8 if spec.arch == Arch::Edge => continue,
                    Precision::Int8 => CpuNet::int8_with_isa(spec, weights, &case.obs, isa),
                    _ => CpuNet::with_isa(spec, weights, precision, isa),
                };
                let mut net = net.expect("available");
                let mut divided = SplitBatch::new(&net, 3);
                for rows in [1, 2, 7, ROWS] {
                    let obs = &case.obs[..rows * spec.obs.len()];
                    let mut logits = vec![0.0; rows * spec.num_actions];
                    let mut outputs = [(); 3].map(|()| vec![0.0; rows * spec.num_players]);
                    let [all, alone, parts] = &mut outputs;
                    net.forward(obs, &mut logits, all).expect("finite");
                    net.values(obs, &mut logits, alone).expect("finite");
                    divided.values(obs, &mut logits, parts).expect("finite");
                    assert!(all == alone && all == parts, "{isa:?} in {precision}, {rows} rows, {spec:?}");
                }
            }
        }
    }
}

/// Win, draw and loss of one observation, by each executor against the softmax of the reference's layer; other value heads have none.
#[test]
fn outcomes_are_those_of_the_value_head() {
    for case in specs().into_iter().map(Case::new) {
        let (spec, weights) = (&case.spec, &case.weights);
        let mut cpu = CpuNet::new(spec, weights, Precision::F32).expect("fits");
        let mut candle = CandleNet::new(spec, weights).expect("every layer");
        for obs in case.rows() {
            let found = [cpu.outcome(obs), candle.outcome(obs)].map(|outcome| outcome.expect("finite"));
            if spec.value_head == ValueHead::Scalar {
                assert_eq!(found, [None, None]);
                continue;
            }
            let layers = reference::activations(&case.model, weights, obs).expect("finite");
            let each: Vec<f64> = layers[case.model.value_outputs()].iter().map(|x| x.exp()).collect();
            let expected: Vec<f32> = each.iter().map(|x| (x / each.iter().sum::<f64>()) as f32).collect();
            for outcome in found {
                assert!(difference(&outcome.expect("win, draw and loss"), &expected) < 2e-5, "{spec:?}");
            }
        }
    }
}

#[test]
fn outcomes_of_wrong_lengths_or_without_numbers_are_refused() {
    for mut case in specs().into_iter().map(Case::new).filter(|case| case.spec.value_head == ValueHead::Wdl) {
        let long = &case.obs[..2 * case.spec.obs.len()];
        let one = &case.obs[..case.spec.obs.len()];
        case.weights.get_mut("value.out.weight").expect("a value head").data.fill(3e38);
        let (spec, weights) = (&case.spec, &case.weights);
        let cpu: Box<dyn Network> = Box::new(CpuNet::new(spec, weights, Precision::F32).expect("fits"));
        let candle: Box<dyn Network> = Box::new(CandleNet::new(spec, weights).expect("every layer"));
        for mut net in [cpu, candle] {
            let refused = [(long, "observations"), (one, "is not finite")];
            for (obs, part) in refused {
                let error = net.outcome(obs).expect_err("refused").to_string();
                assert!(error.contains(part), "{spec:?}: {error}");
            }
        }
    }
}

/// Outputs that agree could hide a layer that does nothing: here every layer is compared by itself.
#[test]
fn candle_computes_every_layer_as_the_reference_does() {
    for case in specs().into_iter().map(Case::new) {
        let net = CandleNet::new(&case.spec, &case.weights).expect("every layer");
        let obs = Tensor::from_slice(&case.obs, (ROWS, case.spec.obs.len()), &Device::Cpu).expect("tensor");
        let found = net.layers_t(&obs, BatchNormMode::Eval).expect("forward");
        for (row, obs) in case.rows().enumerate() {
            let expected = reference::activations(&case.model, &case.weights, obs).expect("finite");
            for ((layer, expected), found) in case.model.layers.iter().zip(&expected).zip(&found) {
                // Channels first, as the reference has them.
                let found = found.get(row).expect("a row");
                let found = if found.rank() == 2 { found.t().expect("edges first") } else { found };
                let found = found.flatten_all().and_then(|x| x.to_vec1::<f32>()).expect("numbers");
                let expected: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
                let off = difference(&found, &expected);
                assert!(off < 2e-5, "{} ({}): off by {off}", layer.kind.name(), layer.name);
            }
        }
    }
}

/// Executors for play read neither layers nor weights of heads that only training uses.
#[test]
fn heads_of_training_cost_nothing_in_play() {
    for arch in [Arch::Resnet, Arch::Mlp] {
        let plain = Case::new(spec(arch));
        let with = NetSpec { auxiliary: auxiliary(), ..plain.spec.clone() };
        let model = with.model().expect("a network");
        assert_eq!(model.multiply_adds_in_play(), plain.model.multiply_adds());
        assert!(model.multiply_adds() > plain.model.multiply_adds());
        assert_eq!(model.heads.iter().filter(|head| head.role == HeadRole::Auxiliary).count(), 2);
        let mut weights = plain.weights.clone();
        for param in model.params.iter().filter(|param| !plain.weights.contains_key(&param.name)) {
            assert!(param.name.starts_with("auxiliary."), "{}", param.name);
            let data = vec![1e30; param.range.len()];
            weights.insert(param.name.clone(), Array { shape: param.shape.clone(), data });
        }
        let candle = |spec, weights| Box::new(CandleNet::new(spec, weights).expect("a network"));
        let cpu = |spec, weights| Box::new(CpuNet::new(spec, weights, Precision::F32).expect("a network"));
        let mut networks: [[Box<dyn Network>; 2]; 2] = [
            [candle(&plain.spec, &plain.weights), candle(&with, &weights)],
            [cpu(&plain.spec, &plain.weights), cpu(&with, &weights)],
        ];
        for pair in &mut networks {
            let outputs = pair.each_mut().map(|net| {
                let (mut logits, mut values) = (vec![0.0; ROWS * 8], vec![0.0; ROWS * 4]);
                net.forward(&plain.obs, &mut logits, &mut values).expect("finite");
                (logits, values)
            });
            assert_eq!(outputs[0], outputs[1], "{arch:?}");
        }
    }
}

/// The number of a kind of layer, below [`NUM_KINDS`]: a new kind does not compile without one, and the test fails until a network in
/// `specs` has it.
fn kind_index(kind: LayerKind) -> usize {
    match kind {
        LayerKind::Input => 0,
        LayerKind::Conv3x3 { .. } => 1,
        LayerKind::Conv1x1 { .. } => 2,
        LayerKind::Linear { .. } => 3,
        LayerKind::BatchNorm => 4,
        LayerKind::Relu => 5,
        LayerKind::Tanh => 6,
        LayerKind::WinLoss => 7,
        LayerKind::Add => 8,
        LayerKind::Flatten => 9,
        LayerKind::EdgeMessage => 10,
        LayerKind::TriangleMix { .. } => 11,
        LayerKind::MeanOverEdges => 12,
        LayerKind::PointLogits(_) => 13,
    }
}

const NUM_KINDS: usize = 14;

#[test]
fn the_networks_here_have_every_kind_of_layer() {
    let models = specs().into_iter().map(|spec| spec.model().expect("a network"));
    let layers = models.flat_map(|model| model.layers);
    let found: BTreeSet<usize> = layers.map(|layer| kind_index(layer.kind)).collect();
    assert_eq!(found, (0..NUM_KINDS).collect());
}
