//! Blob without search: random plies per second, and the time of one determinisation and one observation in positions of
//! random play. Minima of several runs.

use std::time::Instant;
use vecaz::batch::GameBatch;
use vecaz::game::blob::{Blob, State};
use vecaz::game::{Game, Turn};
use vecaz::rng::{Key, Purpose};

const N: usize = 512;
const SEED: u64 = 1;
const RUNS: usize = 5;

/// The shortest of several runs, in seconds.
fn shortest(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..RUNS).map(time).fold(f64::INFINITY, f64::min)
}

/// Random plies per second of N games on each of `threads` threads.
fn steps_per_second(game: &Blob, threads: usize) -> f64 {
    const PASSES: usize = 1000;
    let seconds = shortest(|| {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    let mut batch = GameBatch::new(game.clone(), N);
                    (0..PASSES).for_each(|_| batch.step_random(SEED + thread as u64));
                });
            }
        });
    });
    (threads * N * PASSES) as f64 / seconds
}

/// Every position with a player to move of N random games, with that player.
fn decisions(game: &Blob) -> Vec<(State, u8)> {
    let mut batch = GameBatch::new(game.clone(), N);
    let mut found = Vec::new();
    for _ in 0..game.sizes().max_plies {
        found.extend(batch.states().iter().filter_map(|s| match game.turn(s) {
            Turn::Player(player) => Some((*s, player)),
            Turn::Chance | Turn::Over => None,
        }));
        batch.step_random(SEED);
    }
    found
}

fn main() {
    let commit = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let commit = commit.map_or(String::new(), |out| String::from_utf8_lossy(&out.stdout).trim().to_string());
    for (players, cards, full) in
        [(4, 5, false), (4, 5, true), (3, 13, false), (4, 13, false), (5, 10, false), (8, 6, false)]
    {
        let game = Blob { players, cards, full, ..Blob::default() };
        let positions = decisions(&game);
        let nanoseconds = |seconds: f64| 1e9 * seconds / positions.len() as f64;
        let mut rng = Key::new(SEED, Purpose::Determinise).stream();
        let determinise = shortest(|| {
            for (s, player) in &positions {
                std::hint::black_box(game.determinise(s, *player, &mut rng));
            }
        });
        let mut observation = vec![0.0; game.sizes().obs.len()];
        let observe = shortest(|| {
            for (s, player) in &positions {
                game.observe(s, *player, &mut observation);
                std::hint::black_box(&observation);
            }
        });
        let (one, two) = (steps_per_second(&game, 1), steps_per_second(&game, 2));
        println!(
            "blob {players} x {cards}{}: {:.1} M plies/s (1 thread), {:.1} M plies/s (2 threads), determinise {:.0} ns, \
             observe {:.0} ns; N {N}, device cpu, seed {SEED}, commit {commit}",
            if full { " full" } else { "" },
            one / 1e6,
            two / 1e6,
            nanoseconds(determinise),
            nanoseconds(observe),
        );
    }
}
