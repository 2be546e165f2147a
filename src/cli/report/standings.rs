//! Matches between the best networks of several runs.

use super::ReportArgs;
use super::runs::RunData;
use crate::error::{Error, Result};
use crate::eval::arena::{Contestant, ROWS};
use crate::eval::ladder::{Conditions, Ladder, LadderRung, Measure, check_players};
use crate::eval::matches::{MatchPlan, group_size, play_match};
use crate::eval::ratings::Pairing;
use crate::registry::Registry;
use crate::report::progress::Progress;
use crate::run::memory::check_search;
use crate::source::{RunNetworks, Source};
use crate::stop::Stop;

/// Plays a match of so many games between each two runs, by the rules and with the simulations of the first and each by its own search, with so many
/// threads.
///
/// # Errors
/// Those of reading the networks and of [`check_players`]; [`Error::Mismatch`] for a network that does not fit the rules of the first run.
pub fn play(
    args: &ReportArgs,
    runs: &[RunData],
    (games, threads): (u64, usize),
    registry: &Registry,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Ladder> {
    let game = &runs[0].game;
    check_players(game.as_ref())?;
    let open =
        |run: &RunData| Source::open(Some(&run.dir), registry, &[])?.for_rules_of(game.as_ref(), registry);
    let sources = runs.iter().map(open).collect::<Result<Vec<Source>>>()?;
    let simulations = sources[0].settings(args.sims, threads).params.simulations;
    let settings_of = |source: &Source| source.settings(Some(simulations), threads);
    for source in &sources {
        check_search(source.game.as_ref(), settings_of(source), 2 * ROWS)?;
    }
    let group = group_size(game.as_ref());
    let plan = MatchPlan {
        games: (games as usize).div_ceil(group) * group,
        opening_plies: args.opening_plies,
        seed: args.seed,
        ..MatchPlan::default()
    };
    let pairs: Vec<(usize, usize)> =
        (1..runs.len()).flat_map(|later| (0..later).map(move |earlier| (later, earlier))).collect();
    progress.start("matches", (pairs.len() * plan.games) as u64, "games");
    let contestant = |number: usize| {
        let source = &sources[number];
        let found =
            Contestant::search(source.game.as_ref(), source.network()?.as_ref(), settings_of(source))?;
        Ok::<_, Error>(found.stopped_by(stop))
    };
    let mut matches = Vec::new();
    for (number, &(first, second)) in pairs.iter().enumerate() {
        let (mut own, mut other) = (contestant(first)?, contestant(second)?);
        let before = (number * plan.games) as u64;
        let report = &mut |so_far: crate::eval::matches::MatchProgress| progress.set(before + so_far.games);
        let result = play_match(game, &mut own, &mut other, plan, report)?;
        let of = if result.is_for_one_player { result.better_pairs() } else { result.result };
        progress.note(&format!(
            "{} against {}: {} won, {} drawn, {} lost",
            runs[first].dir.display(),
            runs[second].dir.display(),
            of.wins,
            of.draws,
            of.losses
        ))?;
        matches.push(Pairing { first, second, result });
    }
    progress.finish();
    let rung = |(run, source): (&RunData, &Source)| {
        let epoch = RunNetworks::of(&run.dir)?.best.unwrap_or(0);
        Ok(LadderRung { epoch, updates: source.file.header.updates, ..LadderRung::default() })
    };
    let rungs = runs.iter().zip(&sources).map(rung).collect::<Result<Vec<_>>>()?;
    let conditions = Conditions {
        measure: Measure::of(game.sizes().num_players),
        simulations,
        opening_plies: args.opening_plies,
        seed: args.seed,
    };
    Ok(Ladder::new(conditions, rungs, &matches))
}
