//! The root cache: what it costs, what games get from it, and whether they stay as different.
//!
//! `cargo bench --bench root_cache -- [WEIGHTS] [THREADS] [key=value]...`, with three tables: seconds until 128 games have roots of so
//! many simulations, with and without it; its trees, memory and seconds for N = 128, 1,024 and 16,384; and distinct positions among the
//! first of a million plies of self-play without it and with it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use vecaz::backend::AnyGame;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::backend::{CachedTree, Placement, RootCache};
use vecaz::config::{Config, Layers};
use vecaz::error::Result;
use vecaz::net::Network;
use vecaz::registry::any_game;
use vecaz::root_cache::{self, CachePlan, Openings};
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RowKey};
use vecaz::searcher::{SearchRequest, Searchers};
use vecaz::selfplay::{SelfPlay, backend_plan};
use vecaz::stop::Stop;
use vecaz::weights::{NetFile, pack};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIMULATIONS: [u32; 4] = [200, 800, 2000, 5000];
const ROWS: usize = 128;
/// Games that begin with one set of weights, for each slot.
const GAMES_PER_SLOT: f64 = 10.0;
/// Plies of self-play whose positions are counted.
const PLIES: u64 = 1_000_000;

/// What is measured.
struct Subject {
    config: Config,
    game: Arc<dyn AnyGame>,
    network: Box<dyn Network>,
    threads: usize,
}

fn main() -> Result<()> {
    let typed: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let (sets, arguments): (Vec<String>, Vec<String>) = typed.into_iter().partition(|a| a.contains('='));
    let argument = |i: usize, default: &str| arguments.get(i).cloned().unwrap_or(default.to_string());
    let file = NetFile::load(Path::new(&argument(0, "assets/connect_four.safetensors")))?;
    let threads = argument(1, "2").parse().unwrap_or(2);
    let mut layers = Layers::default().file(Path::new(&format!("configs/{}.toml", file.header.game)))?;
    for set in sets {
        layers = layers.set(&set)?;
    }
    let config = layers.resolve()?;
    let game = any_game(&file.header.game, &file.header.options)?;
    let network = Box::new(pack(game.as_ref(), &file.header.net, &file.weights, &config.net)?);
    let subject = Subject { config, game, network, threads };
    println!(
        "{} {:?} {:?}",
        subject.game.name(),
        subject.config.search.algorithm,
        subject.config.net.precision
    );
    subject.time_to_roots()?;
    subject.sizes()?;
    subject.diversity()
}

impl Subject {
    /// Seconds until every game's root has so many simulations.
    fn time_to_roots(&self) -> Result<()> {
        println!("\nseconds until {ROWS} games have roots of so many simulations, {} threads", self.threads);
        println!("{:>8} {:>10} {:>10} {:>10} {:>8}", "sims", "build", "clone", "without", "ratio");
        let (game, sizes) = (self.game.as_ref(), self.game.sizes());
        let placement = Placement::default();
        for simulations in SIMULATIONS {
            let params = SearchParams { simulations, ..SearchParams::new(&self.config.search, &sizes) };
            let nodes = BackendPlan::nodes_for(simulations, &sizes);
            let plan = CachePlan {
                simulations,
                openings: Openings { max_plies: 0, none: 1.0 },
                games: ROWS as f64,
                keep: nodes,
                max_nodes: nodes,
                params,
                placement,
                seed: 1,
            };
            let start = Instant::now();
            let cache = root_cache::build(game, self.network.as_ref(), plan, None, &Stop::default())?;
            let built = start.elapsed().as_secs_f64();
            let [CachedTree { snapshot, .. }] = cache.trees() else {
                println!("games begin in several positions");
                return Ok(());
            };
            let network = self.network.as_ref();
            let mut searchers = Searchers::new(game, network, params, placement, ROWS, self.threads)?;
            let start = Instant::now();
            for shard in searchers.shards() {
                (0..shard.backend.rows()).try_for_each(|b| shard.backend.set_root_tree(b, snapshot))?;
            }
            let cloned = start.elapsed().as_secs_f64();
            let key = |slot: usize| RowKey { slot: slot as u64, ..RowKey::default() };
            let root = |slot| SearchRequest {
                state: snapshot.root_state().to_vec(),
                history: Vec::new(),
                key: key(slot),
            };
            let roots: Vec<SearchRequest> = (0..ROWS).map(root).collect();
            let start = Instant::now();
            searchers.search(&roots, simulations, Exploration::Noisy)?;
            let without = start.elapsed().as_secs_f64();
            let ratio = without / (built + cloned);
            println!("{simulations:>8} {built:>10.4} {cloned:>10.4} {without:>10.3} {ratio:>8.1}");
        }
        Ok(())
    }

    /// The cache of a run with so many games, and what cloning it into all of them takes.
    fn sizes(&self) -> Result<()> {
        println!("\nthe cache of N games at once, {GAMES_PER_SLOT} of which begin in each slot");
        println!(
            "{:>8} {:>6} {:>10} {:>10} {:>10} {:>12} {:>10}",
            "N", "trees", "sims", "MiB", "games MiB", "build s", "clone us"
        );
        let (game, sizes) = (self.game.as_ref(), self.game.sizes());
        for rows in [128, 1024, 16_384] {
            let mut config = self.config.clone();
            config.selfplay.games = rows;
            let arrays = backend_plan(&config, &sizes, rows);
            let row = |nodes| {
                let row = BackendPlan { rows: 1, nodes, reuse: Reuse::Keep, ..arrays };
                row.row_bytes(&sizes, game.state_size()) as f64 / f64::from(1 << 20)
            };
            let games = GAMES_PER_SLOT * rows as f64;
            let Some(plan) = CachePlan::for_run(&config, arrays, &sizes, games) else { continue };
            let start = Instant::now();
            let cache = root_cache::build(game, self.network.as_ref(), plan, None, &Stop::default())?;
            let built = start.elapsed().as_secs_f64();
            let mut backend = vecaz::backend::make(game, arrays, plan.placement, 1)?;
            let start = Instant::now();
            for b in 0..rows {
                backend.set_root_tree(b, &cache.trees()[b % cache.trees().len()].snapshot)?;
            }
            let cloned = start.elapsed().as_secs_f64() * 1e6 / rows as f64;
            let kept: usize = cache.trees().iter().map(|tree| tree.snapshot.tree.count(0)).sum();
            println!(
                "{rows:>8} {:>6} {:>10} {:>10.1} {:>10.1} {built:>12.4} {cloned:>10.2}",
                cache.trees().len(),
                cache.simulations(),
                row(kept),
                row(arrays.nodes) * rows as f64
            );
        }
        Ok(())
    }

    /// Distinct positions among the plies of self-play.
    fn diversity(&self) -> Result<()> {
        println!(
            "\ndistinct positions among the samples of {PLIES} plies, and among those of the first plies of a game"
        );
        println!("{:>12} {:>12} {:>12} {:>12} {:>12}", "root cache", "all", "1 to 4", "5 to 8", "9 to 16");
        for root_cache in [0, self.config.search.root_cache] {
            let mut config = self.config.clone();
            config.search.root_cache = root_cache;
            let distinct = self.distinct(&config)?.map(|positions| positions.len());
            let [all, first, second, third] = distinct;
            println!("{root_cache:>12} {all:>12} {first:>12} {second:>12} {third:>12}");
        }
        Ok(())
    }

    /// The distinct positions of self-play: all, and those of plies 1 to 4, 5 to 8 and 9 to 16.
    fn distinct(&self, config: &Config) -> Result<[HashSet<Vec<u8>>; 4]> {
        let (game, sizes) = (&self.game, self.game.sizes());
        let mut selfplay = SelfPlay::new(game, config, self.network.as_ref(), Vec::new(), self.threads)?;
        let games = config.selfplay.samples_per_epoch as f64 / 20.0;
        let cache = match CachePlan::for_run(config, backend_plan(config, &sizes, 1), &sizes, games) {
            None => RootCache::default(),
            Some(plan) => {
                root_cache::build(game.as_ref(), self.network.as_ref(), plan, None, &Stop::default())?
            }
        };
        selfplay.set_network(self.network.as_ref(), cache)?;
        let mut found: [HashSet<Vec<u8>>; 4] = Default::default();
        let mut plies = 0;
        while plies < PLIES {
            for played in selfplay.poll()? {
                plies += played.samples.len() as u64;
                for (i, sample) in played.samples.into_iter().enumerate() {
                    let ply = played.opening as usize + i;
                    let part = [0..4, 4..8, 8..16].iter().position(|plies| plies.contains(&ply));
                    if let Some(part) = part {
                        found[1 + part].insert(sample.state.clone());
                    }
                    found[0].insert(sample.state);
                }
            }
        }
        Ok(found)
    }
}
