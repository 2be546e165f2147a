//! `vecaz verify`: does a run still give what it gave?

use super::JsonTarget;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  vecaz verify runs/connect_four
  vecaz verify runs/connect_four --json -

Replays the stored games by the rules and runs the self-check vectors through the network. The exit
code is not 0 where anything differs.";

/// The arguments of `vecaz verify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The folder of a run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Write what was checked and what differs as JSON, `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTarget>,
}
