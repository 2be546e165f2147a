//! Games per second of the clique game with the edge network in self-play: `cargo bench --bench clique -- [PART] [KEY=VALUE]...`
//! measures the cases whose name contains PART.
//!
//! Networks have initial weights and subtrees are dropped, so every searched ply takes S new simulations unless its root is
//! proven earlier. The two cases are those of alphazero_clique's published figures. Printed per case: the minimum and median
//! milliseconds per game over windows of at least N games, and the CPU time of a game divided by the number of threads, which
//! estimates the time of a game on an idle machine.

use std::time::Instant;
use vecaz::backend::RootCache;
use vecaz::config::{Config, Layers};
use vecaz::net::NetSpec;
use vecaz::registry::any_game;
use vecaz::selfplay::SelfPlay;
use vecaz::weights::pack;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of windows, and the minimum seconds of each.
const WINDOWS: usize = 5;
const SECONDS: f64 = 1.0;

/// n, k, mode, blocks, channels, N, S.
type Case = (usize, usize, &'static str, usize, usize, usize, u32);

const CASES: [Case; 7] = [
    (6, 3, "symmetric", 2, 64, 100, 25),
    (6, 3, "symmetric", 2, 64, 100, 50),
    (6, 3, "symmetric", 2, 64, 100, 100),
    (6, 3, "symmetric", 2, 32, 100, 50),
    (14, 4, "symmetric", 3, 64, 128, 50),
    (14, 4, "asymmetric", 3, 64, 128, 50),
    (14, 4, "avoid_clique", 3, 64, 128, 50),
];

fn main() -> vecaz::Result<()> {
    let typed = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let (sets, parts): (Vec<String>, Vec<String>) = typed.partition(|arg| arg.contains('.'));
    let threads = rayon::current_num_threads();
    println!("cpu, threads {threads}, commit {}, {}", commit(), sets.join(" "));
    println!(
        "{:<28}{:>10}{:>5}{:>5}{:>10}{:>11}{:>9}{:>9}{:>7}{:>7}{:>10}{:>6}  path",
        "game",
        "net",
        "N",
        "S",
        "ms least",
        "ms median",
        "ms cpu",
        "games/s",
        "plies",
        "sims",
        "sims/s",
        "hit"
    );
    for case in &CASES {
        let config = configure(case, &sets)?;
        if parts.iter().all(|part| name(&config).contains(part)) {
            measure(&config, threads)?;
        }
    }
    Ok(())
}

fn name(config: &Config) -> String {
    let value =
        |key: &str| config.game.get(key).map(|value| value.to_string().replace('"', "")).unwrap_or_default();
    format!("n={} k={} {}", value("n"), value("k"), value("mode"))
}

/// CPU seconds of this process on all threads; 0 if the system does not report them.
fn cpu_seconds() -> f64 {
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().skip(11).take(2).filter_map(|x| x.parse::<f64>().ok()).sum::<f64>() / TICKS
}

fn configure(case: &Case, sets: &[String]) -> vecaz::Result<Config> {
    let &(n, k, mode, blocks, channels, games, simulations) = case;
    let mut layers = Layers::default().text(include_str!("../configs/clique.toml"), "configs/clique.toml")?;
    let keys = [
        format!("game.n={n}"),
        format!("game.k={k}"),
        format!("game.mode={mode}"),
        format!("net.blocks={blocks}"),
        format!("net.channels={channels}"),
        format!("selfplay.games={games}"),
        format!("search.simulations={simulations}"),
        "search.reuse=false".to_string(),
        "selfplay.opening_plies=0".to_string(),
        "selfplay.playout_cap_prob=0".to_string(),
    ];
    for key in keys.iter().chain(sets) {
        layers = layers.set(key)?;
    }
    layers.resolve()
}

/// The counts of one window.
#[derive(Default)]
struct Window {
    seconds: f64,
    games: usize,
    plies: usize,
}

fn measure(config: &Config, threads: usize) -> vecaz::Result<()> {
    let game = any_game(config.game_name(), &config.game_options())?;
    let spec = NetSpec::new(&config.net, &game.sizes());
    let weights = spec.model().expect("a network").initial_weights(config.run.seed);
    let network = pack(game.as_ref(), &spec, &weights, &config.net)?;
    let mut selfplay = SelfPlay::new(&game, config, &network, Vec::new(), threads)?;
    selfplay.set_network(&network, RootCache::default())?;
    window(&mut selfplay, config)?;
    selfplay.take_metrics();
    let mut windows = Vec::new();
    let cpu = cpu_seconds();
    for _ in 0..WINDOWS {
        windows.push(window(&mut selfplay, config)?);
    }
    let cpu = cpu_seconds() - cpu;
    let metrics = selfplay.take_metrics();
    let mut ms: Vec<f64> = windows.iter().map(|w| 1e3 * w.seconds / w.games as f64).collect();
    ms.sort_by(f64::total_cmp);
    let sum = |part: fn(&Window) -> f64| windows.iter().map(part).sum::<f64>();
    let sims_per_ply = metrics.simulations as f64 / metrics.plies.max(1) as f64;
    println!(
        "{:<28}{:>10}{:>5}{:>5}{:>10.3}{:>11.3}{:>9.3}{:>9.1}{:>7.1}{:>7.1}{:>10.0}{:>6.2}  {}",
        name(config),
        format!("edge {}x{}", config.net.blocks, config.net.channels),
        config.selfplay.games,
        config.search.simulations,
        ms[0],
        ms[WINDOWS / 2],
        1e3 * cpu / (threads as f64 * sum(|w| w.games as f64)),
        1e3 / ms[0],
        sum(|w| w.plies as f64) / sum(|w| w.games as f64),
        sims_per_ply,
        metrics.simulations as f64 / sum(|w| w.seconds),
        metrics.cache_hit_rate().unwrap_or(0.0),
        network.kernel_name(),
    );
    Ok(())
}

/// Plays until N games have ended and the window's minimum time has passed.
fn window(selfplay: &mut SelfPlay, config: &Config) -> vecaz::Result<Window> {
    let start = Instant::now();
    let mut seen = Window::default();
    while seen.games < config.selfplay.games || start.elapsed().as_secs_f64() < SECONDS {
        for game in selfplay.poll()? {
            seen.games += 1;
            seen.plies += game.actions.len();
        }
    }
    seen.seconds = start.elapsed().as_secs_f64();
    Ok(seen)
}

/// The commit that is measured, if git reports it.
fn commit() -> String {
    let output = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default();
    if text.is_empty() { "unknown".into() } else { text }
}
