//! `vecaz eval`: strength on solved positions, or in a match.

use super::JsonTarget;
use clap::{ArgGroup, Args, value_parser};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  vecaz eval runs/connect_four --positions solved.jsonl --sims 800 --json result.jsonl
  vecaz eval runs/a --against runs/b --games 200 --sims 200
  vecaz eval runs/a --against rollouts:800

Positions, one JSON object a line: {\"actions\":[..], \"scores\":[number or null per action]}, the
exact score of each action for the player to move: > 0 wins, 0 draws, < 0 loses.
Written per position: {\"index\", \"policy_action\", \"search_action\", \"value\"}, and last a summary
{\"positions\", \"policy_outcome_error\", \"policy_exact_error\", \"search_outcome_error\",
\"search_exact_error\"}. An outcome error is an action that gives away a win or a draw, an exact
error one that is not among the best-scored.
A match alternates who begins and gives the Elo difference with its 95 % interval.";

/// The arguments of `vecaz eval`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("task").required(true))]
pub struct EvalArgs {
    /// The folder of a run, or a weights file
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Measure the errors on these solved positions
    #[arg(long, value_name = "FILE", group = "task")]
    pub positions: Option<PathBuf>,
    /// Play a match against another run, `random`, or `rollouts:S` (Monte Carlo tree search with S rollouts a ply)
    #[arg(long, value_name = "OPPONENT", group = "task")]
    pub against: Option<String>,
    /// Games of the match
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "positions")]
    #[arg(value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub games: u64,
    /// Simulations a ply [default: what the run's configuration says]
    #[arg(long, value_name = "S", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub sims: Option<u32>,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
    /// The seed of openings and ties
    #[arg(long, value_name = "X", default_value_t = 1)]
    pub seed: u64,
    /// Write the figures as JSON lines, `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTarget>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: EvalArgs,
    }

    fn parse(line: &str) -> Result<EvalArgs, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.args)
    }

    #[test]
    fn one_task_is_needed_and_no_more() {
        let args = parse("eval runs/a --positions p.jsonl --sims 800 --json -").expect("valid");
        assert_eq!((args.positions, args.sims), (Some("p.jsonl".into()), Some(800)));
        let args = parse("eval runs/a --against rollouts:800 --games 7").expect("valid");
        assert_eq!((args.against.as_deref(), args.games), (Some("rollouts:800"), 7));
        for line in [
            "eval runs/a",
            "eval --against random",
            "eval a --against random --positions p",
            "eval a --positions p --games 3",
            "eval a --against random --games 0",
            "eval a --against random --sims 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
