//! The edge network: its outputs under permutations of the vertices, one set of weights at several n, and its learning.
#![cfg(feature = "candle")]

use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::config::{Arch, NetConfig, Precision, TrainConfig};
use vecaz::game::Turn;
use vecaz::net::cpu::CpuNet;
use vecaz::net::{CandleNet, NetSpec, Network, Weights, reference};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::train::{TrainBatch, Trainer};

fn clique(n: i64, k: i64, mode: &str) -> Arc<dyn AnyGame> {
    let options = format!("n = {n}\nk = {k}\nmode = \"{mode}\"").parse().expect("TOML");
    any_game("clique", &options).expect("valid")
}

fn spec(game: &dyn AnyGame) -> NetSpec {
    let config =
        NetConfig { arch: Arch::Edge, blocks: 2, channels: 12, value_hidden: 9, ..NetConfig::default() };
    NetSpec::new(&config, &game.sizes())
}

fn stream(seed: u64) -> RngStream {
    Key::new(seed, Purpose::Evaluation).stream()
}

/// A position in the middle of a random game.
fn position(game: &Arc<dyn AnyGame>, rng: &mut RngStream) -> Playthrough {
    let mut play = Playthrough::new(game.clone());
    let plies = rng.below(game.sizes().num_actions / 2);
    for _ in 0..plies {
        let legal = play.legal();
        let mut next = play.clone();
        next.step(legal[rng.below(legal.len())]).expect("legal");
        if next.turn() == Turn::Over {
            break;
        }
        play = next;
    }
    play
}

fn observation(game: &dyn AnyGame, state: &[u8]) -> Vec<f32> {
    let mut obs = vec![0.0; game.sizes().obs.len()];
    game.observe_batch(state, &mut obs);
    obs
}

fn evaluate(net: &mut dyn Network, obs: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let io = net.shape();
    let (mut logits, mut values) = (vec![0.0; io.num_actions], vec![0.0; io.num_players]);
    net.forward(obs, &mut logits, &mut values).expect("finite");
    (logits, values)
}

/// Every forward that there is for the edge network, by name.
fn networks(spec: &NetSpec, weights: &Weights) -> Vec<(&'static str, Box<dyn Network>)> {
    vec![
        ("candle", Box::new(CandleNet::new(spec, weights).expect("network"))),
        ("f32", Box::new(CpuNet::new(spec, weights, Precision::F32).expect("network"))),
        ("bf16", Box::new(CpuNet::new(spec, weights, Precision::Bf16).expect("network"))),
    ]
}

fn weights(spec: &NetSpec, seed: u64) -> Weights {
    spec.model().expect("a network").random_weights(Key::new(seed, Purpose::Weights))
}

#[test]
fn permuting_the_vertices_permutes_the_policy_and_keeps_the_value() {
    let mut rng = stream(1);
    for (n, mode) in [(5, "symmetric"), (7, "asymmetric"), (10, "avoid_clique"), (6, "ramsey")] {
        let game = clique(n, 4, mode);
        let spec = spec(&*game);
        let weights = weights(&spec, 2);
        for _ in 0..4 {
            let play = position(&game, &mut rng);
            let symmetry = 1 + rng.below(game.sizes().num_symmetries as usize - 1) as u64;
            let mut image = play.state().to_vec();
            game.transform_batch(&mut image, &[symmetry]);
            for (name, mut net) in networks(&spec, &weights) {
                let tolerance = if name == "bf16" { 0.1 } else { 1e-3 };
                let (logits, values) = evaluate(net.as_mut(), &observation(&*game, play.state()));
                let (moved, same) = evaluate(net.as_mut(), &observation(&*game, &image));
                let scale = 1.0 + logits.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
                for (action, logit) in logits.iter().enumerate() {
                    let there = moved[usize::from(game.transform_action(action as u16, symmetry))];
                    assert!((logit - there).abs() < tolerance * scale, "{name} n {n}: {logit} {there}");
                }
                assert!((values[0] - same[0]).abs() < tolerance, "{name} n {n}: {values:?} {same:?}");
                let spread = logits.iter().fold(0.0, |max: f32, x| max.max((x - logits[0]).abs()));
                assert!(play.actions().is_empty() || spread > tolerance, "{name}: one logit for all edges");
            }
        }
    }
}

#[test]
fn the_same_weights_serve_five_and_nine_vertices() {
    let (small, large) = (clique(5, 3, "avoid_clique"), clique(9, 3, "avoid_clique"));
    let spec_small = spec(&*small);
    let spec_large = spec_small.for_sizes(&large.sizes()).expect("edges of K_9");
    assert_eq!(spec_large, spec(&*large));
    let params = |spec: &NetSpec| spec.model().expect("a network").params;
    assert_eq!(params(&spec_small), params(&spec_large));
    let weights = weights(&spec_small, 3);
    let mut rng = stream(4);
    for (game, spec) in [(&small, &spec_small), (&large, &spec_large)] {
        let obs = observation(&**game, position(game, &mut rng).state());
        let (logits, values) =
            reference::forward(&spec.model().expect("a network"), &weights, &obs).expect("finite");
        for (name, mut net) in networks(spec, &weights).into_iter().take(2) {
            let (l, v) = evaluate(net.as_mut(), &obs);
            let scale = 1.0 + logits.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
            assert!(
                l.iter().zip(&logits).all(|(a, b)| (a - b).abs() < 1e-4 * scale),
                "{name}: {l:?} {logits:?}"
            );
            assert!((v[0] - values[0]).abs() < 1e-3 && v[0] == -v[1], "{name}: {v:?} {values:?}");
        }
    }
    assert_eq!(spec_small.for_sizes(&any_game("hex", &toml::Table::new()).expect("Hex").sizes()), None);
}

/// Random boards of K_n: the policy target is the edges that close a triangle of one's own, the value whether there is one.
fn threats(game: &Arc<dyn AnyGame>, rows: usize, rng: &mut RngStream) -> TrainBatch {
    let actions = game.sizes().num_actions;
    let mut batch = TrainBatch::default();
    while batch.weight.len() < rows {
        let play = position(game, rng);
        let wins = |action: &u16| {
            let mut next = play.clone();
            next.step(*action).expect("legal");
            next.turn() == Turn::Over
        };
        let legal = play.legal();
        let winning: Vec<u16> = legal.iter().copied().filter(wins).collect();
        let targets = if winning.is_empty() { &legal } else { &winning };
        let share = |action: usize| targets.iter().filter(|&&a| usize::from(a) == action).count() as f32;
        batch.obs.extend(observation(&**game, play.state()));
        batch
            .targets
            .column_mut("policy")
            .extend((0..actions).map(|action| share(action) / targets.len() as f32));
        batch.legal.extend((0..actions).map(|action| u8::from(legal.contains(&(action as u16)))));
        let value = if winning.is_empty() { -1.0 } else { 1.0 };
        batch.targets.column_mut("values").extend([value, -value]);
        batch.weight.push(1.0);
    }
    batch
}

#[test]
fn it_learns_to_see_triangles_and_sees_them_on_more_vertices() {
    let (small, large) = (clique(6, 3, "symmetric"), clique(8, 3, "symmetric"));
    let spec = NetSpec { channels: 16, ..spec(&*small) };
    let config = TrainConfig { lr: 5e-3, lr_final: 1.0, ..TrainConfig::default() };
    let mut trainer = Trainer::new(&spec, &config, 5).expect("trainer");
    let mut rng = stream(6);
    let first = trainer.step(&threats(&small, 64, &mut rng)).expect("finite");
    for _ in 0..250 {
        trainer.step(&threats(&small, 64, &mut rng)).expect("finite");
    }
    let last = trainer.step(&threats(&small, 256, &mut rng)).expect("finite");
    assert!(last.policy_kl < 0.1 * first.policy_kl && last.value_mse < 0.3, "{first:?} {last:?}");

    let spec = spec.for_sizes(&large.sizes()).expect("edges of K_8");
    let mut net = CpuNet::new(&spec, &trainer.weights(), Precision::F32).expect("network");
    let batch = threats(&large, 200, &mut rng);
    let (f, a) = (spec.obs.len(), spec.num_actions);
    let (mut seen, mut there) = (0, 0);
    for (row, obs) in
        batch.obs.chunks_exact(f).enumerate().filter(|(row, _)| batch.targets["values"][2 * row] > 0.0)
    {
        let (logits, _) = evaluate(&mut net, obs);
        let legal = (0..a).filter(|action| batch.legal[row * a + action] == 1);
        let best = legal.max_by(|&x, &y| logits[x].total_cmp(&logits[y])).expect("an edge is free");
        there += 1;
        seen += usize::from(batch.targets["policy"][row * a + best] > 0.0);
    }
    assert!(there > 30 && seen * 10 > there * 9, "{seen} of {there}");
}
