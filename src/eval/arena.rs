//! Matches between players (search with a network, or without a network), and a network's errors on solved positions.

use super::elo::{MatchResult, Mean};
use super::external::ExternalPlayer;
use super::positions::{ErrorRates, PositionSummary, SolvedPosition, error_rates, replay};
use super::rollouts::{Player, RandomPlayer, RolloutSettings, rollout_player};
use crate::backend::Placement;
use crate::batch::{AnyGame, Playthrough};
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::net::Network;
use crate::rng::{Key, Purpose, Stream};
use crate::search::SearchParams;
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::searcher::{Position, Searchers, bare_policies};
use crate::stop::Stop;
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// Number of positions that an evaluation searches at once.
pub const ROWS: usize = 128;

/// Number of games that a match plays at once: a batch for each side, since about half of the games wait for each.
pub const GAMES_AT_ONCE: usize = 2 * ROWS;

/// The current position of a playthrough.
pub fn position_of(play: &Playthrough, key: RowKey) -> Position {
    Position { state: play.state().to_vec(), history: play.history().to_vec(), key }
}

/// A side of a match.
pub enum Contestant {
    /// A search with a network.
    Search {
        /// The searchers.
        searchers: Searchers,
        /// Simulations per ply and determinisation.
        simulations: u32,
        /// Determinisations per position; 1 without hidden information.
        determinisations: usize,
    },
    /// A player without a network, one copy per thread.
    Plain(Vec<Box<dyn Player>>),
}

impl Contestant {
    /// A search with `params`, without noise.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the network is of another game.
    pub fn search(
        game: &dyn AnyGame,
        network: &dyn Network,
        params: SearchParams,
        placement: Placement,
        determinisations: usize,
        threads: usize,
    ) -> Result<Self> {
        Ok(Self::Search {
            searchers: Searchers::new(game, network, params, placement, ROWS * determinisations, threads)?,
            simulations: params.simulations,
            determinisations,
        })
    }

    /// The opponent named by `text`: `random`, or `rollouts:S`.
    ///
    /// # Errors
    /// [`Error::Config`] with `key` for any other text.
    pub fn named(game: &dyn AnyGame, text: &str, key: &str, threads: usize) -> Result<Self> {
        let wrong = || Error::config(key, text, "random, or rollouts:S with S from 1 to 1000000");
        let make = || -> Result<Box<dyn Player>> {
            if text == "random" {
                return Ok(Box::new(RandomPlayer));
            }
            let simulations = text.strip_prefix("rollouts:").and_then(|s| s.parse::<usize>().ok());
            match simulations {
                Some(s) if (1..=1_000_000).contains(&s) => rollout_player(game, RolloutSettings::new(s)),
                _ => Err(wrong()),
            }
        };
        Ok(Self::Plain((0..threads.max(1)).map(|_| make()).collect::<Result<_>>()?))
    }

    /// The external program that `command` starts, one process per thread, with `timeout` per reply and without the variables
    /// `withheld` in its environment.
    ///
    /// # Errors
    /// Those of [`ExternalPlayer::start`].
    pub fn external(command: &str, timeout: Duration, threads: usize, withheld: &[String]) -> Result<Self> {
        let start = |_| -> Result<Box<dyn Player>> {
            Ok(Box::new(ExternalPlayer::start(command, timeout, withheld)?))
        };
        Ok(Self::Plain((0..threads.max(1)).map(start).collect::<Result<_>>()?))
    }

    /// The same contestant, whose choices end with [`Error::Stopped`] once `stop` is requested.
    pub fn stopped_by(mut self, stop: &Stop) -> Self {
        match &mut self {
            Self::Search { searchers, .. } => searchers.stop_by(stop),
            Self::Plain(players) => players.iter_mut().for_each(|player| player.stop_by(stop)),
        }
        self
    }

    /// Chooses one action per playthrough; `keys[i]` is the key of `plays[i]`.
    fn choose(&mut self, plays: &[&Playthrough], keys: &[RowKey]) -> Result<Vec<u16>> {
        match self {
            Self::Plain(players) => {
                let share = plays.len().div_ceil(players.len()).max(1);
                let chosen: Vec<Result<Vec<u16>>> = players
                    .par_iter_mut()
                    .zip(plays.par_chunks(share).zip(keys.par_chunks(share)))
                    .map(|(player, (plays, keys))| {
                        let each = plays.iter().zip(keys);
                        each.map(|(play, key)| player.choose(play, key.key(Purpose::Rollout))).collect()
                    })
                    .collect();
                Ok(chosen.into_iter().collect::<Result<Vec<_>>>()?.concat())
            }
            Self::Search { searchers, simulations, determinisations } => {
                let d = *determinisations;
                let mut positions = Vec::with_capacity(plays.len() * d);
                for (play, key) in plays.iter().zip(keys) {
                    positions.extend(determinised(play, *key, d));
                }
                let found = searchers.search(&positions, *simulations, Exploration::Plain)?;
                let mut sum = RootSummary::default();
                let chosen = found.chunks_exact(d).map(|parts| {
                    if d == 1 {
                        return parts[0].actions[parts[0].best];
                    }
                    crate::act::sum_determinisations(parts, &mut sum);
                    sum.actions[sum.best]
                });
                Ok(chosen.collect())
            }
        }
    }
}

/// The positions to search: `d` determinisations for the player to move, or the position itself without hidden information.
pub fn determinised(play: &Playthrough, key: RowKey, d: usize) -> Vec<Position> {
    let game = play.game();
    if !game.sizes().hidden_information {
        return vec![position_of(play, key)];
    }
    let player = match play.turn() {
        Turn::Player(p) => p,
        Turn::Chance | Turn::Over => 0,
    };
    let draw = |determinisation: u64| {
        let key = RowKey { determinisation, ..key };
        let mut rng = key.key(Purpose::Determinise).stream();
        let state = game.determinise(play.state(), player, &mut rng);
        Position { state, history: play.history().to_vec(), key }
    };
    (0..d as u64).map(draw).collect()
}

/// The number of games, openings and seed of a match.
#[derive(Clone, Copy, Debug)]
pub struct MatchPlan {
    /// Number of games. Each group of P consecutive games has the same opening, with the seats rotated.
    pub games: usize,
    /// Uniformly random plies at the start of a game.
    pub opening_plies: u32,
    /// The seed of openings, chance and players.
    pub seed: u64,
}

/// The outcome of a match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchOutcome {
    /// Results from the first contestant's side.
    pub result: MatchResult,
    /// The first contestant's raw score in each game.
    pub scores: Vec<f64>,
    /// The mean raw score of the other seats in each game; 0 in one-player games.
    pub other_scores: Vec<f64>,
    /// The first contestant's return in each game.
    pub returns: Vec<f64>,
}

impl MatchOutcome {
    /// The outcome of a match of these games, in their order.
    fn of<'a>(games: impl Iterator<Item = &'a GameOutcome>) -> Self {
        let mut outcome = Self::default();
        for game in games {
            outcome.result.add(game.margin);
            outcome.scores.push(game.score);
            outcome.other_scores.push(game.other_score);
            outcome.returns.push(game.own_return);
        }
        outcome
    }

    /// The first contestant's mean raw score per game, for games whose scores differ from the returns: backgammon, Blob, the
    /// area in Go.
    pub fn points(&self) -> Option<Mean> {
        (self.scores != self.returns).then(|| Mean::of(&self.scores))
    }

    /// The first contestant's mean raw score per game minus that of the other seats, for the games of [`Self::points`].
    pub fn lead(&self) -> Option<Mean> {
        let leads: Vec<f64> =
            self.scores.iter().zip(&self.other_scores).map(|(own, other)| own - other).collect();
        self.points().map(|_| Mean::of(&leads))
    }
}

/// How far a match is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchProgress {
    /// Results of the games that are over, from the first contestant's side.
    pub result: MatchResult,
    /// Estimated fraction of the match's plies that have been played; None until a game is over.
    pub fraction: Option<f64>,
}

/// A game of a match in progress.
struct MatchGame {
    /// Its number, from 0.
    number: usize,
    play: Playthrough,
}

/// The outcome of one game for the first contestant.
#[derive(Clone, Copy)]
struct GameOutcome {
    /// Its return minus the best one of the other seats.
    margin: f32,
    score: f64,
    other_score: f64,
    own_return: f64,
    plies: usize,
}

/// Plays a match of `a` against `b`, at most [`GAMES_AT_ONCE`] games at once, and passes its progress to `report` after every ply. With
/// more than two players, `a` has one seat and `b` all others. The outcome does not depend on the number of games at once.
///
/// # Errors
/// Those of the networks and of external programs; [`Error::Stopped`] of a contestant that is [`Contestant::stopped_by`] it.
pub fn play_match(
    game: &Arc<dyn AnyGame>,
    a: &mut Contestant,
    b: &mut Contestant,
    plan: MatchPlan,
    report: &mut dyn FnMut(MatchProgress),
) -> Result<MatchOutcome> {
    let p = game.sizes().num_players;
    let seat = |number: usize| (number % p) as u8;
    let mut outcomes: Vec<Option<GameOutcome>> = vec![None; plan.games];
    let (mut over, mut playing, mut started) = (Over::default(), Vec::<MatchGame>::new(), 0);
    loop {
        while playing.len() < GAMES_AT_ONCE && started < plan.games {
            playing.push(MatchGame { number: started, play: opening(game, plan, (started / p) as u64)? });
            started += 1;
        }
        deal(&mut playing, plan.seed)?;
        for (is_a, contestant) in [(true, &mut *a), (false, &mut *b)] {
            let is_due = |game: &&mut MatchGame| matches!(game.play.turn(), Turn::Player(q) if (q == seat(game.number)) == is_a);
            let mut due: Vec<&mut MatchGame> = playing.iter_mut().filter(is_due).collect();
            let keys: Vec<RowKey> = due.iter().map(|game| game.key(plan.seed)).collect();
            let at: Vec<&Playthrough> = due.iter().map(|game| &game.play).collect();
            let actions = contestant.choose(&at, &keys)?;
            due.iter_mut().zip(actions).try_for_each(|(game, action)| game.play.step(action))?;
            deal(&mut playing, plan.seed)?;
        }
        for MatchGame { number, play } in playing.extract_if(.., |game| game.play.turn() == Turn::Over) {
            let outcome = GameOutcome::new(&play, usize::from(seat(number)));
            over.add(outcome);
            outcomes[number] = Some(outcome);
        }
        report(over.progress(&playing, plan.games - started));
        if playing.is_empty() && started == plan.games {
            return Ok(MatchOutcome::of(outcomes.iter().flatten()));
        }
    }
}

/// Sums over the games that are over.
#[derive(Default)]
struct Over {
    result: MatchResult,
    plies: usize,
}

impl Over {
    fn add(&mut self, game: GameOutcome) {
        self.result.add(game.margin);
        self.plies += game.plies;
    }

    /// The progress of a match with `playing` in progress and `not_started` games to come. A game that is not over is taken to be as
    /// long as those that are over on average, and at least a quarter longer than it is.
    fn progress(&self, playing: &[MatchGame], not_started: usize) -> MatchProgress {
        let (result, games, over) = (self.result, self.result.games() as f64, self.plies as f64);
        let lengths = || playing.iter().map(|game| game.play.actions().len() as f64);
        let length = over / games;
        let to_come =
            lengths().map(|plies| length.max(1.25 * plies)).sum::<f64>() + not_started as f64 * length;
        let fraction = (over + lengths().sum::<f64>()) / (over + to_come).max(1.0);
        MatchProgress { result, fraction: (games > 0.0).then_some(fraction) }
    }
}

impl MatchGame {
    /// The key of the next ply's random numbers.
    fn key(&self, seed: u64) -> RowKey {
        let ply = self.play.actions().len() as u64;
        RowKey { seed, slot: self.number as u64, ply, ..RowKey::default() }
    }
}

impl GameOutcome {
    /// The outcome of a finished game in which the first contestant had the seat `own`.
    fn new(play: &Playthrough, own: usize) -> Self {
        let (returns, scores) = (play.game().returns(play.state()), play.game().scores(play.state()));
        let others = returns.iter().enumerate().filter(|(seat, _)| *seat != own).map(|(_, r)| r);
        let best_other = others.fold(f32::NEG_INFINITY, |m, &r| m.max(r));
        let total: f32 = scores.iter().sum();
        Self {
            margin: if returns.len() == 1 { returns[0] } else { returns[own] - best_other },
            score: f64::from(scores[own]),
            other_score: f64::from(total - scores[own]) / (returns.len() - 1).max(1) as f64,
            own_return: f64::from(returns[own]),
            plies: play.actions().len(),
        }
    }
}

fn opening(game: &Arc<dyn AnyGame>, plan: MatchPlan, pair: u64) -> Result<Playthrough> {
    for attempt in 0u64.. {
        let mut rng = Key::new(plan.seed, Purpose::Opening).with(pair).with(attempt).stream();
        let mut play = Playthrough::new(game.clone());
        let mut left = plan.opening_plies;
        while left > 0 && play.turn() != Turn::Over {
            left -= u32::from(play.turn() != Turn::Chance);
            random_step(&mut play, &mut rng)?;
        }
        if play.turn() != Turn::Over || attempt > 100 {
            return Ok(play);
        }
    }
    Ok(Playthrough::new(game.clone()))
}

fn random_step(play: &mut Playthrough, rng: &mut Stream) -> Result<()> {
    let legal = play.legal();
    let index = if play.turn() == Turn::Chance {
        rng.weighted(&play.game().chance_probs(play.state(), &legal))
    } else {
        rng.below(legal.len())
    };
    play.step(legal[index])
}

/// Deals the chance outcomes that are due.
fn deal(playing: &mut [MatchGame], seed: u64) -> Result<()> {
    for MatchGame { number, play } in playing {
        while play.turn() == Turn::Chance {
            let key = Key::new(seed, Purpose::Chance).with(*number as u64).with(play.actions().len() as u64);
            random_step(play, &mut key.stream())?;
        }
    }
    Ok(())
}

/// The choices of a network and its search on one solved position.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct PositionChoice {
    /// Index of the position.
    pub index: usize,
    /// The action with the highest prior.
    pub policy_action: u16,
    /// The action chosen by the search.
    pub search_action: u16,
    /// The search's value for the player to move.
    pub value: f32,
}

/// How positions are searched.
#[derive(Clone, Copy, Debug)]
pub struct SearchSetup {
    /// The search.
    pub params: SearchParams,
    /// Where it runs.
    pub placement: Placement,
    /// Threads on a CPU.
    pub threads: usize,
}

/// Evaluates the bare policy and the search on solved positions. Passes the number of positions done to `report`.
///
/// # Errors
/// Those of the network; [`Error::Stopped`] once `stop` is requested; [`Error::IllegalAction`] for an impossible position;
/// [`Error::Unsupported`] for a game with hidden information, whose true state the network must not see.
pub fn evaluate_positions(
    game: &Arc<dyn AnyGame>,
    network: &dyn Network,
    setup: SearchSetup,
    positions: &[SolvedPosition],
    stop: &Stop,
    report: &mut dyn FnMut(u64),
) -> Result<(Vec<PositionChoice>, PositionSummary)> {
    let SearchSetup { params, placement, threads } = setup;
    if game.sizes().hidden_information {
        let why = "the best action depends on hidden information; measure strength by matches instead";
        return Err(Error::unsupported(format!("solved positions of {}", game.name()), why));
    }
    let mut at = Vec::with_capacity(positions.len());
    for (i, position) in positions.iter().enumerate() {
        let key = RowKey { slot: i as u64, ..RowKey::default() };
        at.push(position_of(&replay(position, game)?, key));
    }
    let mut searchers = Searchers::new(game.as_ref(), network, params, placement, ROWS, threads)?;
    searchers.stop_by(stop);
    let bare = bare_policies(game.as_ref(), network.fork().as_mut(), &at)?;
    let mut found = Vec::with_capacity(at.len());
    for rows in at.chunks(ROWS) {
        found.extend(searchers.search(rows, params.simulations, Exploration::Plain)?);
        report(found.len() as u64);
    }
    let choices: Vec<PositionChoice> = bare
        .iter()
        .zip(&found)
        .enumerate()
        .map(|(index, ((priors, _), summary))| PositionChoice {
            index,
            policy_action: summary.actions[crate::search::root::argmax(priors)],
            search_action: summary.actions[summary.best],
            value: summary.value[usize::from(summary.player)],
        })
        .collect();
    let rates = |of: fn(&PositionChoice) -> u16| -> Result<ErrorRates> {
        error_rates(positions, &choices.iter().map(of).collect::<Vec<_>>())
    };
    let summary = PositionSummary::new(rates(|c| c.policy_action)?, rates(|c| c.search_action)?);
    Ok((choices, summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::any_game;

    /// A game with these cards dealt.
    fn dealt(game: &Arc<dyn AnyGame>, names: &str) -> Playthrough {
        let mut play = Playthrough::new(game.clone());
        names.split_whitespace().for_each(|name| play.step_text(name).expect("legal"));
        play
    }

    #[test]
    fn a_match_does_not_depend_on_the_games_at_once_and_reports_every_game() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let play = |games: usize| {
            let player = || Contestant::named(game.as_ref(), "random", "opponent", 2).expect("known");
            let (mut reports, plan) = (Vec::new(), MatchPlan { games, opening_plies: 0, seed: 7 });
            let outcome =
                play_match(&game, &mut player(), &mut player(), plan, &mut |so_far| reports.push(so_far));
            (outcome.expect("played"), reports)
        };
        let (few, _) = play(GAMES_AT_ONCE);
        let (many, reports) = play(2 * GAMES_AT_ONCE + 5);
        assert_eq!(many.scores[..GAMES_AT_ONCE], few.scores);
        assert_eq!(many.result.games(), 2 * GAMES_AT_ONCE as u64 + 5);
        let last = reports.last().expect("reports");
        assert_eq!((last.result, last.fraction), (many.result, Some(1.0)));
        assert_eq!(reports[0].fraction, None, "no game of tic-tac-toe is over after two plies");
        assert!(reports.is_sorted_by_key(|report| report.result.games()));
        let near = |report: &&MatchProgress| report.result.games() > many.result.games() / 2;
        let middle = reports.iter().find(near).and_then(|report| report.fraction).expect("an estimate");
        assert!((0.5..0.9).contains(&middle), "{middle}");
    }

    #[test]
    fn determinisations_do_not_depend_on_hidden_hands() {
        let options = "players = 3\ncards = 2\ndealer = 2\nnetwork_sees = 'deal'";
        let game = any_game("blob", &options.parse().expect("TOML")).expect("valid");
        let one = dealt(&game, "2♠ K♥ Q♥ 3♦ 9♣ 10♥");
        let other = dealt(&game, "2♠ A♠ A♥ 3♦ A♣ A♦");
        assert_eq!((one.turn(), other.turn()), (Turn::Player(0), Turn::Player(0)));
        assert_ne!(one.state(), other.state());
        let key = RowKey { seed: 5, ..RowKey::default() };
        let (drawn, same) = (determinised(&one, key, 8), determinised(&other, key, 8));
        assert_eq!(drawn, same);
        let mut states: Vec<&[u8]> = drawn.iter().map(|position| position.state.as_slice()).collect();
        states.sort_unstable();
        states.dedup();
        assert_eq!(states.len(), 8, "all draws are different deals");
    }
}
