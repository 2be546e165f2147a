//! bfloat16 and half precision, cast by the kernels themselves on the host, against 32-bit floats.

use super::{batch, config, on_device, spec, specs, weights};
use crate::host_device::HostDevice;
use half::{bf16, f16};
use vecaz::batch::programs::training;
use vecaz::config::{Arch, DeviceName, Precision, TensorCores, TrainConfig, TrainPrecision};
use vecaz::device::{Arg, Device, LaunchShape};
use vecaz::game::ObsShape;
use vecaz::model::{NetSpec, Weights};
use vecaz::net::gpu::DeviceEvaluator;
use vecaz::net::{Network, NetworkDesc};
use vecaz::rng::{Key, Purpose};
use vecaz::train::device::DeviceTrainer;
use vecaz::train::{TrainBatch, Trainer};

const SHAPE: LaunchShape = LaunchShape { grid: 5, block: 128, shared: 0 };

/// Numbers of every size, ties and limits among them.
fn numbers() -> Vec<f32> {
    let edges = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-40,
        65504.0,
        65519.0,
        65520.0,
        65536.0,
        5.9e-8,
        2.9e-8,
        3.0e-8,
        6.1e-5,
        6.0975e-5,
    ];
    let mut rng = Key::new(3, Purpose::Evaluation).stream();
    let random = (0..4000).map(|_| f32::from_bits(rng.next_u64() as u32)).filter(|x| !x.is_nan());
    let ties = (0..1000u32).flat_map(|i| {
        let low = f32::from_bits((i * 977) << 16 | 0x8000);
        [low, f32::from_bits(low.to_bits() ^ 1), f32::from_bits(0x3880_0000 + (i << 12))]
    });
    let mut all: Vec<f32> = edges.into_iter().chain(random).chain(ties).filter(|x| !x.is_nan()).collect();
    all.truncate(all.len() / 8 * 8);
    all
}

#[test]
fn casts_round_to_the_nearest() {
    for precision in [TrainPrecision::Bf16, TrainPrecision::F16] {
        let mut device = HostDevice::new(1);
        device.load(&training(None, precision).expect("sources")).expect("a program");
        let from = numbers();
        let mut parameters = device.alloc(4 * from.len()).expect("memory");
        device.upload(&mut parameters, 0, bytemuck::cast_slice(&from)).expect("a copy");
        let indices: Vec<u32> = (0..from.len() as u32).collect();
        let mut map = device.alloc(4 * from.len()).expect("memory");
        device.upload(&mut map, 0, bytemuck::cast_slice(&indices)).expect("a copy");
        let out = device.alloc(2 * from.len()).expect("memory");
        let args = [
            Arg::Buffer(&parameters, 0),
            Arg::Buffer(&map, 0),
            Arg::U64(from.len() as u64),
            Arg::Buffer(&out, 0),
        ];
        device.launch("pack_weights", SHAPE, &args).expect("a launch");
        let found: &[u16] = bytemuck::cast_slice(out.bytes());
        for (x, &bits) in from.iter().zip(found) {
            let right = match precision {
                TrainPrecision::F16 => f16::from_f32(*x).to_bits(),
                _ => bf16::from_f32(*x).to_bits(),
            };
            assert_eq!(bits, right, "{x:e} in {precision:?}");
        }
    }
}

#[test]
fn all_bits_of_a_format_are_read() {
    for precision in [TrainPrecision::Bf16, TrainPrecision::F16] {
        let mut device = HostDevice::new(1);
        device.load(&training(None, precision).expect("sources")).expect("a program");
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let mut x = device.alloc(2 * all.len()).expect("memory");
        device.upload(&mut x, 0, bytemuck::cast_slice(&all)).expect("a copy");
        let out = device.alloc(4 * all.len()).expect("memory");
        let width = all.len() as u32;
        let args = [Arg::Buffer(&x, 0), Arg::U32(1), Arg::U32(64), Arg::U32(width), Arg::Buffer(&out, 0)];
        let shape = LaunchShape { grid: width / 64, ..SHAPE };
        device.launch("sum_columns", shape, &args).expect("a launch");
        let found: &[f32] = bytemuck::cast_slice(out.bytes());
        for (&bits, found) in all.iter().zip(found) {
            let right = match precision {
                TrainPrecision::F16 => f16::from_bits(bits).to_f32(),
                _ => bf16::from_bits(bits).to_f32(),
            };
            assert!(right == *found || right.is_nan() && found.is_nan(), "{bits:#x}: {found} {right}");
        }
    }
}

/// A device that multiplies as one without tensor cores does; on the host they take ten times as long.
fn plain(seed: u64) -> HostDevice {
    HostDevice::new(seed).with_define("VZ_NET_PLAIN", 1)
}

/// The whole gradient of a batch of `rows` samples.
fn gradient(device: HostDevice, spec: &NetSpec, precision: TrainPrecision, rows: usize) -> Vec<f32> {
    let config = TrainConfig { precision, clip_norm: 0.0, ..config() };
    let start = Trainer::with_weights(spec, &config, &weights(spec)).expect("a trainer").state();
    let mut trainer = DeviceTrainer::with_state(device, spec, &config, None, &start).expect("a trainer");
    trainer.step(&batch(spec, rows, 6)).expect("finite");
    let scale = if precision == TrainPrecision::F16 { 65_536.0 } else { 1.0 };
    trainer.gradient().expect("a copy").iter().map(|g| g / scale).collect()
}

#[test]
fn gradients_of_every_format_point_the_same_way() {
    let product = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum() };
    let cosine = |a: &[f32], b: &[f32]| product(a, b) / (product(a, a).sqrt() * product(b, b).sqrt());
    for spec in specs() {
        let right = gradient(HostDevice::new(1), &spec, TrainPrecision::F32, 40);
        let model = spec.model().expect("a network");
        // Without a large layer of logits, a hidden unit that is rounded to the other side of 0 is more of the whole gradient.
        let half = if spec.point_actions.is_some() { 0.999 } else { 0.9999 };
        for (precision, least, of_logits) in
            [(TrainPrecision::Bf16, 0.995, 0.999), (TrainPrecision::F16, half, 0.9999)]
        {
            let found = gradient(plain(1), &spec, precision, 40);
            let whole = cosine(&right, &found);
            assert!(whole > least && whole < 1.0 - 1e-12, "{precision:?}: {whole} {spec:?}");
            let is_of_logits = |name: &str| ["policy.linear.weight", "policy.points.weight"].contains(&name);
            for param in model.trained().filter(|param| is_of_logits(&param.name)) {
                let part = cosine(&right[param.range.clone()], &found[param.range.clone()]);
                assert!(part > of_logits, "{precision:?}: {} {part} {spec:?}", param.name);
            }
        }
    }
}

#[test]
fn tensor_cores_multiply_what_plain_products_do() {
    // Products of 16-bit numbers are exact in 32 bits and the host sums both in one order: the same bits.
    for precision in [TrainPrecision::Bf16, TrainPrecision::F16] {
        for spec in specs() {
            let found = gradient(HostDevice::new(2), &spec, precision, 23);
            assert!(found == gradient(plain(1), &spec, precision, 23), "{precision:?} {spec:?}");
        }
    }
}

/// Updates of a curve, its samples, and the batches that they are.
const UPDATES: u64 = 96;
const ROWS: usize = 24;
const BATCHES: u64 = 8;

fn board() -> NetSpec {
    NetSpec {
        blocks: 1,
        channels: 16,
        obs: ObsShape { channels: 2, height: 3, width: 3 },
        num_actions: 9,
        num_players: 2,
        zero_sum_pair: true,
        ..spec(Arch::Resnet)
    }
}

/// Samples whose targets follow from what is seen: policy and value are those of a line of pieces.
fn lesson(spec: &NetSpec, seed: u64) -> TrainBatch {
    let mut samples = batch(spec, ROWS, 100 + seed);
    let area = spec.num_actions;
    for row in 0..ROWS {
        let obs = &samples.obs[row * spec.obs.len()..(row + 1) * spec.obs.len()];
        let (own, other) = obs.split_at(area);
        let attraction = |cell: usize| 1.5 * own[(cell + 1) % area] - 1.5 * other[(cell + 4) % area];
        let exp: Vec<f32> = (0..area)
            .map(|a| if samples.legal[row * area + a] == 1 { attraction(a).exp() } else { 0.0 })
            .collect();
        let sum: f32 = exp.iter().sum();
        samples.targets["policy"][row * area..(row + 1) * area]
            .iter_mut()
            .zip(&exp)
            .for_each(|(t, e)| *t = e / sum);
        let value = (own.iter().sum::<f32>() - other.iter().sum::<f32>()).tanh() * 0.9;
        samples.targets["values"][row * 2..row * 2 + 2].copy_from_slice(&[value, -value]);
    }
    samples
}

/// The policy's Kullback-Leibler divergence and the value's error.
type Loss = [f64; 2];

/// Losses of a run: the mean of the whole curve, and those of its first and last round through the samples.
struct Curve {
    mean: Loss,
    first: Loss,
    last: Loss,
}

fn curve(precision: TrainPrecision, seed: u64) -> Curve {
    let spec = board();
    let config = TrainConfig { precision, lr: 4e-3, ..config() };
    let mut trainer = DeviceTrainer::new(plain(seed), &spec, &config, None, seed).expect("a trainer");
    let lessons: Vec<TrainBatch> = (0..BATCHES).map(|i| lesson(&spec, i)).collect();
    let losses: Vec<Loss> = (0..UPDATES)
        .map(|update| {
            let losses = trainer.step(&lessons[(update % BATCHES) as usize]).expect("finite");
            [losses.policy_kl, losses.value_mse]
        })
        .collect();
    let mean =
        |part: &[Loss]| [0, 1].map(|i| part.iter().map(|loss| loss[i]).sum::<f64>() / part.len() as f64);
    let round = BATCHES as usize;
    Curve { mean: mean(&losses), first: mean(&losses[..round]), last: mean(&losses[losses.len() - round..]) }
}

#[test]
fn losses_fall_alike_in_every_format() {
    // The noise is how far apart runs are that differ in their first weights alone.
    let right = [1, 2, 3].map(|seed| curve(TrainPrecision::F32, seed));
    for precision in [TrainPrecision::Bf16, TrainPrecision::F16] {
        let found = curve(precision, 1);
        for i in [0, 1] {
            let means = [0, 1, 2].map(|run| right[run].mean[i]);
            let noise = means.iter().cloned().fold(f64::MIN, f64::max)
                - means.iter().cloned().fold(f64::MAX, f64::min);
            let apart = (found.mean[i] - right[0].mean[i]).abs();
            println!("{precision:?}: {:?}, {apart:e} from {means:?}", found.mean[i]);
            assert!(apart < noise, "{precision:?}: {} against {means:?}", found.mean[i]);
            assert!(found.last[i] < 0.35 * found.first[i], "{precision:?}: {:?}", found.last);
        }
    }
}

/// Probabilities of all actions, `[boards, actions]`, by the network's kernels.
fn probabilities(spec: &NetSpec, weights: &Weights, precision: Precision, obs: &[f32]) -> Vec<f32> {
    let tensor_cores = TensorCores::Auto;
    let parts = NetworkDesc { spec: spec.clone(), weights: weights.clone(), precision, tensor_cores };
    let mut network = DeviceEvaluator::new(parts, DeviceName::Cpu, || Ok(HostDevice::new(3)));
    let boards = obs.len() / spec.obs.len();
    let (mut logits, mut values) =
        (vec![0.0; boards * spec.num_actions], vec![0.0; boards * spec.num_players]);
    network.forward(obs, &mut logits, &mut values).expect("finite");
    let softmax = |row: &[f32]| {
        let exp: Vec<f32> = row.iter().map(|x| x.exp()).collect();
        let sum: f32 = exp.iter().sum();
        exp.into_iter().map(move |x| x / sum)
    };
    logits.chunks(spec.num_actions).flat_map(softmax).collect()
}

#[test]
fn a_trained_network_chooses_alike_in_every_format() {
    let (spec, config) = (board(), TrainConfig { lr: 4e-3, ..config() });
    let mut trainer = Trainer::new(&spec, &config, 1).expect("a trainer");
    for update in 0..UPDATES {
        trainer.step(&lesson(&spec, update % BATCHES)).expect("finite");
    }
    let obs: Vec<f32> = (0..8).flat_map(|unseen| lesson(&spec, 50 + unseen).obs).collect();
    let in_format = |precision| probabilities(&spec, &trainer.weights(), precision, &obs);
    let right = in_format(Precision::F32);
    let best = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
    assert!(right.iter().any(|&p| p > 0.5), "it has learnt to choose");
    for precision in [Precision::Tf32, Precision::Bf16, Precision::F16] {
        let found = in_format(precision);
        let squares = found.iter().zip(&right).map(|(a, b)| f64::from(a - b).powi(2));
        let error = squares.sum::<f64>() / right.len() as f64;
        assert!(error > 0.0 && error < 1e-4, "{precision:?}: mean squared difference {error:e}");
        let rows = found.chunks(spec.num_actions).zip(right.chunks(spec.num_actions));
        let (boards, other) =
            rows.fold((0, 0), |(n, o), (a, b)| (n + 1, o + usize::from(best(a) != best(b))));
        assert!(100 * other < 3 * boards, "{precision:?}: {other} of {boards} choices are others");
    }
}

#[test]
fn the_loss_scale_adapts_and_is_part_of_the_state() {
    let spec = NetSpec { channels: 8, blocks: 1, ..spec(Arch::Resnet) };
    let config = TrainConfig { precision: TrainPrecision::F16, value_weight: 1000.0, ..config() };
    let mut trainer = DeviceTrainer::new(HostDevice::new(1), &spec, &config, None, 1).expect("a trainer");
    assert_eq!(trainer.loss_scale().scale, 65_536.0);
    trainer.step(&batch(&spec, 10, 1)).expect("made at a smaller scale");
    let scale = trainer.loss_scale();
    assert!(scale.scale < 65_536.0 && scale.age == 1, "{scale:?}");
    let state = trainer.state().expect("a state");
    let mut other = on_device(&spec, &config, &state);
    assert_eq!(other.loss_scale(), scale);
    let samples = batch(&spec, 10, 2);
    assert_eq!(trainer.step(&samples).expect("finite"), other.step(&samples).expect("finite"));
    assert_eq!(trainer.state().expect("a state"), other.state().expect("a state"));
    // A state of half precision is good for all others.
    Trainer::new(&spec, &config, 1).and_then(|mut t| t.restore(&state)).expect("the same network");
    let plain = TrainConfig { precision: TrainPrecision::F32, ..config };
    assert_eq!(on_device(&spec, &plain, &state).loss_scale().scale, 1.0);
}
