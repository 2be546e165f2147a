//! `vecaz import-weights`: makes a network file of weights that another program wrote.

use super::output::check_target;
use super::{Base, ConfigArgs};
use crate::backend::AnyGame;
use crate::error::{Error, Result};
use crate::model::NetSpec;
use crate::registry::Registry;
use crate::report::progress::print;
use crate::source::{NetworkFile, network_file};
use crate::weights::{EvaluatedPositions, Import, ImportedFile, NetworkHeader};
use crate::words::count;
use clap::Args;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  vecaz import-weights trained.safetensors --like runs/connect_four
  vecaz import-weights trained.safetensors --game hex --set net.channels=64
  vecaz import-weights exported.safetensors --out net.safetensors

FILE has the tensors of the network under the names and with the shapes of `vecaz export-weights`, in f32, f16 or bf16. Counters of PyTorch
(num_batches_tracked) are passed over. If it also has selfcheck.obs [n, F], selfcheck.logits [n, A] and selfcheck.values [n, P], inputs with the
outputs of the program that wrote it, the network here must give the same. The file that is written is one that play, eval, serve and engine
take. docs/networks.md has a script that trains a network in PyTorch.";

/// The arguments of `vecaz import-weights`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportWeightsArgs {
    /// A safetensors file of another program
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Game and sizes are those of this run, checkpoint or weights file [default: those that FILE names]
    #[arg(long, value_name = "RUN", conflicts_with_all = ["game", "config", "set"])]
    pub like: Option<PathBuf>,
    /// The game and the sizes of the network, net.KEY.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// The file to write [default: FILE with the ending imported.safetensors]
    #[arg(long, value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Writes the network with the weights in `args.file`.
///
/// # Errors
/// Those of [`Import::read`] and [`Import::into_file`], of reading what describes the network, and [`Error::Unsupported`] if nothing does;
/// [`Error::Io`] if the file cannot be written.
pub fn execute(args: ImportWeightsArgs, registry: &Registry) -> Result<()> {
    let out = args.out.clone().unwrap_or_else(|| args.file.with_extension("imported.safetensors"));
    let like = args.like.as_deref().map(network_file).transpose()?;
    let of_like = like.as_ref().map(|like| like.path.as_path());
    let inputs = [Some(args.file.as_path()), args.like.as_deref(), of_like, args.config.config.as_deref()];
    check_target(&out, &inputs.into_iter().flatten().collect::<Vec<_>>())?;
    let import = Import::read(&args.file)?;
    let (game, net, evaluates) = description(&args, like.as_ref(), registry, &import)?;
    let ImportedFile { file, difference } = import.into_file(game.as_ref(), &net, evaluates)?;
    file.save(&out)?;
    let check = match difference {
        Some(difference) => {
            format!("; its outputs differ from the self-check there by at most {difference:.1e}")
        }
        None => String::new(),
    };
    let (name, tensors) = (game.name(), count(file.weights.len(), "tensor"));
    print(&format!("{}: {name}, {tensors} of {}{check}\n", out.display(), args.file.display()))
}

/// The game, the sizes of the network and the positions that it evaluates: those of `--like`, of the configuration, or of the file's own metadata.
///
/// # Errors
/// [`Error::Format`] where the file's own metadata name another game or other positions.
fn description(
    args: &ImportWeightsArgs,
    like: Option<&NetworkFile>,
    registry: &Registry,
    import: &Import,
) -> Result<(Arc<dyn AnyGame>, NetSpec, EvaluatedPositions)> {
    let of_header = |header: &NetworkHeader| {
        Ok((registry.game(&header.game, &header.options)?, header.net.clone(), header.evaluates))
    };
    let ConfigArgs { game, config, set } = &args.config;
    let own = import.header();
    if let Some(like) = like {
        let like = &like.file.header;
        check_same(args, own, "the game", &like.game, |own| own.game.clone())?;
        check_same(args, own, "positions", &like.evaluates, |own| own.evaluates)?;
        return of_header(like);
    }
    if game.is_some() || config.is_some() || !set.is_empty() {
        let config = args.config.resolve(registry, Base::BuiltIn, &[])?;
        let game = registry.game_of(&config)?;
        let net = NetSpec::with_targets(&config.net, &game.sizes(), &game.targets())?;
        let of_search = EvaluatedPositions::of(config.search.algorithm);
        if set.iter().any(|assignment| assignment.trim_start().starts_with("search.algorithm")) {
            check_same(args, own, "positions", &of_search, |own| own.evaluates)?;
        }
        return Ok((game, net, own.map_or(of_search, |own| own.evaluates)));
    }
    let why = "it names neither game nor sizes; give --like RUN, or --game G and --set net.KEY=VALUE";
    own.map_or_else(|| Err(Error::unsupported(args.file.display().to_string(), why)), of_header)
}

/// Refuses a file whose own metadata have another value than `expected`.
fn check_same<T: PartialEq + Display>(
    args: &ImportWeightsArgs,
    own: Option<&NetworkHeader>,
    what: &str,
    expected: &T,
    value: impl Fn(&NetworkHeader) -> T,
) -> Result<()> {
    match own.map(value) {
        Some(found) if found != *expected => {
            Err(Error::format(&args.file, format!("its metadata name {what} {found}, expected {expected}")))
        }
        _ => Ok(()),
    }
}
