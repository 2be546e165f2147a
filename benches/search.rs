//! Self-play search without a network: simulations/s of the batched search with uniform priors.
//!
//! `cargo bench --bench search -- [GAME] [N] [S] [THREADS] [SECONDS] [key=value]...`

use std::time::Instant;
use vecaz::backend::RootCache;
use vecaz::config::Layers;
use vecaz::net::{IoShape, UniformNet};
use vecaz::registry::any_game;
use vecaz::selfplay::{SelfPlay, backend_plan};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> vecaz::Result<()> {
    let typed: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let (sets, arguments): (Vec<String>, Vec<String>) = typed.into_iter().partition(|a| a.contains('='));
    let argument = |i: usize, default: &str| arguments.get(i).cloned().unwrap_or(default.to_string());
    let mut layers = Layers::default()
        .set(&format!("game.name={}", argument(0, "connect_four")))?
        .set(&format!("selfplay.games={}", argument(1, "128")))?
        .set(&format!("search.simulations={}", argument(2, "800")))?;
    for set in sets {
        layers = layers.set(&set)?;
    }
    let config = layers.resolve()?;
    let threads: usize = argument(3, "2").parse().unwrap_or(2);
    let seconds: f64 = argument(4, "3").parse().unwrap_or(3.0);
    let game = any_game(config.game_name(), &config.game_options())?;
    let sizes = game.sizes();
    let network = UniformNet(IoShape {
        obs_len: sizes.obs.len(),
        num_actions: sizes.num_actions,
        num_players: sizes.num_players,
    });
    let mut selfplay = SelfPlay::new(&game, &config, &network, Vec::new(), threads)?;
    selfplay.set_network(&network, RootCache::default())?;
    for _ in 0..3 {
        selfplay.poll()?;
    }
    selfplay.take_metrics();
    let (start, mut plies) = (Instant::now(), 0);
    while start.elapsed().as_secs_f64() < seconds {
        plies += selfplay.poll()?.iter().map(|g| g.actions.len()).sum::<usize>();
    }
    let wall = start.elapsed().as_secs_f64();
    let metrics = selfplay.take_metrics();
    let n = metrics.simulations as f64;
    let plan = backend_plan(&config, &sizes, config.selfplay.games);
    println!(
        "{} N={} S={} T={} L={} threads={threads} {:?}: {:.3}M simulations/s, {:.0} plies/s of finished games, \
         depth mean {:.2} max {}, evaluated {:.3}, cached {:.3}, select {:.3} forward {:.3} expand {:.3} backup {:.3} other {:.3}",
        game.name(),
        config.selfplay.games,
        config.search.simulations,
        plan.nodes,
        config.search.leaves,
        config.search.algorithm,
        n / wall / 1e6,
        plies as f64 / wall,
        metrics.depth_sum as f64 / n,
        metrics.depth_max,
        metrics.evaluations as f64 / n,
        metrics.cached as f64 / n,
        metrics.select / wall / threads as f64,
        metrics.forward / wall / threads as f64,
        metrics.expand / wall / threads as f64,
        metrics.backup / wall / threads as f64,
        1.0 - (metrics.select + metrics.forward + metrics.expand + metrics.backup) / wall / threads as f64,
    );
    Ok(())
}
