//! The training kernels against the training step in Rust: gradients, updates, losses over many updates, batches out of the
//! replay, number formats, several devices.

mod formats;
mod gather;
mod products;
pub mod several;
mod updates;

use crate::host_device::HostDevice;
use vecaz::config::{Arch, TrainConfig};
use vecaz::game::{ObsShape, PointActions, PointOrder};
use vecaz::model::{Array, NetSpec, Weights};
use vecaz::rng::{Key, Purpose};
use vecaz::train::device::DeviceTrainer;
use vecaz::train::{TrainBatch, Trainer};

/// A network with no size that a tile, a vector or a warp divides, on a board that is no square.
fn spec(arch: Arch) -> NetSpec {
    NetSpec {
        arch,
        blocks: 2,
        channels: 20,
        policy_channels: 5,
        value_channels: 3,
        value_hidden: 21,
        obs: ObsShape { channels: 3, height: 3, width: 5 },
        num_actions: 37,
        num_players: 3,
        zero_sum_pair: false,
        ..NetSpec::default()
    }
}

/// Networks of which each needs more than one tile, or less than one, somewhere else.
fn specs() -> Vec<NetSpec> {
    vec![
        spec(Arch::Resnet),
        NetSpec { blocks: 0, channels: 9, num_actions: 3, ..spec(Arch::Resnet) },
        NetSpec {
            blocks: 1,
            channels: 72,
            obs: ObsShape { channels: 9, height: 4, width: 2 },
            num_players: 2,
            zero_sum_pair: true,
            ..spec(Arch::Resnet)
        },
        at_points(PointOrder::Rows, 1, 2),
        at_points(PointOrder::Columns, 18, 1),
        at_points(PointOrder::Columns, 2, 0),
        spec(Arch::Mlp),
        NetSpec { blocks: 0, channels: 66, ..spec(Arch::Mlp) },
        on_edges(5, spec(Arch::Edge)),
        on_edges(9, NetSpec { blocks: 1, channels: 70, ..spec(Arch::Edge) }),
        on_edges(
            3,
            NetSpec { blocks: 1, channels: 9, num_players: 2, zero_sum_pair: true, ..spec(Arch::Edge) },
        ),
        on_edges(4, NetSpec { blocks: 0, channels: 12, ..spec(Arch::Edge) }),
    ]
}

/// A network with logits at points: `planes` at each in this order, and `others` at none.
fn at_points(order: PointOrder, planes: usize, others: usize) -> NetSpec {
    let spec = spec(Arch::Resnet);
    let num_actions = planes * spec.obs.height * spec.obs.width + others;
    NetSpec { num_actions, point_actions: Some(PointActions { planes, order }), ..spec }
}

/// The same on the edges of K_n.
fn on_edges(vertices: usize, spec: NetSpec) -> NetSpec {
    let edges = vertices * (vertices - 1) / 2;
    NetSpec { obs: ObsShape { channels: 4, height: edges, width: 1 }, num_actions: edges, ..spec }
}

fn config() -> TrainConfig {
    TrainConfig { lr: 3e-3, warmup_updates: 3, lr_final: 1.0, ..TrainConfig::default() }
}

/// `rows` random samples; some actions are illegal in each, and weights differ.
fn batch(spec: &NetSpec, rows: usize, seed: u64) -> TrainBatch {
    let mut rng = Key::new(seed, Purpose::Evaluation).stream();
    let mut batch = TrainBatch::default();
    for row in 0..rows {
        batch.obs.extend((0..spec.obs.len()).map(|_| if rng.uniform() < 0.4 { 1.0 } else { 0.0 }));
        let legal: Vec<u8> = (0..spec.num_actions).map(|action| u8::from((row + action) % 3 != 0)).collect();
        let num_legal = legal.iter().filter(|&&legal| legal == 1).count();
        let mut target = vec![0.0; num_legal];
        rng.dirichlet(0.7, &mut target);
        let mut target = target.into_iter();
        let next = |&legal: &u8| if legal == 1 { target.next().unwrap_or_default() } else { 0.0 };
        batch.targets.column_mut("policy").extend(legal.iter().map(next));
        batch.legal.extend(legal);
        batch.targets.column_mut("values").extend((0..spec.num_players).map(|_| 1.8 * rng.uniform() - 0.9));
        batch.weight.push(0.5 + rng.uniform());
    }
    batch
}

/// First weights with every vector moved off its start, so that no gradient is 0 by chance.
fn weights(spec: &NetSpec) -> Weights {
    let mut rng = Key::new(5, Purpose::Evaluation).stream();
    let mut weights = spec.model().expect("a network").initial_weights_without_zeros(5);
    for (name, Array { shape, data }) in &mut weights {
        let is_output = ["out", "policy.linear", "policy.points"].iter().any(|part| name.contains(part));
        let scale = if is_output { 3.0 } else { 1.0 };
        for x in data {
            let moved = if shape.len() == 1 { 0.3 * rng.uniform() } else { 0.0 };
            *x = *x * scale + moved;
        }
    }
    weights
}

/// A trainer in Rust and one on a device, with the same weights.
fn pair(spec: &NetSpec, config: &TrainConfig) -> (Trainer, DeviceTrainer<HostDevice>) {
    let right = Trainer::with_weights(spec, config, &weights(spec)).expect("a trainer");
    (right.clone(), on_device(spec, config, &right.state()))
}

fn on_device(spec: &NetSpec, config: &TrainConfig, state: &Weights) -> DeviceTrainer<HostDevice> {
    DeviceTrainer::with_state(HostDevice::new(1), spec, config, None, state).expect("a trainer")
}

/// The largest difference of two arrays' numbers, over the largest number of the second.
fn difference(a: &Array, b: &Array) -> f32 {
    assert_eq!(a.shape, b.shape);
    let largest = |numbers: &mut dyn Iterator<Item = f32>| {
        numbers.fold(0.0f32, |max, x| if x.is_nan() || x > max { x } else { max })
    };
    let apart = largest(&mut a.data.iter().zip(&b.data).map(|(a, b)| (a - b).abs()));
    apart / largest(&mut b.data.iter().map(|x| x.abs())).max(1e-6)
}
