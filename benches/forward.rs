//! Speed of the CPU forward: GFLOP/s counting only taps on the board, positions a second, share of the measured peak.
//!
//! `cargo bench --bench forward [-- PART]` runs the cases whose name contains PART.

use std::sync::Barrier;
use std::time::{Duration, Instant};
use vecaz::config::{Arch, NetConfig, Precision};
use vecaz::game::connect_four::ConnectFour;
use vecaz::game::{Game, ObsShape};
use vecaz::net::Network;
use vecaz::net::fast::FastNet;
use vecaz::net::spec::NetSpec;
use vecaz::rng::{Key, Purpose};

/// Time spent on one measurement.
const BUDGET: Duration = Duration::from_millis(1500);
/// Length of one round.
const ROUND: Duration = Duration::from_millis(1);

fn connect_four(blocks: usize, channels: usize) -> NetSpec {
    let net = NetConfig { blocks, channels, ..NetConfig::default() };
    NetSpec::new(&net, &ConnectFour::default().sizes())
}

/// The edge network on K_14.
fn clique(blocks: usize, channels: usize) -> NetSpec {
    NetSpec {
        arch: Arch::Edge,
        obs: ObsShape { channels: 4, height: 91, width: 1 },
        num_actions: 91,
        ..connect_four(blocks, channels)
    }
}

/// Work of one thread: a call does it once.
type Work = Box<dyn FnMut() + Send>;

/// The least seconds of a call of `make`'s works, started together on `threads` threads, over many short rounds: on a
/// shared machine some rounds go undisturbed.
fn least_seconds(threads: usize, make: impl Fn(usize) -> Work) -> f64 {
    let mut works: Vec<Work> = (0..threads).map(make).collect();
    works.iter_mut().for_each(|work| work());
    let start = Instant::now();
    works[0]();
    let once = start.elapsed().as_secs_f64().max(1e-9);
    let repeats = (ROUND.as_secs_f64() / once).clamp(1.0, 1e6) as usize;
    let rounds = (BUDGET.as_secs_f64() / (once * repeats as f64)).clamp(8.0, 1e4) as usize;
    let barrier = Barrier::new(threads);
    let times: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let spawn = |work| scope.spawn(|| thread_seconds(work, &barrier, rounds, repeats));
        let handles: Vec<_> = works.iter_mut().map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().expect("a worker ended early")).collect()
    });
    let slowest = |round: usize| times.iter().map(|seconds| seconds[round]).fold(0.0, f64::max);
    (0..rounds).map(slowest).fold(f64::MAX, f64::min)
}

/// Seconds of a call, for every round.
fn thread_seconds(work: &mut Work, barrier: &Barrier, rounds: usize, repeats: usize) -> Vec<f64> {
    let round = |_| {
        barrier.wait();
        let start = Instant::now();
        (0..repeats).for_each(|_| work());
        start.elapsed().as_secs_f64() / repeats as f64
    };
    (0..rounds).map(round).collect()
}

fn forward_seconds(net: &FastNet, rows: usize, threads: usize) -> f64 {
    least_seconds(threads, |thread| {
        let mut net = net.clone();
        let io = net.shape();
        let obs = boards(io.obs_len, rows, thread as u64);
        let (mut logits, mut values) = (vec![0.0; rows * io.num_actions], vec![0.0; rows * io.num_players]);
        Box::new(move || net.forward(&obs, &mut logits, &mut values).expect("finite"))
    })
}

/// GFLOP/s of all threads when nothing but multiplications is done.
fn peak_gflops(net: &FastNet, threads: usize) -> f64 {
    const ROUNDS: usize = 50_000;
    let seconds = least_seconds(threads, |_| {
        let net = net.clone();
        Box::new(move || assert!(net.multiply_flat_out(ROUNDS) > 0))
    });
    2.0 * (net.multiply_flat_out(ROUNDS) * threads) as f64 / seconds / 1e9
}

/// The network with random weights, 8-bit ones calibrated on random boards.
fn pack(spec: &NetSpec, precision: Precision) -> vecaz::Result<FastNet> {
    let weights = spec.random(Key::new(1, Purpose::Weights));
    match precision {
        Precision::Int8 => FastNet::int8(spec, &weights, &boards(spec.obs.len(), 200, 99)),
        _ => FastNet::new(spec, &weights, precision),
    }
}

/// Observations of zeros and ones.
fn boards(obs_len: usize, rows: usize, seed: u64) -> Vec<f32> {
    let mut stream = Key::new(seed, Purpose::Evaluation).stream();
    (0..rows * obs_len).map(|_| stream.below(2) as f32).collect()
}

fn commit() -> String {
    let output = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}

/// Prints a line for each number of threads and rows.
fn report(name: &str, net: &FastNet) {
    for threads in [1, 2] {
        let peak = peak_gflops(net, threads);
        for rows in [1, 8, 64, 128] {
            let positions = (rows * threads) as f64 / forward_seconds(net, rows, threads);
            let gflops = 2.0 * net.products() as f64 * positions / 1e9;
            let share = 100.0 * gflops / peak;
            let path = net.path();
            println!(
                "{name} {path} M {rows:3} threads {threads}: {gflops:6.1} GFLOP/s = {share:4.1} % of peak {peak:.0}, \
                 {positions:8.0} positions/s"
            );
        }
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    println!("commit {}", commit());
    for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
        let cases =
            [("2x32", connect_four(2, 32)), ("6x64", connect_four(6, 64)), ("edge 3x64", clique(3, 64))];
        for (name, spec) in cases {
            let name = format!("{name} {precision:?}").to_lowercase();
            if !name.contains(&wanted) {
                continue;
            }
            match pack(&spec, precision) {
                Ok(net) => report(&name, &net),
                Err(error) => println!("{name}: {error}"),
            }
        }
    }
}
