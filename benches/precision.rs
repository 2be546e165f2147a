//! Loss of a network in bf16 and int8 relative to f32: divergence of the policy, error of the value, playing strength.
//!
//! `cargo bench --bench precision -- [WEIGHTS] [GAMES] [S]`: WEIGHTS is a file of `vecaz export-weights` (default: the Connect
//! Four network that comes with vecaz), GAMES is the number of games per pair (default 2000), S the simulations per ply (default
//! 100).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::config::{Algorithm, Config, NetConfig, Precision, SearchConfig};
use vecaz::engine::{Settings, determinised};
use vecaz::eval::arena::Contestant;
use vecaz::eval::matches::{MatchPlan, play_match};
use vecaz::game::Turn;
use vecaz::net::cpu::CpuNet;
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::search::SearchParams;
use vecaz::search::root::{RowKey, argmax};
use vecaz::searcher::{SearchRequest, raw_policies};
use vecaz::weights::{NetFile, pack};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 1;
/// Games whose positions are compared.
const GAMES: usize = 512;
const THREADS: usize = 2;

fn main() -> vecaz::Result<()> {
    let typed: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");
    let path = typed.first().map_or(PathBuf::from(stored), PathBuf::from);
    let number = |i: usize, default: u32| typed.get(i).and_then(|x| x.parse().ok()).unwrap_or(default);
    let (games, simulations) = (number(1, 2000) as usize, number(2, 100));
    let file = NetFile::load(Path::new(&path))?;
    let game = any_game(&file.header.game, &file.header.options)?;
    let packed = |precision| {
        let config = NetConfig { precision, ..NetConfig::default() };
        pack(game.as_ref(), &file.header.net, &file.weights, &config)
    };
    let mut exact = packed(Precision::F32)?;
    let positions = own_positions(&game, &mut exact)?;
    println!(
        "{}: {} blocks x {} channels, {} positions of {GAMES} games by its own policy",
        file.header.game,
        file.header.net.blocks,
        file.header.net.channels,
        positions.len()
    );
    for precision in [Precision::Bf16, Precision::Int8] {
        let mut net = packed(precision)?;
        compare(&game, &mut exact, &mut net, &positions, precision)?;
        strength(&game, &exact, &net, games, simulations)?;
    }
    Ok(())
}

/// Every position with more than one legal action, in games sampled from the network's policy.
fn own_positions(game: &Arc<dyn AnyGame>, net: &mut CpuNet) -> vecaz::Result<Vec<SearchRequest>> {
    let mut plays: Vec<Playthrough> = (0..GAMES).map(|_| Playthrough::new(game.clone())).collect();
    let mut positions = Vec::new();
    for ply in 0u64.. {
        let mut moved = 0;
        for (slot, play) in plays.iter_mut().enumerate().filter(|(_, play)| play.turn() != Turn::Over) {
            moved += 1;
            let mut rng = Key::new(SEED, Purpose::Evaluation).with(slot as u64).with(ply).stream();
            let legal = play.legal();
            if play.turn() == Turn::Chance {
                play.step(legal[rng.below(legal.len())])?;
                continue;
            }
            let position = determinised(play, RowKey::default(), 1).swap_remove(0);
            let (priors, _) = raw_policies(game.as_ref(), net, std::slice::from_ref(&position))?.remove(0);
            let mut left = rng.uniform();
            let drawn = priors.iter().position(|p| {
                left -= p;
                left < 0.0
            });
            play.step(legal[drawn.unwrap_or(legal.len() - 1)])?;
            if legal.len() > 1 {
                positions.push(position);
            }
        }
        if moved == 0 {
            break;
        }
    }
    Ok(positions)
}

fn compare(
    game: &Arc<dyn AnyGame>,
    exact: &mut CpuNet,
    net: &mut CpuNet,
    positions: &[SearchRequest],
    precision: Precision,
) -> vecaz::Result<()> {
    let right = raw_policies(game.as_ref(), exact, positions)?;
    let found = raw_policies(game.as_ref(), net, positions)?;
    let (mut divergence, mut squared, mut same, mut value) = (0.0f64, 0.0f64, 0, 0.0f64);
    for ((p, v), (q, w)) in right.iter().zip(&found) {
        let terms = p.iter().zip(q).filter(|(p, _)| **p > 0.0);
        divergence +=
            terms.map(|(&p, &q)| f64::from(p) * (f64::from(p) / f64::from(q.max(1e-30))).ln()).sum::<f64>();
        squared += p.iter().zip(q).map(|(&p, &q)| f64::from(p - q).powi(2)).sum::<f64>() / p.len() as f64;
        same += usize::from(argmax(p) == argmax(q));
        value += f64::from((v[0] - w[0]).abs());
    }
    let n = positions.len() as f64;
    println!(
        "{precision:?} against f32: KL(policy) {:.2e} nats, mean squared difference of probabilities {:.2e}, same first move \
         {:.2} %, mean |value error| {:.4}",
        divergence / n,
        squared / n,
        100.0 * same as f64 / n,
        value / n
    );
    Ok(())
}

fn strength(
    game: &Arc<dyn AnyGame>,
    exact: &CpuNet,
    net: &CpuNet,
    games: usize,
    simulations: u32,
) -> vecaz::Result<()> {
    let config = SearchConfig { algorithm: Algorithm::Puct, simulations, ..SearchConfig::default() };
    let mut settings = Settings { threads: THREADS, ..Settings::new(&Config::default(), &game.sizes()) };
    settings.params = SearchParams::new(&config, &game.sizes());
    let mut a = Contestant::search(game.as_ref(), net, settings)?;
    let mut b = Contestant::search(game.as_ref(), exact, settings)?;
    let plan = MatchPlan { games, opening_plies: 4, seed: SEED, ..MatchPlan::default() };
    let result = play_match(game, &mut a, &mut b, plan, &mut |_| {})?.result;
    let [low, high] = result.score_interval();
    println!(
        "  strength at {simulations} simulations, {games} games from random openings of 4 plies: +{} ={} -{}, score {:.4} \
         (95 % interval {low:.4} to {high:.4})",
        result.wins,
        result.draws,
        result.losses,
        result.score()
    );
    Ok(())
}
