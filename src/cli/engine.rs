//! `vecaz engine`: a network as an engine for other programs, by the protocols of their games.

use super::opponents::seconds;
use super::threads::start_threads;
use crate::error::Result;
use crate::protocol::choice::ProtocolName;
use crate::protocol::dialogue::{Pace, Parts, Ponder, converse};
use crate::registry::Registry;
use crate::run::memory::engine_mib;
use crate::source::Source;
use clap::{Args, value_parser};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  vecaz engine runs/go                  GTP: for Sabaki, GoGui, gogui-twogtp
  vecaz engine runs/chess --seconds 2   UCI: for a chess program's engines
  vecaz engine runs/hex --sims 2000 --ponder
  vecaz engine runs/blob --protocol json

The program's arguments go into the list of engines of a board program, which starts it and sends it lines on stdin. Without a clock of the
program, and without --sims and --seconds, a move has the run's eval.simulations. docs/interfaces.md lists the commands of each protocol.";

/// Maximum MiB of trees.
const MEMORY_MIB: usize = 2048;

/// The arguments of `vecaz engine`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EngineArgs {
    /// The folder of a run (its best network) or of one of its checkpoints, or a weights file [default: the embedded
    /// network]
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// The protocol [default: gtp for Go and Hex, uci for chess, gomocup for Gomoku, nboard for Othello, json for other games]
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<ProtocolName>,
    /// Maximum number of simulations per move
    #[arg(long, value_name = "S", value_parser = value_parser!(u32).range(1..))]
    pub sims: Option<u32>,
    /// Maximum number of seconds per move
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// Also search on the opponent's time in GTP, Gomocup and NBoard
    #[arg(long)]
    pub ponder: bool,
    /// Milliseconds of a move's time that are reserved for the transfer of the reply
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = value_parser!(u64).range(..=60_000))]
    pub overhead: u64,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
    /// The seed of deals and tie breaks
    #[arg(long, value_name = "X", default_value_t = 1)]
    pub seed: u64,
    /// Override one configuration key of the run, e.g. search.leaves=4, or game.n=8 for an edge network; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Speaks a protocol on stdin and stdout until the client quits or closes them.
///
/// # Errors
/// Those of reading the run; [`crate::Error::Config`] for an invalid time; [`crate::Error::Unsupported`] for a protocol that does not have
/// the network's game; [`crate::Error::Io`] if stdout cannot be written.
pub fn execute(args: EngineArgs, registry: &Registry) -> Result<()> {
    let time = args.seconds.map(|time| seconds("--seconds", time)).transpose()?;
    let threads = start_threads(args.threads as usize)?;
    let source = Source::open(args.run.as_deref(), registry, &args.set)?;
    source.expect_tree("--sims", args.sims)?;
    source.expect_tree("--seconds", args.seconds)?;
    let mut settings = source.settings(args.sims, threads);
    (settings.seed, settings.memory_mib) = (args.seed, engine_mib(MEMORY_MIB));
    let pace = Pace {
        simulations: Some(settings.params.simulations.into()),
        time,
        max_simulations: args.sims.map(u64::from),
        overhead: Duration::from_millis(args.overhead),
        ponder: if args.ponder { Ponder::Always } else { Ponder::Never },
    };
    let name = args.protocol.unwrap_or_else(|| ProtocolName::of_game(source.game.name()));
    tracing::info!("{} by {name:?} with {}", source.game.name(), source.label);
    let parts = Parts {
        game: source.game.clone(),
        registry: registry.clone(),
        network: source.network()?,
        settings,
        pace,
    };
    converse(parts, std::io::stdin(), Box::new(std::io::stdout()), |dialogue| name.make(dialogue))
}
