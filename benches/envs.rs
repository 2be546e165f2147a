//! Environments stepped with random actions, environment steps per second: the same loop as `benches/python_envs.py` makes from Python.
//!
//!     cargo bench --bench envs -- hex --envs 128 --threads 1 --seconds 1
//!
//! One line of JSON with two rates: `step_rate` samples actions and steps; `observe_rate` also writes the masks and the observations. With one thread
//! the seconds are those of its processor time, where the system tells it (Linux), so that other programs on the machine count little.

use clap::Parser;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vecaz::batch::{AutoReset, Envs};
use vecaz::registry::any_game;

/// Environments that one thread steps, as in the Python package.
const ENVS_PER_THREAD: usize = 256;
/// Steps between two looks at the clock.
const STEPS: u64 = 32;

#[derive(Parser)]
struct Args {
    /// The game.
    game: String,
    /// Its options, as TOML.
    #[arg(long, default_value = "")]
    options: String,
    /// N.
    #[arg(long, default_value_t = 128)]
    envs: usize,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Seconds of processor time of this thread.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(1e-9 * text.split_whitespace().next()?.parse::<f64>().ok()?)
}

/// Environment steps per second of `step`, which is called again and again.
fn rate(args: &Args, mut step: impl FnMut()) -> f64 {
    (0..STEPS).for_each(|_| step());
    let (start, before, mut steps) = (Instant::now(), processor_seconds(), 0);
    while start.elapsed() < Duration::from_secs_f64(args.seconds) {
        (0..STEPS).for_each(|_| step());
        steps += STEPS;
    }
    let processor =
        processor_seconds().zip(before).filter(|_| args.threads == 1).map(|(after, before)| after - before);
    steps as f64 * args.envs as f64 / processor.unwrap_or(start.elapsed().as_secs_f64())
}

fn main() {
    let args = Args::parse();
    let game = any_game(&args.game, &args.options.parse().expect("options are TOML")).expect("a game");
    let (sizes, n) = (game.sizes(), args.envs);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads).build().expect("threads");
    let shards = args.threads.min(n.div_ceil(ENVS_PER_THREAD));
    let mut envs = pool.install(|| Envs::new(Arc::clone(&game) as _, n, shards, AutoReset::SameStep));
    let (mut actions, mut rewards, mut ended) =
        (vec![0; n], vec![0.0; n * sizes.num_players], vec![false; n]);
    let mut step = |envs: &mut Envs| {
        envs.sample(&mut actions);
        envs.step(&actions, &mut rewards, &mut ended).expect("legal");
    };
    let (mut mask, mut obs) = (vec![false; n * sizes.num_actions], vec![0.0; n * sizes.obs.len()]);
    let (only, whole) = pool.install(|| {
        let only = rate(&args, || step(&mut envs));
        let whole = rate(&args, || {
            step(&mut envs);
            envs.write_legal(&mut mask);
            envs.observe(None, &mut obs);
        });
        (only, whole)
    });
    println!(
        "{}",
        serde_json::json!({
            "game": args.game, "options": args.options, "envs": n, "threads": args.threads,
            "step_rate": only, "observe_rate": whole,
        })
    );
}
