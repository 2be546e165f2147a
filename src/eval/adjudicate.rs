//! The end of a match's games by an exact solver: after some plies a game has the result of perfect play.

use super::match_game::MatchGame;
use super::plan::MatchPlan;
use super::solver::Solver;
use crate::backend::AnyGame;
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::stop::Stop;
use rayon::prelude::*;
use std::sync::Arc;

/// The judge of games: an exact solver per thread.
pub struct Adjudicator {
    solvers: Vec<Solver>,
    after: usize,
    stop: Stop,
}

impl Adjudicator {
    /// The judge of the games of `game` that a match of this plan plays, if they are not played to their end.
    ///
    /// # Errors
    /// [`Error::Config`] for a game without an exact solver, or in which one player does not lose what the other wins.
    pub fn of_plan(game: &Arc<dyn AnyGame>, plan: MatchPlan<'_>) -> Result<Option<Self>> {
        let Some(after) = plan.adjudicate_after else { return Ok(None) };
        if !game.sizes().is_zero_sum_pair() {
            let expected = format!("a game for two whose returns sum to 0, which {} is not", game.name());
            return Err(Error::config("--adjudicate", after, expected));
        }
        let threads = rayon::current_num_threads().min(plan.games);
        let mut solvers = Solver::several(game, threads).ok_or_else(|| {
            let expected = format!("a game with an exact solver, which {} has not", game.name());
            Error::config("--adjudicate", after, expected)
        })?;
        let stop = plan.stop.cloned().unwrap_or_default();
        solvers.iter_mut().for_each(|solver| solver.stop_by(&stop));
        Ok(Some(Self { solvers, after: after as usize, stop }))
    }

    /// Ends the games that have so many plies.
    ///
    /// # Errors
    /// [`Error::Stopped`] once the plan's stop is requested; what it has found for the games until then means nothing.
    pub(super) fn judge(&mut self, games: &mut [MatchGame]) -> Result<()> {
        let is_due = |game: &&mut MatchGame| {
            game.play.actions().len() >= self.after && matches!(game.turn(), Turn::Player(_))
        };
        let mut due: Vec<&mut MatchGame> = games.iter_mut().filter(is_due).collect();
        let share = due.len().div_ceil(self.solvers.len()).max(1);
        self.solvers.par_iter_mut().zip(due.par_chunks_mut(share)).for_each(|(solver, games)| {
            games.iter_mut().for_each(|game| judge(solver, game));
        });
        self.stop.check()
    }
}

/// Gives a game the result of perfect play: of the best action for the player to move.
fn judge(solver: &mut Solver, game: &mut MatchGame) {
    let Turn::Player(player) = game.turn() else { return };
    let best = solver.scores(&game.play).into_iter().flatten().max();
    let own = best.map_or(0, i32::signum) as f32;
    game.judge((0..2).map(|seat| if seat == player { own } else { -own }).collect());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Playthrough;
    use crate::registry::any_game;

    /// Against a border cell next to a corner, the centre wins tic-tac-toe for the first player, who is not to move.
    #[test]
    fn the_winner_of_perfect_play_has_won() {
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let mut won = Playthrough::new(game.clone());
        [0, 1, 4].into_iter().for_each(|action| won.step(action).expect("legal"));
        let openings = [won.clone(), won.after(2)];
        let plan = MatchPlan { openings: &openings, adjudicate_after: Some(2), ..MatchPlan::default() };
        let mut judge = Adjudicator::of_plan(&game, plan).expect("solved").expect("a judge");
        for (number, mover) in [(0, 1), (2, 0)] {
            let mut games = [MatchGame::begin(&game, plan, number).expect("an opening")];
            assert_eq!(games[0].turn(), Turn::Player(mover));
            judge.judge(&mut games).expect("judged");
            assert_eq!(games[0].played().returns, [1.0, -1.0], "player {mover} to move");
        }
    }

    /// Without the stop the solver would search the start of Connect Four for minutes.
    #[test]
    fn a_stop_ends_the_search_for_a_result() {
        let game = any_game("connect_four", &toml::Table::new()).expect("registered");
        let stop = Stop::default();
        stop.cancel();
        let plan = MatchPlan { adjudicate_after: Some(0), stop: Some(&stop), ..MatchPlan::default() };
        let mut judge = Adjudicator::of_plan(&game, plan).expect("solved").expect("a judge");
        let mut games = [MatchGame::begin(&game, plan, 0).expect("an opening")];
        assert!(matches!(judge.judge(&mut games), Err(Error::Stopped(_))));
    }

    #[test]
    fn a_game_for_more_than_two_is_refused() {
        let game = any_game("blob", &toml::toml! { players = 3 }).expect("registered");
        let plan = MatchPlan { adjudicate_after: Some(9), ..MatchPlan::default() };
        let error = Adjudicator::of_plan(&game, plan).err().expect("refused").to_string();
        assert_eq!(
            error,
            "--adjudicate: got 9, expected a game for two whose returns sum to 0, which blob is not"
        );
    }
}
