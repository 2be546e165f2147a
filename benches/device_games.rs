//! Random play on a GPU, plies per second, of every registered game: each thread plays one game, all plies in one launch. The JSON
//! file is written after every row; a game that fails is a row with `error`, and the program then ends with exit code 1.
//!
//!     cargo bench --bench device_games -- --json plies.json
//!     cargo bench --bench device_games -- hex go --seconds 2

use clap::Parser;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;
use vecaz::backend::gpu::batch::DeviceBatch;
use vecaz::device::cuda::CudaDevice;
use vecaz::device::store::Store;
use vecaz::error::{Error, Result};
use vecaz::files::write_atomic;
use vecaz::registry::Registry;
use vecaz::registry::any_game;

/// Settings measured besides each game's defaults, for comparison with other programs.
const OTHER_SETTINGS: &[(&str, &str)] = &[("go", "size = 19")];

#[derive(Parser)]
struct Args {
    /// Games to measure; all if none is named.
    games: Vec<String>,
    /// N: games at once.
    #[arg(long, value_delimiter = ',', default_value = "4096,65536")]
    slots: Vec<usize>,
    /// Seconds of each measurement at least.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// The GPU's number.
    #[arg(long, default_value_t = 0)]
    gpu: u32,
    /// Seed of the random play.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the figures as a JSON array.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Plies of one launch, so that a launch lasts some milliseconds.
const PLIES: u32 = 64;

fn measure(args: &Args, name: &str, options: &str, slots: usize) -> Result<Value> {
    let options = options.parse().expect("the settings above are TOML");
    let game = any_game(name, &options)?;
    let device = CudaDevice::open(args.gpu, Store::of_user())?;
    let gpu = device.describe()?;
    let mut batch = DeviceBatch::new(device, game.as_ref(), slots)?;
    batch.random_play(args.seed, PLIES)?;
    batch.finished()?; // waits
    let (start, mut plies) = (Instant::now(), 0u64);
    while start.elapsed().as_secs_f64() < args.seconds {
        batch.random_play(args.seed, PLIES)?;
        batch.plies()?;
        plies += u64::from(PLIES) * slots as u64;
    }
    let rate = plies as f64 / start.elapsed().as_secs_f64();
    let settings = game.options().to_string().trim().replace('\n', ", ");
    println!("{name:>13} {settings:<40} N = {slots:>6}: {rate:.4e} plies/s");
    Ok(json!({
        "game": name, "settings": settings, "slots": slots, "plies_per_second": rate, "gpu": gpu, "seed": args.seed,
    }))
}

fn main() -> Result<()> {
    let args = Args::parse();
    let own = Registry::built_in().names().into_iter().map(|name| (name, ""));
    let (mut rows, mut failure) = (Vec::new(), None);
    for (name, options) in own.chain(OTHER_SETTINGS.iter().copied()) {
        if !args.games.is_empty() && !args.games.iter().any(|wanted| wanted == name) {
            continue;
        }
        for &slots in &args.slots {
            rows.push(measure(&args, name, options, slots).unwrap_or_else(|error| {
                let row =
                    json!({ "game": name, "settings": options, "slots": slots, "error": error.to_string() });
                println!("{name:>13} {options:<40} N = {slots:>6}: {error}");
                failure = failure.take().or(Some(error));
                row
            }));
            if let Some(path) = &args.json {
                let text =
                    serde_json::to_vec_pretty(&rows).map_err(|e| Error::format(path, e.to_string()))?;
                write_atomic(path, &text)?;
            }
        }
    }
    failure.map_or(Ok(()), Err)
}
