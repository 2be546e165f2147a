//! The cube and matches: equity against gnubg's, and rules.

use super::*;
use crate::game::tests::legal;
use crate::game::{Game, History, Turn};
use crate::rng::{Key, Purpose};
use serde::Deserialize;

/// What `tests/oracles/backgammon_cube.py` writes.
const ORACLE: &str = include_str!("../../../../tests/fixtures/backgammon_cube.jsonl");

#[derive(Deserialize)]
struct Case {
    board: String,
    doublings: u8,
    owner: i8,
    to_go: [u32; 2],
    crawford: u8,
    p: [f32; 5],
    no_double: f32,
    take: Option<f32>,
}

impl Case {
    /// The game, and the position with player 0 on roll.
    fn position(&self) -> (Backgammon, State) {
        let number = |byte: u8| match byte {
            b'.' => 0,
            b'a'..=b'z' => byte as i8 - 96,
            _ => 64 - byte as i8,
        };
        let board: Vec<i8> = self.board.bytes().map(number).collect();
        let board = board.try_into().expect("28 characters");
        let points = self.to_go[0].max(self.to_go[1]);
        let game = Backgammon { cube: true, match_points: points, ..Backgammon::default() };
        let owner = match self.owner {
            1 => OWNER_0,
            -1 => OWNER_0 << 1,
            _ => 0,
        };
        let cube = self.doublings | owner | if self.crawford > 0 { CRAWFORD } else { 0 };
        let score = self.to_go.map(|to_go| (points - to_go) as u8);
        (game, State { cube, score, ..State::to_roll(board, 0).expect("a board") })
    }

    /// The value for `player` in `phase`, by the probabilities that a network would give.
    fn value(&self, phase: u8, player: u8) -> f32 {
        let (game, state) = self.position();
        let state = State { phase, ..state };
        let mut obs = vec![f32::NAN; game.sizes().obs.len()];
        game.observe(&state, player, &mut obs);
        let [win, gammon, backgammon, lost_gammon, lost_backgammon] = self.p;
        // As player 1 sees it, who is not on roll.
        let seen = [1.0 - win, lost_gammon, lost_backgammon, gammon, backgammon].map(|p| 2.0 * p - 1.0);
        let mut values = [f32::NAN; 2];
        values_of(&game, &obs, &seen, &mut values);
        assert_eq!(values[0], -values[1]);
        values[0]
    }

    /// A value in gnubg's units: points per stake, or the probability of winning the match.
    fn in_units(&self, value: f32) -> f32 {
        match self.to_go[0] {
            0 => value * MAX_STAKES as f32 / f32::from(1_u8 << self.doublings),
            _ => (value + 1.0) / 2.0,
        }
    }
}

fn values_of(game: &Backgammon, obs: &[f32], seen: &[f32], out: &mut [f32]) {
    let valuation = game.valuation().expect("a cube");
    (valuation.values)(&obs[valuation.seen.len()..], seen, out);
}

fn cases() -> Vec<Case> {
    ORACLE.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
}

#[test]
fn positions_are_worth_what_gnubg_says() {
    let (mut doubles, mut passes, mut crawford) = (0, 0, 0);
    for case in cases() {
        let is_close = |phase: u8, expected: f32| {
            let found = [case.value(phase, 0), -case.value(phase, 1)].map(|value| case.in_units(value));
            let is_close = found.iter().all(|found| (found - expected).abs() < 2e-5);
            assert!(is_close, "{found:?}, {expected}, {} {:?} {}", case.board, case.to_go, case.doublings);
        };
        // gnubg takes a cube in the middle for dead where both lack two points, although whoever doubles plays for the match.
        if case.to_go != [2, 2] || case.owner != 0 {
            is_close(PHASE_ROLL, case.no_double);
        }
        let Some(take) = case.take else { continue };
        let (game, state) = case.position();
        let pass = case.in_units(game.aim_of(&state, 0).equity(1 << case.doublings) as f32);
        is_close(PHASE_TAKE, take.min(pass));
        if case.to_go != [2, 2] {
            is_close(PHASE_DOUBLE, take.min(pass).max(case.no_double));
        }
        crawford += u32::from(case.to_go.contains(&1));
        doubles += u32::from(take.min(pass) > case.no_double);
        passes += u32::from(take > pass);
    }
    assert!(doubles > 40 && passes > 40 && crawford > 3, "{doubles}, {passes}, {crawford}");
}

fn game(match_points: u32) -> Backgammon {
    Backgammon { cube: true, match_points, ..Backgammon::default() }
}

/// Plays the actions with these names.
fn play(game: &Backgammon, s: &mut State, names: &[&str]) {
    for name in names {
        let action = game.parse_action(s, History::default(), name);
        let action = action.unwrap_or_else(|| panic!("{name} in {s:?}"));
        assert_eq!(game.action_name(s, action), *name);
        game.step(s, action, History::default());
    }
}

const FIRST_TURN: [&str; 4] = ["player 0", "3-1", "8/5", "6/5"];

#[test]
fn a_cube_that_is_taken_is_the_takers() {
    let (game, mut s) = (game(0), game(0).init());
    play(&game, &mut s, &FIRST_TURN);
    assert_eq!((game.turn(&s), s.stake(), s.owner()), (Turn::Player(1), 1, None));
    play(&game, &mut s, &["double"]);
    assert_eq!((game.turn(&s), s.stake()), (Turn::Player(0), 1));
    play(&game, &mut s, &["take"]);
    assert_eq!((game.turn(&s), s.stake(), s.owner()), (Turn::Chance, 2, Some(0)));
    play(&game, &mut s, &["6-5", "24/18", "18/13"]);
    assert_eq!(game.turn(&s), Turn::Player(0), "its owner may turn it");
    play(&game, &mut s, &["roll", "6-5", "24/18", "18/13"]);
    assert_eq!(game.turn(&s), Turn::Chance, "the other player may not");
    play(&game, &mut s, &["2-1", "6/4", "24/23", "double"]);
    assert_eq!(game.turn(&s), Turn::Player(1));
    play(&game, &mut s, &["take"]);
    assert_eq!((s.stake(), s.owner()), (4, Some(1)));
}

#[test]
fn a_pass_loses_the_stake() {
    let (game, mut s) = (game(0), game(0).init());
    play(&game, &mut s, &FIRST_TURN);
    play(&game, &mut s, &["double", "take", "6-5", "24/18", "18/13", "double", "pass"]);
    assert_eq!((game.turn(&s), game.scores(&s)), (Turn::Over, vec![2.0, -2.0]));
    let mut returns = [0.0; 2];
    game.returns(&s, &mut returns);
    assert_eq!(returns, [2.0, -2.0].map(|points| points / MAX_STAKES as f32));
}

#[test]
fn a_pass_adds_to_the_score_of_a_match() {
    let (game, mut s) = (game(3), game(3).init());
    play(&game, &mut s, &FIRST_TURN);
    play(&game, &mut s, &["double", "pass"]);
    assert_eq!((s.score, s.phase, s.is_crawford(), s.stake()), ([0, 1], PHASE_STARTER, false, 1));
    play(&game, &mut s, &FIRST_TURN);
    play(&game, &mut s, &["double", "pass"]);
    assert_eq!((s.score, s.is_crawford()), ([0, 2], true));
    play(&game, &mut s, &FIRST_TURN);
    assert_eq!(game.turn(&s), Turn::Chance, "nobody doubles in Crawford's game");
}

/// Matches at random: scores grow by what each game was worth, one game is Crawford's, after it only the player behind doubles.
#[test]
fn matches_follow_the_rules() {
    let (mut after_crawford, mut turned, mut seen) = (0, 0, [0; 2]);
    for seed in 0..300 {
        let game = Backgammon { short_game: true, ..game(1 + seed % 5) };
        let (mut rng, points) = (Key::new(seed.into(), Purpose::Evaluation).stream(), game.match_points);
        let (mut s, mut crawford_games) = (game.init(), u32::from(points == 1));
        while game.turn(&s) != Turn::Over {
            let before = s;
            let actions = legal(&game, &s);
            let action = match s.phase {
                // Few doubles, so that some games end on the board.
                PHASE_DOUBLE => u16::from(rng.below(8) == 0),
                _ => actions[rng.below(actions.len())],
            };
            game.step(&mut s, action, History::default());
            turned += u32::from(s.stake() > before.stake());
            if s.phase == PHASE_DOUBLE {
                let to_go = points - u32::from(s.score[usize::from(s.mover)]);
                assert!(!s.is_crawford() && s.owner() != Some(1 - s.mover) && to_go > s.stake());
                after_crawford += u32::from(s.score.contains(&(points as u8 - 1)));
            }
            let ended = s.phase == PHASE_OVER || (s.phase == PHASE_STARTER && before.phase != PHASE_STARTER);
            let [gain, other] =
                [s.mover, 1 - s.mover].map(|p| s.score[usize::from(p)] - before.score[usize::from(p)]);
            match (ended, s.phase) {
                (false, _) => assert_eq!(s.score, before.score),
                (true, PHASE_OVER) => assert!(gain > 0 && other == 0),
                (true, _) => {
                    let gained = u32::from(gain + other);
                    assert!((gain == 0) != (other == 0) && gained.is_multiple_of(before.stake()));
                    assert_eq!((s.stake(), s.owner(), s.plies), (1, None, before.plies + 1));
                    seen[usize::from(gained > before.stake())] += 1;
                    crawford_games += u32::from(s.is_crawford());
                }
            }
        }
        assert_eq!(u32::from(*s.score.iter().max().expect("two")), points);
        assert!(s.score.iter().any(|&score| u32::from(score) < points) && crawford_games <= 1);
        let mut returns = [0.0; 2];
        game.returns(&s, &mut returns);
        assert_eq!(returns[usize::from(s.mover)], 1.0);
    }
    assert!(
        after_crawford > 50 && turned > 50 && seen.iter().all(|&n| n > 10),
        "{after_crawford} {turned} {seen:?}"
    );
}

/// Whoever asks, a position before a roll is seen by the player who has moved.
#[test]
fn networks_see_positions_before_a_roll_from_one_side() {
    let (game, mut s) = (game(0), game(0).init());
    play(&game, &mut s, &FIRST_TURN);
    let len = game.seen().channels;
    let observed = |s: &State, player: u8| {
        let mut obs = vec![f32::NAN; len + NUM_EXTRAS];
        game.observe(s, player, &mut obs);
        obs
    };
    let (mover, other) = (observed(&s, 1), observed(&s, 0));
    assert_eq!(mover[..len], other[..len]);
    assert_eq!((mover[len], other[len]), (1.0, 0.0));
    let plain = Backgammon::default();
    let mut expected = vec![f32::NAN; len];
    plain.observe(&State { phase: PHASE_ROLL, ..s }, 0, &mut expected);
    assert_eq!(other[..len], expected);
    play(&game, &mut s, &["roll", "6-5"]);
    plain.observe(&s, 1, &mut expected);
    assert_eq!(observed(&s, 1)[..len], expected, "with dice each sees its own side");
}

/// The canonical form of the start, with `mover` on roll, a turned cube and a score.
fn canonical(mover: u8, owner: u8, score: [u8; 2]) -> State {
    let (game, mut s) = (game(5), game(5).init());
    (s.phase, s.mover, s.cube, s.score, s.plies) = (PHASE_ROLL, mover, 1 | (OWNER_0 << owner), score, 7);
    game.canonical(&s)
}

#[test]
fn a_position_has_one_canonical_form_for_both_players() {
    assert_eq!(canonical(0, 0, [3, 1]), canonical(1, 1, [1, 3]));
    assert_ne!(canonical(0, 0, [3, 1]), canonical(0, 1, [3, 1]));
    assert_ne!(canonical(0, 0, [3, 1]), canonical(0, 0, [1, 3]));
}

/// Without a cube one game decides at 1-away, 1-away, and at 2-away, 1-away a gammon wins and a single win makes scores equal.
#[test]
fn matches_without_a_cube_have_equities_of_their_own() {
    let equity =
        |to_go: [i32; 2]| Aim::Match { to_go, is_crawford: false, has_cube: false }.equity_before_game();
    assert_eq!(equity([1, 1]), 0.0);
    let gammons = 0.246 + 0.009;
    let expected = (gammons + (1.0 - gammons) * 0.5) / 2.0;
    assert!((equity([2, 1]) - (2.0 * expected - 1.0)).abs() < 1e-12);
    for own in 1..=25 {
        for other in 1..=25 {
            assert!((equity([own, other]) + equity([other, own])).abs() < 1e-12, "{own} {other}");
            assert!(own == 25 || equity([own, other]) > equity([own + 1, other]), "{own} {other}");
        }
    }
}
