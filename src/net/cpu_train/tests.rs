//! The fused passes against the candle modules' outputs and autograd, and against finite differences.

use super::*;
use crate::config::{Arch, ValueHead};
use crate::game::{ObsShape, PointActions, PointOrder, Target, TargetKind, TargetShape};
use crate::isa::Isa;
use crate::model::{Array, NetSpec, Weights};
use crate::net::candle::{BatchNormMode, CandleNet};
use crate::rng::{Key, Purpose};
use candle_core::{Device, Tensor, Var};
use proptest::prelude::*;
use std::sync::Arc;

fn spec(arch: Arch, blocks: usize, channels: usize, obs: (usize, usize, usize)) -> NetSpec {
    NetSpec {
        arch,
        blocks,
        channels,
        policy_channels: 3,
        value_channels: 18,
        value_hidden: 21,
        obs: ObsShape { channels: obs.0, height: obs.1, width: obs.2 },
        num_actions: 37,
        num_players: 3,
        zero_sum_pair: false,
        ..NetSpec::default()
    }
}

/// An edge network on K_n.
fn edge_spec(blocks: usize, channels: usize, n: usize) -> NetSpec {
    let edges = n * (n - 1) / 2;
    NetSpec { num_actions: edges, ..spec(Arch::Edge, blocks, channels, (4, edges, 1)) }
}

/// The same network with win, draw and loss.
fn wdl(spec: NetSpec) -> NetSpec {
    NetSpec { value_head: ValueHead::Wdl, num_players: 2, zero_sum_pair: true, ..spec }
}

/// The same network with logits at points: `planes` at each in this order, and `others` at none.
fn at_points(spec: NetSpec, order: PointOrder, planes: usize, others: usize) -> NetSpec {
    let num_actions = planes * spec.obs.height * spec.obs.width + others;
    NetSpec { num_actions, point_actions: Some(PointActions { planes, order }), ..spec }
}

/// A target for each point, and a vector.
fn auxiliary() -> Vec<Target> {
    vec![
        Target::new("owner", TargetShape::Points, TargetKind::Sign),
        Target::new("margin", TargetShape::Vector(5), TargetKind::Amount),
    ]
}

fn specs() -> Vec<NetSpec> {
    vec![
        edge_spec(2, 36, 5),
        edge_spec(1, 64, 4),
        edge_spec(1, 7, 6),
        edge_spec(0, 16, 3),
        spec(Arch::Resnet, 2, 20, (2, 3, 4)),
        spec(Arch::Resnet, 1, 64, (5, 2, 7)),
        spec(Arch::Resnet, 0, 48, (3, 5, 3)),
        spec(Arch::Resnet, 1, 33, (5, 2, 7)),
        at_points(spec(Arch::Resnet, 1, 20, (5, 2, 7)), PointOrder::Rows, 1, 1),
        at_points(spec(Arch::Resnet, 0, 33, (2, 3, 4)), PointOrder::Columns, 19, 0),
        at_points(wdl(spec(Arch::Resnet, 1, 20, (3, 5, 3))), PointOrder::Columns, 3, 2),
        spec(Arch::Mlp, 2, 36, (7, 3, 2)),
        NetSpec { auxiliary: auxiliary(), ..spec(Arch::Resnet, 1, 20, (5, 2, 7)) },
        NetSpec { auxiliary: auxiliary(), ..spec(Arch::Mlp, 1, 20, (7, 3, 2)) },
        wdl(spec(Arch::Resnet, 1, 20, (5, 2, 7))),
        wdl(edge_spec(1, 10, 5)),
        spec(Arch::Mlp, 0, 16, (11, 1, 1)),
    ]
}

/// First weights with every vector moved off its start, so that no gradient is 0 by chance.
fn weights(spec: &NetSpec) -> Weights {
    let mut rng = Key::new(5, Purpose::Evaluation).stream();
    let mut weights = spec.model().expect("a network").initial_weights_without_zeros(5);
    for (name, Array { shape, data }) in &mut weights {
        let scale =
            if name.contains("out") || name.contains("policy.linear") || name.contains("policy.points") {
                3.0
            } else {
                1.0
            };
        for x in data {
            let moved = if shape.len() == 1 { 0.3 } else { 0.0 };
            *x = *x * scale + moved * rng.uniform();
        }
    }
    weights
}

fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = Key::new(seed, Purpose::Evaluation).stream();
    (0..len).map(|_| rng.normal()).collect()
}

/// Random gradients of all heads' outputs.
fn head_gradients(spec: &NetSpec, rows: usize) -> Outputs {
    let model = spec.model().expect("a network");
    let heads = model.heads.iter().enumerate();
    heads.map(|(i, head)| numbers(rows * model.head_outputs(head), 2 + i as u64)).collect()
}

/// Outputs and gradient by candle, for the loss that sums outputs * d over all heads.
fn by_candle(spec: &NetSpec, obs: &[f32], d: &Outputs) -> (Outputs, Vec<f32>) {
    let device = Device::Cpu;
    let rows = obs.len() / spec.obs.len();
    let tensor = |x: &[f32], shape: &[usize]| Tensor::from_slice(x, shape, &device).expect("tensor");
    let model = spec.model().expect("a network");
    let weights = weights(spec);
    let var =
        |name: &str| Var::from_tensor(&tensor(&weights[name].data, &weights[name].shape)).expect("variable");
    let vars: Vec<Var> = model.params.iter().map(|param| var(&param.name)).collect();
    let tensors: Vec<Tensor> = vars.iter().map(|var| var.as_tensor().clone()).collect();
    let net = CandleNet::from_tensors(&device, Arc::new(model.clone()), &tensors).expect("network");
    let outputs = net.heads_t(&tensor(obs, &[rows, spec.obs.len()]), BatchNormMode::Train).expect("forward");
    let term =
        |(y, d): (&Tensor, &Vec<f32>)| (y * tensor(d, y.dims())).and_then(|x| x.sum_all()).expect("loss");
    let loss = outputs.iter().zip(d).map(term).reduce(|sum, term| (sum + term).expect("loss"));
    let gradients = loss.expect("heads").backward().expect("backward");
    let mut flat = Vec::new();
    for (_, var) in model.params.iter().zip(&vars).filter(|(param, _)| !param.role.is_statistic()) {
        let gradient = gradients.get(var.as_tensor()).expect("gradient");
        flat.extend(gradient.flatten_all().and_then(|g| g.to_vec1::<f32>()).expect("numbers"));
    }
    let vec = |t: Tensor| t.flatten_all().and_then(|t| t.to_vec1::<f32>()).expect("numbers");
    (outputs.into_iter().map(vec).collect(), flat)
}

/// The plan of a run's memory has all arrays of a pass.
#[test]
fn the_floats_of_a_board_are_those_of_the_arrays() {
    const BOARDS: usize = 3;
    for spec in specs() {
        let mut net = CpuTrainNet::new(&spec, Operands::F32).expect("a network");
        let per_board = CpuTrainNet::floats_per_board(net.model()).expect("a tower");
        let (parameters, _) = net.model().flatten(&weights(&spec)).expect("weights");
        let outputs = net.forward(&parameters, &numbers(BOARDS * spec.obs.len(), 1));
        let (arrays, flow) = (&net.arrays, &net.arrays.flow);
        let of_heads = arrays.heads.iter().flat_map(|head| [&head.hidden, &head.out]).chain(&outputs);
        let others = [&arrays.obs, &arrays.tail, &arrays.pooled, &flow.dz, &flow.next, &flow.stream];
        let with_gradients = of_heads.flat_map(|array| [array; 2]);
        let all = others.into_iter().chain(&arrays.activations).chain(with_gradients);
        assert_eq!(all.map(Vec::len).sum::<usize>(), BOARDS * per_board, "{spec:?}");
    }
}

fn norm(x: impl Iterator<Item = f64>) -> f64 {
    x.map(|x| x * x).sum::<f64>().sqrt()
}

/// Norm of the difference, relative to the norm of the right value, or to `floor` where that is larger.
fn error_above(found: &[f32], right: &[f32], floor: f64) -> f64 {
    assert_eq!(found.len(), right.len());
    let scale = norm(right.iter().map(|&x| f64::from(x))).max(floor);
    assert!(scale > 0.0, "nothing to compare");
    norm(found.iter().zip(right).map(|(&a, &b)| f64::from(a) - f64::from(b))) / scale
}

fn relative_error(found: &[f32], right: &[f32]) -> f64 {
    error_above(found, right, 0.0)
}

fn assert_close(what: &str, found: &[f32], right: &[f32]) {
    let error = relative_error(found, right);
    assert!(error < 1e-5, "{what}: {error}");
}

/// A bias whose only effect a normalisation takes away: its gradient is rounding.
fn is_without_effect(spec: &NetSpec, name: &str) -> bool {
    let linear = name.starts_with("stem") || name.contains("linear1") || name.contains("linear2");
    spec.arch == Arch::Mlp && linear && name.ends_with(".bias")
}

/// Weights before a normalisation of which each output has one: a scale, which the normalisation takes away. Their gradient is the rounding
/// of sums that cancel, so it is compared as a part of the whole gradient.
fn is_scale_alone(spec: &NetSpec, name: &str) -> bool {
    let one_point = spec.obs.height * spec.obs.width == 1;
    let of_one_channel = name.ends_with(".conv.weight")
        || name.ends_with("linear1.weight")
        || (name.ends_with("conv1.weight") && one_point);
    let of_one_input = name == "stem.weight" && spec.blocks == 0 && spec.obs.len() == 1;
    (of_one_channel && spec.channels == 1) || of_one_input
}

/// The worst tensor and its error against candle, for random observations.
fn worst_error(spec: &NetSpec, rows: usize, isa: Isa, seed: u64) -> (f64, String) {
    let obs = numbers(rows * spec.obs.len(), seed);
    let d = head_gradients(spec, rows);
    let (outputs, gradient) = by_candle(spec, &obs, &d);
    let mut tower = CpuTrainNet::with_isa(spec, Operands::F32, isa).expect("a network");
    let (parameters, _) = tower.model().flatten(&weights(spec)).expect("weights");
    let found = tower.forward(&parameters, &obs);
    let mut flat = vec![0.0; parameters.len()];
    tower.backward(&found, &d, &mut flat);
    let mut worst = (0.0, String::new());
    let mut take = |error: f64, name: &str| {
        assert!(!error.is_nan(), "{name} of {spec:?}");
        if error > worst.0 {
            worst = (error, name.to_string());
        }
    };
    for (head, (found, right)) in tower.model().heads.iter().zip(found.iter().zip(&outputs)) {
        take(relative_error(found, right), &head.name);
    }
    // A gradient that is 0 but for rounding (weights whose scale a normalisation takes away) has no relative error.
    let floor = 1e-3 * norm(gradient.iter().map(|&x| f64::from(x)));
    for slot in tower.model().trained() {
        if !is_without_effect(spec, &slot.name) {
            let part = slot.range.clone();
            let floor = if is_scale_alone(spec, &slot.name) { 10.0 * floor } else { floor };
            take(error_above(&flat[part.clone()], &gradient[part], floor), &slot.name);
        }
    }
    worst
}

/// The smallest of the errors of four batches. An input of a ReLU that is 0 up to rounding may get either sign, which changes the gradient by
/// about 1 %. That is rare: at least one of four batches has no such input.
fn least_of_four(spec: &NetSpec, rows: usize, isa: Isa, seed: u64) -> (f64, String) {
    let errors = (seed..seed + 4).map(|seed| worst_error(spec, rows, isa, seed));
    errors.min_by(|a, b| a.0.total_cmp(&b.0)).expect("four")
}

#[test]
fn outputs_and_gradients_are_those_of_candle_with_every_instruction_set() {
    for spec in specs() {
        for isa in Isa::available() {
            // Three chunks, the last with rows that fill no register tile.
            let least = least_of_four(&spec, 29, isa, 10);
            assert!(least.0 < 1e-5, "{isa:?} {spec:?}: {least:?}");
        }
    }
}

/// Outputs and gradient of random observations.
fn passes(spec: &NetSpec, operands: Operands, isa: Isa, rows: usize) -> (Outputs, Vec<f32>) {
    let (obs, d) = (numbers(rows * spec.obs.len(), 6), head_gradients(spec, rows));
    let mut tower = CpuTrainNet::with_isa(spec, operands, isa).expect("a network");
    let (parameters, _) = tower.model().flatten(&weights(spec)).expect("weights");
    let outputs = tower.forward(&parameters, &obs);
    let mut gradient = vec![0.0; parameters.len()];
    tower.backward(&outputs, &d, &mut gradient);
    (outputs, gradient)
}

/// All fuse the same products in the same order, but AMX those of bf16.
#[test]
fn outputs_and_gradients_have_the_same_bits_with_every_instruction_set() {
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    for (spec, operands) in
        specs().into_iter().flat_map(|spec| [(spec.clone(), Operands::F32), (spec, Operands::Bf16)])
    {
        let of = |isa| {
            let (outputs, gradient) = passes(&spec, operands, isa, 29);
            (outputs.iter().map(|output| bits(output)).collect::<Vec<_>>(), bits(&gradient))
        };
        let portable = of(Isa::Portable);
        for isa in Isa::available().filter(|isa| (*isa, operands) != (Isa::Amx, Operands::Bf16)) {
            assert!(of(isa) == portable, "{isa} and portable differ: {operands:?} {spec:?}");
        }
    }
}

/// The rounding of what is multiplied, 2^-9 each, averages out in sums, and switches some ReLUs of inputs near 0. Operands that are not those of
/// f32 would change all of the gradient.
#[test]
fn bf16_differs_from_f32_by_its_rounding() {
    for spec in specs().into_iter().filter(|spec| spec.blocks > 0) {
        for isa in Isa::available() {
            let [(outputs, gradient), (right, right_gradient)] =
                [Operands::Bf16, Operands::F32].map(|operands| passes(&spec, operands, isa, 29));
            let error = relative_error(&outputs.concat(), &right.concat());
            assert!((1e-4..2e-2).contains(&error), "{isa}: outputs {error}: {spec:?}");
            let error = relative_error(&gradient, &right_gradient);
            assert!((1e-4..0.1).contains(&error), "{isa}: gradient {error}: {spec:?}");
        }
    }
}

fn any_spec() -> impl Strategy<Value = NetSpec> {
    let arch = prop_oneof![3 => Just(Arch::Resnet), 1 => Just(Arch::Mlp)];
    let board = (1..6usize, 1..8usize, 1..8usize);
    let heads = (1..20usize, 1..20usize, 1..40usize, 1..70usize, 1..5usize, any::<bool>(), 0..3usize);
    let all = (arch, 0..3usize, 1..70usize, board, heads);
    all.prop_map(|(arch, blocks, channels, obs, heads)| NetSpec {
        policy_channels: heads.0,
        value_channels: heads.1,
        value_hidden: heads.2,
        num_actions: heads.3,
        num_players: heads.4,
        zero_sum_pair: heads.5 && heads.4 == 2,
        auxiliary: auxiliary()[heads.6..].to_vec(),
        ..spec(arch, blocks, channels, obs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_shape_trains_as_with_candle(spec in any_spec(), rows in 12..70usize, seed in 0..1_000_000u64) {
        for isa in Isa::available() {
            let least = least_of_four(&spec, rows, isa, seed);
            prop_assert!(least.0 < 1e-4, "{isa:?} {spec:?} {rows} rows: {least:?}");
        }
    }
}

/// A network as [`any_shape_trains_as_with_candle`] rarely draws: the gradient of `policy.conv.weight` is 2e-6 of the whole.
#[test]
fn a_network_of_one_channel_trains_as_with_candle() {
    let spec = NetSpec {
        value_channels: 1,
        value_hidden: 1,
        num_actions: 21,
        num_players: 1,
        ..spec(Arch::Resnet, 2, 1, (3, 3, 2))
    };
    for isa in Isa::available() {
        let least = least_of_four(&spec, 20, isa, 883_829);
        assert!(least.0 < 1e-4, "{isa:?}: {least:?}");
    }
}

#[test]
fn gradients_are_finite_differences() {
    check_differences(&spec(Arch::Resnet, 1, 10, (2, 3, 4)));
    check_differences(&edge_spec(1, 10, 5));
    check_differences(&wdl(edge_spec(1, 10, 5)));
    check_differences(&NetSpec { auxiliary: auxiliary(), ..spec(Arch::Resnet, 1, 10, (2, 3, 4)) });
}

fn check_differences(spec: &NetSpec) {
    let rows = 13;
    let mut tower = CpuTrainNet::new(spec, Operands::F32).expect("a network");
    let (parameters, _) = tower.model().flatten(&weights(spec)).expect("weights");
    let obs = numbers(rows * spec.obs.len(), 1);
    let d = head_gradients(spec, rows);
    let outputs = tower.forward(&parameters, &obs);
    let mut gradient = vec![0.0; parameters.len()];
    tower.backward(&outputs, &d, &mut gradient);
    // Parts that are missing would not show along the gradient itself.
    for slot in tower.model().trained() {
        assert!(gradient[slot.range.clone()].iter().any(|&g| g != 0.0), "{} has no gradient", slot.name);
    }
    let mut loss = |parameters: &[f32]| -> f64 {
        let outputs = tower.forward(parameters, &obs);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        outputs.iter().zip(&d).map(|(y, d)| dot(y, d)).sum()
    };
    // Along the gradient the loss rises by the square of its norm; steps small enough that few ReLUs switch.
    let square: f64 = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum();
    let step = 2e-3 / square.sqrt();
    let moved = |sign: f64| -> Vec<f32> {
        parameters
            .iter()
            .zip(&gradient)
            .map(|(x, &g)| (f64::from(*x) + sign * step * f64::from(g)) as f32)
            .collect()
    };
    let slope = (loss(&moved(1.0)) - loss(&moved(-1.0))) / (2.0 * step);
    assert!((slope - square).abs() < 0.01 * square, "{slope} {square}");
}

#[test]
fn running_statistics_are_those_of_candle() {
    for spec in specs() {
        let obs = numbers(17 * spec.obs.len(), 1);
        let mut tower = CpuTrainNet::new(&spec, Operands::F32).expect("a network");
        let weights = weights(&spec);
        let (parameters, mut statistics) = tower.model().flatten(&weights).expect("weights");
        let outputs = tower.forward(&parameters, &obs);
        tower.update_statistics(&mut statistics);
        let ours = tower.model().unflatten(&parameters, &statistics);
        let ours = CandleNet::new(&spec, &ours).expect("network");
        let theirs = CandleNet::new(&spec, &weights).expect("network");
        let obs = Tensor::from_slice(&obs, (17, spec.obs.len()), &Device::Cpu).expect("tensor");
        let (trained, _) = theirs.forward_t(&obs, BatchNormMode::Train).expect("forward");
        let vec = |t: Tensor| t.flatten_all().and_then(|t| t.to_vec1::<f32>()).expect("numbers");
        assert_close("training mode", &outputs[0], &vec(trained));
        let (a, _) = ours.forward_t(&obs, BatchNormMode::Eval).expect("forward");
        let (b, _) = theirs.forward_t(&obs, BatchNormMode::Eval).expect("forward");
        assert_close(&format!("running statistics of {spec:?}"), &vec(a), &vec(b));
    }
}
