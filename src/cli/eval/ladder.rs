//! The matches of `vecaz eval --ladder`, between the networks of one run.

use super::super::JsonTarget;
use super::{EvalArgs, publish, searcher};
use crate::error::{Error, Result};
use crate::eval::arena::ROWS;
use crate::eval::ladder::{
    Conditions, FILE_NAME, Ladder, LadderRung, Measure, check_players, choose, pairings, thin,
};
use crate::eval::matches::{MatchOutcome, MatchPlan, MatchProgress, group_size, play_part};
use crate::eval::ratings::Pairing;
use crate::registry::Registry;
use crate::report::ladder::table;
use crate::report::layout::width;
use crate::report::metrics::Strength;
use crate::report::progress::Progress;
use crate::run::folder::{expect_run, is_run};
use crate::run::memory::check_search;
use crate::run::strength::StrengthMeter;
use crate::source::{RunNetworks, Source, viewed_config};
use crate::stop::Stop;
use crate::words::count;
use std::time::{Duration, Instant};

/// Games of each match.
const GAMES: u64 = 100;
/// Random plies at the start of a game: two searches without noise would repeat one game.
const OPENING_PLIES: u32 = 4;
/// Groups of games between two looks at the clock.
const GROUPS_AT_ONCE: usize = 8;
/// Minimum number of rounds of such groups in a match of a ladder with a time limit.
const MIN_ROUNDS: f64 = 2.0;

/// Measures the strengths of a run's networks and writes them into its folder.
pub fn execute(
    args: &EvalArgs,
    registry: &Registry,
    threads: usize,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    let started = Instant::now();
    let limit = args.minutes.map(minutes).transpose()?;
    if !is_run(&args.run) {
        expect_run(&args.run)?;
    }
    let networks = RunNetworks::of(&args.run)?;
    let chosen = choose(&networks.epochs(), args.every, networks.best);
    if chosen.len() < 2 {
        let what = format!(
            "a ladder needs the networks of two epochs or more, the run has {}; run.keep_networks and run.keep_checkpoints keep more",
            count(chosen.len(), "network")
        );
        return Err(Error::format(&args.run, what));
    }
    let run = Source::open(Some(&args.run), registry, &args.set)?;
    if run.game.options() != registry.game_of(&viewed_config(&args.run)?)?.options() {
        let why = "the file of a ladder is its run's, whose games are without them";
        return Err(Error::unsupported("a ladder with these settings of the game", why));
    }
    check_players(run.game.as_ref())?;
    run.expect_tree("--sims", args.sims)?;
    check_search(run.game.as_ref(), run.settings(args.sims, threads), 2 * ROWS)?;
    let mut matches = Matches::new(args, run, (&networks, &chosen), threads)?;
    if let Some(limit) = limit {
        matches.fit(started, limit, stop)?;
    }
    let ladder = matches.measure(stop, progress)?;
    progress.finish();
    ladder.write(&args.run)?;
    let row =
        serde_json::to_string(&ladder).map_err(|e| Error::unsupported("a ladder as JSON", e.to_string()))?;
    let head = format!("ladder of {}: {}\n", args.run.display(), count(ladder.rungs.len(), "network"));
    let end = format!(
        "written to {}; vecaz report {} shows it\n",
        args.run.join(FILE_NAME).display(),
        args.run.display()
    );
    let text = table(&ladder, width());
    let end = if args.json == Some(JsonTarget::Stdout) { String::new() } else { end };
    publish(args, &head, &(text + &end), &(row + "\n"))
}

/// A time limit of more than 0.
fn minutes(minutes: f64) -> Result<Duration> {
    let limit = Duration::try_from_secs_f64(60.0 * minutes).ok().filter(|_| minutes > 0.0 && minutes <= 1e7);
    limit.ok_or_else(|| Error::config("--minutes", minutes, "more than 0, at most 10000000"))
}

/// The matches of a ladder.
struct Matches<'a> {
    args: &'a EvalArgs,
    threads: usize,
    /// The networks, the earliest first, with their epochs.
    networks: Vec<(u64, Source)>,
    /// The epoch of the best network, if it is known.
    best: Option<u64>,
    /// The solved positions of the game, if there are any.
    positions: Option<StrengthMeter>,
    conditions: Conditions,
    /// Games of each match.
    games: usize,
    /// The end of the time limit.
    deadline: Option<Instant>,
}

impl<'a> Matches<'a> {
    fn new(
        args: &'a EvalArgs,
        run: Source,
        (networks, chosen): (&RunNetworks, &[u64]),
        threads: usize,
    ) -> Result<Self> {
        // Read at once: a run in progress removes its old checkpoints.
        let open = |&epoch: &u64| Ok((epoch, run.with_network(networks.open(epoch)?)?));
        let sources = chosen.iter().map(open).collect::<Result<Vec<_>>>()?;
        let (game, simulations) = (&run.game, run.settings(args.sims, threads).params.simulations);
        let mut config = run.config.clone();
        config.eval.simulations = simulations;
        let meter = StrengthMeter::new(&config, game, threads)?;
        let conditions = Conditions {
            measure: Measure::of(game.sizes().num_players),
            simulations,
            opening_plies: args.opening_plies.unwrap_or(OPENING_PLIES),
            seed: args.seed,
        };
        // One group alone has no interval.
        let groups = (args.games.unwrap_or(GAMES) as usize).div_ceil(group_size(game.as_ref())).max(2);
        Ok(Self {
            args,
            threads,
            games: groups * group_size(game.as_ref()),
            networks: sources,
            best: networks.best,
            positions: meter.match_setup().is_none().then_some(meter),
            conditions,
            deadline: None,
        })
    }

    /// Reduces networks and games to those that fit into a time limit, by the time of a few games and one measurement on positions.
    fn fit(&mut self, started: Instant, limit: Duration, stop: &Stop) -> Result<()> {
        let last = self.networks.len() - 1;
        let from = Instant::now();
        self.play((last, last - 1), 0..self.games_at_once().min(self.games), stop, &mut |_| ())?;
        let round = from.elapsed().as_secs_f64();
        let from = Instant::now();
        self.on_positions(last, stop)?;
        let positions = from.elapsed().as_secs_f64();
        let left = (limit.saturating_sub(started.elapsed())).as_secs_f64();
        let cost = |networks: usize| {
            let matches = pairings(networks, self.conditions.measure).len() as f64;
            networks as f64 * positions + matches * MIN_ROUNDS * round
        };
        let max_networks =
            (2..=self.networks.len()).rev().find(|&networks| cost(networks) <= left).unwrap_or(2);
        let epochs: Vec<u64> = self.networks.iter().map(|(epoch, _)| *epoch).collect();
        let kept = thin(&epochs, max_networks, self.best);
        self.networks.retain(|(epoch, _)| kept.contains(epoch));
        // The positions come after the games.
        let reserved = Duration::from_secs_f64(self.networks.len() as f64 * positions);
        self.deadline = Some(started + limit.saturating_sub(reserved));
        Ok(())
    }

    fn games_at_once(&self) -> usize {
        GROUPS_AT_ONCE * group_size(self.networks[0].1.game.as_ref())
    }

    fn plan(&self) -> MatchPlan<'static> {
        let Conditions { opening_plies, seed, .. } = self.conditions;
        MatchPlan { games: self.games, opening_plies, seed, ..MatchPlan::default() }
    }

    /// Plays all matches and measures all networks on the solved positions.
    fn measure(&self, stop: &Stop, progress: &mut Progress) -> Result<Ladder> {
        let pairs = pairings(self.networks.len(), self.conditions.measure);
        progress.start("ladder", (pairs.len() * self.games) as u64, "games");
        let mut matches: Vec<Pairing<MatchOutcome>> = Vec::new();
        for (number, &pair) in pairs.iter().enumerate() {
            let before = (number * self.games) as u64;
            let result = self.play_match(pair, pairs.len() - number, stop, &mut |games| {
                progress.set(before + games);
            })?;
            matches.push(Pairing { first: pair.0, second: pair.1, result });
        }
        progress.start("solved positions", self.networks.len() as u64, "networks");
        let mut rungs = Vec::new();
        for (number, (epoch, source)) in self.networks.iter().enumerate() {
            let measured = self.on_positions(number, stop)?.unwrap_or_default();
            rungs.push(LadderRung {
                epoch: *epoch,
                updates: source.file.header.updates,
                search_outcome_error: measured.search_outcome_error,
                search_outcome_interval: measured.search_outcome_interval,
                policy_outcome_error: measured.policy_outcome_error,
                ..LadderRung::default()
            });
            progress.set(number as u64 + 1);
        }
        Ok(Ladder::new(self.conditions, rungs, &matches))
    }

    /// The match of two networks: all games, or as many as fit into this one's share of the time, at least one round.
    fn play_match(
        &self,
        pair: (usize, usize),
        matches_left: usize,
        stop: &Stop,
        report: &mut dyn FnMut(u64),
    ) -> Result<MatchOutcome> {
        let from = Instant::now();
        let share =
            self.deadline.map(|deadline| deadline.saturating_duration_since(from) / matches_left as u32);
        let round = if share.is_some() { self.games_at_once() } else { self.games };
        let mut records = Vec::new();
        while records.len() < self.games
            && (records.is_empty() || share.is_none_or(|share| from.elapsed() < share))
        {
            let end = (records.len() + round).min(self.games);
            let before = records.len();
            records.extend(self.play(pair, before..end, stop, &mut |games| report(before as u64 + games))?);
        }
        let game = &self.networks[0].1.game;
        MatchOutcome::of_records(game, self.plan(), &records)
            .map_err(|what| Error::unsupported("a ladder", what))
    }

    /// Plays the games of a match that have these `numbers`.
    fn play(
        &self,
        (later, earlier): (usize, usize),
        numbers: std::ops::Range<usize>,
        stop: &Stop,
        report: &mut dyn FnMut(u64),
    ) -> Result<Vec<Vec<u16>>> {
        let contestant = |number: usize| {
            let found = searcher(self.args, &self.networks[number].1, self.threads)?;
            Ok::<_, Error>(found.stopped_by(stop))
        };
        let (mut later, mut earlier) = (contestant(later)?, contestant(earlier)?);
        let (game, report) = (&self.networks[0].1.game, &mut |so_far: MatchProgress| report(so_far.games));
        play_part(game, &mut later, &mut earlier, self.plan(), numbers, report)
    }

    /// The errors of a network on the solved positions; None without any.
    fn on_positions(&self, number: usize, stop: &Stop) -> Result<Option<Strength>> {
        let Some(meter) = &self.positions else { return Ok(None) };
        let network = self.networks[number].1.network()?;
        let measured = meter.measure(network.as_ref(), 0..meter.items(), stop, &mut |_| ())?;
        meter.strength(vec![measured]).map(Some)
    }
}
