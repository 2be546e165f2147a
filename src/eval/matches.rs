//! Matches: games between two contestants by a plan, as a whole or in parts, and checks of games played by another process.

use super::adjudicate::Adjudicator;
use super::arena::{Contestant, ROWS};
use super::elo::{MatchResult, Mean};
use super::match_game::{GameOutcome, MatchGame};
use super::sprt::SprtState;
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
    /// Results from the first contestant's side.
    pub result: MatchResult,
    /// The first contestant's raw score in each game.
    pub scores: Vec<f64>,
    /// The mean raw score of the other seats in each game. In a game for one player, the second contestant's raw scores; an entry of all
    /// lists is then a pair of games.
    pub other_scores: Vec<f64>,
    /// The first contestant's return in each game.
    pub returns: Vec<f64>,
    /// The test of the match, if it had one. The outcome has the games that it counts.
    pub sprt: Option<SprtState>,
}

impl MatchOutcome {
    /// The outcome of a match of these games, in their order.
    fn of(games: &[GameOutcome]) -> Self {
        let mut outcome = Self::default();
        if games.first().is_some_and(|game| game.mover.is_some()) {
            outcome.is_for_one_player = true;
            games.as_chunks::<2>().0.iter().for_each(|pair| outcome.add_pair(pair));
            return outcome;
        }
        for game in games {
            outcome.result.add(game.margin);
            outcome.scores.push(game.score);
            outcome.other_scores.push(game.other_score);
            outcome.returns.push(game.own_return);
        }
        outcome
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
        Ok(Self::of(&outcomes))
    }

    /// In a game for one player the pairs of games as if they were won, drawn or lost, by the higher score.
    pub fn better_pairs(&self) -> MatchResult {
        let mut result = MatchResult::default();
        let leads = self.scores.iter().zip(&self.other_scores).map(|(own, other)| own - other);
        leads.for_each(|lead| result.add(lead as f32));
        result
    }

    /// The first contestant's mean raw score per game, for games whose scores differ from the returns ([`crate::game::Game::scores`]) and
    /// for games for one player.
    pub fn points(&self) -> Option<Mean> {
        (self.is_for_one_player || self.scores != self.returns).then(|| Mean::of(&self.scores))
    }

    /// The first contestant's mean raw score per game minus that of the other seats, for the games of [`Self::points`].
    pub fn lead(&self) -> Option<Mean> {
        self.points().map(|_| self.lead_in_scores())
    }

    /// The first contestant's mean raw score per game minus that of the other seats, whatever the scores of the game are.
    pub fn lead_in_scores(&self) -> Mean {
        let leads: Vec<f64> =
            self.scores.iter().zip(&self.other_scores).map(|(own, other)| own - other).collect();
        Mean::of(&leads)
    }
}

/// The progress of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatchProgress {
    /// Number of finished games.
    pub games: u64,
    /// Results of the finished games, from the first contestant's side; none in a game for one player.
    pub result: MatchResult,
    /// Estimated fraction of the match's plies that were played; None until a game is finished.
    pub fraction: Option<f64>,
    /// The test of the match so far, if it has one.
    pub sprt: Option<SprtState>,
}

/// Plays a match of `a` against `b`, at most [`GAMES_AT_ONCE`] games at once, and passes its progress to `report` after every ply. With
/// more than two players, `a` has one seat and `b` all others. The outcome does not depend on the number of games at once.
///
/// A test takes the pairs of games in the order of their numbers, whichever ends first, and ends the match with the pair that decides:
/// games beyond it, which have begun, do not count. So the decision does not depend on the number of games at once either, and short games
/// have no advantage.
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
    play_recorded_match(game, a, b, plan, &mut |_| (), report)
}

/// [`play_match`], which passes every finished game to `record`.
///
/// # Errors
/// Those of [`play_match`].
pub fn play_recorded_match(
    game: &Arc<dyn AnyGame>,
    a: &mut Contestant,
    b: &mut Contestant,
    plan: MatchPlan<'_>,
    record: &mut dyn FnMut(PlayedGame),
    report: &mut dyn FnMut(MatchProgress),
) -> Result<MatchOutcome> {
    let mut outcomes: Vec<Option<GameOutcome>> = vec![None; plan.games];
    let mut sprt = plan.sprt.map(SprtState::new);
    let mut keep = |over: &MatchGame, outcome| {
        outcomes[over.number] = Some(outcome);
        record(over.played());
        sprt.as_mut().map_or(ControlFlow::Continue(None), |test| take_pairs(test, &outcomes))
    };
    play_games(game, a, b, plan, 0..plan.games, &mut keep, report)?;
    let counted = sprt.map_or(plan.games, |test| 2 * test.num_pairs() as usize);
    let counted: Vec<GameOutcome> = outcomes.into_iter().take(counted).flatten().collect();
    Ok(MatchOutcome { sprt, ..MatchOutcome::of(&counted) })
}

/// Adds the pairs of `outcomes` that follow those of `test` and are complete.
fn take_pairs(test: &mut SprtState, outcomes: &[Option<GameOutcome>]) -> ControlFlow<(), Option<SprtState>> {
    let (pairs, _) = outcomes.as_chunks::<2>();
    for pair in &pairs[test.num_pairs() as usize..] {
        let &[Some(first), Some(second)] = pair else { break };
        test.add([first.margin, second.margin]);
        if test.accepted.is_some() {
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(Some(*test))
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
        ControlFlow::Continue(None)
    };
    play_games(game, a, b, plan, numbers, &mut keep, report)?;
    Ok(records)
}

/// Takes a game that is over and its outcome; gives the test so far, or ends the match.
type Keep<'a> = &'a mut dyn FnMut(&MatchGame, GameOutcome) -> ControlFlow<(), Option<SprtState>>;

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
    let mut judge = plan.adjudicate_after.map(|plies| Adjudicator::new(game, plies)).transpose()?;
    loop {
        while playing.len() < GAMES_AT_ONCE
            && let Some(number) = to_come.next()
        {
            playing.push(MatchGame::begin(game, plan, number)?);
        }
        deal(&mut playing, plan.seed)?;
        judge.iter_mut().for_each(|judge| judge.judge(&mut playing));
        for (is_a, contestant) in [(true, &mut *a), (false, &mut *b)] {
            let is_due =
                |game: &&mut MatchGame| matches!(game.turn(), Turn::Player(q) if (q == game.seat()) == is_a);
            let mut due: Vec<&mut MatchGame> = playing.iter_mut().filter(is_due).collect();
            let keys: Vec<RowKey> = due.iter().map(|game| game.key(plan.seed)).collect();
            let at: Vec<&Playthrough> = due.iter().map(|game| &game.play).collect();
            let decisions = contestant.decide(&at, &keys)?;
            due.iter_mut().zip(decisions).try_for_each(|(game, decision)| game.take(decision))?;
            deal(&mut playing, plan.seed)?;
            judge.iter_mut().for_each(|judge| judge.judge(&mut playing));
        }
        for game in playing.extract_if(.., |game| game.turn() == Turn::Over) {
            let outcome = GameOutcome::new(&game);
            over.add(outcome);
            match keep(&game, outcome) {
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
        if game.mover.is_none() {
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
mod tests {
    use super::*;
    use crate::eval::sprt::{Hypothesis, Sprt};
    use crate::registry::any_game;

    fn random(game: &Arc<dyn AnyGame>) -> Contestant {
        Contestant::named(game.as_ref(), "random", "opponent", 2).expect("known")
    }

    #[test]
    fn a_match_does_not_depend_on_the_games_at_once_and_reports_every_game() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let play = |games: usize| {
            let player = || random(&game);
            let (mut reports, plan) = (Vec::new(), MatchPlan { games, seed: 7, ..MatchPlan::default() });
            let outcome =
                play_match(&game, &mut player(), &mut player(), plan, &mut |so_far| reports.push(so_far));
            (outcome.expect("played"), reports)
        };
        let (small, _) = play(GAMES_AT_ONCE);
        let (many, reports) = play(2 * GAMES_AT_ONCE + 5);
        assert_eq!(many.scores[..GAMES_AT_ONCE], small.scores);
        assert_eq!(many.result.games(), 2 * GAMES_AT_ONCE as u64 + 5);
        let last = reports.last().expect("reports");
        assert_eq!((last.result, last.fraction), (many.result, Some(1.0)));
        assert_eq!(reports[0].fraction, None, "no game of tic-tac-toe is over after two plies");
        assert!(reports.is_sorted_by_key(|report| report.result.games()));
        let near = |report: &&MatchProgress| report.result.games() > many.result.games() / 2;
        let middle = reports.iter().find(near).and_then(|report| report.fraction).expect("an estimate");
        assert!((0.5..0.9).contains(&middle), "{middle}");
    }

    /// The first contestant has each hand once.
    #[test]
    fn all_games_of_a_group_have_the_same_cards() {
        let game = any_game("blob", &"players = 3\ncards = 2".parse().expect("TOML")).expect("registered");
        let plan = MatchPlan { games: 6, seed: 11, ..MatchPlan::default() };
        let records = play_part(&game, &mut random(&game), &mut random(&game), plan, 0..6, &mut |_| ())
            .expect("played");
        let deals: Vec<&[u16]> = records.iter().map(|actions| &actions[..6]).collect();
        assert!(deals[0] == deals[1] && deals[1] == deals[2] && deals[3] == deals[5], "{deals:?}");
        assert_ne!(deals[2], deals[3]);
        assert_ne!(records[0][6..], records[1][6..], "the seats differ");
    }

    /// Every opening is played once from each seat, in the order of the list, which begins again at its end.
    #[test]
    fn games_begin_with_the_openings_in_turn() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let opening = |actions: &[u16]| {
            let mut play = Playthrough::new(game.clone());
            actions.iter().for_each(|&action| play.step(action).expect("legal"));
            play
        };
        let openings = [opening(&[4, 0]), opening(&[8]), opening(&[2, 4, 6])];
        let plan = MatchPlan { games: 10, openings: &openings, seed: 3, ..MatchPlan::default() };
        let play = |plan| {
            play_part(&game, &mut random(&game), &mut random(&game), plan, 0..10, &mut |_| ())
                .expect("played")
        };
        for (number, actions) in play(plan).iter().enumerate() {
            assert!(actions.starts_with(openings[number / 2 % 3].actions()), "{number}: {actions:?}");
        }
        let further = play(MatchPlan { opening_plies: 2, ..plan });
        let after = |number: usize| &further[number][..openings[number / 2 % 3].actions().len() + 2];
        assert!((0..5).all(|group| after(2 * group) == after(2 * group + 1)), "{further:?}");
        assert_ne!(after(0), after(6), "the plies after an opening are drawn for each pair");
    }

    /// Perfect play draws tic-tac-toe from its start, and wins with the centre against a border cell next to a corner.
    #[test]
    fn adjudicated_games_have_the_result_of_perfect_play() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let result = |openings: &[Playthrough], adjudicate_after| {
            let plan = MatchPlan { games: 20, openings, adjudicate_after, seed: 3, ..MatchPlan::default() };
            play_match(&game, &mut random(&game), &mut random(&game), plan, &mut |_| ())
                .expect("played")
                .result
        };
        assert_eq!(result(&[], Some(0)), MatchResult { wins: 0, draws: 20, losses: 0 });
        assert!(result(&[], Some(9)) == result(&[], None) && result(&[], None).draws < 20);
        let mut won = Playthrough::new(game.clone());
        [0, 1, 4].into_iter().for_each(|action| won.step(action).expect("legal"));
        assert_eq!(
            result(&[won], Some(3)),
            MatchResult { wins: 10, draws: 0, losses: 10 },
            "the first seat wins"
        );
        let hex = any_game("hex", &toml::Table::new()).expect("registered");
        let plan = MatchPlan { games: 2, adjudicate_after: Some(3), ..MatchPlan::default() };
        let refused = play_match(&hex, &mut random(&hex), &mut random(&hex), plan, &mut |_| ());
        let refused = refused.expect_err("no solver").to_string();
        assert_eq!(refused, "--adjudicate: got 3, expected a game with an exact solver, which hex has not");
    }

    /// The decision is that of the pairs in their order, whatever is played at once, and the games beyond it do not count.
    #[test]
    fn a_test_ends_with_the_pair_that_decides() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let mut strong = Contestant::named(game.as_ref(), "rollouts:50", "opponent", 2).expect("known");
        let sprt = Some(Sprt { elo0: 0.0, elo1: 100.0 });
        let plan = MatchPlan { games: 400, opening_plies: 1, sprt, seed: 5, ..MatchPlan::default() };
        let mut last = MatchProgress::default();
        let found = play_match(&game, &mut strong, &mut random(&game), plan, &mut |so_far| last = so_far)
            .expect("played");
        let test = found.sprt.expect("a test");
        assert_eq!(test.accepted, Some(Hypothesis::H1), "{test:?}");
        assert_eq!(
            (found.result.games(), found.scores.len() as u64),
            (2 * test.num_pairs(), 2 * test.num_pairs())
        );
        assert!(test.num_pairs() < 200, "it ended early");
        let whole = MatchPlan { sprt: None, games: 400, ..plan };
        let whole = play_match(&game, &mut strong, &mut random(&game), whole, &mut |_| ()).expect("played");
        let mut again = SprtState::new(test.test);
        for pair in whole.scores.as_chunks::<2>().0 {
            again.add(pair.map(|score| score as f32));
        }
        assert_eq!(again, test, "the test over the whole match in order");
    }

    #[test]
    fn parts_of_a_match_are_the_match_and_changed_games_are_refused() {
        for (name, options) in [("connect_four", ""), ("backgammon", ""), ("blob", "players = 3\ncards = 2")]
        {
            let game = any_game(name, &options.parse().expect("TOML")).expect("registered");
            let plan = MatchPlan { games: 10, opening_plies: 3, seed: 11, ..MatchPlan::default() };
            let whole =
                play_match(&game, &mut random(&game), &mut random(&game), plan, &mut |_| ()).expect("played");
            let part = |numbers| {
                play_part(&game, &mut random(&game), &mut random(&game), plan, numbers, &mut |_| ())
                    .expect("played")
            };
            let records = [part(0..3), part(3..4), part(4..10)].concat();
            assert_eq!(MatchOutcome::of_records(&game, plan, &records), Ok(whole), "{name}");
            for (number, record) in records.iter().enumerate() {
                let refused = |actions: &[u16]| check_game(&game, plan, number, actions).expect_err(name);
                assert!(refused(&record[..record.len() - 1]).ends_with("it is not over"), "{name}");
                assert!(refused(&[record.as_slice(), &[0]].concat()).contains("not legal"), "{name}");
                assert!(refused(&[u16::MAX]).contains("opening"), "{name}");
            }
            let other_seed = MatchPlan { seed: 12, ..plan };
            let fits = (0..10).filter(|&i| check_game(&game, other_seed, i, &records[i]).is_ok());
            assert_eq!(fits.count(), 0, "{name}: openings and dice are those of the seed");
        }
    }
}
