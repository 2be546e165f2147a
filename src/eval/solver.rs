//! Exact scores of actions, by the game's exact solver, and a player that plays by them. [`PositionSolver::scores`] defines the scores.

use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::batch::rollouts::Player;
use crate::error::{Error, Result};
use crate::game::{ExactSolver, History, PositionSolver, Turn};
use crate::rng::Key;
use crate::stop::Stop;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An exact solver of one game. Its table persists between calls.
pub enum Solver {
    /// A solver for this game only.
    GameSpecific(Box<dyn PositionSolver>),
    /// Exhaustive search, whose positions all solvers of [`Solver::several`] share.
    Exhaustive(Arc<Mutex<ExhaustiveSolver>>),
}

impl Solver {
    /// The exact solver of this game, if there is one.
    pub fn for_game(game: &Arc<dyn AnyGame>) -> Option<Self> {
        match game.exact_solver()? {
            ExactSolver::GameSpecific(solver) => Some(Self::GameSpecific(solver)),
            ExactSolver::Exhaustive => {
                let solver = ExhaustiveSolver::new(game.clone())?;
                Some(Self::Exhaustive(Arc::new(Mutex::new(solver))))
            }
        }
    }

    /// The exact solver of this game for each of so many threads, at least one. Exhaustive search is one for all.
    pub fn several(game: &Arc<dyn AnyGame>, threads: usize) -> Option<Vec<Self>> {
        let first = Self::for_game(game)?;
        let further = |_| match &first {
            Self::Exhaustive(shared) => Some(Self::Exhaustive(shared.clone())),
            Self::GameSpecific(_) => Self::for_game(game),
        };
        let further: Vec<Self> = (1..threads).map_while(further).collect();
        Some(std::iter::once(first).chain(further).collect())
    }

    /// The exact score of each action for the player to move in `position`, which must be of the solver's game; `None` for
    /// illegal actions. `[A]`
    pub fn scores(&mut self, position: &Playthrough) -> Vec<Option<i32>> {
        match self {
            Self::GameSpecific(solver) => solver.scores(position.state()),
            Self::Exhaustive(shared) => lock(shared).scores(position),
        }
    }

    /// Sets a request that ends long searches. Scores that are found after it mean nothing, and the solver is of no use any more.
    pub fn stop_by(&mut self, stop: &Stop) {
        match self {
            Self::GameSpecific(solver) => solver.stop_by(stop),
            Self::Exhaustive(shared) => lock(shared).stop = stop.clone(),
        }
    }
}

fn lock(shared: &Mutex<ExhaustiveSolver>) -> MutexGuard<'_, ExhaustiveSolver> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Perfect play: the actions with the best exact score, each with the same probability. So it wins as early and loses as late as it can.
pub struct SolverPlayer {
    solver: Solver,
    /// State bytes to the best actions.
    known: HashMap<Vec<u8>, Vec<u16>>,
    stop: Stop,
}

impl SolverPlayer {
    /// A perfect player for each of so many threads, at least one.
    ///
    /// # Errors
    /// [`Error::Config`] with `key` for a game without an exact solver.
    pub fn several(game: &Arc<dyn AnyGame>, key: &str, threads: usize) -> Result<Vec<Self>> {
        let expected = || format!("a game with an exact solver, which {} has not", game.name());
        let solvers =
            Solver::several(game, threads).ok_or_else(|| Error::config(key, "solver", expected()))?;
        Ok(solvers
            .into_iter()
            .map(|solver| Self { solver, known: HashMap::new(), stop: Stop::default() })
            .collect())
    }
}

impl Player for SolverPlayer {
    fn choose(&mut self, position: &Playthrough, key: Key) -> Result<u16> {
        if !self.known.contains_key(position.state()) {
            let scores = self.solver.scores(position);
            self.stop.check()?;
            let best = scores.iter().flatten().max();
            let is_best = |action: &u16| scores[usize::from(*action)].as_ref() == best;
            let actions = position.legal().into_iter().filter(is_best).collect();
            self.known.insert(position.state().to_vec(), actions);
        }
        let best = &self.known[position.state()];
        Ok(best[key.stream().below(best.len())])
    }

    fn stop_by(&mut self, stop: &Stop) {
        self.stop = stop.clone();
        self.solver.stop_by(stop);
    }
}

/// Memoised negamax over the rules, for small two-player games without chance, hidden information or history. Tests compare the
/// faster solvers with it.
pub struct ExhaustiveSolver {
    game: Arc<dyn AnyGame>,
    /// State bytes to the outlook of player 0.
    known: HashMap<Vec<u8>, i32>,
    max_plies: i32,
    stop: Stop,
}

impl ExhaustiveSolver {
    /// The outlook of the winner at the end of a game; more than the plies of any.
    const AT_END: i32 = 1 << 20;

    /// A solver for `game`, or `None` if the game has more than two players, chance, hidden information or history.
    pub fn new(game: Arc<dyn AnyGame>) -> Option<Self> {
        let sizes = game.sizes();
        let fits = sizes.num_players == 2
            && sizes.zero_sum
            && sizes.num_chance == 0
            && !sizes.hidden_information
            && !sizes.uses_history;
        let (known, max_plies) = (HashMap::new(), sizes.max_plies as i32);
        fits.then(|| Self { game, known, max_plies, stop: Stop::default() })
    }

    /// See [`Solver::scores`]. In a position that was set up the plies before it count as none.
    pub fn scores(&mut self, position: &Playthrough) -> Vec<Option<i32>> {
        let mut scores = vec![None; self.game.sizes().num_actions];
        let plies = position.actions().len() as i32;
        if let Turn::Player(player) = position.turn() {
            for action in position.legal() {
                let child = self.child(position.state(), action);
                let outlook = sign(player) * self.outlook(child);
                let end = plies + 1 + Self::AT_END - outlook.abs();
                scores[usize::from(action)] = Some(outlook.signum() * (self.max_plies + 2 - end) / 2);
            }
        }
        scores
    }

    fn child(&self, state: &[u8], action: u16) -> Vec<u8> {
        let mut child = state.to_vec();
        self.game.step(&mut child, action, History::default());
        child
    }

    /// The result of perfect play from `state` for player 0: AT_END less the plies to the end for a win, the negative of it for a loss, 0 for a
    /// draw. It depends on the state alone, however many plies led to it.
    fn outlook(&mut self, state: Vec<u8>) -> i32 {
        if let Some(&known) = self.known.get(&state) {
            return known;
        }
        if self.stop.cause().is_some() {
            return 0;
        }
        let outlook = match self.game.turn(&state) {
            Turn::Player(player) => {
                let actions = self.game.legal(&state, History::default());
                let outlooks = actions.into_iter().map(|action| {
                    let next = self.outlook(self.child(&state, action));
                    sign(player) * (next - next.signum())
                });
                sign(player) * outlooks.max().unwrap_or(0)
            }
            Turn::Chance | Turn::Over => match self.game.returns(&state)[0] {
                result if result > 0.0 => Self::AT_END,
                result if result < 0.0 => -Self::AT_END,
                _ => 0,
            },
        };
        self.known.insert(state, outlook);
        outlook
    }
}

/// +1 for player 0, -1 for player 1: scores are kept for player 0.
fn sign(player: u8) -> i32 {
    1 - 2 * i32::from(player)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;
    use crate::rng::{Key, Purpose};

    fn connect_four(rows: i64, columns: i64, connect: i64) -> Arc<dyn AnyGame> {
        let options = toml::Table::from_iter([
            ("rows".to_string(), rows.into()),
            ("columns".to_string(), columns.into()),
            ("connect".to_string(), connect.into()),
        ]);
        any_game("connect_four", &options).unwrap()
    }

    fn after(game: &Arc<dyn AnyGame>, actions: &[u16]) -> Playthrough {
        let mut position = Playthrough::new(game.clone());
        actions.iter().for_each(|&action| position.step(action).unwrap());
        position
    }

    /// Plays random games and compares both solvers at every ply.
    fn assert_agrees_with_exhaustive_search(game: Arc<dyn AnyGame>, games: u64) {
        let mut fast = Solver::for_game(&game).unwrap();
        let mut plain = ExhaustiveSolver::new(game.clone()).unwrap();
        for number in 0..games {
            let mut rng = Key::new(5, Purpose::Evaluation).with(number).stream();
            let mut position = Playthrough::new(game.clone());
            while position.turn() != Turn::Over {
                assert_eq!(fast.scores(&position), plain.scores(&position), "after {:?}", position.actions());
                let legal = position.legal();
                position.step(legal[rng.below(legal.len())]).unwrap();
            }
            assert!(fast.scores(&position).iter().all(Option::is_none));
        }
    }

    #[test]
    fn small_boards_agree_with_exhaustive_search() {
        for (rows, columns, connect) in
            [(4, 4, 4), (3, 5, 3), (5, 3, 4), (2, 7, 3), (7, 2, 5), (4, 3, 2), (3, 5, 5)]
        {
            assert_agrees_with_exhaustive_search(connect_four(rows, columns, connect), 4);
        }
    }

    /// Wide and flat boards use every bit of the word and all directions.
    #[test]
    fn boards_that_fill_the_word_are_solved() {
        let game = connect_four(3, 12, 12);
        let mut solver = Solver::for_game(&game).unwrap();
        let mut position = Playthrough::new(game);
        for column in 0..12 {
            for _ in 0..3 {
                if position.actions().len() < 30 {
                    position.step(column).unwrap();
                }
            }
        }
        let scores = solver.scores(&position);
        assert_eq!(scores[10], Some(0));
        assert_eq!(scores.iter().filter(|s| s.is_some()).count(), 2);
    }

    fn perfect_player(game: &Arc<dyn AnyGame>) -> SolverPlayer {
        SolverPlayer::several(game, "--against", 1).unwrap().remove(0)
    }

    fn chosen(player: &mut SolverPlayer, position: &Playthrough, number: u64) -> Result<u16> {
        player.choose(position, Key::new(5, Purpose::Rollout).with(number))
    }

    #[test]
    fn a_perfect_player_takes_every_action_with_the_best_score() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).unwrap();
        let mut player = perfect_player(&game);
        // A corner is answered by the centre; four of the answers to a border cell draw, and none wins.
        for (actions, expected) in [(vec![0], vec![4]), (vec![1], vec![0, 2, 4, 7])] {
            let position = after(&game, &actions);
            let mut all: Vec<u16> = (0..200).map(|i| chosen(&mut player, &position, i).unwrap()).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all, expected, "{actions:?}");
        }
    }

    #[test]
    fn a_perfect_player_stops_in_the_midst_of_a_search() {
        let game = any_game("clique", &toml::Table::new()).unwrap();
        let mut player = perfect_player(&game);
        let stop = Stop::default();
        player.stop_by(&stop);
        stop.cancel();
        let chosen = chosen(&mut player, &after(&game, &[]), 0);
        assert!(matches!(chosen, Err(Error::Stopped(_))), "{chosen:?}");
        let Solver::Exhaustive(solver) = &player.solver else { panic!("an exhaustive search") };
        assert!(lock(solver).known.is_empty() && player.known.is_empty(), "nothing was searched");
    }

    #[test]
    fn exhaustive_search_is_one_for_all_threads() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).unwrap();
        let mut solvers = Solver::several(&game, 3).unwrap();
        solvers[0].scores(&after(&game, &[]));
        let known = solvers.iter().map(|solver| match solver {
            Solver::Exhaustive(shared) => lock(shared).known.len(),
            Solver::GameSpecific(_) => panic!("an exhaustive search"),
        });
        assert_eq!(known.collect::<Vec<usize>>(), [5477; 3], "all positions but the start");
        let others = any_game("connect_four", &toml::Table::new()).unwrap();
        assert_eq!(Solver::several(&others, 3).unwrap().len(), 3);
    }

    #[test]
    fn a_game_without_a_solver_has_no_perfect_player() {
        let game = any_game("hex", &toml::Table::new()).unwrap();
        let refused = SolverPlayer::several(&game, "--against", 2).err().unwrap().to_string();
        assert_eq!(refused, "--against: got solver, expected a game with an exact solver, which hex has not");
    }

    #[test]
    fn wins_are_counted_from_the_end() {
        let game = any_game("connect_four", &toml::Table::new()).unwrap();
        let mut solver = Solver::for_game(&game).unwrap();
        // Player 0 has three on the bottom row: columns 3 and 4 and 5, open at both ends after 6 plies.
        let position = after(&game, &[3, 3, 4, 4, 5, 5]);
        let scores = solver.scores(&position);
        assert_eq!(scores[2], Some(18), "win with the fourth of 21 stones");
        assert_eq!(scores[6], Some(18));
    }

    #[test]
    fn tic_tac_toe_is_a_draw() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).unwrap();
        let mut solver = Solver::for_game(&game).unwrap();
        assert_eq!(solver.scores(&after(&game, &[])), vec![Some(0); 9]);
        // A corner answered by the border cell next to it loses; the centre wins with the fourth stone.
        let scores = solver.scores(&after(&game, &[0, 1]));
        assert_eq!(scores[4], Some(2));
        assert_eq!(scores[0], None);
    }
}
