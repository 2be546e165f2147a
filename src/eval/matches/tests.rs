//! Parts, groups, openings, tests and repetitions of matches.

use super::*;
use crate::batch::ErasedGame;
use crate::batch::rollouts::Decision;
use crate::config::{Algorithm, Config};
use crate::engine::Settings;
use crate::eval::sprt::{Hypothesis, Sprt};
use crate::game::{Game, History, ObsShape, Sizes};
use crate::net::{HashNet, IoShape};
use crate::registry::any_game;

fn random(game: &Arc<dyn AnyGame>) -> Contestant {
    Contestant::named(game.as_ref(), "random", "opponent", 2).expect("known")
}

fn counts(result: MatchResult) -> [u64; 3] {
    [result.wins, result.draws, result.losses]
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
    assert_eq!((counts(last.result), last.fraction), (counts(many.result), Some(1.0)));
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
    let records =
        play_part(&game, &mut random(&game), &mut random(&game), plan, 0..6, &mut |_| ()).expect("played");
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
        play_part(&game, &mut random(&game), &mut random(&game), plan, 0..10, &mut |_| ()).expect("played")
    };
    for (number, actions) in play(plan).iter().enumerate() {
        assert!(actions.starts_with(openings[number / 2 % 3].actions()), "{number}: {actions:?}");
    }
    let further = play(MatchPlan { opening_plies: 2, ..plan });
    let after = |number: usize| &further[number][..openings[number / 2 % 3].actions().len() + 2];
    assert!((0..5).all(|group| after(2 * group) == after(2 * group + 1)), "{further:?}");
    assert_ne!(after(0), after(6), "the plies after an opening are drawn for each pair");
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
    for (name, options) in [("connect_four", ""), ("backgammon", ""), ("blob", "players = 3\ncards = 2")] {
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

/// Both get the same return: a match has a mean return, not a hundred draws.
#[test]
fn players_with_one_aim_have_returns_and_no_results() {
    let options = "n = 5\nk = 3\nmode = 'ramsey'".parse().expect("TOML");
    let game = any_game("clique", &options).expect("registered");
    let plan = MatchPlan { games: 40, seed: 3, ..MatchPlan::default() };
    let mut last = MatchProgress::default();
    let found = play_match(&game, &mut random(&game), &mut random(&game), plan, &mut |so_far| last = so_far)
        .expect("played");
    assert!(found.is_cooperative && found.result_by_seat.is_empty(), "{found:?}");
    assert_eq!((found.result.games(), last.games, last.result.games()), (0, 40, 0));
    let mean = Mean::of(&found.returns);
    assert!(mean.count == 40 && -1.0 < mean.mean && mean.mean < 1.0, "{mean:?}");
}

/// A game of one ply with two seats, of which the second is empty.
#[derive(Clone)]
struct Alone;

impl Game for Alone {
    /// The plies played.
    type State = u64;
    const NAME: &'static str = "alone";

    fn from_options(_: &toml::Table) -> Result<Self> {
        Ok(Self)
    }

    fn options(&self) -> toml::Table {
        toml::Table::new()
    }

    fn aim(&self, _: u8) -> String {
        "plays a ply".into()
    }

    fn sizes(&self) -> Sizes {
        let obs = ObsShape { channels: 1, height: 1, width: 1 };
        Sizes { num_actions: 1, max_legal: 1, max_plies: 1, obs, zero_sum: false, ..Sizes::default() }
    }

    fn init(&self) -> u64 {
        0
    }

    fn turn(&self, state: &u64) -> Turn {
        if *state == 0 { Turn::Player(0) } else { Turn::Over }
    }

    fn legal(&self, _: &u64, _: History<'_>, out: &mut [u16]) -> usize {
        out[0] = 0;
        1
    }

    fn step(&self, state: &mut u64, _: u16, _: History<'_>) {
        *state += 1;
    }

    fn observe(&self, state: &u64, _: u8, out: &mut [f32]) {
        out[0] = *state as f32;
    }

    fn returns(&self, _: &u64, out: &mut [f32]) {
        out.copy_from_slice(&[-0.5, 0.0]);
    }

    fn num_seated(&self, _: &u64, _: usize) -> usize {
        1
    }

    fn action_name(&self, _: &u64, _: u16) -> String {
        "play".into()
    }
}

/// Whoever plays alone beats nobody.
#[test]
fn a_game_without_another_player_is_no_win() {
    let game: Arc<dyn AnyGame> = Arc::new(ErasedGame::new(Alone));
    let plan = MatchPlan { games: 2, ..MatchPlan::default() };
    let found = play_match(&game, &mut random(&game), &mut random(&game), plan, &mut |_| ()).expect("played");
    assert_eq!((counts(found.result), found.returns), ([0, 2, 0], vec![-0.5; 2]));
}

/// Luck is estimated beside a match, and changes nothing else. A roll that both sides get is luck for one of them.
#[test]
fn luck_does_not_change_a_match() {
    let game = any_game("backgammon", &toml::toml! { short_game = true }).expect("registered");
    let sizes = game.sizes();
    let network = HashNet(IoShape::of(&sizes));
    let mut settings = Settings::new(&Config::default(), &sizes);
    settings.params.algorithm = Algorithm::Afterstate;
    let play = |luck: Option<&mut LuckEstimate>| {
        let plan = MatchPlan { games: 20, seed: 4, ..MatchPlan::default() };
        let (a, b) = (&mut random(&game), &mut random(&game));
        play_recorded_match(&game, a, b, plan, luck, &mut |_| (), &mut |_| ()).expect("played")
    };
    let mut estimate = LuckEstimate::new(game.as_ref(), &network, settings).expect("made");
    let (without, with) = (play(None), play(estimate.as_mut()));
    assert_eq!((without.luck.len(), without.without_luck()), (0, None));
    assert_eq!(with.luck.len(), 20);
    assert_eq!(without, MatchOutcome { luck: Vec::new(), ..with.clone() });
    let points: Vec<f64> =
        with.scores.iter().zip(&with.luck).map(|(score, luck)| score - 3.0 * luck).collect();
    let Some(WithoutLuck::Points(mean)) = with.without_luck() else { panic!("{with:?}") };
    assert!((mean.mean - Mean::of(&points).mean).abs() < 1e-5, "{mean:?}");
    assert!(mean.half_width.is_some_and(|half| half > 0.0) && mean.count == 20, "{mean:?}");
    let halves = MatchOutcome { returns: vec![0.5; 20], scores: vec![0.5; 20], ..with.clone() };
    assert_eq!(halves.without_luck(), None, "a return of 0.5 is a whole win");
    let drawn = MatchOutcome { returns: vec![1.0; 20], scores: vec![1.0; 20], ..with };
    let Some(WithoutLuck::Score(score)) = drawn.without_luck() else { panic!("{drawn:?}") };
    let expected = 0.5 + 0.5 * (1.0 - drawn.luck.iter().sum::<f64>() / 20.0);
    assert!((score.mean - expected).abs() < 1e-9, "{score:?}");
}

/// Two searches without noise play every pair from the start alike: one of them counts, also in a test.
#[test]
fn repeated_games_count_once() {
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let sizes = game.sizes();
    let shape = IoShape::of(&sizes);
    let player = || {
        let settings = Settings { threads: 1, ..Settings::new(&Config::default(), &sizes) };
        Contestant::search(game.as_ref(), &HashNet(shape), settings).expect("it fits")
    };
    let play = |plan: MatchPlan<'_>, other: &mut Contestant| {
        play_match(&game, &mut player(), other, plan, &mut |_| ()).expect("played")
    };
    let plan = MatchPlan { games: 21, seed: 3, ..MatchPlan::default() };
    let outcome = play(plan, &mut player());
    assert_eq!((outcome.scores.len(), outcome.result.games(), outcome.repeated), (2, 2, 19));
    let sprt = Some(Sprt { elo0: 0.0, elo1: 20.0 });
    let test = play(MatchPlan { games: 20, sprt, ..plan }, &mut player()).sprt.expect("a test");
    assert_eq!((test.num_pairs(), test.accepted), (1, None));
    assert_eq!(play(plan, &mut random(&game)).repeated, 0, "random play varies");
    let openings = play(MatchPlan { games: 40, opening_plies: 1, ..plan }, &mut player());
    assert!((6..=18).contains(&openings.scores.len()), "nine ways of one ply: {openings:?}");
    assert_eq!(openings.scores.len() + openings.repeated, 40);
}

/// Random games from a position with two moves often repeat the first ones; each of them is a sample of its own, in a test, too.
#[test]
fn random_games_that_happen_to_be_alike_count() {
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let mut opening = Playthrough::new(game.clone());
    [0, 1, 2, 4, 3, 5, 7].into_iter().for_each(|cell| opening.step(cell).expect("legal"));
    for seed in 0..10 {
        let plan =
            MatchPlan { games: 40, openings: std::slice::from_ref(&opening), seed, ..MatchPlan::default() };
        let play = |plan| {
            play_match(&game, &mut random(&game), &mut random(&game), plan, &mut |_| ()).expect("played")
        };
        let outcome = play(plan);
        assert_eq!((outcome.scores.len(), outcome.repeated), (40, 0), "seed {seed}");
        let sprt = Some(Sprt { elo0: -1.0, elo1: 1.0 });
        let test = play(MatchPlan { sprt, ..plan }).sprt.expect("a test");
        assert_eq!((test.num_pairs(), test.accepted), (20, None), "seed {seed}");
    }
}

/// Players who play all pairs alike give a test no further evidence: it ends undecided, 2,000 games after the last new one.
#[test]
fn a_test_without_new_games_ends_undecided() {
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let outcome = |cell: u16| {
        let mut over = MatchGame::begin(&game, MatchPlan::default(), 0).expect("a game");
        over.take(Decision::Play(cell)).and_then(|()| over.take(Decision::Resign)).expect("legal");
        Some(GameOutcome { opening: cell.into(), ..GameOutcome::new(&over) })
    };
    let (one, other) = (outcome(0), outcome(1));
    let new_test = || PairTest::new(Sprt { elo0: 0.0, elo1: 20.0 });
    let mut test = new_test();
    assert!(test.take_pairs(&vec![one; 2000]).is_continue(), "1,998 games repeat the first two");
    assert!(test.take_pairs(&vec![one; 4000]).is_break());
    assert_eq!((test.taken, test.state.num_pairs(), test.state.accepted), (1001, 1, None));
    let mut later = vec![one; 1000];
    later.extend([other; 2]);
    later.extend(vec![one; 3000]);
    let mut test = new_test();
    assert!(test.take_pairs(&later).is_break());
    assert_eq!((test.taken, test.state.num_pairs(), test.state.is_exhausted()), (1501, 2, true));
}

/// A turn of backgammon is one to four plies, or none; the n-th roll is the same in both games of a pair.
#[test]
fn all_dice_of_a_pair_are_the_same() {
    let game = any_game("backgammon", &toml::Table::new()).expect("registered");
    let plan = MatchPlan { games: 4, seed: 5, ..MatchPlan::default() };
    let records =
        play_part(&game, &mut random(&game), &mut random(&game), plan, 0..4, &mut |_| ()).expect("played");
    let dice = |actions: &Vec<u16>| -> Vec<u16> {
        let mut play = Playthrough::new(game.clone());
        let mut dealt = Vec::new();
        for &action in actions {
            dealt.extend((play.turn() == Turn::Chance).then_some(action));
            play.step(action).expect("legal");
        }
        dealt
    };
    let dice: Vec<Vec<u16>> = records.iter().map(dice).collect();
    let common = |a: usize, b: usize| dice[a].iter().zip(&dice[b]).take_while(|(a, b)| a == b).count();
    for pair in [0, 2] {
        assert_eq!(common(pair, pair + 1), dice[pair].len().min(dice[pair + 1].len()));
        assert!(common(pair, pair + 1) > 10);
    }
    assert!(common(0, 2) < 10, "pairs have dice of their own");
}

/// The score of a game that was given up is no score: Go's area at that time is not that of an end.
#[test]
fn matches_with_resigned_games_have_no_points() {
    let game = any_game("go", &"size = 5".parse().expect("TOML")).expect("registered");
    let pass = Decision::Play((game.sizes().num_actions - 1) as u16);
    let outcome = |last| {
        let mut over = MatchGame::begin(&game, MatchPlan::default(), 0).expect("a game");
        over.take(pass).and_then(|()| over.take(last)).expect("legal");
        GameOutcome::new(&over)
    };
    let (scored, resigned) = (outcome(pass), outcome(Decision::Resign));
    let points = |games: &[GameOutcome]| MatchOutcome::of(games, 2).points();
    assert!(points(&[scored; 4]).is_some());
    assert_eq!(points(&[scored, scored, resigned, scored]), None);
}
