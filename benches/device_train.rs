//! Training on a GPU: updates per second with batches from the replay buffer on the device, and the fraction of the time in which
//! kernels run; one JSON line per network, batch and number format. A failed measurement is a line with `error`; the exit code is
//! then 1.
//!
//!     cargo bench --bench device_train
//!     cargo bench --bench device_train -- --nets 6x128 --batches 4096 --precisions bf16 --seconds 5

use clap::Parser;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::config::{NetConfig, TrainConfig, TrainPrecision};
use vecaz::device::Device;
use vecaz::device::cuda::CudaDevice;
use vecaz::device::store::Store;
use vecaz::error::{Error, Result};
use vecaz::game::Turn;
use vecaz::net::NetSpec;
use vecaz::play::Sample;
use vecaz::registry::any_game;
use vecaz::replay::{BatchPlan, Replay, Symmetries};
use vecaz::rng::{Key, Purpose};
use vecaz::train::Trainer;
use vecaz::train::device::{DeviceReplay, DeviceTrainer};

#[derive(Parser)]
struct Args {
    /// Networks, blocks x channels.
    #[arg(long, value_delimiter = ',', default_value = "2x32,6x64,6x128")]
    nets: Vec<String>,
    /// Samples of a batch.
    #[arg(long, value_delimiter = ',', default_value = "512,1024,2048,4096,8192")]
    batches: Vec<usize>,
    /// Number formats.
    #[arg(long, value_delimiter = ',', default_value = "f32,bf16,f16")]
    precisions: Vec<String>,
    /// The game.
    #[arg(long, default_value = "connect_four")]
    game: String,
    /// Samples in the replay.
    #[arg(long, default_value_t = 50_000)]
    samples: usize,
    /// Seconds of each measurement at least.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The GPU's number.
    #[arg(long, default_value_t = 0)]
    gpu: u32,
    /// Seed of weights, samples and batches.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Updates before the clock starts.
const WARM_UP: u32 = 5;
/// Updates after it whose kernels are timed one by one.
const TIMED: u32 = 8;

/// Samples out of random play, uniform policies, results as they came.
fn replay(game: &Arc<dyn AnyGame>, args: &Args) -> Result<Replay> {
    let mut replay = Replay::new(game.as_ref(), args.samples);
    let mut rng = Key::new(args.seed, Purpose::Evaluation).stream();
    while replay.len() < args.samples {
        let mut play = Playthrough::new(game.clone());
        let mut samples = Vec::new();
        while play.turn() != Turn::Over {
            let (actions, state) = (play.legal(), play.state().to_vec());
            let action = actions[rng.below(actions.len())];
            if let Turn::Player(player) = play.turn() {
                let policy = vec![1.0 / actions.len() as f32; actions.len()];
                samples.push(Sample { state, player, actions, policy, values: Vec::new() });
            }
            play.step(action)?;
        }
        let values = game.returns(play.state());
        samples.into_iter().for_each(|sample| replay.push(&Sample { values: values.clone(), ..sample }, &[]));
    }
    Ok(replay)
}

/// `6x64` as blocks and channels.
fn sizes(net: &str) -> Result<(usize, usize)> {
    let numbers = net.split_once('x').and_then(|(b, c)| Some((b.parse().ok()?, c.parse().ok()?)));
    numbers.ok_or_else(|| Error::config("--nets", net, "blocks x channels, as 6x64"))
}

fn precision(name: &str) -> Result<TrainPrecision> {
    match name {
        "f32" => Ok(TrainPrecision::F32),
        "bf16" => Ok(TrainPrecision::Bf16),
        "f16" => Ok(TrainPrecision::F16),
        _ => Err(Error::config("--precisions", name, "f32, bf16 or f16")),
    }
}

fn measure(
    args: &Args,
    replay: &Replay,
    game: &Arc<dyn AnyGame>,
    net: &str,
    batch: usize,
    format: &str,
) -> Result<()> {
    let (blocks, channels) = sizes(net)?;
    let net_config = NetConfig { blocks, channels, ..NetConfig::default() };
    let spec = NetSpec::new(&net_config, &game.sizes());
    let config = TrainConfig { batch, precision: precision(format)?, ..TrainConfig::default() };
    let flops = Trainer::new(&spec, &config, args.seed)?.flops_per_sample();
    let device = CudaDevice::open(args.gpu, Store::of_user())?;
    let gpu = device.describe()?;
    let mut trainer = DeviceTrainer::new(device, &spec, &config, Some(game.as_ref()), args.seed)?;
    let mut samples = [DeviceReplay::new(trainer.device(), game.as_ref(), args.samples, batch)?];
    let mut update = |trainer: &mut DeviceTrainer<CudaDevice>| {
        let number = trainer.updates();
        let plan = BatchPlan { size: batch, seed: args.seed, number, symmetries: Symmetries::Random };
        trainer.step_from(&mut samples, replay, plan)
    };
    for _ in 0..WARM_UP {
        update(&mut trainer)?;
    }
    let (start, mut updates, mut loss) = (Instant::now(), 0, 0.0);
    while start.elapsed().as_secs_f64() < args.seconds {
        loss = update(&mut trainer)?.total;
        updates += 1;
    }
    let rate = f64::from(updates) / start.elapsed().as_secs_f64();
    trainer.device().begin_timing();
    for _ in 0..TIMED {
        update(&mut trainer)?;
    }
    let kernels = trainer.device().end_timing()?;
    let running: f64 = kernels.iter().map(|time| time.seconds).sum();
    println!(
        "{}",
        json!({
            "game": game.name(), "net": net, "batch": batch, "precision": format, "updates": updates,
            "updates_per_second": rate, "samples_per_second": rate * batch as f64,
            "tflops": rate * batch as f64 * flops * 1e-12, "loss": loss, "gpu": gpu, "seed": args.seed,
            "busy": running / f64::from(TIMED) * rate, "timed_updates": TIMED, "kernels": kernels,
        })
    );
    Ok(())
}

fn main() -> Result<()> {
    let args = Args::parse();
    let game = any_game(&args.game, &toml::Table::new())?;
    let replay = replay(&game, &args)?;
    let mut failure = None;
    for net in &args.nets {
        for format in &args.precisions {
            for &batch in &args.batches {
                if let Err(error) = measure(&args, &replay, &game, net, batch, format) {
                    let what = error.to_string();
                    println!("{}", json!({ "net": net, "batch": batch, "precision": format, "error": what }));
                    failure = failure.or(Some(error));
                }
            }
        }
    }
    failure.map_or(Ok(()), Err)
}
