//! Hand-computed values on trees small enough to read.

use super::tree_game::{TreeGame, TreeNode};
use super::{SELECTIONS, config, ends, solve, uniform};
use vecaz::config::SearchConfig;
use vecaz::game::Game;
use vecaz::net::{IoShape, Network};
use vecaz::rng::{Key, Purpose};
use vecaz::search::select::chance_number;

#[test]
fn a_chance_node_is_worth_its_expectation() {
    // 0: dice of 1/2, 1/4, 1/4 for 0.5, -0.75 and 0.25, that is 0.125. 1: 0.0625 for sure. 2: the same dice turned round.
    let dice = |win, lose, rest| TreeNode::Deals(vec![(0.5, win), (0.25, lose), (0.25, rest)]);
    let nodes = vec![
        TreeNode::Moves(0, vec![1, 2, 3]),
        dice(4, 5, 6),
        ends(0.0625),
        dice(7, 8, 9),
        ends(0.5),
        ends(-0.75),
        ends(0.25),
        ends(-0.5),
        ends(0.75),
        ends(-0.25),
    ];
    let game = TreeGame { players: 2, nodes };
    for selection in SELECTIONS {
        let config = SearchConfig { dirichlet_epsilon: 0.0, ..config(selection, 2000) };
        let found = solve(&game, &config, &mut uniform(&game));
        for (edge, expected) in [0.125, 0.0625, -0.125].into_iter().enumerate() {
            // Of up to 2,000 stratified outcomes none is further than 3.3 visits from its share, whatever the start.
            let bound = 4.5 / found.visits[edge] as f32;
            assert!((found.q[edge] - expected).abs() <= bound, "{selection:?} {edge} {found:?}");
        }
    }
}

/// A roll of two dice comes as often as it should in every visit of a node, from the first on; and the visits of one node are spread.
#[test]
fn stratified_outcomes_are_fair_from_the_first_visit_and_spread() {
    let rolls: Vec<f64> = [vec![1.0 / 18.0; 15], vec![1.0 / 36.0; 6]].concat();
    let outcome = |number: f32| {
        let ends = rolls.iter().scan(0.0, |sum, p| {
            *sum += p;
            Some(*sum)
        });
        ends.take_while(|end| *end <= f64::from(number)).count().min(20)
    };
    let number = |seed: u64, visits: i32| chance_number(Key::new(seed, Purpose::SearchChance), 7, visits);
    let nodes = 40_000;
    for visits in 0..6 {
        let mut found = [0.0; 21];
        (0..nodes).for_each(|seed| found[outcome(number(seed, visits))] += 1.0 / nodes as f64);
        for (found, p) in found.iter().zip(&rolls) {
            assert!((found - p).abs() < 4.5 * (p / nodes as f64).sqrt(), "visit {visits}: {found} of {p}");
        }
    }
    for seed in 0..20 {
        let mut found = [0.0; 21];
        (0..500).for_each(|visits| found[outcome(number(seed, visits))] += 1.0);
        let far = found.iter().zip(&rolls).map(|(found, p)| f64::abs(found - 500.0 * p)).fold(0.0, f64::max);
        assert!(far < 3.0, "seed {seed}: {far} visits from its share");
    }
}

#[test]
fn each_of_three_players_maximises_its_own_value() {
    // Player 0 chooses between what player 1 and player 2 then choose: (0.2, 0.7, -0.9) or (0.4, -0.6, 0.2). The prizes of
    // 0.9 for player 0 are never reached, since players 1 and 2 choose other ends.
    let end = |values: [f32; 3]| TreeNode::Ends(values.to_vec());
    let nodes = vec![
        TreeNode::Moves(0, vec![1, 2]),
        TreeNode::Moves(1, vec![3, 4]),
        TreeNode::Moves(2, vec![5, 6, 7]),
        end([0.9, 0.1, -1.0]),
        end([0.2, 0.7, -0.9]),
        end([0.9, -0.1, -0.8]),
        end([0.4, -0.6, 0.2]),
        end([-0.5, 0.6, -0.1]),
    ];
    let game = TreeGame { players: 3, nodes };
    for selection in SELECTIONS {
        let found = solve(&game, &config(selection, 6000), &mut uniform(&game));
        assert_eq!(found.best, 1, "{selection:?} {found:?}");
        let share = found.visits[1] as f32 / 6000.0;
        let exact = [0.2, 0.7, -0.9].into_iter().zip([0.4, -0.6, 0.2]);
        for (value, (left, right)) in found.value.iter().zip(exact) {
            let expected = (1.0 - share) * left + share * right;
            assert!(!found.proven && (value - expected).abs() < 0.04, "{selection:?} {found:?}");
        }
    }
}

#[test]
fn a_player_may_move_twice_in_a_row() {
    // Player 0 moves, moves again, and only then player 1: after 1, 0 player 0 has 0.5 whatever player 1 does. A sign that
    // flips with depth would take the second move for the opponent's and prefer action 0.
    let nodes = vec![
        TreeNode::Moves(0, vec![1, 2]),
        TreeNode::Moves(0, vec![3, 4]),
        TreeNode::Moves(0, vec![5, 6]),
        ends(0.25),
        ends(0.125),
        TreeNode::Moves(1, vec![7, 8]),
        ends(-0.75),
        ends(0.5),
        ends(0.75),
    ];
    let game = TreeGame { players: 2, nodes };
    for selection in SELECTIONS {
        let proven = solve(&game, &config(selection, 500), &mut uniform(&game));
        assert!(proven.proven && proven.value == [0.5, -0.5] && proven.best == 1, "{selection:?} {proven:?}");
        let unproven = SearchConfig { solver: false, ..config(selection, 4000) };
        let found = solve(&game, &unproven, &mut uniform(&game));
        assert!(!found.proven && found.best == 1, "{selection:?} {found:?}");
        assert!(
            (found.q[1] - 0.5).abs() < 0.02 && (found.q[0] - 0.25).abs() < 0.05,
            "{selection:?} {found:?}"
        );
    }
}

/// A network sure of action 0: the priors of all others underflow to 0.
#[derive(Clone)]
struct Overconfident(IoShape);

impl Network for Overconfident {
    fn shape(&self) -> IoShape {
        self.0
    }

    fn forward(&mut self, _: &[f32], logits: &mut [f32], values: &mut [f32]) -> vecaz::Result<()> {
        logits.fill(0.0);
        logits.chunks_exact_mut(self.0.num_actions).for_each(|row| row[0] = 500.0);
        values.fill(0.0);
        Ok(())
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

#[test]
fn edges_of_prior_zero_are_taken_once_all_others_are_lost() {
    // Action 0 looks won, since player 1's only likely answer loses; player 1's other answer wins.
    let nodes = vec![
        TreeNode::Moves(0, vec![1, 2]),
        TreeNode::Moves(1, vec![3, 4]),
        ends(0.25),
        ends(1.0),
        ends(-1.0),
    ];
    let game = TreeGame { players: 2, nodes };
    for selection in SELECTIONS {
        let mut network = Overconfident(IoShape::of(&game.sizes()));
        let found = solve(&game, &config(selection, 40), &mut network);
        assert!(found.proven && found.value == [0.25, -0.25] && found.best == 1, "{selection:?} {found:?}");
    }
}
