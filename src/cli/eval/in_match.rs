//! The match of `vecaz eval --against`.

use super::super::JsonTarget;
use super::super::opponents::{by_protocol, external, is_program};
use super::super::records::Records;
use super::{EvalArgs, publish, searcher};
use crate::backend::AnyGame;
use crate::batch::{ErasedRules, Playthrough};
use crate::error::{Error, Result};
use crate::eval::arena::{Contestant, ROWS};
use crate::eval::elo::{MatchResult, Mean, signed};
use crate::eval::luck::LuckEstimate;
use crate::eval::matches::{
    MatchOutcome, MatchPlan, MatchProgress, WithoutLuck, group_size, play_recorded_match,
};
use crate::eval::openings;
use crate::eval::sprt::{Hypothesis, Sprt, SprtState};
use crate::registry::Registry;
use crate::report::layout::{sentence_width, wrap};
use crate::report::progress::{Progress, print};
use crate::run::memory::check_search;
use crate::source::Source;
use crate::stop::Stop;
use crate::words::count;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The name of perfect play.
const SOLVER: &str = "solver";
/// Games of a match.
const GAMES: u64 = 100;
/// Maximum number of games of a test.
const TEST_GAMES: u64 = 10_000;
/// Random plies at the start of a game without an opening of a file, if they make openings differ.
const OPENING_PLIES: u32 = 2;
/// Maximum number of random plies that are taken to make openings differ.
const MAX_OPENING_PLIES: u32 = 12;
/// Number of openings that are compared.
const COMPARED_OPENINGS: usize = 1000;

/// Plays a match of the network of a run against the opponent with this name.
pub fn execute(
    args: &EvalArgs,
    (source, opponent): (&Source, &str),
    registry: &Registry,
    threads: usize,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    let openings = match &args.openings {
        Some(path) => openings::read(path, &source.game, registry)?,
        None => Vec::new(),
    };
    let plan = plan(args, &source.game, &openings, opponent)?;
    let (other, label) = opponent_named(args, registry, source, (opponent, plan.games), threads)?;
    let sides = Sides { args, source, opponent, label };
    let mut contestants = [searcher(args, source, threads)?.stopped_by(stop), other.stopped_by(stop)];
    let (game, network) = (source.game.as_ref(), source.network()?);
    let mut luck = LuckEstimate::new(game, network.as_ref(), source.settings(args.sims, threads))?;
    luck.iter_mut().for_each(|luck| luck.stop_by(stop));
    let (outcome, recorded) = sides.play(&mut contestants, plan, luck.as_mut(), progress)?;
    let networks = match &sides.label {
        Some(label) => format!("network: {}\nopponent: {label}\n", source.label),
        None => format!("network: {}\n", source.label),
    };
    let row = sides.row(&outcome, &plan, threads);
    publish(args, &networks, &sides.text(&outcome), &format!("{row}\n")).and(recorded)
}

/// The plan of the match.
///
/// # Errors
/// [`Error::Config`] for a test of other than two players who compete, and for one whose pairs, or a match whose openings, would repeat
/// each other.
fn plan<'a>(
    args: &EvalArgs,
    game: &Arc<dyn AnyGame>,
    openings: &'a [Playthrough],
    opponent: &str,
) -> Result<MatchPlan<'a>> {
    let (sizes, group) = (game.sizes(), group_size(game.as_ref()));
    let sprt = args.sprt.as_deref().map(Sprt::parse).transpose()?;
    if let Some(text) = &args.sprt {
        check_players(text, game.as_ref())?;
    }
    // Two searches without noise repeat a game that begins alike, unless dice or cards differ.
    let repeats = sizes.num_chance == 0 && !is_program(opponent) && !is_plain(opponent);
    let none = args.opening_plies.map_or(!openings.is_empty(), |plies| plies == 0);
    let distinct = group * openings.len().max(1);
    let usual = match sprt {
        _ if repeats && none => distinct,
        Some(_) => TEST_GAMES as usize,
        None if openings.is_empty() => GAMES as usize,
        None => distinct,
    };
    let games = args.games.map_or(usual, |games| games as usize);
    if repeats && none {
        check_repeats(args, (games, distinct), openings)?;
    }
    let opening_plies = if none { 0 } else { args.opening_plies.unwrap_or(OPENING_PLIES) };
    let plan = MatchPlan { games, openings, opening_plies, sprt, seed: args.seed };
    let plan = plan.for_game(game.as_ref());
    if !repeats || none { Ok(plan) } else { with_different_openings(args, game, plan) }
}

/// Refuses the test `text` for other than two players who compete.
fn check_players(text: &str, game: &dyn ErasedRules) -> Result<()> {
    let sizes = game.sizes();
    let players = match (sizes.num_players, sizes.cooperative) {
        (2, false) => return Ok(()),
        (players, false) => count(players, "player"),
        (players, true) => format!("{} who do not compete", count(players, "player")),
    };
    let expected = "a game of two players, whose results an Elo difference describes";
    Err(Error::config("--sprt", format!("{text} for {} with {players}", game.name()), expected))
}

/// Refuses more games than there are openings, without random plies after them.
fn check_repeats(args: &EvalArgs, (games, distinct): (usize, usize), openings: &[Playthrough]) -> Result<()> {
    if args.sprt.is_some() && openings.is_empty() {
        let expected = "1 or more, or --openings: between two networks all pairs of games would be the same";
        return Err(Error::config("--opening-plies", 0, expected));
    }
    if games > distinct {
        let (group, openings) = (distinct / openings.len().max(1), count(openings.len().max(1), "opening"));
        let expected = format!(
            "at most {distinct}, {group} for each of {openings}, since two networks repeat a game that begins alike, or --opening-plies"
        );
        return Err(Error::config("--games", games, expected));
    }
    Ok(())
}

/// The plan with as many random plies, where their number was not chosen, as make nearly all of its openings different.
///
/// # Errors
/// [`Error::Config`] for a chosen number by which most of them are the same.
fn with_different_openings<'a>(
    args: &EvalArgs,
    game: &Arc<dyn AnyGame>,
    mut plan: MatchPlan<'a>,
) -> Result<MatchPlan<'a>> {
    let groups = (plan.games / group_size(game.as_ref())).clamp(1, COMPARED_OPENINGS);
    if let Some(chosen) = args.opening_plies {
        let found = plan.different_openings(game, groups)?;
        if 2 * found < groups && plan.sprt.is_none() {
            let expected = format!(
                "more: {groups} pairs of games would begin in {found} ways, and two networks repeat a game that begins alike"
            );
            return Err(Error::config("--opening-plies", chosen, expected));
        }
        return Ok(plan);
    }
    while plan.opening_plies < MAX_OPENING_PLIES && 10 * plan.different_openings(game, groups)? < 9 * groups {
        plan.opening_plies += 1;
    }
    Ok(plan)
}

/// True for the name of a player without a network.
fn is_plain(opponent: &str) -> bool {
    opponent == "random" || opponent == SOLVER || opponent.starts_with("rollouts:")
}

/// The two sides of a match.
struct Sides<'a> {
    args: &'a EvalArgs,
    source: &'a Source,
    opponent: &'a str,
    /// The opponent's network.
    label: Option<String>,
}

impl Sides<'_> {
    /// Plays the match and writes its record. Returns the outcome, and whether the record was written.
    fn play(
        &self,
        [own, other]: &mut [Contestant; 2],
        plan: MatchPlan<'_>,
        luck: Option<&mut LuckEstimate>,
        progress: &mut Progress,
    ) -> Result<(MatchOutcome, Result<()>)> {
        let game = &self.source.game;
        progress.start("match", plan.games as u64, "games");
        let mut reached = MatchProgress::default();
        let mut records = self.args.record.as_deref().map(|path| Records::new(path, game)).transpose()?;
        let names = [self.source.label.as_str(), self.label.as_deref().unwrap_or(self.opponent)];
        let mut record = |game| records.iter_mut().for_each(|records| records.add(&game, names));
        let played = play_recorded_match(game, own, other, plan, luck, &mut record, &mut |so_far| {
            reached = so_far;
            let ratio = so_far.sprt.map(|test| format!(", {test}")).unwrap_or_default();
            progress.set_with(so_far.games, so_far.fraction, so_far.result.score_so_far() + &ratio);
        });
        progress.finish();
        // Games that were finished are kept, whatever ended the match. Those that a test does not count are not.
        let counted = match &played {
            Ok(outcome) if outcome.sprt.is_some() => outcome.scores.len() + outcome.repeated,
            _ => plan.games,
        };
        let recorded = records.map_or(Ok(()), |records| records.write(counted));
        if matches!(played, Err(Error::Stopped(_))) {
            // Ctrl-C also ends the program that reads a pipe. A failed write is ignored, and the signal is reported.
            let _ = self.print_partial(reached, plan.games);
        }
        played.map(|outcome| (outcome, recorded))
    }

    /// The line of JSON.
    fn row(&self, outcome: &MatchOutcome, plan: &MatchPlan<'_>, threads: usize) -> Value {
        let (args, source) = (self.args, self.source);
        let (result, points, lead) = (outcome.result, outcome.points(), outcome.lead());
        let decided = (!outcome.is_for_one_player && !outcome.is_cooperative).then_some(result);
        let elo = decided.filter(|_| source.game.sizes().num_players == 2).map(|result| result.elo());
        let mut row = json!({
            "network": source.label, "against": self.opponent, "opponent_network": self.label, "games": outcome.scores.len(), "simulations": source.searches_a_tree().then(|| source.settings(args.sims, threads).params.simulations),
            "wins": result.wins, "draws": result.draws, "losses": result.losses,
            "win_rate": decided.map(|r| r.win_rate()), "win_rate_interval": decided.map(|r| r.win_rate_interval()),
            "score": decided.map(|r| r.score()), "score_interval": decided.map(|r| r.score_interval()),
            "elo": elo, "raw_score": Mean::of(&outcome.scores),
            "points_per_game": points.map(|p| p.mean), "points_interval": points.and_then(|p| p.interval()),
            "opponent_points_per_game": points.map(|_| Mean::of(&outcome.other_scores).mean),
            "lead_per_game": lead.map(|lead| lead.mean), "lead_interval": lead.and_then(|lead| lead.interval()),
            "seed": args.seed, "opening_plies": plan.opening_plies,
        });
        if outcome.is_cooperative {
            let mean = Mean::of_groups(&outcome.returns, outcome.group);
            row["return_per_game"] = json!(mean.mean);
            row["return_interval"] = json!(mean.interval());
        }
        if let Some(adjusted) = outcome.without_luck() {
            let (unit, mean) = match adjusted {
                WithoutLuck::Points(mean) => ("points", mean),
                WithoutLuck::Score(mean) => ("score", mean),
            };
            row[format!("luck_adjusted_{unit}")] = json!(mean.mean);
            row[format!("luck_adjusted_{unit}_interval")] = json!(mean.interval());
        }
        if !outcome.result_by_seat.is_empty() {
            row["by_seat"] = outcome
                .result_by_seat
                .iter()
                .map(|seat| json!([seat.wins, seat.draws, seat.losses]))
                .collect();
        }
        if outcome.repeated > 0 {
            row["repeated_games"] = json!(outcome.repeated);
        }
        if let Some(test) = outcome.sprt {
            row["sprt"] = json!(test);
            row["sprt"]["bounds"] = json!(Sprt::bounds());
        }
        if let Some(path) = &args.openings {
            row["openings"] = json!(path.to_string_lossy());
        }
        row
    }

    /// The result for people.
    fn text(&self, outcome: &MatchOutcome) -> String {
        let mut text = format!("against {}: {}", self.opponent, self.describe_outcome(outcome));
        for (seat, result) in ["first", "second"].iter().zip(&outcome.result_by_seat) {
            text += &format!("  {seat:<9} {}", counts_of(result));
        }
        if let Some((points, lead)) = outcome.points().zip(outcome.lead()) {
            let others = Mean::of(&outcome.other_scores).mean;
            text +=
                &format!("  points    {points} per game, of the opponents {others:.2}\n  lead      {lead}\n");
        }
        text += &match outcome.without_luck() {
            Some(WithoutLuck::Points(points)) => {
                format!("  adjusted  {points} points per game without luck\n")
            }
            Some(WithoutLuck::Score(score)) => format!("  adjusted  score {score} without luck\n"),
            None => String::new(),
        };
        if let Some(test) = outcome.sprt {
            text += &format!("  SPRT      {}\n", decision(test));
        }
        if outcome.repeated > 0 {
            let played = count(outcome.repeated + outcome.scores.len(), "game");
            text +=
                &format!("  {} of {played} repeat others ply by ply and are not counted\n", outcome.repeated);
        }
        text
    }

    /// The games of a match and their results; those of players who share an aim have a return instead.
    fn describe_outcome(&self, outcome: &MatchOutcome) -> String {
        let games = outcome.scores.len();
        if outcome.is_for_one_player {
            return format!("{games} games of each, with the same chance\n");
        }
        if outcome.is_cooperative {
            let mean = Mean::of_groups(&outcome.returns, outcome.group);
            let games = count(games, "game");
            return format!("{games}, in which nobody wins alone\n  return    {mean} per game\n");
        }
        self.describe(outcome.result)
    }

    /// The counts of a match; between two players also a line each for win rate, score and Elo difference with their 95 % intervals. One of
    /// several players may win few games and lead in points.
    fn describe(&self, result: MatchResult) -> String {
        let share = |share: f64, [low, high]: [f64; 2]| format!("{share:.3} [{low:.3} to {high:.3}]");
        let counts = counts_of(&result);
        if self.source.game.sizes().num_players > 2 {
            return counts;
        }
        format!(
            "{counts}  win rate  {}\n  score     {}\n  Elo       {}\n",
            share(result.win_rate(), result.win_rate_interval()),
            share(result.score(), result.score_interval()),
            result.elo().to_string().trim_start_matches("Elo ")
        )
    }

    /// Prints the result of a match that was stopped, to stderr if JSON goes to stdout. A JSON file is written for whole matches only.
    fn print_partial(&self, reached: MatchProgress, games: usize) -> Result<()> {
        let mut text = format!("stopped after {} of {}", reached.games, count(games, "game"));
        text += &match reached.result.games() {
            0 => "\n".into(),
            _ => format!(
                ", the shorter ones first; against {}: {}",
                self.opponent,
                self.describe(reached.result)
            ),
        };
        if let Some(test) = reached.sprt {
            text += &format!("  SPRT      {}\n", decision(test));
        }
        let text = wrap(&text, sentence_width());
        match self.args.json {
            Some(JsonTarget::Stdout) => {
                std::io::stderr().write_all(text.as_bytes()).map_err(|e| Error::io("writing", "stderr", e))
            }
            _ => print(&text),
        }
    }
}

/// The counts of a match, as a line.
fn counts_of(result: &MatchResult) -> String {
    format!("{} won, {} drawn, {} lost\n", result.wins, result.draws, result.losses)
}

/// What a test has decided, its ratio, and the pairs that it took.
fn decision(test: SprtState) -> String {
    let [elo0, elo1] =
        [test.test.elo0, test.test.elo1].map(|elo| signed(elo, 1).trim_end_matches(".0").to_string());
    let accepted = match test.accepted {
        Some(Hypothesis::H1) => format!("H1 accepted: Elo {elo1} or more, not {elo0}"),
        Some(Hypothesis::H0) => format!("H0 accepted: Elo {elo0} or less, not {elo1}"),
        None if test.is_exhausted() => {
            let repeated = count(2 * test.repeated, "game");
            format!("undecided between Elo {elo0} and {elo1}, since the last {repeated} brought no new one")
        }
        None => format!("undecided between Elo {elo0} and {elo1}"),
    };
    let pairs = test.pairs.map(|count| count.to_string()).join(", ");
    format!("{accepted}; {test} after {} (0 to 2 points: {pairs})", count(test.num_pairs(), "pair"))
}

/// The opponent of `--against` in a match of so many games: an external program, a player without a network, or a search with another
/// network. Returns it with the label of its network.
fn opponent_named(
    args: &EvalArgs,
    registry: &Registry,
    source: &Source,
    (opponent, games): (&str, usize),
    threads: usize,
) -> Result<(Contestant, Option<String>)> {
    let game = source.game.as_ref();
    args.opponent.check_opponent(opponent)?;
    if is_program(opponent) || is_plain(opponent) {
        source.expect_tree("--sims", args.sims)?;
    }
    if is_program(opponent) {
        let threads = threads.min(games);
        let contestant = match opponent.strip_prefix("exec:") {
            Some(command) => external(&args.opponent, command, threads)?,
            None => by_protocol(&args.opponent, game, opponent, threads)?,
        };
        return Ok((contestant, None));
    }
    if opponent == SOLVER {
        return Ok((Contestant::solver(&source.game, "--against", threads.min(games))?, None));
    }
    if is_plain(opponent) {
        return Ok((Contestant::named(game, opponent, "--against", threads)?, None));
    }
    let path = Path::new(opponent);
    if let Err(e) = path.metadata() {
        let got = format!("{opponent} (not found: {e})");
        let expected = "random, rollouts:S, solver, exec:COMMAND, gtp:COMMAND, uci:COMMAND, or the path of a run or of a network file";
        return Err(Error::config("--against", got, expected));
    }
    let other = Source::open(Some(path), registry, &[])?;
    if other.game.name() != game.name() {
        return Err(Error::mismatch(format_args!("game of {opponent}"), other.game.name(), game.name()));
    }
    let other = other.for_rules_of(game, registry)?;
    if !other.searches_a_tree() {
        source.expect_tree("--sims", args.sims)?;
    }
    check_search(other.game.as_ref(), other.settings(args.sims, threads), 2 * ROWS)?;
    Ok((searcher(args, &other, threads)?, Some(other.label)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;
    use crate::registry::any_game;

    fn planned(game: &str, openings: usize, opponent: &str, line: &str) -> Result<(usize, u32), String> {
        let game = any_game(game, &toml::Table::new()).expect("registered");
        let openings = vec![Playthrough::new(game.clone()); openings];
        let args = parse(format!("eval a --against {opponent} {line}").trim_end()).expect("valid");
        let plan = plan(&args, &game, &openings, opponent).map_err(|e| e.to_string())?;
        Ok((plan.games, plan.opening_plies))
    }

    #[test]
    fn numbers_of_games_follow_from_openings_and_tests() {
        for (openings, opponent, line, expected) in [
            (0, "runs/b", "", (100, 2)),
            (0, "runs/b", "--games 7", (7, 2)),
            (0, "runs/b", "--sprt 0,20", (10_000, 2)),
            (0, "runs/b", "--sprt 0,20 --games 7", (8, 2)),
            (9, "runs/b", "", (18, 0)),
            (9, "runs/b", "--games 5", (5, 0)),
            (9, "runs/b", "--sprt 0,20", (18, 0)),
            (9, "runs/b", "--sprt 0,20 --opening-plies 1", (10_000, 1)),
            (9, "random", "--sprt 0,20 --games 50", (50, 0)),
            (9, "exec:program", "--games 50", (50, 0)),
        ] {
            assert_eq!(
                planned("hex", openings, opponent, line),
                Ok(expected),
                "{openings} {opponent} {line}"
            );
        }
        assert_eq!(planned("backgammon", 1, "runs/b", "--sprt 0,20"), Ok((10_000, 0)), "dice differ");
        assert_eq!(planned("othello", 0, "runs/b", "--games 400"), Ok((400, 5)), "12 ways of two plies");
        assert_eq!(planned("othello", 0, "random", "--games 400"), Ok((400, 2)), "random play differs");
    }

    #[test]
    fn a_test_that_ended_without_new_games_says_so() {
        let mut test = SprtState::new(Sprt { elo0: 0.0, elo1: 20.0 });
        test.add([1.0, -1.0]);
        assert!(decision(test).starts_with("undecided between Elo +0 and +20; LLR "), "{}", decision(test));
        while !test.is_over() {
            test.pass_over();
        }
        let expected = "undecided between Elo +0 and +20, since the last 2000 games brought no new one; LLR ";
        let text = decision(test);
        assert!(text.starts_with(expected) && text.contains(" after 1 pair "), "{text}");
    }

    #[test]
    fn a_test_without_sense_is_refused_in_a_sentence() {
        let refused = |game, openings, line| planned(game, openings, "runs/b", line).expect_err(line);
        let players = refused("blob", 0, "--sprt 0,20");
        assert_eq!(
            players,
            "--sprt: got 0,20 for blob with 4 players, expected a game of two players, whose results an Elo difference describes"
        );
        let clique = any_game("clique", &toml::toml! { mode = "ramsey" }).expect("registered");
        let aim = check_players("0,20", clique.as_ref()).expect_err("one aim").to_string();
        assert!(aim.starts_with("--sprt: got 0,20 for clique with 2 players who do not compete, "), "{aim}");
        let repeated = refused("hex", 0, "--sprt 0,20 --opening-plies 0");
        assert!(
            repeated.starts_with("--opening-plies: got 0, expected 1 or more, or --openings: "),
            "{repeated}"
        );
        let alike = refused("othello", 0, "--games 400 --opening-plies 2");
        assert_eq!(
            alike,
            "--opening-plies: got 2, expected more: 200 pairs of games would begin in 12 ways, and two networks repeat a game that begins alike"
        );
        let many = refused("hex", 9, "--games 19");
        assert!(
            many.starts_with("--games: got 19, expected at most 18, 2 for each of 9 openings, "),
            "{many}"
        );
    }
}
