//! One position on the whole machine: evaluations/s of an engine against those of 128 games, and with the embedded network errors on
//! solved positions of Connect Four at equal time.
//!
//! `cargo bench --bench engine -- [NETWORK.safetensors] [SECONDS] [THREADS] [MS_PER_POSITION] [POSITIONS]`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vecaz::backend::AnyGame;
use vecaz::backend::RootCache;
use vecaz::config::{Config, Layers, Precision};
use vecaz::engine::{Engine, Limit, Settings};
use vecaz::eval::positions::{SolvedPosition, error_rates, read, replay};
use vecaz::net::{NetSpec, Network};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::selfplay::SelfPlay;
use vecaz::weights::{NetFile, pack};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> vecaz::Result<()> {
    let typed: Vec<f64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let value = |i: usize, default: f64| typed.get(i).copied().unwrap_or(default);
    let (seconds, threads) = (value(0, 3.0), value(1, 2.0) as usize);
    let (time, limit) = (Duration::from_secs_f64(value(2, 5.0) / 1000.0), value(3, 1e9) as usize);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::args().skip(1).find(|a| a.ends_with(".safetensors"));
    let file = match &named {
        Some(path) => NetFile::load(Path::new(path))?,
        None => NetFile::load(&root.join("assets/connect_four.safetensors"))?,
    };
    let game = any_game(&file.header.game, &file.header.options)?;
    let mut config = Layers::default().resolve()?;
    config.net.precision = Precision::Bf16;
    let spec = file.spec_for(game.as_ref())?;
    let network = pack(game.as_ref(), &spec, &file.weights, &config.net)?;
    let large = NetSpec { blocks: 6, channels: 64, ..spec.clone() };
    let weights = large.model()?.random_weights(Key::new(1, Purpose::Weights));
    for (spec, weights) in [(&spec, &file.weights), (&large, &weights)] {
        println!("{}, network {}x{} bf16, {threads} threads", file.header.game, spec.blocks, spec.channels);
        speed(&game, &config, &pack(game.as_ref(), spec, weights, &config.net)?, seconds, threads)?;
    }
    if named.is_some() {
        return Ok(());
    }
    let mut positions = read(&root.join("tests/fixtures/connect_four_solved.jsonl"), &game)?;
    positions.truncate(limit);
    for threads in [1, threads] {
        for leaves in [0, 1, 8, 32, 64] {
            let settings = Settings { threads, leaves, ..Settings::new(&config, &game.sizes()) };
            errors(&game, &network, settings, &positions, time)?;
        }
    }
    Ok(())
}

/// Evaluations/s of an engine and of self-play with 128 games, alternated.
fn speed(
    game: &Arc<dyn AnyGame>,
    config: &Config,
    network: &dyn Network,
    seconds: f64,
    threads: usize,
) -> vecaz::Result<()> {
    for round in 0..3 {
        let many = of_many_games(game, config, network, seconds, threads)?;
        println!("round {round}: N = 128: {many:.0} evaluations/s");
        for leaves in [0, 128, 1] {
            let settings =
                Settings { threads, leaves, memory_mib: 2048, ..Settings::new(config, &game.sizes()) };
            let mut engine = Engine::new(game.clone(), network, settings)?;
            let found = engine.analyse(&Limit::time(Duration::from_secs_f64(seconds)))?;
            let one = found.evaluations as f64 / found.seconds;
            println!(
                "  N = 1, L = {leaves}: {one:.0} evaluations/s, {:.2} of N = 128; {:.0} simulations/s, end {:?}",
                one / many,
                found.simulations_per_second(),
                found.end,
            );
        }
    }
    Ok(())
}

fn of_many_games(
    game: &Arc<dyn AnyGame>,
    config: &Config,
    network: &dyn Network,
    seconds: f64,
    threads: usize,
) -> vecaz::Result<f64> {
    let mut config = config.clone();
    config.selfplay.games = 128;
    let mut selfplay = SelfPlay::new(game, &config, network, Vec::new(), threads)?;
    selfplay.set_network(network, RootCache::default())?;
    selfplay.poll()?;
    selfplay.take_metrics();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        selfplay.poll()?;
    }
    Ok(selfplay.take_metrics().evaluations as f64 / start.elapsed().as_secs_f64())
}

/// Prints the errors of an engine that has `time` for each position.
fn errors(
    game: &Arc<dyn AnyGame>,
    network: &dyn Network,
    settings: Settings,
    positions: &[SolvedPosition],
    time: Duration,
) -> vecaz::Result<()> {
    let mut engine = Engine::new(game.clone(), network, settings)?;
    let (mut choices, mut simulations) = (Vec::new(), 0);
    for position in positions {
        engine.set_position(&replay(position, game)?)?;
        let found = engine.analyse(&Limit::time(time))?;
        choices.push(found.best().action);
        simulations += found.simulations;
    }
    let rates = error_rates(positions, &choices)?;
    println!(
        "{} threads, L = {}, {time:?} a position: outcome {:.2} %, exact {:.2} % of {}, {} simulations a position",
        settings.threads,
        settings.leaves,
        100.0 * rates.outcome_error,
        100.0 * rates.exact_error,
        positions.len(),
        simulations / positions.len() as u64,
    );
    Ok(())
}
