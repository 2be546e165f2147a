//! Milliseconds of a whole training step (forward, backward, optimiser): `cargo bench --bench train`.
//!
//! Prints per network the minimum and median of the measured steps, and the rate of useful floating-point operations (without
//! padding and taps off the board) of the minimum.

use std::time::Instant;
use vecaz::config::{Arch, IsaChoice, NetConfig, TrainConfig, TrainPrecision};
use vecaz::game::{ObsShape, Sizes};
use vecaz::model::NetSpec;
use vecaz::rng::{Key, Purpose};
use vecaz::train::{TargetColumns, TrainBatch, Trainer};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 1;
const STEPS: usize = 15;

/// The sizes of a two-player zero-sum game. Only observation, actions and players matter here.
fn sizes(obs: ObsShape, num_actions: usize) -> Sizes {
    Sizes { num_actions, max_legal: num_actions, obs, max_plies: 1, ..Sizes::default() }
}

fn batch(spec: &NetSpec, rows: usize) -> TrainBatch {
    let mut rng = Key::new(SEED, Purpose::Evaluation).stream();
    let mut batch = TrainBatch {
        obs: (0..rows * spec.obs.len()).map(|_| rng.uniform().round()).collect(),
        legal: vec![1; rows * spec.num_actions],
        targets: TargetColumns::default(),
        weight: vec![1.0; rows],
    };
    *batch.targets.column_mut("policy") = vec![0.0; rows * spec.num_actions];
    for row in 0..rows {
        batch.targets["policy"][row * spec.num_actions + rng.below(spec.num_actions)] = 1.0;
        let value = 2.0 * rng.uniform() - 1.0;
        batch.targets.column_mut("values").extend([value, -value]);
    }
    batch
}

/// Measures one network in f32 and in bf16, by turns.
fn measure(name: &str, net: &NetConfig, obs: ObsShape, actions: usize, rows: usize) -> vecaz::Result<()> {
    let spec = NetSpec::new(net, &sizes(obs, actions));
    let batch = batch(&spec, rows);
    let mut formats = Vec::new();
    for precision in [TrainPrecision::F32, TrainPrecision::Bf16] {
        let config = TrainConfig { precision, ..TrainConfig::default() };
        formats.push((precision, Trainer::new(&spec, &config, SEED)?, Vec::new()));
    }
    for step in 0..STEPS + 3 {
        for (_, trainer, times) in &mut formats {
            let start = Instant::now();
            trainer.step(&batch)?;
            if step >= 3 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    for (precision, trainer, mut times) in formats {
        times.sort_by(f64::total_cmp);
        let least = times[0];
        println!(
            "{name:<22} {precision:<4} batch {rows:>4}  {:>8.2} ms least {:>8.2} ms median  {:>7.1} GFLOP/s",
            least * 1e3,
            times[STEPS / 2] * 1e3,
            trainer.flops_per_sample() * rows as f64 / least * 1e-9,
        );
    }
    Ok(())
}

fn main() -> vecaz::Result<()> {
    println!(
        "cpu, instructions {}, for bf16 {}, threads {}, seed {SEED}, commit {}",
        vecaz::isa::Isa::detect(),
        IsaChoice::Native.of_bf16_training(),
        rayon::current_num_threads(),
        env!("VECAZ_COMMIT")
    );
    let resnet = |blocks, channels| NetConfig { blocks, channels, ..NetConfig::default() };
    let board = |channels, height, width| ObsShape { channels, height, width };
    measure("resnet 2x32 6x7", &resnet(2, 32), board(2, 6, 7), 7, 512)?;
    measure("resnet 6x64 6x7", &resnet(6, 64), board(2, 6, 7), 7, 256)?;
    measure("resnet 4x48 11x11", &resnet(4, 48), board(4, 11, 11), 121, 256)?;
    measure("resnet 6x64 8x8", &resnet(6, 64), board(20, 8, 8), 4672, 256)?;
    let mlp = NetConfig { arch: Arch::Mlp, blocks: 2, channels: 128, ..NetConfig::default() };
    measure("mlp 2x128", &mlp, board(200, 1, 1), 52, 512)?;
    let edge = NetConfig { arch: Arch::Edge, blocks: 3, channels: 64, ..NetConfig::default() };
    measure("edge 3x64 K_14", &edge, board(4, 91, 1), 91, 256)
}
