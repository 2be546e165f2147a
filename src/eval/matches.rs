//! Matches: games between two contestants by a plan, as a whole or in parts, and checks of games played by another process.

use super::arena::{Contestant, ROWS};
use super::elo::{MatchResult, Mean};
use super::luck::LuckEstimate;
use super::match_game::{GameOutcome, MatchGame};
use super::repetitions::Repetitions;
use super::sprt::{Sprt, SprtState};
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::error::Result;
use crate::game::Turn;
use crate::search::root::RowKey;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

pub use super::match_game::PlayedGame;
pub use super::plan::{MatchPlan, group_size};

/// Number of games that a match plays at once: a batch for each side, since about half of the games are at the turn of
/// each.
pub const GAMES_AT_ONCE: usize = 2 * ROWS;

/// The outcome of a match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchOutcome {
    /// Whether the game is for one player: there are no wins, draws and losses then.
    pub is_for_one_player: bool,
    /// Whether the players share an aim ([`Sizes::cooperative`](crate::game::Sizes)): there are no wins, draws and losses then either, only returns.
    pub is_cooperative: bool,
    /// Results from the first contestant's side.
    pub result: MatchResult,
    /// Those of the games in which it had the first seat, and the second; empty but for two players who compete. `[P]`
    pub result_by_seat: Vec<MatchResult>,
    /// The first contestant's raw score in each game.
    pub scores: Vec<f64>,
    /// The mean raw score of the other seats in each game. In a game for one player, the second contestant's raw scores; an entry of all
    /// lists is then a pair of games.
    pub other_scores: Vec<f64>,
    /// The first contestant's return in each game.
    pub returns: Vec<f64>,
    /// What chance gave the first contestant in each game, in the unit of returns; empty without an estimate.
    pub luck: Vec<f64>,
    /// Consecutive entries of the lists with the same opening and chance; 0 without groups.
    pub group: usize,
    /// Games that were played and are not counted, since they repeat others of the match ply by ply.
    pub repeated: usize,
    /// Games that ended before their end by the rules.
    pub unscored: usize,
    /// The test of the match, if it had one. The outcome has the games that it counts.
    pub sprt: Option<SprtState>,
}

/// The first contestant's mean result per game minus what chance gave it: the same on average, and less spread out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WithoutLuck {
    /// In points.
    Points(Mean),
    /// As a score, 1 for a win and 0 for a loss.
    Score(Mean),
}

impl MatchOutcome {
    /// The outcome of a match of these games, in their order, which come in groups of so many.
    fn of(games: &[GameOutcome], group: usize) -> Self {
        let counted = Repetitions::counted(games.chunks(group)).concat();
        let unscored = counted.iter().filter(|game| !game.is_scored).count();
        let mut outcome = Self { group, repeated: games.len() - counted.len(), unscored, ..Self::default() };
        if games.first().is_some_and(|game| game.mover.is_some()) {
            (outcome.is_for_one_player, outcome.group) = (true, 1);
            counted.as_chunks::<2>().0.iter().for_each(|pair| outcome.add_pair(pair));
            return outcome;
        }
        for game in &counted {
            outcome.scores.push(game.score);
            outcome.other_scores.push(game.other_score);
            outcome.returns.push(game.own_return);
            outcome.luck.extend(game.luck);
        }
        outcome.is_cooperative = games.first().is_some_and(|game| game.is_cooperative);
        if !outcome.is_cooperative {
            outcome.add_results(&counted);
        }
        outcome
    }

    /// Adds wins, draws and losses of `games`.
    fn add_results(&mut self, games: &[GameOutcome]) {
        self.result_by_seat = vec![MatchResult::default(); if self.group == 2 { 2 } else { 0 }];
        for game in games {
            self.result.add(game.margin);
            self.result_by_seat.get_mut(game.seat).into_iter().for_each(|result| result.add(game.margin));
        }
        let margins: Vec<f32> = games.iter().map(|game| game.margin).collect();
        self.result.set_group_variance(&margins, self.group);
    }

    /// Adds two games for one player with the same opening and chance, the first contestant's and the second's.
    fn add_pair(&mut self, [own, other]: &[GameOutcome; 2]) {
        self.scores.push(own.score);
        self.other_scores.push(other.score);
        self.returns.push(own.own_return);
    }

    /// The outcome of the match of these games, by [`play_part`], in their order.
    ///
    /// # Errors
    /// Those of [`check_game`].
    pub fn of_records(
        game: &Arc<dyn AnyGame>,
        plan: MatchPlan<'_>,
        records: &[Vec<u16>],
    ) -> std::result::Result<Self, String> {
        let outcome = |(number, actions): (usize, &Vec<u16>)| replay(game, plan, number, actions);
        let outcomes: Vec<GameOutcome> = records.iter().enumerate().map(outcome).collect::<Result<_, _>>()?;
        Ok(Self::of(&outcomes, group_size(game.as_ref())))
    }

    /// In a game for one player the pairs of games as if they were won, drawn or lost, by the higher score.
    pub fn better_pairs(&self) -> MatchResult {
        let mut result = MatchResult::default();
        let leads = self.scores.iter().zip(&self.other_scores).map(|(own, other)| own - other);
        leads.for_each(|lead| result.add(lead as f32));
        result
    }

    /// The first contestant's mean raw score per game, for games whose scores differ from the returns ([`crate::game::Game::scores`]) and
    /// for games for one player. None where a game ended before its end by the rules, and so without a score.
    pub fn points(&self) -> Option<Mean> {
        let has_points = self.unscored == 0 && (self.is_for_one_player || self.scores != self.returns);
        has_points.then(|| Mean::of_groups(&self.scores, self.group))
    }

    /// The first contestant's mean result without luck: in the unit of [`Self::points`] where points are a multiple of returns, otherwise
    /// its score, 1 for a win and 0 for a loss. None without an estimate of luck, and where returns are neither points nor wins, draws and
    /// losses.
    pub fn without_luck(&self) -> Option<WithoutLuck> {
        if self.luck.is_empty() {
            return None;
        }
        let rest: Vec<f64> = self.returns.iter().zip(&self.luck).map(|(own, luck)| own - luck).collect();
        let rest = Mean::of_groups(&rest, self.group);
        let is_result = |own: &f64| [-1.0, 0.0, 1.0].contains(own);
        match self.points_per_return() {
            Some(factor) => Some(WithoutLuck::Points(rest.scaled(factor))),
            None if self.returns.iter().all(is_result) => {
                Some(WithoutLuck::Score(rest.scaled(0.5).shifted(0.5)))
            }
            None => None,
        }
    }

    /// The points of a return of 1, if all games with points give the same.
    fn points_per_return(&self) -> Option<f64> {
        self.points()?;
        let (own, score) = self.returns.iter().zip(&self.scores).find(|(own, _)| **own != 0.0)?;
        let factor = score / own;
        let is_multiple = |(own, score): (&f64, &f64)| (score - factor * own).abs() < 1e-4;
        self.returns.iter().zip(&self.scores).all(is_multiple).then_some(factor)
    }

    /// The first contestant's mean raw score per game minus that of the other seats, for the games of [`Self::points`].
    pub fn lead(&self) -> Option<Mean> {
        self.points().map(|_| self.lead_in_scores())
    }

    /// The first contestant's mean raw score per game minus that of the other seats, whatever the scores of the game are.
    pub fn lead_in_scores(&self) -> Mean {
        let leads: Vec<f64> =
            self.scores.iter().zip(&self.other_scores).map(|(own, other)| own - other).collect();
        Mean::of_groups(&leads, self.group)
    }
}

/// The progress of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatchProgress {
    /// Number of finished games.
    pub games: u64,
    /// Results of the finished games, from the first contestant's side; none in a game for one player or for two who share an aim.
    pub result: MatchResult,
    /// Estimated fraction of the match's plies that were played; None until a game is finished.
    pub fraction: Option<f64>,
    /// The test of the match so far, if it has one.
    pub sprt: Option<SprtState>,
}

/// Plays a match of `a` against `b`, at most [`GAMES_AT_ONCE`] games at once, and passes its progress to `report` after every ply. With
/// more than two players, `a` has one seat and `b` all others. The outcome does not depend on the number of games at once.
///
/// A test takes the pairs of games in the order of their numbers, whichever ends first, and ends the match with the pair that decides, or
/// with the last of many in a row that repeat earlier ones: games beyond it, which have begun, do not count. So the decision does not depend
/// on the number of games at once either, and short games have no advantage.
///
/// # Errors
/// Those of the networks and of external programs; [`crate::Error::Stopped`] after [`Contestant::stopped_by`].
pub fn play_match(
    game: &Arc<dyn AnyGame>,
    a: &mut Contestant,
    b: &mut Contestant,
    plan: MatchPlan<'_>,
    report: &mut dyn FnMut(MatchProgress),
) -> Result<MatchOutcome> {
    play_recorded_match(game, a, b, plan, None, &mut |_| (), report)
}

/// [`play_match`], which passes every finished game to `record`, and estimates what chance gave the first contestant.
///
/// # Errors
/// Those of [`play_match`].
pub fn play_recorded_match(
    game: &Arc<dyn AnyGame>,
    a: &mut Contestant,
    b: &mut Contestant,
    plan: MatchPlan<'_>,
    mut luck: Option<&mut LuckEstimate>,
    record: &mut dyn FnMut(PlayedGame),
    report: &mut dyn FnMut(MatchProgress),
) -> Result<MatchOutcome> {
    let mut outcomes: Vec<Option<GameOutcome>> = vec![None; plan.games];
    let mut test = plan.sprt.map(PairTest::new);
    let mut keep = |over: &MatchGame, mut outcome: GameOutcome| {
        if let Some(estimate) = &mut luck {
            outcome.luck = Some(estimate.luck(&over.play, over.opening_len, over.seat())?);
        }
        outcomes[over.number] = Some(outcome);
        record(over.played());
        Ok(test.as_mut().map_or(ControlFlow::Continue(None), |test| test.take_pairs(&outcomes)))
    };
    play_games(game, a, b, plan, 0..plan.games, &mut keep, report)?;
    let counted = test.as_ref().map_or(plan.games, |test| 2 * test.taken);
    let counted: Vec<GameOutcome> = outcomes.into_iter().take(counted).flatten().collect();
    let sprt = test.map(|test| test.state);
    Ok(MatchOutcome { sprt, ..MatchOutcome::of(&counted, group_size(game.as_ref())) })
}

/// A test on the pairs of a match in the order of their numbers.
struct PairTest {
    state: SprtState,
    /// Pairs that were looked at, those that repeat others among them.
    taken: usize,
    repetitions: Repetitions,
    /// The margins of the pairs that repeat others, until one shows that players or rules are random.
    repeated: Vec<[f32; 2]>,
}

impl PairTest {
    fn new(test: Sprt) -> Self {
        let (state, repetitions) = (SprtState::new(test), Repetitions::default());
        Self { state, taken: 0, repetitions, repeated: Vec::new() }
    }

    /// Adds the pairs of `outcomes` that follow those taken and are complete.
    fn take_pairs(&mut self, outcomes: &[Option<GameOutcome>]) -> ControlFlow<(), Option<SprtState>> {
        let (pairs, _) = outcomes.as_chunks::<2>();
        for pair in &pairs[self.taken..] {
            let &[Some(first), Some(second)] = pair else { break };
            self.taken += 1;
            let margins = [first.margin, second.margin];
            if self.repetitions.is_repetition(&[first, second]) {
                self.repeated.push(margins);
                self.state.pass_over();
            } else {
                let varies = self.repetitions.varies();
                let earlier = if varies { std::mem::take(&mut self.repeated) } else { Vec::new() };
                earlier.into_iter().chain([margins]).for_each(|pair| self.state.add(pair));
            }
            if self.state.is_over() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(Some(self.state))
    }
}

/// Plays the games of a match that have these `numbers`, as [`play_match`] plays them, and returns the actions of each, chance outcomes
/// included.
///
/// # Errors
/// Those of [`play_match`].
pub fn play_part(
    game: &Arc<dyn AnyGame>,
    a: &mut Contestant,
    b: &mut Contestant,
    plan: MatchPlan<'_>,
    numbers: Range<usize>,
    report: &mut dyn FnMut(MatchProgress),
) -> Result<Vec<Vec<u16>>> {
    let mut records = vec![Vec::new(); numbers.len()];
    let first = numbers.start;
    let mut keep = |over: &MatchGame, _| {
        records[over.number - first] = over.play.actions().to_vec();
        Ok(ControlFlow::Continue(None))
    };
    play_games(game, a, b, plan, numbers, &mut keep, report)?;
    Ok(records)
}

/// Takes a game that is over and its outcome; gives the test so far, or ends the match.
type Keep<'a> = &'a mut dyn FnMut(&MatchGame, GameOutcome) -> Result<ControlFlow<(), Option<SprtState>>>;

/// Plays the games of these `numbers` and passes each to `keep` when it is over, until that ends the match.
fn play_games(
    game: &Arc<dyn AnyGame>,
    a: &mut Contestant,
    b: &mut Contestant,
    plan: MatchPlan<'_>,
    numbers: Range<usize>,
    keep: Keep<'_>,
    report: &mut dyn FnMut(MatchProgress),
) -> Result<()> {
    let (mut over, mut playing, mut to_come) = (Over::default(), Vec::<MatchGame>::new(), numbers);
    loop {
        while playing.len() < GAMES_AT_ONCE
            && let Some(number) = to_come.next()
        {
            playing.push(MatchGame::begin(game, plan, number)?);
        }
        deal(&mut playing, plan.seed)?;
        for (is_a, contestant) in [(true, &mut *a), (false, &mut *b)] {
            let is_due =
                |game: &&mut MatchGame| matches!(game.turn(), Turn::Player(q) if (q == game.seat()) == is_a);
            let mut due: Vec<&mut MatchGame> = playing.iter_mut().filter(is_due).collect();
            let keys: Vec<RowKey> = due.iter().map(|game| game.key(plan.seed)).collect();
            let at: Vec<&Playthrough> = due.iter().map(|game| &game.play).collect();
            let decisions = contestant.decide(&at, &keys)?;
            due.iter_mut().zip(decisions).try_for_each(|(game, decision)| game.take(decision))?;
            deal(&mut playing, plan.seed)?;
        }
        for game in playing.extract_if(.., |game| game.turn() == Turn::Over) {
            let outcome = GameOutcome::new(&game);
            over.add(outcome);
            match keep(&game, outcome)? {
                ControlFlow::Continue(sprt) => over.sprt = sprt,
                ControlFlow::Break(()) => return Ok(()),
            }
        }
        report(over.progress(&playing, to_come.len()));
        if playing.is_empty() && to_come.is_empty() {
            return Ok(());
        }
    }
}

/// Checks that `actions` are a possible game number `number` of the match: its opening, its chance outcomes, legal actions to the end.
///
/// # Errors
/// A description of the defect.
pub fn check_game(
    game: &Arc<dyn AnyGame>,
    plan: MatchPlan<'_>,
    number: usize,
    actions: &[u16],
) -> std::result::Result<(), String> {
    replay(game, plan, number, actions).map(drop)
}

fn replay(
    game: &Arc<dyn AnyGame>,
    plan: MatchPlan<'_>,
    number: usize,
    actions: &[u16],
) -> std::result::Result<GameOutcome, String> {
    let wrong = |what: String| format!("game {number} of the match: {what}");
    let mut played = MatchGame::begin(game, plan, number).map_err(|e| wrong(e.to_string()))?;
    let opening = played.play.actions();
    let Some(rest) = actions.strip_prefix(opening) else {
        return Err(wrong(format!("it does not begin with the opening {opening:?}")));
    };
    for &action in rest {
        match played.play.turn() {
            Turn::Chance => {
                played.deal_once(plan.seed).map_err(|e| wrong(e.to_string()))?;
                let drawn = played.play.actions().last();
                if drawn != Some(&action) {
                    return Err(wrong(format!("the chance outcome {action}, expected {drawn:?}")));
                }
            }
            Turn::Player(_) | Turn::Over => played.play.step(action).map_err(|e| wrong(e.to_string()))?,
        }
    }
    match played.play.turn() {
        Turn::Over => Ok(GameOutcome::new(&played)),
        Turn::Player(_) | Turn::Chance => Err(wrong("it is not over".into())),
    }
}

/// Sums over the finished games.
#[derive(Default)]
struct Over {
    games: u64,
    result: MatchResult,
    plies: usize,
    sprt: Option<SprtState>,
}

impl Over {
    fn add(&mut self, game: GameOutcome) {
        self.games += 1;
        if game.mover.is_none() && !game.is_cooperative {
            self.result.add(game.margin);
        }
        self.plies += game.plies;
    }

    /// The progress of a match with the games `playing` in progress and `not_started` games to come. The length of an unfinished game is
    /// estimated by the mean of the finished ones, and is at least 1.25 times its present length.
    fn progress(&self, playing: &[MatchGame], not_started: usize) -> MatchProgress {
        let (result, games, over) = (self.result, self.games as f64, self.plies as f64);
        let lengths = || playing.iter().map(|game| game.play.actions().len() as f64);
        let length = over / games;
        let to_come =
            lengths().map(|plies| length.max(1.25 * plies)).sum::<f64>() + not_started as f64 * length;
        let fraction = (over + lengths().sum::<f64>()) / (over + to_come).max(1.0);
        MatchProgress {
            games: self.games,
            result,
            fraction: (games > 0.0).then_some(fraction),
            sprt: self.sprt,
        }
    }
}

/// Deals the chance outcomes that are due.
fn deal(playing: &mut [MatchGame], seed: u64) -> Result<()> {
    for game in playing {
        while game.turn() == Turn::Chance {
            game.deal_once(seed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
