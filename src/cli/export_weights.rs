//! `vecaz export-weights`: writes a run's network as safetensors for other programs.

use super::output::check_target;
use crate::error::Result;
use crate::report::progress::print;
use crate::source::{NetworkFile, network_file};
use crate::weights::export;
use crate::words::count;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  vecaz export-weights runs/connect_four
  vecaz export-weights runs/connect_four --out net.safetensors

The file has f32 tensors named as in PyTorch, metadata (game, sizes, observation, action map, architecture, training
step) and self-check vectors: inputs with the network's expected outputs.";

/// The arguments of `vecaz export-weights`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportWeightsArgs {
    /// The folder of a run (its best network) or of one of its checkpoints, or a weights file
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The file to write [default: RUN/weights.safetensors]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Writes the network of `args.run`.
///
/// # Errors
/// Those of reading the network and of [`export`]; [`crate::Error::Unsupported`] if `args.out` is a file of a run or the weights file
/// itself; [`crate::Error::Io`] if the file cannot be written.
pub fn execute(args: ExportWeightsArgs) -> Result<()> {
    let out = args.out.clone().unwrap_or_else(|| match args.run.is_dir() {
        true => args.run.join("weights.safetensors"),
        false => args.run.with_extension("exported.safetensors"),
    });
    let NetworkFile { file, label } = network_file(&args.run)?;
    check_target(&out, &[&args.run])?;
    let file = export(file, &out)?;
    let (game, tensors) = (&file.header.game, file.weights.len());
    print(&format!("{}: {game}, {} of {label}\n", out.display(), count(tensors, "tensor")))
}
