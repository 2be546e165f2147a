use super::*;
use crate::device_struct::DeviceType;
use crate::game::check_device_header;
use crate::game::tests::assert_refused;
use crate::rng::{Key, Purpose};
use crate::view::draw;
use std::collections::BTreeSet;

#[test]
fn generated_header_is_up_to_date() {
    let definitions = [points::device_constants(), device_constants(), State::definition()];
    check_device_header::<Go>("", &definitions);
}

fn go(options: &str) -> Go {
    Go::from_options(&options.parse().expect("TOML")).expect("valid")
}

/// Plays games by name and keeps the keys that superko needs.
struct Line {
    game: Go,
    state: State,
    history: Vec<u64>,
}

impl Line {
    fn new(options: &str) -> Self {
        let game = go(options);
        Self { state: game.init(), game, history: Vec::new() }
    }

    fn legal(&self) -> Vec<u16> {
        let mut out = vec![0; self.game.sizes().max_legal];
        let n = self.game.legal(&self.state, History { played: &self.history, path: &[] }, &mut out);
        out.truncate(n);
        out
    }

    fn is_legal(&self, name: &str) -> bool {
        self.legal().iter().any(|&a| self.game.action_name(&self.state, a) == name)
    }

    fn step(&mut self, action: u16) {
        let key = self.game.history_key(&self.state);
        self.game.step(&mut self.state, action, History { played: &self.history, path: &[] });
        self.history.push(key);
    }

    fn play(&mut self, names: &str) -> &mut Self {
        for name in names.split_whitespace() {
            let history = History { played: &self.history, path: &[] };
            let action = self.game.parse_action(&self.state, history, name);
            self.step(action.unwrap_or_else(|| panic!("{name}\n{}", draw(&self.game, &self.state))));
        }
        self
    }

    fn returns(&self) -> [f32; 2] {
        let mut out = [9.0; 2];
        self.game.returns(&self.state, &mut out);
        out
    }
}

/// A board by definition: 0 empty, 1 black, 2 white.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Plain(Vec<u8>, usize);

impl Plain {
    fn beside(&self, point: usize) -> impl Iterator<Item = usize> + use<> {
        let (row, column, n) = ((point / self.1) as i32, (point % self.1) as i32, self.1 as i32);
        [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
            .into_iter()
            .filter(move |&(r, c)| (0..n).contains(&r) && (0..n).contains(&c))
            .map(move |(r, c)| (r * n + c) as usize)
    }

    fn group_and_liberties(&self, point: usize) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let (mut group, mut liberties, mut todo) = (BTreeSet::from([point]), BTreeSet::new(), vec![point]);
        while let Some(stone) = todo.pop() {
            for near in self.beside(stone) {
                if self.0[near] == 0 {
                    liberties.insert(near);
                } else if self.0[near] == self.0[point] && group.insert(near) {
                    todo.push(near);
                }
            }
        }
        (group, liberties)
    }

    fn after(&self, point: usize, colour: u8) -> Option<Plain> {
        let mut next = self.clone();
        next.0[point] = colour;
        for near in self.beside(point).filter(|&near| self.0[near] == 3 - colour) {
            let (group, liberties) = next.group_and_liberties(near);
            if liberties.is_empty() {
                group.into_iter().for_each(|stone| next.0[stone] = 0);
            }
        }
        (!next.group_and_liberties(point).1.is_empty()).then_some(next)
    }

    fn words(&self, keep: impl Fn(usize) -> bool) -> [u64; STATE_WORDS] {
        let mut out = [0; STATE_WORDS];
        (0..self.0.len()).filter(|&p| keep(p)).for_each(|p| out[p / 64] |= 1 << (p % 64));
        out
    }
}

/// Legal lists, stones, groups with few liberties and keys against a board that does everything by definition.
#[test]
fn random_games_equal_a_plain_board() {
    let (mut repeats, mut seen_liberties) = (0, [0; 4]);
    for (size, plies, games) in
        [(5, 400, 12), (9, 160, 2), (11, 120, 1), (12, 120, 1), (16, 100, 1), (19, 160, 1)]
    {
        for game in 0..games {
            let options = format!("size = {size}\nmax_plies = {plies}\nnetwork_sees = 'liberties'");
            let mut line = Line::new(&options);
            let mut rng = Key::new(game, Purpose::Evaluation).with(size as u64).stream();
            let mut plain = Plain(vec![0; size * size], size);
            let mut seen = BTreeSet::from([plain.clone()]);
            while line.game.turn(&line.state) != Turn::Over {
                let colour = 1 + (line.state.plies & 1) as u8;
                let free = (0..size * size).filter(|&p| plain.0[p] == 0);
                let moves: Vec<_> = free.filter_map(|p| Some((p, plain.after(p, colour)?))).collect();
                let fresh: Vec<_> = moves.iter().filter(|(_, next)| !seen.contains(next)).collect();
                repeats += moves.len() - fresh.len();
                let expected: Vec<u16> =
                    fresh.iter().map(|(p, _)| *p as u16).chain([(size * size) as u16]).collect();
                assert_eq!(line.legal(), expected, "{}", draw(&line.game, &line.state));
                let choice = rng.below(fresh.len().max(1) * 20);
                match fresh.get(choice / 20) {
                    Some((point, next)) if choice > 0 => {
                        line.step(*point as u16);
                        plain = next.clone();
                    }
                    _ => line.step((size * size) as u16),
                }
                seen.insert(plain.clone());
                for player in 0..2 {
                    let own = |p: usize| plain.0[p] == 1 + player as u8;
                    let liberties = |p: usize| plain.group_and_liberties(p).1.len();
                    assert_eq!(line.state.stones[player], plain.words(own));
                    assert_eq!(line.state.atari[player], plain.words(|p| own(p) && liberties(p) == 1));
                    let mut planes = vec![f32::NAN; line.game.sizes().obs.len()];
                    line.game.observe(&line.state, player as u8, &mut planes);
                    let expected = [(player, 2), (player, 3), (1 - player, 2), (1 - player, 3)];
                    let planes = planes[PLANES * size * size..].chunks_exact(size * size);
                    for (number, (plane, (owner, wanted))) in planes.zip(expected).enumerate() {
                        let is_seen = |p: usize| plain.0[p] == 1 + owner as u8 && liberties(p) == wanted;
                        for (point, &cell) in plane.iter().enumerate() {
                            assert_eq!(cell, f32::from(u8::from(is_seen(point))), "{number} {point}");
                            seen_liberties[number] += usize::from(is_seen(point));
                        }
                    }
                }
                let image = line.game.transform(&line.state, 0);
                assert_eq!(image, line.state, "the key computed afresh");
            }
        }
    }
    assert!(repeats > 20, "superko was tried {repeats} times");
    assert!(seen_liberties.iter().all(|&points| points > 1000), "{seen_liberties:?}");
}

/// White has just been captured at C3.
const KO: &str = "C4 D4 B3 E3 C2 D2 A5 C3 D3";

#[test]
fn a_ko_is_retaken_only_after_another_move() {
    let mut line = Line::new("size = 5");
    line.play(KO);
    assert!(!line.is_legal("C3"), "{}", draw(&line.game, &line.state));
    assert!(has(&line.state.barred, 12));
    line.play("E5 A4");
    assert!(line.is_legal("C3"));
    line.play("C3");
    assert!(!line.is_legal("D3"), "and black waits in turn");
    line.play("pass pass");
    assert_eq!(line.game.turn(&line.state), Turn::Over);
}

#[test]
fn superko_is_positional() {
    let mut line = Line::new("size = 5");
    // Passing changes who is to move, not the position.
    line.play(KO).play("pass A4");
    assert!(line.is_legal("C3"), "a stone has been added");
    let mut line = Line::new("size = 5");
    line.play(KO).play("pass pass");
    assert_eq!(line.game.turn(&line.state), Turn::Over);
    // Two passes ago the stone was still there: the search path counts as the game does.
    let mut line = Line::new("size = 5");
    line.play(KO);
    let (played, path) = line.history.split_at(3);
    let before = line.state;
    line.game.step(&mut line.state, 25, History { played, path });
    line.state.passes = 0;
    let barred_after_pass = |path: &[u64]| {
        let mut state = line.state;
        let path = [path, &[before.hash]].concat();
        line.game.step(&mut state, 25, History { played, path: &path });
        has(&state.barred, 12)
    };
    assert!(barred_after_pass(path));
    assert!(!barred_after_pass(&[]));
}

#[test]
fn suicide_is_illegal_and_capture_is_not() {
    let mut line = Line::new("size = 5");
    line.play("A2 D5 B1 D4 A4");
    assert!(!line.is_legal("A1"), "one stone");
    let mut line = Line::new("size = 5");
    line.play("A3 A1 B2 A2 C1");
    assert!(!line.is_legal("B1"), "three stones");
    let mut line = Line::new("size = 5");
    line.play("A2 B2 B1 C1 pass A3 pass");
    assert!(line.is_legal("A1"), "takes both black stones");
    line.play("A1");
    assert_eq!(line.state.stones[0], [0; STATE_WORDS]);
    assert_eq!(line.state.captures, 1);
}

#[test]
fn the_end_is_scored_by_area() {
    // Nothing on the board: komi decides.
    for (options, expected) in [
        ("size = 5", [-1.0, 1.0]),
        ("size = 5\nkomi = 0", [0.0, 0.0]),
        ("size = 5\nkomi = -0.5", [1.0, -1.0]),
    ] {
        assert_eq!(Line::new(options).play("pass pass").returns(), expected);
    }
    // Black holds the left with C, white the right with D: 15 to 10.
    let walls = "C1 D1 C2 D2 C3 D3 C4 D4 C5 D5 pass pass";
    let mut line = Line::new("size = 5\nkomi = 5");
    line.play(walls);
    assert_eq!(line.game.scores(&line.state), [15.0, 15.0]);
    assert_eq!(line.returns(), [0.0, 0.0]);
    assert_eq!(Line::new("size = 5\nkomi = 4.5").play(walls).returns(), [1.0, -1.0]);
    // One black stone reaches every empty point.
    assert_eq!(Line::new("size = 19\nkomi = 360.5").play("K10 pass pass").returns(), [1.0, -1.0]);
    let mut long = Line::new("size = 5\nmax_plies = 3");
    long.play("A1 pass B1");
    assert_eq!(long.game.turn(&long.state), Turn::Over);
    assert_eq!(go("size = 7").sizes().max_plies, 98);
}

#[test]
fn symmetries_commute_with_play() {
    let mut line = Line::new("size = 5");
    line.play(KO);
    for symmetry in 0..8 {
        let image = line.game.transform(&line.state, symmetry);
        for action in line.legal() {
            let (mut one, mut two) = (line.state, image);
            line.game.step(&mut one, action, History::default());
            line.game.step(&mut two, line.game.transform_action(action, symmetry), History::default());
            assert_eq!(line.game.transform(&one, symmetry), two, "symmetry {symmetry} action {action}");
        }
    }
}

#[test]
fn names_and_picture() {
    let line = Line::new("size = 19");
    for (action, name) in [(0, "A19"), (8, "J19"), (18, "T19"), (342, "A1"), (361, "pass")] {
        assert_eq!(line.game.action_name(&line.state, action), name);
        let lower = name.to_ascii_lowercase();
        assert_eq!(line.game.parse_action(&line.state, History::default(), &lower), Some(action));
    }
    let mut line = Line::new("size = 5");
    line.play("A5 B4");
    let picture = "   A B C D E\n 5 X . . . .\n 4 . O . . .\n 3 . . . . .\n 2 . . . . .\n 1 . . . . .\n";
    assert_eq!(draw(&line.game, &line.state), picture);
}

#[test]
fn observation_is_the_players() {
    let mut line = Line::new("size = 5");
    line.play(KO);
    let mut out = vec![0.5; PLANES * 25];
    line.game.observe(&line.state, 1, &mut out);
    let plane = |index: usize| -> Vec<usize> { (0..25).filter(|p| out[index * 25 + p] == 1.0).collect() };
    assert_eq!(plane(0), [8, 14, 18], "white: D4 E3 D2");
    assert_eq!(plane(1), [0, 7, 11, 13, 17], "black: A5 C4 B3 D3 C2");
    assert_eq!((plane(2), plane(3)), (vec![], vec![13]), "only D3 is in atari");
    assert_eq!((plane(4), plane(5)), (vec![12], vec![13]), "ko, last move");
    assert_eq!((plane(6).len(), plane(7).len()), (0, 25));
    line.play("pass");
    line.game.observe(&line.state, 0, &mut out);
    let ones = |index: usize| out[index * 25..(index + 1) * 25].iter().sum::<f32>();
    assert_eq!((ones(4), ones(5), ones(6), ones(7)), (0.0, 0.0, 25.0, 0.0));
}

#[test]
fn wrong_settings_are_refused() {
    assert_refused::<Go>(&[
        ("size = 4", "game.size: got 4, expected a whole number from 5 to 19"),
        ("size = 20", "game.size: got 20"),
        ("komi = 400", "game.komi: got 400"),
        ("komi = nan", "game.komi: got NaN"),
        ("max_plies = 10001", "game.max_plies"),
        ("board = 9", "board"),
    ]);
}
