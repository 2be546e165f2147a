//! `vecaz eval`: strength on solved positions, or in a match.

use super::JsonTarget;
use super::opponents::{OpponentArgs, by_protocol, external, is_program};
use super::output::check_target;
use super::records::Records;
use super::threads::start_threads;
use crate::error::{Error, Result};
use crate::eval::arena::{Contestant, ROWS};
use crate::eval::choices::{choices, summarise};
use crate::eval::elo::{MatchResult, Mean};
use crate::eval::matches::{MatchPlan, MatchProgress, play_recorded_match};
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
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  vecaz eval runs/connect_four --positions solved.jsonl --json result.jsonl
  vecaz eval runs/a --against runs/b --games 200 --sims 200
  vecaz eval runs/a --against rollouts:800
  vecaz eval runs/clique-1 --against rollouts:800 --set game.n=8
  vecaz eval runs/hex --against 'exec:./my_player --level 3' --opening-plies 0
  vecaz eval runs/go --against 'gtp:gnugo --mode gtp' --record games.sgf
  vecaz eval runs/chess --against uci:stockfish --opponent-nodes 1000

A positions file has one JSON object per line: {\"actions\":[..], \"scores\":[number or null per action]}, the exact score
of each action for the player to move: > 0 wins, 0 draws, < 0 loses. Output per position: {\"index\", \"policy_action\",
\"search_action\", \"value\"}, then a summary {\"network\": file, epoch and updates, \"positions\", \"policy_outcome_error\",
\"policy_exact_error\", \"search_outcome_error\", \"search_exact_error\"}. An outcome error is an action that turns a win or a draw
into a worse result; an exact error is an action whose score is not the best.

A match alternates the seats and prints the fraction of games won and the Elo difference with 95 % intervals, and the mean
raw score per game for games with points (backgammon's, Blob's, discs in Othello, the area in Go). Ctrl-C ends it with the result of the games that
are over; a JSON file is written for whole matches only. It names the networks: {\"network\", \"against\", \"opponent_network\", ..};
\"opponent_network\" is null for an opponent without a network.

exec:COMMAND starts one process of an external program per thread, without a shell. For each move it reads one line of
JSON from stdin, {\"game\", \"options\", \"player\", \"actions\": all so far, \"names\": their names, \"legal\",
\"legal_names\"}, and writes one line to stdout, {\"action\": number or name}.

gtp:COMMAND and uci:COMMAND start programs in the same way that speak GTP (Go, Hex, Gomoku) or UCI (chess). A program that resigns has
lost; in Go all stones on the board count as alive at the end.";

/// The arguments of `vecaz eval`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("task").required(true))]
pub struct EvalArgs {
    /// The folder of a run (its best network) or of one of its checkpoints, or a weights file
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Measure the error rates on these solved positions
    #[arg(long, value_name = "FILE", group = "task")]
    pub positions: Option<PathBuf>,
    /// Play a match against `random`, `rollouts:S` (Monte Carlo tree search with S rollouts per ply), an external program,
    /// `exec:COMMAND`, `gtp:COMMAND` or `uci:COMMAND`, or another network: the path of a run, a checkpoint or a weights
    /// file, `./random` if it has such a name
    #[arg(long, value_name = "OPPONENT", group = "task")]
    pub against: Option<String>,
    /// Games of the match
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "positions")]
    #[arg(value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub games: u64,
    /// Simulations per ply [default: the run's eval.simulations]
    #[arg(long, value_name = "S", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub sims: Option<u32>,
    /// Random plies at the start of each pair of games, so that the pairs differ
    #[arg(long, value_name = "K", default_value_t = 2, conflicts_with = "positions")]
    #[arg(value_parser = value_parser!(u32).range(..=1000))]
    pub opening_plies: u32,
    /// How an external program plays.
    #[command(flatten)]
    pub opponent: OpponentArgs,
    /// Write the games of the match: as SGF for Go, Hex, Gomoku and Othello, as PGN for chess
    #[arg(long, value_name = "FILE", conflicts_with = "positions")]
    pub record: Option<PathBuf>,
    /// Threads, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
    /// The seed of openings and of tie breaks
    #[arg(long, value_name = "X", default_value_t = 1)]
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
    if let Some(target) = &args.json {
        let inputs =
            [Some(args.run.as_path()), args.positions.as_deref(), args.against.as_deref().map(Path::new)];
        target.check(&inputs.into_iter().flatten().collect::<Vec<_>>())?;
    }
    if let Some(target) = &args.record {
        check_target(target, &[&args.run])?;
    }
    let source = Source::open(Some(&args.run), registry, &args.set)?;
    check_search(source.game.as_ref(), source.settings(args.sims, threads), ROWS)?;
    let mut progress = Progress::new(verbosity);
    match (&args.positions, &args.against) {
        (Some(file), _) => on_positions(&args, &source, file, threads, stop, &mut progress),
        (_, Some(opponent)) => {
            let other = opponent_named(&args, registry, &source, opponent, threads)?;
            in_match(&args, &source, (opponent, other), threads, stop, &mut progress)
        }
        _ => Err(Error::unsupported("vecaz eval", "give --positions or --against")),
    }
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

fn in_match(
    args: &EvalArgs,
    source: &Source,
    (opponent, (other, label)): (&str, (Contestant, Option<String>)),
    threads: usize,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    let mut own = searcher(args, source, threads)?.stopped_by(stop);
    let mut other = other.stopped_by(stop);
    let plan = MatchPlan { games: args.games as usize, opening_plies: args.opening_plies, seed: args.seed }
        .for_game(source.game.as_ref());
    progress.start("match", plan.games as u64, "games");
    let mut reached = MatchProgress::default();
    let mut records = args.record.as_deref().map(|path| Records::new(path, &source.game)).transpose()?;
    let names = [source.label.as_str(), label.as_deref().unwrap_or(opponent)];
    let mut record = |game| records.iter_mut().for_each(|records| records.add(&game, names));
    let played = play_recorded_match(&source.game, &mut own, &mut other, plan, &mut record, &mut |so_far| {
        reached = so_far;
        progress.set_with(so_far.games, so_far.fraction, so_far.result.score_so_far());
    });
    progress.finish();
    // Games that were finished are kept, whatever ended the match.
    let recorded = records.map_or(Ok(()), Records::write);
    let outcome = match played {
        Ok(outcome) => outcome,
        Err(error) => {
            if matches!(error, Error::Stopped(_)) {
                // Ctrl-C also ends the program that reads a pipe. A failed write is ignored, and the signal is reported.
                let _ = print_partial(args, opponent, reached);
            }
            return Err(error);
        }
    };
    recorded?;
    let (result, points, lead) = (outcome.result, outcome.points(), outcome.lead());
    let decided = (!outcome.is_for_one_player).then_some(result);
    let row = json!({
        "network": source.label, "against": opponent, "opponent_network": label, "games": outcome.scores.len(), "simulations": source.settings(args.sims, threads).params.simulations,
        "wins": result.wins, "draws": result.draws, "losses": result.losses,
        "win_rate": decided.map(|r| r.win_rate()), "win_rate_interval": decided.map(|r| r.win_rate_interval()),
        "score": decided.map(|r| r.score()), "score_interval": decided.map(|r| r.score_interval()),
        "elo": decided.map(|r| r.elo()), "raw_score": Mean::of(&outcome.scores),
        "points_per_game": points.map(|p| p.mean), "points_interval": points.and_then(|p| p.interval()),
        "opponent_points_per_game": points.map(|_| Mean::of(&outcome.other_scores).mean),
        "lead_per_game": lead.map(|lead| lead.mean), "lead_interval": lead.and_then(|lead| lead.interval()),
        "seed": args.seed, "opening_plies": args.opening_plies,
    });
    let counts = match decided {
        Some(result) => describe(result),
        None => format!("{} games of each, with the same chance\n", outcome.scores.len()),
    };
    let mut text = format!("against {opponent}: {counts}");
    if let Some((points, lead)) = points.zip(lead) {
        let others = Mean::of(&outcome.other_scores).mean;
        text += &format!("  points    {points} per game, of the opponents {others:.2}\n  lead      {lead}\n");
    }
    let opponent = label.map(|label| format!("opponent: {label}\n")).unwrap_or_default();
    publish(args, &format!("network: {}\n{opponent}", source.label), &text, &format!("{row}\n"))
}

/// The counts of a match, and below them a line each for win rate, score and Elo difference with their 95 % intervals.
fn describe(result: MatchResult) -> String {
    let share = |share: f64, [low, high]: [f64; 2]| format!("{share:.3} [{low:.3} to {high:.3}]");
    let elo = result.elo().to_string();
    format!(
        "{} won, {} drawn, {} lost\n  win rate  {}\n  score     {}\n  Elo       {}\n",
        result.wins,
        result.draws,
        result.losses,
        share(result.win_rate(), result.win_rate_interval()),
        share(result.score(), result.score_interval()),
        elo.trim_start_matches("Elo ")
    )
}

/// Prints the result of a match that was stopped, to stderr if JSON goes to stdout. A JSON file is written for whole matches only.
fn print_partial(args: &EvalArgs, opponent: &str, reached: MatchProgress) -> Result<()> {
    let mut text = format!("stopped after {} of {}", reached.games, count(args.games, "game"));
    text += &match reached.result.games() {
        0 => "\n".into(),
        _ => format!(", the shorter ones first; against {opponent}: {}", describe(reached.result)),
    };
    let text = wrap(&text, sentence_width());
    match args.json {
        Some(JsonTarget::Stdout) => {
            std::io::stderr().write_all(text.as_bytes()).map_err(|e| Error::io("writing", "stderr", e))
        }
        _ => print(&text),
    }
}

/// The opponent of `--against`: an external program, a player without a network, or a search with another network. Returns it with the
/// label of its network.
fn opponent_named(
    args: &EvalArgs,
    registry: &Registry,
    source: &Source,
    opponent: &str,
    threads: usize,
) -> Result<(Contestant, Option<String>)> {
    let game = source.game.as_ref();
    if is_program(opponent) {
        let threads = threads.min(args.games as usize);
        let contestant = match opponent.strip_prefix("exec:") {
            Some(command) => external(&args.opponent, command, threads)?,
            None => by_protocol(&args.opponent, game, opponent, threads)?,
        };
        return Ok((contestant, None));
    }
    if opponent == "random" || opponent.starts_with("rollouts:") {
        return Ok((Contestant::named(game, opponent, "--against", threads)?, None));
    }
    let path = Path::new(opponent);
    if let Err(e) = path.metadata() {
        let got = format!("{opponent} (not found: {e})");
        let expected = "random, rollouts:S, exec:COMMAND, gtp:COMMAND, uci:COMMAND, or the path of a run or of a network file";
        return Err(Error::config("--against", got, expected));
    }
    let other = Source::open(Some(path), registry, &[])?;
    if other.game.name() != game.name() {
        return Err(Error::Mismatch {
            what: format!("game of {opponent}"),
            found: other.game.name().into(),
            expected: game.name().into(),
        });
    }
    let other = other.for_game(&source.game)?;
    check_search(game, other.settings(args.sims, threads), 2 * ROWS)?;
    Ok((searcher(args, &other, threads)?, Some(other.label)))
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

    fn parse(line: &str) -> Result<EvalArgs, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.args)
    }

    #[test]
    fn exactly_one_task_is_required() {
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
