//! The solved positions of Dots and Boxes: all are replayed, and those with few free lines are solved anew by the rules. The script that made
//! them, `tests/oracles/dots_and_boxes_solved.py`, has rules of its own.

use serde::Deserialize;
use std::collections::HashMap;
use vecaz::game::{Game, History, Turn};
use vecaz_games::dots_and_boxes::{DotsAndBoxes, State};

/// Maximum number of free lines of the positions that are solved: more than half of the file, 2^12 sets of lines each.
const MAX_FREE: usize = 12;

#[derive(Deserialize)]
struct Solved {
    actions: Vec<u16>,
    scores: Vec<Option<i32>>,
}

/// The free lines.
fn free_lines(game: &DotsAndBoxes, state: &State) -> Vec<u16> {
    let mut out = vec![0; game.sizes().num_edges()];
    let count = game.legal(state, History::default(), &mut out);
    out.truncate(count);
    out
}

/// The boxes that `player` has more than the other.
fn lead(game: &DotsAndBoxes, state: &State, player: u8) -> i32 {
    let boxes = game.scores(state);
    let [own, other] = [player, 1 - player].map(|player| boxes[usize::from(player)]);
    (own - other) as i32
}

/// Minimax over all lines, which remembers what it has solved.
struct Solver {
    game: DotsAndBoxes,
    /// [`Solver::margin`] of each set of free lines, as bits.
    solved: HashMap<u32, i32>,
}

impl Solver {
    /// The boxes that the player to move will yet close more than the other. They depend on the free lines alone.
    fn margin(&mut self, state: &State) -> i32 {
        let free = free_lines(&self.game, state);
        let set = free.iter().fold(0u32, |set, &line| set | 1 << line);
        if let Some(&margin) = self.solved.get(&set) {
            return margin;
        }
        let margin = free.iter().map(|&line| self.margin_by(state, line)).max().expect("a free line");
        self.solved.insert(set, margin);
        margin
    }

    /// The same if the player now draws `line`.
    fn margin_by(&mut self, state: &State, line: u16) -> i32 {
        let Turn::Player(player) = self.game.turn(state) else { panic!("no decision: {state:?}") };
        let mut after = *state;
        self.game.step(&mut after, line, History::default());
        let closed = lead(&self.game, &after, player) - lead(&self.game, state, player);
        match self.game.turn(&after) {
            Turn::Over => closed,
            turn if turn == Turn::Player(player) => closed + self.margin(&after),
            _ => closed - self.margin(&after),
        }
    }
}

#[test]
fn solved_positions_have_the_scores_of_an_exhaustive_search() {
    let game = DotsAndBoxes::default();
    let mut solver = Solver { game: game.clone(), solved: HashMap::new() };
    let (mut positions, mut solved) = (0, 0);
    for line in game.solved_positions().expect("positions of 3x3 boxes").lines() {
        positions += 1;
        let position: Solved = serde_json::from_str(line).expect(line);
        let mut state = game.init();
        for &action in &position.actions {
            assert!(free_lines(&game, &state).contains(&action), "action {action} is not legal: {line}");
            game.step(&mut state, action, History::default());
        }
        let Turn::Player(player) = game.turn(&state) else { panic!("no decision: {line}") };
        let free = free_lines(&game, &state);
        assert_eq!(position.scores.len(), game.sizes().num_actions, "{line}");
        let scored: Vec<u16> =
            (0..).zip(&position.scores).filter(|(_, score)| score.is_some()).map(|(at, _)| at).collect();
        assert_eq!(scored, free, "the actions with a score are the legal ones: {line}");
        // All games are equally long: the score is half the plies that are left, rounded up, with the sign of the result.
        let half = free.len().div_ceil(2) as i32;
        let mut scores = position.scores.iter().flatten();
        assert!(scores.all(|score| [-half, 0, half].contains(score)), "{line}");
        if free.len() > MAX_FREE {
            continue;
        }
        solved += 1;
        for &action in &free {
            let margin = lead(&game, &state, player) + solver.margin_by(&state, action);
            let score = position.scores[usize::from(action)];
            assert_eq!(score, Some(margin.signum() * half), "action {action}: {line}");
        }
    }
    assert_eq!((positions, solved), (300, 164));
}
