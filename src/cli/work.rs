//! `vecaz work`: plays games of a run whose learner is another process.

use super::threads::start_threads;
use crate::cluster::address::{Address, password};
use crate::cluster::server::Server;
use crate::cluster::status::WorkerStatus;
use crate::cluster::worker::{Waited, WorkEnd, Worker};
use crate::config::{Devices, MAX_GAMES};
use crate::error::{Error, Result};
use crate::machine;
use crate::registry::Registry;
use crate::report::exporter::Exporter;
use crate::report::progress::{Progress, Verbosity};
use crate::stop::Stop;
use crate::words::count;
use clap::{Args, value_parser};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  vecaz work redis://10.0.0.1/hex-9
  vecaz work redis://10.0.0.1/hex-9 --threads 8
  vecaz work rediss://me@10.0.0.1:6380/hex-9 --password-file secret.txt

The game, the configuration and the weights come from the run, which `vecaz run --cluster` has started. Workers may join and
leave at any time: one that starts before the run waits for it, and ends when the run has reached its limit. Ctrl-C or
SIGTERM ends the passes in progress, sends the finished games and exits; a second one exits at once.";

/// What a worker says first that ends with its run.
const RUN_OVER: &str = "the run has reached its limit, and this worker ends: ";

/// Time between two lines about the games played.
const NOTE_INTERVAL: Duration = Duration::from_secs(30);

/// The arguments of `vecaz work`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WorkArgs {
    /// The server and the run's name there: redis://HOST:PORT/RUN, rediss:// for TLS, USER@HOST for a user of the server
    #[arg(value_name = "URL")]
    pub url: String,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
    /// Games played at once [default: the run's selfplay.games]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=MAX_GAMES as u64))]
    pub games: Option<u64>,
    /// Device of games, trees and network: cpu, cuda, cuda:N, or several GPUs as cuda:0,cuda:1
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Devices>,
    /// The worker's name in the learner's messages [default: the machine's and the process's number]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Seconds to wait for the server and for a learner that has begun the run; 0 refuses at once [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(..=31_536_000))]
    pub wait: Option<u64>,
    /// Serve metrics for Prometheus: a port of this machine alone, or an address with a port such as 0.0.0.0:9464
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<String>,
    /// A file whose first line is the server's password [default: the environment's VECAZ_REDIS_PASSWORD]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

/// Plays games until `stop` is requested or the run has reached its limit.
///
/// # Errors
/// Those of [`Worker::wait_for`], [`Worker::start_evaluator`] and [`Worker::play`]; [`Error::Stopped`] with the signal that ended it.
pub fn execute(args: WorkArgs, registry: &Registry, verbosity: Verbosity, stop: &Stop) -> Result<()> {
    let progress = Progress::new(verbosity);
    let exporter = args.metrics.as_deref().map(Exporter::serve).transpose()?;
    let password = password(args.password_file.as_deref())?;
    let server = Server::new(Address::typed("URL", &args.url)?, password.as_deref())?;
    let set = [
        ("run.threads", Some(args.threads.to_string())),
        ("selfplay.games", args.games.map(|games| games.to_string())),
        ("run.device", args.device.map(|devices| devices.to_string())),
        // The learner's limit does not apply to this machine.
        ("run.memory_mib", Some("0".into())),
    ];
    let address = server.address().to_string();
    let wait = args.wait.map(Duration::from_secs);
    let waited = Worker::wait_for(server, registry, &set, wait, stop, &mut |missing| {
        // A closed stdout does not end a worker.
        let _ = progress.note(&format!("{address}: {missing}; waiting"));
    })?;
    let Waited::Run(worker) = waited else {
        // A closed stdout does not end a worker.
        let _ =
            progress.note(&format!("{address}: {RUN_OVER}it was shorter than the time between two polls"));
        return Ok(());
    };
    let threads = start_threads(worker.config().run.threads)?;
    progress.note(&worker.describe(threads))?;
    let name = args.name.unwrap_or_else(default_name);
    let mut noted = Instant::now();
    let mut note_status = |status: &WorkerStatus| {
        if let Some(exporter) = &exporter {
            exporter.set(status.metrics());
        }
        if noted.elapsed() >= NOTE_INTERVAL {
            noted = Instant::now();
            // A closed stdout does not end a worker.
            let _ = progress.note(&status.to_string());
        }
    };
    let _evaluator = worker.start_evaluator(&name, threads, stop)?;
    let done = worker.play(&name, threads, stop, &mut note_status)?;
    let unsent = match done.unsent {
        0 => String::new(),
        unsent => format!(", {} could not be sent", count(unsent, "chunk")),
    };
    let why = match done.end {
        WorkEnd::Stopped => "",
        WorkEnd::RunOver => RUN_OVER,
    };
    let note = format!(
        "{why}{} with {} in {}{unsent}",
        count(done.games, "game"),
        count(done.samples, "sample"),
        count(done.sent.chunks, "chunk")
    );
    // Ctrl-C also ends the program that reads a pipe. A failed write is ignored, and the signal is reported.
    let _ = progress.note(&note);
    match (done.unsent, stop.cause()) {
        (0, Some(cause)) => Err(Error::Stopped(cause)),
        (0, None) => Ok(()),
        (unsent, _) => {
            Err(Error::unsupported(count(unsent, "chunk"), "not sent, since the server cannot be reached"))
        }
    }
}

/// The machine's name and the process's number.
fn default_name() -> String {
    format!("{}-{}", machine::name().as_deref().unwrap_or("worker"), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: WorkArgs,
    }

    fn parse(more: &str) -> Result<WorkArgs, clap::Error> {
        let line = format!("work redis://host/run {more}");
        Line::try_parse_from(line.split_whitespace()).map(|line| line.args)
    }

    /// A worker that waits for its run for hours would otherwise refuse them only then.
    #[test]
    fn wrong_values_are_refused_before_the_wait_for_the_run() {
        for more in ["--games 0", "--games 1048577", "--device gpu", "--device cpu,cuda", "--threads 4097"] {
            assert!(parse(more).is_err(), "{more}");
        }
        let args = parse("--games 1048576 --device cuda,cuda:1").expect("valid");
        assert_eq!((args.games, args.device.map(|devices| devices.all().len())), (Some(1 << 20), Some(2)));
    }
}
