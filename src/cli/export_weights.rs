//! `vecaz export-weights`: writes a run's network as safetensors or ONNX for other programs.

use super::output::check_target;
use crate::error::Result;
use crate::files::canonical_path;
use crate::report::progress::print;
use crate::run::folder::is_run;
use crate::source::{NetworkFile, network_file};
use crate::weights::{FileFormat, NumberFormat, export};
use crate::words::count;
use clap::Args;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  vecaz export-weights runs/connect_four
  vecaz export-weights runs/connect_four --out net.safetensors
  vecaz export-weights runs/connect_four --format onnx --precision f16

A safetensors file has tensors named as in PyTorch, metadata (game, sizes, observation, action map, architecture, training
step) and self-check vectors: inputs with the network's expected outputs.

An ONNX file (operator set 13) has one input, obs [batch, ...], and an output for every head: policy (logits), value, outcome (win, draw,
loss), and those of net.auxiliary. BatchNorm is folded into the weights. The game, the actions and the self-check are in the metadata; docs/networks.md
has examples in Rust, Python and JavaScript. With f16 it computes in f16; with bf16 its matrices are stored in bf16 and it computes in f32.";

/// The arguments of `vecaz export-weights`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportWeightsArgs {
    /// The folder of a run (its best network) or of one of its checkpoints, or a weights file
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The format of the file
    #[arg(long, value_name = "NAME", default_value = "safetensors")]
    pub format: FileFormat,
    /// The numbers in which the weights are stored
    #[arg(long, value_name = "NUMBERS", default_value = "f32")]
    pub precision: NumberFormat,
    /// The file to write [default: RUN/weights.safetensors or RUN/weights.onnx; of a checkpoint NAME.exported.safetensors or .onnx in the
    /// current folder, of a file the same in its folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Writes the network of `args.run`.
///
/// # Errors
/// Those of reading the network and of [`export`]; [`crate::Error::Unsupported`] if `args.out` is a file of a run or the weights file
/// itself; [`crate::Error::Io`] if the file cannot be written.
pub fn execute(args: ExportWeightsArgs) -> Result<()> {
    args.format.check()?;
    let NetworkFile { file, label, path } = network_file(&args.run)?;
    let out = args.out.clone().unwrap_or_else(|| default_target(&args.run, args.format.ending()));
    check_target(&out, &[&args.run, &path])?;
    let file = export(file, &out, args.format, args.precision)?;
    let (game, tensors) = (&file.header.game, file.weights.len());
    print(&format!("{}: {game}, {} of {label}\n", out.display(), count(tensors, "tensor")))
}

/// In a run, beside a weights file, and for a checkpoint, whose folder is the run's, in the current folder.
fn default_target(run: &Path, ending: &str) -> PathBuf {
    if is_run(run) {
        return run.join(format!("weights.{ending}"));
    }
    // `.` and `..` have no name.
    let named = run.file_name().is_none().then(|| canonical_path(run).ok()).flatten();
    let exported = named.as_deref().unwrap_or(run).with_extension(format!("exported.{ending}"));
    match run.is_dir() {
        true => exported.file_name().map_or_else(|| exported.clone(), PathBuf::from),
        false => exported,
    }
}
