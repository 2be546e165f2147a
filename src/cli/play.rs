//! `vecaz play`: a game against a network in the terminal.

use clap::{Args, value_parser};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  vecaz play                             against the network inside the program
  vecaz play runs/connect_four --sims 2000 --seat 1

Type an action's number or name; `undo` takes back, `hint` shows what the search thinks, `quit` ends.";

/// The arguments of `vecaz play`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlayArgs {
    /// The folder of a run, or a weights file [default: the network inside the program]
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// Simulations of each answer
    #[arg(long, value_name = "S", default_value_t = 800, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub sims: u32,
    /// Your seat: 0 begins
    #[arg(long, value_name = "P", default_value_t = 0, value_parser = value_parser!(u8).range(..8))]
    pub seat: u8,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
    /// The seed of chance and ties
    #[arg(long, value_name = "X", default_value_t = 1)]
    pub seed: u64,
}
