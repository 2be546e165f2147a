//! Speed of the CPU forward: GFLOP/s (taps on the board only), positions per second, fraction of the peak measured in alternation.
//!
//! `cargo bench --bench forward [-- PART [net.isa=ISA]]` runs the cases whose name contains PART, with this instruction set or the
//! machine's fastest.

use std::sync::Barrier;
use std::time::{Duration, Instant};
use vecaz::config::{Arch, Layers, NetConfig, Precision};
use vecaz::game::connect_four::ConnectFour;
use vecaz::game::{Game, ObsShape};
use vecaz::isa::Isa;
use vecaz::model::NetSpec;
use vecaz::net::Network;
use vecaz::net::cpu::{CpuNet, choose_isa};
use vecaz::rng::{Key, Purpose};

/// Time spent on one measurement.
const BUDGET: Duration = Duration::from_millis(1500);
/// Time of one work in a round.
const ROUND: Duration = Duration::from_millis(1);
/// Iterations of the peak loop.
const FLAT_OUT: usize = 50_000;

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

/// The work of one thread, done once per call.
type Work = Box<dyn FnMut() + Send>;

/// The result of alternating two works.
struct Paired {
    /// The minimum seconds of a call of each work.
    least: [f64; 2],
    /// The median over rounds of the first work's seconds divided by the second's.
    ratio: f64,
}

/// Alternates two works in rounds, started together on `threads` threads. On a shared machine some rounds are undisturbed, and a
/// disturbance longer than a round affects both works.
fn paired(threads: usize, pair: impl Fn(usize) -> [Work; 2]) -> Paired {
    let mut pairs: Vec<[Work; 2]> = (0..threads).map(pair).collect();
    pairs.iter_mut().flatten().for_each(|work| work());
    let repeats = [0, 1].map(|which| {
        let start = Instant::now();
        pairs[0][which]();
        (ROUND.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-9)).clamp(1.0, 1e6) as usize
    });
    let start = Instant::now();
    seconds_of_rounds(&mut pairs[0], repeats, &Barrier::new(1), 1);
    let rounds = (BUDGET.as_secs_f64() / start.elapsed().as_secs_f64()).clamp(8.0, 1e4) as usize;
    let barrier = Barrier::new(threads);
    let times: Vec<Vec<[f64; 2]>> = std::thread::scope(|scope| {
        let spawn = |works| scope.spawn(|| seconds_of_rounds(works, repeats, &barrier, rounds));
        let handles: Vec<_> = pairs.iter_mut().map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().expect("a worker ended early")).collect()
    });
    let slowest = |round: usize, which: usize| times.iter().map(|all| all[round][which]).fold(0.0, f64::max);
    let least = [0, 1].map(|which| (0..rounds).map(|round| slowest(round, which)).fold(f64::MAX, f64::min));
    let mut ratios: Vec<f64> = (0..rounds).map(|round| slowest(round, 0) / slowest(round, 1)).collect();
    ratios.sort_by(f64::total_cmp);
    Paired { least, ratio: ratios[rounds / 2] }
}

/// Seconds per call of each work in every round. `[rounds, 2]`
fn seconds_of_rounds(
    works: &mut [Work; 2],
    repeats: [usize; 2],
    barrier: &Barrier,
    rounds: usize,
) -> Vec<[f64; 2]> {
    let mut time = |which: usize| {
        barrier.wait();
        let start = Instant::now();
        (0..repeats[which]).for_each(|_| works[which]());
        start.elapsed().as_secs_f64() / repeats[which] as f64
    };
    (0..rounds).map(|_| [time(0), time(1)]).collect()
}

/// Alternates batches of `rows` positions with the peak loop on every thread.
fn forward_beside_peak(net: &CpuNet, rows: usize, threads: usize) -> Paired {
    paired(threads, |thread| {
        let (mut net, bare) = (net.clone(), net.clone());
        let io = net.shape();
        let obs = boards(io.obs_len, rows, thread as u64);
        let (mut logits, mut values) = (vec![0.0; rows * io.num_actions], vec![0.0; rows * io.num_players]);
        [
            Box::new(move || net.forward(&obs, &mut logits, &mut values).expect("finite")),
            Box::new(move || assert!(bare.measure_peak(FLAT_OUT) > 0)),
        ]
    })
}

/// The network with random weights, 8-bit ones calibrated on random boards.
fn pack(spec: &NetSpec, precision: Precision, isa: Isa) -> vecaz::Result<CpuNet> {
    let weights = spec.model().expect("a network").random_weights(Key::new(1, Purpose::Weights));
    match precision {
        Precision::Int8 => CpuNet::int8_with_isa(spec, &weights, &boards(spec.obs.len(), 200, 99), isa),
        _ => CpuNet::with_isa(spec, &weights, precision, isa),
    }
}

/// Observations of zeros and ones.
fn boards(obs_len: usize, rows: usize, seed: u64) -> Vec<f32> {
    let mut stream = Key::new(seed, Purpose::Evaluation).stream();
    (0..rows * obs_len).map(|_| stream.below(2) as f32).collect()
}

/// Prints a line for each number of threads and rows. The fraction of the peak is the median over rounds.
fn report(name: &str, net: &CpuNet) {
    let bare = net.measure_peak(FLAT_OUT) as f64;
    for threads in [1, 2] {
        for rows in [1, 8, 64, 128] {
            let Paired { least, ratio } = forward_beside_peak(net, rows, threads);
            let products = (rows * net.macs_per_sample()) as f64;
            let gflops = |products: f64, seconds: f64| 2.0 * products * threads as f64 / seconds / 1e9;
            let (reached, peak) = (gflops(products, least[0]), gflops(bare, least[1]));
            let (share, positions) = (100.0 * products / bare / ratio, (rows * threads) as f64 / least[0]);
            let path = net.kernel_name();
            println!(
                "{name} {path} M {rows:3} threads {threads}: {share:4.1} % of peak; at best {reached:6.1} of {peak:.0} GFLOP/s, \
                 {positions:8.0} positions/s"
            );
        }
    }
}

fn main() -> vecaz::Result<()> {
    let mut typed = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let wanted = typed.next().unwrap_or_default();
    let isa = typed.try_fold(Layers::default(), |layers, key| layers.set(&key))?.resolve()?.net.isa;
    println!("commit {}", env!("VECAZ_COMMIT"));
    for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
        let cases =
            [("2x32", connect_four(2, 32)), ("6x64", connect_four(6, 64)), ("edge 3x64", clique(3, 64))];
        for (name, spec) in cases {
            let name = format!("{name} {precision}");
            if !name.contains(&wanted) {
                continue;
            }
            match choose_isa(isa, precision).and_then(|isa| pack(&spec, precision, isa)) {
                Ok(net) => report(&name, &net),
                Err(error) => println!("{name}: {error}"),
            }
        }
    }
    Ok(())
}
