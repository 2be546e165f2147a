//! Random play, plies per second, of every registered game through `GameBatch::step_random`.
//!
//!     cargo bench --bench games                      # every game
//!     cargo bench --bench games -- hex go --seconds 2
//!
//! Each thread has its own batch of N / threads games. The best of three runs is printed, since other programs on the machine can
//! only slow a run down.

#[path = "../tests/support/typed_games.rs"]
mod typed_games;

use clap::Parser;
use std::time::{Duration, Instant};
use typed_games::{GameVisitor, dispatch};
use vecaz::batch::GameBatch;
use vecaz::game::Game;
use vecaz::registry::Registry;

/// Games in a batch.
const SLOTS: [usize; 2] = [128, 1024];
const THREADS: [usize; 2] = [1, 2];
const RUNS: usize = 3;

/// Settings measured besides each game's defaults: the name and the options as TOML.
const OTHER_SETTINGS: &[(&str, &str)] = &[("connect_four", "rows = 7\ncolumns = 8")];

#[derive(Parser)]
struct Args {
    /// Games to measure; all if none is named.
    games: Vec<String>,
    /// Seconds of each run.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Seed of the random play.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Measures one game.
struct Measure<'a> {
    args: &'a Args,
    slots: usize,
    threads: usize,
}

/// The counts of one run.
struct Run {
    plies: u64,
    games: u64,
    seconds: f64,
}

impl GameVisitor for Measure<'_> {
    type Out = Run;

    fn visit<G: Game>(self, game: G) -> Run {
        let runs = (0..RUNS).map(|_| self.run(&game));
        runs.max_by(|a, b| (a.plies as f64 / a.seconds).total_cmp(&(b.plies as f64 / b.seconds)))
            .expect("RUNS > 0")
    }
}

impl Measure<'_> {
    fn run<G: Game>(&self, game: &G) -> Run {
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(self.args.seconds);
        let counts: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let work = |thread: usize| {
                let slots = self.slots / self.threads;
                let seed = self.args.seed + thread as u64;
                scope.spawn(move || play_until(end, GameBatch::new(game.clone(), slots), seed))
            };
            let handles: Vec<_> = (0..self.threads).map(work).collect();
            handles.into_iter().map(|handle| handle.join().expect("random play")).collect()
        });
        let seconds = start.elapsed().as_secs_f64();
        Run { plies: counts.iter().map(|c| c.0).sum(), games: counts.iter().map(|c| c.1).sum(), seconds }
    }
}

/// Plies made and games finished until `end`.
fn play_until<G: Game>(end: Instant, mut batch: GameBatch<G>, seed: u64) -> (u64, u64) {
    let mut steps = 0;
    while Instant::now() < end {
        for _ in 0..8 {
            batch.step_random(seed);
        }
        steps += 8;
    }
    (steps * batch.len() as u64, batch.finished().iter().sum())
}

/// The first line of a command's output, or a placeholder.
fn first_line(program: &str, args: &[&str]) -> String {
    let output = std::process::Command::new(program).args(args).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_string()
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("unknown processor", |(_, name)| name.trim()).to_string()
}

fn main() {
    let args = Args::parse();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let commit = first_line("git", &["rev-parse", "--short", "HEAD"]);
    println!("{} | {cores} cores | commit {commit} | seed {} | best of {RUNS}", processor(), args.seed);
    println!("| game | settings | N | threads | plies/s | plies/game |\n|---|---|---|---|---|---|");
    let own = Registry::built_in().names().into_iter().map(|name| (name, ""));
    for (name, options) in own.chain(OTHER_SETTINGS.iter().copied()) {
        if !args.games.is_empty() && !args.games.iter().any(|wanted| wanted == name) {
            continue;
        }
        for (slots, threads) in SLOTS.iter().flat_map(|&slots| THREADS.map(|threads| (slots, threads))) {
            let table = options.parse().expect("options are TOML");
            let measure = Measure { args: &args, slots, threads };
            let run = dispatch(name, &table, measure).unwrap_or_else(|e| panic!("{name}: {e}"));
            let settings =
                if options.is_empty() { "its own".to_string() } else { options.replace('\n', ", ") };
            let rate = run.plies as f64 / run.seconds;
            let length = run.plies as f64 / run.games.max(1) as f64;
            println!("| {name} | {settings} | {slots} | {threads} | {rate:.3e} | {length:.1} |");
        }
    }
}
