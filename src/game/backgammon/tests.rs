use super::*;
use crate::device_struct::DeviceType;
use crate::game::check_device_header;
use crate::game::tests::{assert_refused, legal};
use crate::view::draw;

#[test]
fn generated_header_is_up_to_date() {
    let definitions =
        [device_constants(), moves::device_constants(), features::device_constants(), State::definition()];
    check_device_header::<Backgammon>("", &definitions);
}

/// A board from points as the mover counts them (25 = own bar); the other player's checkers by the same count (0 = their
/// bar). The rest of the 15 checkers has been borne off.
fn board(own: &[(usize, i8)], other: &[(usize, i8)]) -> [i8; BOARD_LEN] {
    let mut board = [0; BOARD_LEN];
    own.iter().for_each(|&(point, n)| board[26 - point] += n);
    other.iter().for_each(|&(point, n)| board[26 - point] -= n);
    board[OFF] = CHECKERS - own.iter().map(|&(_, n)| n).sum::<i8>();
    board[OTHER_OFF] = other.iter().map(|&(_, n)| n).sum::<i8>() - CHECKERS;
    board
}

fn game(options: &str) -> Backgammon {
    Backgammon::from_options(&options.parse().expect("TOML")).expect("options")
}

fn names(g: &Backgammon, s: &State) -> Vec<String> {
    legal(g, s).iter().map(|&a| g.action_name(s, a)).collect()
}

fn play(g: &Backgammon, s: &State, words: &str) -> State {
    words.split_whitespace().fold(*s, |mut s, word| {
        let word = word.replace('_', " ");
        let action = g.parse_action(&s, History::default(), &word);
        let action = action.unwrap_or_else(|| panic!("{word} is not in {:?}", names(g, &s)));
        g.step(&mut s, action, History::default());
        s
    })
}

fn rolled(own: &[(usize, i8)], other: &[(usize, i8)], roll: &str) -> (Backgammon, State) {
    let g = Backgammon::default();
    let s = State::to_roll(board(own, other), 0).expect("a position");
    let s = play(&g, &s, roll);
    (g, s)
}

#[test]
fn both_dice_must_be_played_if_possible() {
    let (g, s) = rolled(&[(24, 1), (10, 1)], &[(19, 2), (5, 2)], "6-5");
    assert_eq!(names(&g, &s), ["24/18"], "after 10/4 no 5 could be played");
    assert_eq!(names(&g, &play(&g, &s, "24/18")), ["18/13"]);
}

#[test]
fn where_only_one_die_fits_it_is_the_higher() {
    let (g, s) = rolled(&[(24, 1)], &[(13, 2)], "6-5");
    assert_eq!(names(&g, &s), ["24/18"]);
    assert_eq!(names(&g, &play(&g, &s, "24/18")), ["no move"]);
    let (g, s) = rolled(&[(24, 1)], &[(13, 2), (18, 2)], "6-5");
    assert_eq!(names(&g, &s), ["24/19"], "the 6 is blocked at once");
}

#[test]
fn doubles_are_four_dice_as_far_as_they_go() {
    let (g, s) = rolled(&[(24, 1)], &[(12, 2)], "3-3");
    let s = play(&g, &s, "24/21 21/18 18/15");
    assert_eq!((names(&g, &s), g.turn(&s)), (vec!["no move".into()], Turn::Player(0)));
    assert_eq!(g.turn(&play(&g, &s, "no_move")), Turn::Chance);
    let (g, s) = rolled(&[(24, 2), (13, 2)], &[(1, 5)], "3-3");
    let s = play(&g, &s, "24/21 24/21 13/10");
    assert_eq!((g.turn(&s), s.dice), (Turn::Player(0), [3, 0, 0, 0]));
    let s = play(&g, &s, "13/10");
    assert_eq!((g.turn(&s), s.mover), (Turn::Chance, 1));
}

#[test]
fn bar_comes_first_and_may_be_shut_out() {
    let (g, s) = rolled(&[(25, 1), (8, 3)], &[(22, 2), (21, 1)], "4-3");
    assert_eq!(legal(&g, &s), [BAR as u16 * 6 + 3]);
    let s = play(&g, &s, "bar/21*");
    assert_eq!((s.board[OTHER_BAR], s.board[5]), (-1, 1), "the blot on the 21-point is hit");
    assert_eq!(names(&g, &s), ["21/18", "8/5"]);
    let (g, s) = rolled(&[(25, 2), (8, 3)], &[(22, 2), (21, 3)], "4-3");
    assert_eq!(legal(&g, &s), [NO_MOVE]);
    let after = play(&g, &s, "no_move");
    assert_eq!((after.mover, g.turn(&after), after.board), (1, Turn::Chance, turned(&s.board)));
}

#[test]
fn bearing_off_needs_all_home_and_a_fitting_die() {
    let (g, s) = rolled(&[(4, 2), (3, 1)], &[(24, 5)], "6-5");
    assert_eq!(names(&g, &s), ["4/off(5)", "4/off(6)"]);
    assert_eq!(
        g.parse_action(&s, History::default(), "4/OFF"),
        Some(22 * 6 + 4),
        "the lower die unless said"
    );
    let (g, s) = rolled(&[(6, 1), (4, 1)], &[(24, 5)], "5-5");
    assert_eq!(names(&g, &s), ["6/1"], "a checker on a higher point keeps it from going off");
    let (g, s) = rolled(&[(7, 1), (6, 3)], &[(24, 5)], "6-1");
    assert_eq!(names(&g, &play(&g, &s, "7/6")), ["6/off"]);
}

#[test]
fn wins_count_one_two_or_three() {
    for (other, points) in [
        (vec![(24, 14)], 1),
        (vec![(24, 15)], 2),
        (vec![(24, 14), (7, 1)], 2),
        (vec![(24, 14), (6, 1)], 3),
        (vec![(24, 14), (0, 1)], 3),
    ] {
        for mover in [0, 1] {
            let g = Backgammon::default();
            let s = State::to_roll(board(&[(1, 1)], &other), mover).expect("a position");
            let s = play(&g, &s, "2-1 1/off(2)");
            assert_eq!((g.turn(&s), s.points, s.mover), (Turn::Over, points, mover), "{other:?}");
            let sign = if mover == 0 { 1.0 } else { -1.0 };
            let mut returns = [0.0; 2];
            g.returns(&s, &mut returns);
            assert_eq!(returns, [sign * f32::from(points) / 3.0, -sign * f32::from(points) / 3.0]);
            assert_eq!(g.scores(&s), [sign * f32::from(points), -sign * f32::from(points)]);
        }
    }
}

#[test]
fn dice_are_dealt_with_their_probabilities() {
    let probs = |g: &Backgammon, s: &State| {
        let outcomes = legal(g, s);
        let mut probs = vec![0.0; outcomes.len()];
        g.chance_probs(s, &outcomes, &mut probs);
        assert!((probs.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        (outcomes, probs)
    };
    let doubles = [0, 6, 11, 15, 18, 20];
    let g = Backgammon::default();
    let mut s = g.init();
    assert_eq!(probs(&g, &s), (vec![0, 1], vec![0.5; 2]));
    s = play(&g, &s, "player_1");
    let (outcomes, even) = probs(&g, &s);
    assert!(outcomes.len() == 15 && !outcomes.iter().any(|o| doubles.contains(o)), "{outcomes:?}");
    assert!(even.iter().all(|&p| p == even[0]));
    s = play(&g, &s, "6-5");
    assert_eq!((g.turn(&s), legal(&g, &s).len()), (Turn::Player(1), 5));
    s = play(&g, &s, "24/18 18/13");
    let (outcomes, probs_of_roll) = probs(&g, &s);
    assert_eq!(outcomes, (0..21).collect::<Vec<u16>>());
    for (o, p) in outcomes.iter().zip(probs_of_roll) {
        assert_eq!(p, if doubles.contains(o) { 1.0 / 36.0 } else { 2.0 / 36.0 });
    }

    let g = game("simple_doubles = true");
    let s = play(&g, &g.init(), "player_0");
    assert_eq!(probs(&g, &s), (doubles.to_vec(), vec![1.0 / 6.0; 6]));
}

#[test]
fn starts_are_the_same_for_both_players() {
    for g in [Backgammon::default(), game("short_game = true")] {
        let s = g.init();
        assert_eq!(turned(&s.board), s.board);
        assert!(State::to_roll(s.board, 0).is_ok(), "15 checkers each");
    }
    assert_eq!(pips(&START), 167);
}

#[test]
fn a_game_at_its_limit_is_a_draw() {
    let g = game("ply_limit = 100");
    let mut s = g.init();
    let mut plies = 0;
    while g.turn(&s) != Turn::Over {
        let action = legal(&g, &s)[0];
        g.step(&mut s, action, History::default());
        plies += 1;
    }
    assert_eq!((plies, s.points, g.scores(&s)), (100, 0, vec![0.0, -0.0]));
}

#[test]
fn observation_is_the_players_own_view() {
    let g = Backgammon::default();
    let other = [(20, 4), (0, 2)];
    let s = State::to_roll(board(&[(25, 1), (6, 5), (13, 2)], &other), 1).expect("a position");
    let s = play(&g, &s, "4-2");
    let seen = |s: &State, player| {
        let mut out = vec![f32::NAN; g.sizes().obs.len()];
        g.observe(s, player, &mut out);
        out
    };
    let (mine, theirs) = (seen(&s, 1), seen(&s, 0));
    let point = |obs: &[f32], point: usize, side: usize| obs[(24 - point) * 8 + 4 * side..][..4].to_vec();
    assert_eq!(point(&mine, 6, 0), [1.0, 1.0, 1.0, 1.0]);
    assert_eq!(point(&mine, 13, 0), [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(point(&mine, 20, 1), [1.0, 1.0, 1.0, 0.5]);
    assert_eq!(point(&theirs, 25 - 6, 1), [1.0, 1.0, 1.0, 1.0]);
    assert_eq!(point(&theirs, 25 - 20, 0), [1.0, 1.0, 1.0, 0.5]);
    let dice = [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
    assert_eq!(mine[192..198], [1.0, 0.5, 1.0, 1.0, 7.0 / 15.0, 9.0 / 15.0]);
    assert_eq!(theirs[192..198], [1.0, 1.0, 1.0, 0.5, 9.0 / 15.0, 7.0 / 15.0]);
    assert_eq!((&mine[198..208], &theirs[198..208]), (&dice[..], &dice[..]));
    assert_eq!((mine[208], mine[209]), (81.0 / 167.0, 70.0 / 167.0));
    assert_eq!((mine[210], theirs[210]), (1.0, 0.0));

    let mirrored = State { mover: 0, plies: 77, ..s };
    assert_eq!(seen(&mirrored, 0), mine, "the same position for the other player looks the same");
    assert_eq!(g.canonical(&mirrored), g.canonical(&s));
}

#[test]
fn names_are_read_back() {
    let (g, s) = rolled(&[(25, 1), (13, 3), (6, 4)], &[(22, 1), (18, 1)], "3-5");
    for action in legal(&g, &s) {
        assert_eq!(g.parse_action(&s, History::default(), &g.action_name(&s, action)), Some(action));
    }
    assert_eq!(names(&g, &s), ["bar/22", "bar/20"]);
    assert_eq!(g.parse_action(&s, History::default(), "BAR/22*"), Some(8));
    assert_eq!(g.parse_action(&s, History::default(), "13/8"), None);
    let (g, s) = rolled(&[(25, 1)], &[(22, 2), (20, 2)], "3-5");
    assert_eq!(g.parse_action(&s, History::default(), "5"), Some(NO_MOVE), "pgx's number for the same");
    assert!(draw(&g, &s).contains("X (player 0) to play 5-3"), "{}", draw(&g, &s));
}

#[test]
fn wrong_settings_and_positions_are_refused_in_a_sentence() {
    assert_refused::<Backgammon>(&[
        ("ply_limit = 5", "game.ply_limit: got 5, expected a whole number from 100 to 65535"),
        ("short_game = 3", "game.short_game: got 3"),
        ("cubes = true", "cubes"),
    ]);
    let mut short = START;
    short[2] -= 1;
    assert!(State::to_roll(short, 0).is_err_and(|e| e.to_string().contains("14 and 15 checkers")));
    assert!(State::to_roll(START, 2).is_err());
}
