//! `vecaz eval`: strength on solved positions, in a match, or of a run's networks among themselves.

mod in_match; // a match against one opponent
mod ladder; // matches between the networks of one run

use super::JsonTarget;
use super::opponents::OpponentArgs;
use super::output::{check_distinct, check_target};
use super::threads::start_threads;
use crate::error::{Error, Result};
use crate::eval::arena::{Contestant, ROWS};
use crate::eval::choices::{choices, summarise};
use crate::eval::positions::{self, PositionSummary};
use crate::registry::Registry;
use crate::report::layout::{sentence_width, wrap};
use crate::report::progress::{Progress, Verbosity, print};
use crate::run::memory::check_search;
use crate::source::Source;
use crate::stop::Stop;
use crate::words::count;
use clap::{ArgGroup, Args, value_parser};
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  vecaz eval runs/connect_four --positions solved.jsonl --json result.jsonl
  vecaz eval runs/a --against runs/b --games 200 --sims 200
  vecaz eval runs/a --against rollouts:800
  vecaz eval runs/connect_four --against solver --opening-plies 0 --sims 800
  vecaz eval runs/clique-1 --against rollouts:800 --set game.n=8
  vecaz eval runs/hex --against 'exec:./my_player --level 3'
  vecaz eval runs/go --against 'gtp:gnugo --mode gtp' --record games.sgf
  vecaz eval runs/chess --against uci:stockfish --opponent-nodes 1000
  vecaz eval runs/b --against runs/a --sprt 0,20 --opening-plies 4
  vecaz eval runs/chess --against runs/chess-2 --openings book.epd
  vecaz eval runs/hex --ladder --minutes 10

A positions file has one JSON object per line: {\"actions\":[..], \"scores\":[number or null per action]}, the exact score
of each action for the player to move: > 0 wins, 0 draws, < 0 loses. Output per position: {\"index\", \"policy_action\",
\"search_action\", \"value\"}, then a summary {\"network\": file, epoch and updates, \"positions\", \"policy_outcome_error\",
\"policy_exact_error\", \"search_outcome_error\", \"search_exact_error\"}. An outcome error is an action that turns a win or a draw
into a worse result; an exact error is an action whose score is not the best.

A match alternates the seats and prints the fraction of games won and the Elo difference with 95 % intervals, and the mean
raw score per game for games with points (backgammon's, Blob's, discs in Othello, the area in Go); of players who do not compete (clique
with the mode ramsey) the mean return alone. Ctrl-C ends it with the result of the games that
are over; a JSON file is written for whole matches only. It names the networks: {\"network\", \"against\", \"opponent_network\", ..};
\"opponent_network\" is null for an opponent without a network. \"by_seat\" has [wins, draws, losses] as the first and as the second of two players. Games that
repeat others ply by ply count once, if no opening is ever played in two ways: \"games\" are those that count, \"repeated_games\" the others.

solver plays perfectly where the game has an exact solver: an action with the best exact score, each of them with the same probability.
In Connect Four its first moves take up to some minutes, the later ones seconds and less.

exec:COMMAND starts one process of an external program per thread, without a shell. For each move it reads one line of
JSON from stdin, {\"game\", \"options\", \"player\", \"actions\": all so far, null for those that the player does not see, \"names\": likewise,
\"legal\", \"legal_names\", \"view\": the position as the player sees it}, and writes one line to stdout, {\"action\": number or name}.

gtp:COMMAND and uci:COMMAND start programs in the same way that speak GTP (Go, Hex, Gomoku) or UCI (chess). A program that resigns has
lost; in Go all stones on the board count as alive at the end.

--sprt ends a match between two players as soon as it is decided whether the network is at most ELO0 or at least ELO1 stronger, with
error rates of 5 %: the pentanomial test of fishtest, whose samples are pairs of games with one opening and exchanged seats. Pairs count in
their order, so that the decision does not depend on threads. Where openings are few, pairs repeat earlier ones and count for nothing: once
the last 2,000 games brought no new one the match ends undecided. The JSON has \"sprt\": {\"elo0\", \"elo1\", \"pairs\": counts of pairs with
0, 1/2, 1, 3/2 and 2 points, \"llr\", \"accepted\": \"H0\", \"H1\" or null, \"bounds\"}.

A file of openings has one a line: actions as `vecaz inspect --actions` takes them, a line of a positions file, or for chess a FEN or an
EPD. Lines that begin with # are skipped.

--ladder plays matches between the networks that a run keeps (run.keep_networks), neighbours and next but one, and writes their strengths
as ladder.json into the run's folder, where its report shows them: Elo differences to the first network by maximum likelihood, with 95 %
intervals; leads in points for three or more players, mean scores for one; with the errors on solved positions where there are any.";

/// The arguments of `vecaz eval`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("task").required(true))]
#[command(override_usage = "vecaz eval RUN <--positions FILE|--against OPPONENT|--ladder> [OPTIONS]")]
pub struct EvalArgs {
    /// The folder of a run (its best network) or of one of its checkpoints, or a weights file
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Measure the error rates on these solved positions
    #[arg(long, value_name = "FILE", group = "task")]
    pub positions: Option<PathBuf>,
    /// Play a match against `random`, `rollouts:S` (Monte Carlo tree search with S rollouts per ply), `solver` (perfect play,
    /// in games with an exact solver), an external program,
    /// `exec:COMMAND`, `gtp:COMMAND` or `uci:COMMAND`, or another network: the path of a run, a checkpoint or a weights
    /// file, `./random` if it has such a name
    #[arg(long, value_name = "OPPONENT", group = "task")]
    pub against: Option<String>,
    /// Play matches between the networks of the run and write their strengths into its folder
    #[arg(long, group = "task")]
    pub ladder: bool,
    /// Epochs between two networks of the ladder; the first, the best and the last are always among them, without the best where --minutes
    /// leaves time for two
    #[arg(long, value_name = "E", default_value_t = 10, conflicts_with_all = ["against", "positions"])]
    #[arg(value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub every: u64,
    /// Time limit of the ladder: fewer networks and games, as many as fit
    #[arg(long, value_name = "M", conflicts_with_all = ["against", "positions"])]
    pub minutes: Option<f64>,
    /// Games of the match, or of each match of a ladder (there at least two from every seat); an upper bound with --sprt
    /// [default: 100; 10000 with --sprt; with --openings those that play each opening once from every seat]
    #[arg(long, value_name = "N", conflicts_with = "positions")]
    #[arg(value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub games: Option<u64>,
    /// End the match once it is decided whether the network is at most ELO0 or at least ELO1 stronger, or undecided once 2,000
    /// games in a row repeat others
    #[arg(long, value_name = "ELO0,ELO1", conflicts_with_all = ["positions", "ladder"], allow_hyphen_values = true)]
    pub sprt: Option<String>,
    /// Begin the games with the openings in this file, in its order
    #[arg(long, value_name = "FILE", conflicts_with_all = ["positions", "ladder"])]
    pub openings: Option<PathBuf>,
    /// Simulations per ply [default: the run's eval.simulations]
    #[arg(long, value_name = "S", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub sims: Option<u32>,
    /// Random plies at the start of each pair of games, so that the pairs differ [default: 2, or between two networks as many as make
    /// nine in ten pairs differ; 4 with --ladder; 0 with --openings, after which they come]
    #[arg(long, value_name = "K", conflicts_with = "positions")]
    #[arg(value_parser = value_parser!(u32).range(..=1000))]
    pub opening_plies: Option<u32>,
    /// How an external program plays.
    #[command(flatten)]
    pub opponent: OpponentArgs,
    /// Write the games of the match: as SGF for Go, Hex, Gomoku and Othello, as PGN for chess, as match text (.mat) for backgammon; for
    /// other games, and in a FILE.jsonl, as vecaz's JSON, a game a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["positions", "ladder"])]
    pub record: Option<PathBuf>,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
    /// The seed of openings and of tie breaks
    #[arg(long, value_name = "X", default_value_t = 1, conflicts_with = "positions")]
    pub seed: u64,
    /// Override one configuration key of the run, e.g. search.leaves=4, or game.n=8 for an edge network; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the results as JSON lines, `-` for stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonTarget>,
}

/// Measures the strength of the network of `args.run`.
///
/// # Errors
/// Those of reading the run and of [`positions::read`], [`Error::Mismatch`] for an opponent of another game, and
/// [`Error::Unsupported`] for a search that does not fit into memory or a result that would overwrite a file of a run;
/// [`Error::Stopped`] once `stop` is requested.
pub fn execute(args: EvalArgs, registry: &Registry, verbosity: Verbosity, stop: &Stop) -> Result<()> {
    let threads = start_threads(args.threads as usize)?;
    check_targets(&args)?;
    if args.ladder {
        return ladder::execute(&args, registry, threads, stop, &mut Progress::new(verbosity));
    }
    let source = Source::open(Some(&args.run), registry, &args.set)?;
    check_search(source.game.as_ref(), source.settings(args.sims, threads), ROWS)?;
    let mut progress = Progress::new(verbosity);
    match (&args.positions, &args.against) {
        (Some(file), _) => on_positions(&args, &source, file, threads, stop, &mut progress),
        (_, Some(opponent)) => {
            in_match::execute(&args, (&source, opponent), registry, threads, stop, &mut progress)
        }
        _ => Err(Error::unsupported("vecaz eval", "give --positions, --against or --ladder")),
    }
}

/// Checks that the results can be written, and that none would overwrite an input or another result.
fn check_targets(args: &EvalArgs) -> Result<()> {
    let against = args.against.as_deref().map(Path::new);
    let inputs = [Some(args.run.as_path()), args.positions.as_deref(), against, args.openings.as_deref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().collect();
    if let Some(target) = &args.json {
        target.check(&inputs)?;
    }
    if let Some(record) = &args.record {
        check_target(record, &inputs)?;
    }
    let json = args.json.as_ref().map(JsonTarget::path);
    check_distinct(&[("--json", json), ("--record", args.record.as_deref())])
}

/// The last line of the JSON on solved positions.
#[derive(Serialize)]
struct SummaryRow<'a> {
    network: &'a str,
    #[serde(flatten)]
    summary: PositionSummary,
}

/// Writes `json` to its target, and prints `networks` (a line per network file) and `text`, unless JSON goes to stdout. Each of the two
/// is done even if the other fails.
fn publish(args: &EvalArgs, networks: &str, text: &str, json: &str) -> Result<()> {
    let printed = match args.json {
        Some(JsonTarget::Stdout) => Ok(()),
        _ => print(&wrap(&format!("{networks}{text}"), sentence_width())),
    };
    let written = args.json.as_ref().map_or(Ok(()), |target| target.write(json));
    written.and(printed)
}

fn on_positions(
    args: &EvalArgs,
    source: &Source,
    file: &Path,
    threads: usize,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    source.expect_tree("--sims", args.sims)?;
    let solved = positions::read(file, &source.game)?;
    let settings = source.settings(args.sims, threads);
    let network = source.network()?;
    progress.start("evaluation", solved.len() as u64, "positions");
    let report = &mut |done| progress.set(done);
    let all = 0..solved.len();
    let choices = choices(&source.game, network.as_ref(), settings, &solved, all, stop, report)?;
    let summary = summarise(&solved, &choices)?;
    progress.finish();
    let random = positions::random_error_rates(&solved);
    let line = |who: &str, outcome: f64, exact: f64| {
        format!("{who:<24}{:>8.2} %{:>8.2} %\n", 100.0 * outcome, 100.0 * exact)
    };
    let text = [
        format!("{:<24}{:>10}{:>10}\n", count(solved.len(), "position"), "outcome", "exact"),
        line(
            &format!("search, {}", count(settings.params.simulations, "simulation")),
            summary.search_outcome_error,
            summary.search_exact_error,
        ),
        line("raw policy", summary.policy_outcome_error, summary.policy_exact_error),
        line("uniform random", random.outcome_error, random.exact_error),
    ];
    let summary = SummaryRow { network: &source.label, summary };
    let rows = choices.iter().map(|choice| json!(choice)).chain([json!(summary)]);
    let network = format!("network: {}\n", source.label);
    publish(args, &network, &text.concat(), &rows.map(|row| format!("{row}\n")).collect::<String>())
}

/// The search with the network of `source`.
fn searcher(args: &EvalArgs, source: &Source, threads: usize) -> Result<Contestant> {
    let network = source.network()?;
    Contestant::search(source.game.as_ref(), network.as_ref(), source.settings(args.sims, threads))
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

    pub fn parse(line: &str) -> Result<EvalArgs, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.args)
    }

    #[test]
    fn exactly_one_task_is_required() {
        let args = parse("eval runs/a --positions p.jsonl --sims 800 --json -").expect("valid");
        assert_eq!((args.positions, args.sims), (Some("p.jsonl".into()), Some(800)));
        let args = parse("eval runs/a --against rollouts:800 --games 7").expect("valid");
        assert_eq!((args.against.as_deref(), args.games), (Some("rollouts:800"), Some(7)));
        let args = parse("eval runs/a --against runs/b --sprt -5,0 --openings book.txt").expect("valid");
        assert_eq!((args.sprt.as_deref(), args.openings), (Some("-5,0"), Some("book.txt".into())));
        let args = parse("eval runs/a --ladder --every 3 --minutes 1.5").expect("valid");
        assert_eq!((args.ladder, args.every, args.minutes), (true, 3, Some(1.5)));
        for line in [
            "eval runs/a",
            "eval --against random",
            "eval a --against random --positions p",
            "eval a --positions p --games 3",
            "eval a --against random --games 0",
            "eval a --against random --sims 0",
            "eval a --positions p --sprt 0,20",
            "eval a --ladder --sprt 0,20",
            "eval a --ladder --against random",
            "eval a --against random --every 3",
            "eval a --against random --minutes 3",
            "eval a --ladder --every 0",
            "eval a --ladder --record games.sgf",
            "eval a --ladder --opponent-nodes 5",
            "eval a --ladder --reply-timeout 5",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
