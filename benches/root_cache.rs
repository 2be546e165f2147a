//! Cost of the root cache (build and clone) compared with a search of every game's root.
//!
//! `cargo bench --bench root_cache -- [WEIGHTS] [N] [THREADS] [key=value]...`: for each size of the cache, the seconds until N
//! games have a root with that number of visits, with and without the cache, and the cache's memory.

use std::path::Path;
use std::time::Instant;
use vecaz::backend::Placement;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::batch::any_game;
use vecaz::config::Layers;
use vecaz::root_cache::{self, CachePlan};
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RowKey};
use vecaz::searcher::{Position, Searchers};
use vecaz::stop::Stop;
use vecaz::weights::{NetFile, pack};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIMULATIONS: [u32; 4] = [200, 800, 2000, 5000];

fn main() -> vecaz::Result<()> {
    let typed: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let (sets, places): (Vec<String>, Vec<String>) = typed.into_iter().partition(|a| a.contains('='));
    let place = |i: usize, default: &str| places.get(i).cloned().unwrap_or(default.to_string());
    let mut layers = Layers::default();
    for set in sets {
        layers = layers.set(&set)?;
    }
    let config = layers.resolve()?;
    let file = NetFile::load(Path::new(&place(0, "assets/connect_four.safetensors")))?;
    let (rows, threads) = (place(1, "128").parse().unwrap_or(128), place(2, "2").parse().unwrap_or(2));
    let game = any_game(&file.header.game, &file.header.options)?;
    let sizes = game.sizes();
    let network = pack(game.as_ref(), &file.header.net, &file.weights, &config.net)?;
    println!(
        "{} N={rows} threads={threads} {:?} {:?}: seconds until every game's root has so many simulations",
        game.name(),
        config.search.algorithm,
        config.net.precision
    );
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>8} {:>12}",
        "sims", "build", "clone", "without", "ratio", "MiB a game"
    );
    let placement = Placement::default();
    for simulations in SIMULATIONS {
        let params = SearchParams { simulations, ..SearchParams::new(&config.search, &sizes) };
        let nodes = BackendPlan::nodes_for(simulations, &sizes);
        let start = Instant::now();
        let plan = CachePlan { simulations, keep: nodes, params, placement, seed: 1 };
        let cache = root_cache::build(game.as_ref(), &network, plan, &Stop::default())?;
        let built = start.elapsed().as_secs_f64();
        let mut searchers = Searchers::new(game.as_ref(), &network, params, placement, rows, threads)?;
        let start = Instant::now();
        for shard in searchers.shards() {
            (0..shard.backend.rows()).try_for_each(|b| shard.backend.set_root_tree(b, &cache[0].1))?;
        }
        let cloned = start.elapsed().as_secs_f64();
        let key = |slot: usize| RowKey { slot: slot as u64, ..RowKey::default() };
        let roots: Vec<Position> = (0..rows)
            .map(|slot| Position { state: cache[0].0.clone(), history: Vec::new(), key: key(slot) })
            .collect();
        let start = Instant::now();
        searchers.search(&roots, simulations, Exploration::Noisy)?;
        let without = start.elapsed().as_secs_f64();
        let row = BackendPlan { rows: 1, nodes, params, reuse: Reuse::Keep };
        println!(
            "{simulations:>8} {built:>10.4} {cloned:>10.4} {without:>10.3} {:>8.1} {:>12.3}",
            without / (built + cloned),
            row.row_bytes(placement.engine, &sizes, game.state_size()) as f64 / f64::from(1 << 20)
        );
    }
    Ok(())
}
