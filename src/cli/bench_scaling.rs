//! `vecaz bench-scaling`: what more games at once, more leaves a pass and more threads give.

use super::{ConfigArgs, JsonTarget};
use clap::{Args, value_parser};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  vecaz bench-scaling --net uniform --games 1,16,128,512 --sims 800
  vecaz bench-scaling --net 2x32,6x64 --threads 1,2 --json rows.json --plot scaling.svg
  vecaz bench-scaling --root-cache 0,5000 --csv -

Per row: simulations/s, moves/s, speed-up over the fewest games, share of time in select, forward,
expand, backup and the rest, positions/s of the bare forward and the fraction of it reached, depths,
idle lanes and peak memory.";

/// The arguments of `vecaz bench-scaling`; every list makes a row of each combination.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchScalingArgs {
    /// The game and its settings.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// N: games at once
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16,128,512")]
    #[arg(value_parser = value_parser!(u64).range(1..=1_048_576))]
    pub games: Vec<u64>,
    /// S: simulations a ply [default: what the configuration says]
    #[arg(long, value_name = "S")]
    pub sims: Option<u64>,
    /// Networks: `uniform` for search alone, or BLOCKSxCHANNELS with random weights
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "uniform,2x32")]
    pub net: Vec<NetChoice>,
    /// L: leaves a game selects per pass
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1")]
    #[arg(value_parser = value_parser!(u64).range(1..=4096))]
    pub leaves: Vec<u64>,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0")]
    #[arg(value_parser = value_parser!(u64).range(..=4096))]
    pub threads: Vec<u64>,
    /// Simulations of the root cache, 0 for none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0")]
    #[arg(value_parser = value_parser!(u64).range(..=10_000_000))]
    pub root_cache: Vec<u64>,
    /// Seconds each row is measured for at least
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub seconds: f64,
    /// Where games, trees and network live
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: String,
    /// The seed of everything
    #[arg(long, value_name = "X", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Write the rows as a JSON array, `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTarget>,
    /// Write the rows as CSV, `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub csv: Option<JsonTarget>,
    /// Plot simulations/s against N as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// A network to measure with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetChoice {
    /// No network: every prior equal, every value 0.
    Uniform,
    /// A residual tower with random weights.
    Resnet {
        /// Residual blocks.
        blocks: usize,
        /// Channels.
        channels: usize,
    },
}

impl FromStr for NetChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no network, expected uniform or BLOCKSxCHANNELS such as 2x32");
        if text == "uniform" {
            return Ok(Self::Uniform);
        }
        let (blocks, channels) = text.split_once('x').ok_or_else(wrong)?;
        let number = |part: &str| part.parse::<usize>().ok().filter(|&x| x > 0).ok_or_else(wrong);
        Ok(Self::Resnet { blocks: number(blocks)?, channels: number(channels)? })
    }
}

impl fmt::Display for NetChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Resnet { blocks, channels } => write!(f, "{blocks}x{channels}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchScalingArgs,
    }

    #[test]
    fn lists_are_read() {
        let line =
            "b --games 1,16 --net uniform,6x64 --leaves 1,4,8 --threads 1,2 --root-cache 0,5000 --json -";
        let args = Line::try_parse_from(line.split(' ')).expect("valid").args;
        assert_eq!(args.games, [1, 16]);
        assert_eq!(args.net, [NetChoice::Uniform, NetChoice::Resnet { blocks: 6, channels: 64 }]);
        assert_eq!((args.leaves, args.threads), (vec![1, 4, 8], vec![1, 2]));
        assert_eq!((args.root_cache, args.json), (vec![0, 5000], Some(JsonTarget::Stdout)));
    }

    #[test]
    fn junk_is_refused() {
        for line in ["b --games 0", "b --games 1,x", "b --net 2y3", "b --net 0x32", "b --leaves 0"] {
            assert!(Line::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn networks_are_printed_as_they_are_read() {
        for text in ["uniform", "2x32"] {
            assert_eq!(text.parse::<NetChoice>().map(|net| net.to_string()), Ok(text.to_string()));
        }
    }
}
