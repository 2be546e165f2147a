//! Generation of sets of solved positions.
//!
//! Positions come from games of random players and of rollout searches with some random moves, so that a set has positions of
//! weak and of strong play. Each game gives at most one position, at a given ply; the plies of the range alternate.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::batch::rollouts::{Player, RandomPlayer, RolloutSettings};
use vecaz::eval::positions::{self, SolvedPosition};
use vecaz::eval::solver::Solver;
use vecaz::game::Turn;
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::{Error, Result};

/// The size and composition of a set.
#[derive(Clone, Debug)]
pub struct SetPlan {
    /// Number of positions.
    pub positions: usize,
    /// Plies of the positions, in turn.
    pub plies: RangeInclusive<usize>,
    /// Probability of keeping a position in which the game can be won within two plies. Such positions are easy: a search of
    /// depth two solves them.
    pub keep_tactical: f32,
    /// Probability of keeping a position in which every action has the same result.
    pub keep_indifferent: f32,
    /// Seed of the games.
    pub seed: u64,
}

/// Simulations per move of the games' players; 0 is random play.
const PLAYERS: [usize; 4] = [0, 0, 50, 400];

/// Fraction of random moves in games of rollout players, after the random opening.
const RANDOM_MOVES: f32 = 0.1;

/// The longest random opening, in plies.
const MAX_OPENING: usize = 8;

/// Consecutive games without a new position at one ply, after which generation fails.
const MAX_FRUITLESS_GAMES: usize = 100_000;

/// An iterator over different solved positions. Positions that are equal up to a symmetry of the game count as one.
pub struct Generator {
    game: Arc<dyn AnyGame>,
    solver: Solver,
    plan: SetPlan,
    players: Vec<Box<dyn Player>>,
    /// State bytes of the positions so far, each as the least of its symmetric images.
    seen: HashSet<Vec<u8>>,
    given: usize,
    games: u64,
}

impl Generator {
    /// A generator of a set of `plan` without the positions in `exclude`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a game without an exact solver, [`Error::Config`] for an empty range of plies,
    /// [`Error::IllegalAction`] for an `exclude` of another game.
    pub fn new(game: Arc<dyn AnyGame>, plan: SetPlan, exclude: &[SolvedPosition]) -> Result<Self> {
        if plan.plies.is_empty() {
            let got = format!("{}..={}", plan.plies.start(), plan.plies.end());
            return Err(Error::config("plies", got, "a range that is not empty"));
        }
        let solver = solver_of(&game)?;
        let player = |&simulations: &usize| match simulations {
            0 => Box::new(RandomPlayer) as Box<dyn Player>,
            _ => game.rollout_player(RolloutSettings::new(simulations)),
        };
        let players = PLAYERS.iter().map(player).collect();
        let mut generator = Self { game, solver, plan, players, seen: HashSet::new(), given: 0, games: 0 };
        for position in exclude {
            let reached = positions::replay(position, &generator.game)?;
            generator.seen.insert(least_image(&*generator.game, reached.state()));
        }
        Ok(generator)
    }

    /// Plays one game. Returns its position at `ply` if the game lasts that long and the position is new and kept.
    fn try_game(&mut self, ply: usize) -> Result<Option<SolvedPosition>> {
        let key = Key::new(self.plan.seed, Purpose::Evaluation).with(self.games);
        self.games += 1;
        let mut rng = key.stream();
        let Some(position) = self.play(ply, key, &mut rng)? else { return Ok(None) };
        let image = least_image(&*self.game, position.state());
        if self.seen.contains(&image) {
            return Ok(None);
        }
        if can_end_within_two_plies(&position)? && rng.uniform() >= self.plan.keep_tactical {
            return Ok(None);
        }
        let scores = self.solver.scores(&position);
        let solved = SolvedPosition { actions: position.actions().to_vec(), scores };
        if !solved.has_right_and_wrong() && rng.uniform() >= self.plan.keep_indifferent {
            return Ok(None);
        }
        self.seen.insert(image);
        Ok(Some(solved))
    }

    /// Plays up to `ply`; `None` if the game ends sooner.
    fn play(&mut self, ply: usize, key: Key, rng: &mut RngStream) -> Result<Option<Playthrough>> {
        let player = rng.below(self.players.len());
        let opening = rng.below(MAX_OPENING + 1);
        let mut position = Playthrough::new(self.game.clone());
        while position.actions().len() < ply {
            let made = position.actions().len();
            let at_random = made < opening || rng.uniform() < RANDOM_MOVES;
            let key = key.with(made as u64);
            let action = match at_random {
                true => RandomPlayer.choose(&position, key)?,
                false => self.players[player].choose(&position, key)?,
            };
            position.step(action)?;
            if position.turn() == Turn::Over {
                return Ok(None);
            }
        }
        Ok(Some(position))
    }
}

impl Iterator for Generator {
    type Item = Result<SolvedPosition>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.given == self.plan.positions {
            return None;
        }
        // The ply is kept until a position is found for it, so that late plies are as frequent as early ones.
        let plies = self.plan.plies.clone();
        let ply = plies.start() + self.given % (plies.end() - plies.start() + 1);
        self.given += 1;
        for _ in 0..MAX_FRUITLESS_GAMES {
            match self.try_game(ply) {
                Ok(None) => {}
                Ok(Some(position)) => return Some(Ok(position)),
                Err(error) => return Some(Err(error)),
            }
        }
        let why = format!("{MAX_FRUITLESS_GAMES} games gave no new position at ply {ply}");
        Some(Err(Error::unsupported(format!("{} solved positions", self.plan.positions), why)))
    }
}

/// Every position of `game` in which a player is to move, one per set of symmetric images, ordered by ply. For small games.
///
/// # Errors
/// [`Error::Unsupported`] for a game without an exact solver.
pub fn every_position(game: &Arc<dyn AnyGame>) -> Result<Vec<SolvedPosition>> {
    let mut solver = solver_of(game)?;
    let mut seen = HashSet::new();
    let mut positions = Vec::new();
    let mut layer = vec![Playthrough::new(game.clone())];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for position in &layer {
            positions.push(SolvedPosition {
                actions: position.actions().to_vec(),
                scores: solver.scores(position),
            });
            for action in position.legal() {
                let mut child = position.clone();
                child.step(action)?;
                if child.turn() != Turn::Over && seen.insert(least_image(&**game, child.state())) {
                    next.push(child);
                }
            }
        }
        layer = next;
    }
    Ok(positions)
}

/// True if either player can win within two plies.
fn can_end_within_two_plies(position: &Playthrough) -> Result<bool> {
    let children = |parent: &Playthrough| {
        let child = |action| {
            let mut child = parent.clone();
            child.step(action).map(|()| child)
        };
        parent.legal().into_iter().map(child).collect::<Result<Vec<_>>>()
    };
    let is_won =
        |p: &Playthrough| p.turn() == Turn::Over && p.game().returns(p.state()).iter().any(|&r| r > 0.0);
    for child in children(position)? {
        if is_won(&child) || children(&child)?.iter().any(is_won) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn solver_of(game: &Arc<dyn AnyGame>) -> Result<Solver> {
    Solver::for_game(game).ok_or_else(|| {
        Error::unsupported(format!("solved positions of {}", game.name()), "the game has no exact solver")
    })
}

/// The smallest of the symmetric images of a state.
fn least_image(game: &dyn AnyGame, state: &[u8]) -> Vec<u8> {
    let images = (0..game.sizes().num_symmetries).map(|symmetry| {
        let mut image = state.to_vec();
        game.transform_batch(&mut image, &[symmetry]);
        image
    });
    images.min().unwrap_or_default()
}
