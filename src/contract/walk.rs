//! Random play with all data that the laws check.

use super::law::holds;
use super::trail::Trail;
use crate::game::{Game, History, Turn};
use crate::rng::{Key, Purpose, RngStream};
use std::collections::BTreeSet;

/// Entries of a legal list beyond the limit that the game gives.
const MARGIN: usize = 4096;
/// Maximum number of symmetries checked per position.
const SYMMETRIES: u64 = 12;
/// Maximum number of legal actions that a law of quadratic time checks per position.
const ACTIONS: usize = 32;

/// One position of a game in progress.
pub(super) struct Position<G: Game> {
    pub(super) state: G::State,
    pub(super) turn: Turn,
    /// Legal actions or outcomes; empty once the game is over.
    pub(super) legal: Vec<u16>,
    /// All earlier states, oldest first.
    pub(super) before: Vec<G::State>,
    /// Their keys, if the game uses history.
    pub(super) keys: Vec<u64>,
}

impl<G: Game> Position<G> {
    pub(super) fn start(game: &G) -> Self {
        let state = game.init();
        let mut position =
            Self { state, turn: game.turn(&state), legal: Vec::new(), before: Vec::new(), keys: Vec::new() };
        position.legal = legal(game, &state, &[]);
        position
    }

    pub(super) fn history(&self) -> History<'_> {
        History { played: &self.keys, path: &[] }
    }

    pub(super) fn is_over(&self) -> bool {
        self.turn == Turn::Over
    }

    pub(super) fn step(&mut self, game: &G, action: u16) {
        let before = self.state;
        let mut state = self.state;
        game.step(&mut state, action, self.history());
        if game.sizes().uses_history {
            self.keys.push(game.history_key(&before));
        }
        self.before.push(before);
        self.state = state;
        self.turn = game.turn(&state);
        self.legal = legal(game, &state, &self.keys);
    }

    /// A legal action at random; an outcome by its probability.
    pub(super) fn choose(&self, game: &G, rng: &mut RngStream) -> u16 {
        let index = match self.turn {
            Turn::Chance => rng.weighted(&chance_probs(game, &self.state, &self.legal)),
            Turn::Player(_) | Turn::Over => rng.below(self.legal.len()),
        };
        self.legal[index]
    }
}

/// The legal actions or outcomes after the positions with the keys `played`; empty once the game is over.
pub(super) fn legal<G: Game>(game: &G, state: &G::State, played: &[u64]) -> Vec<u16> {
    legal_after(game, state, History { played, path: &[] })
}

/// The same after `history`.
pub(super) fn legal_after<G: Game>(game: &G, state: &G::State, history: History<'_>) -> Vec<u16> {
    if game.turn(state) == Turn::Over {
        return Vec::new();
    }
    // Longer than a search's list, so that a list above the limit is seen as such.
    let mut out = vec![u16::MAX; game.sizes().num_edges() + MARGIN];
    let n = game.legal(state, history, &mut out);
    out.truncate(n);
    out
}

pub(super) fn chance_probs<G: Game>(game: &G, state: &G::State, outcomes: &[u16]) -> Vec<f32> {
    let mut probs = vec![f32::NAN; outcomes.len()];
    game.chance_probs(state, outcomes, &mut probs);
    probs
}

/// The observation of `player`; NaN where the game wrote nothing. `[F]`
pub(super) fn observe<G: Game>(game: &G, state: &G::State, player: u8) -> Vec<f32> {
    let mut out = vec![f32::NAN; game.sizes().obs.len()];
    game.observe(state, player, &mut out);
    out
}

/// What search takes as the result; NaN where the game wrote nothing. `[P]`
pub(super) fn stage_returns<G: Game>(game: &G, state: &G::State) -> Vec<f32> {
    let mut out = vec![f32::NAN; game.sizes().num_players];
    game.stage_returns(state, &mut out);
    out
}

pub(super) fn returns<G: Game>(game: &G, state: &G::State) -> Vec<f32> {
    let mut out = vec![f32::NAN; game.sizes().num_players];
    game.returns(state, &mut out);
    out
}

/// Draws for game number `number`, so that every law plays the same game.
pub(super) fn draws(number: u64) -> RngStream {
    Key::new(11, Purpose::Evaluation).with(number).stream()
}

/// Some 2,000 plies, at least 3 games and at most 40.
pub(super) fn num_games<G: Game>(game: &G) -> u64 {
    (2_000 / game.sizes().max_plies as u64).clamp(3, 40)
}

/// Plays random games to the end and passes every position to `visit`, including the first and the last. The actions of the game in
/// progress are kept in `trail`.
pub(super) fn walk<G: Game>(
    game: &G,
    trail: &Trail,
    mut visit: impl FnMut(&Position<G>, &mut RngStream) -> Result<(), String>,
) -> Result<(), String> {
    for number in 0..num_games(game) {
        let mut rng = draws(number);
        trail.clear();
        let mut position = Position::start(game);
        // The draws of a law must not change the game.
        let mut law_rng = draws(number + 1_000_000);
        loop {
            visit(&position, &mut law_rng)?;
            if position.is_over() {
                break;
            }
            if position.before.len() >= game.sizes().max_plies {
                return Err(format!("the game is not over after max_plies = {}", game.sizes().max_plies));
            }
            let action = position.choose(game, &mut rng);
            trail.add(game, &position.state, action);
            position.step(game, action);
        }
    }
    trail.clear();
    Ok(())
}

/// All symmetries if there are few, otherwise the identity and some others at random.
pub(super) fn some_symmetries(count: u64, rng: &mut RngStream) -> Vec<u64> {
    if count <= SYMMETRIES {
        return (0..count).collect();
    }
    let others = (1..SYMMETRIES).map(|_| 1 + rng.next_u64() % (count - 1));
    let set: BTreeSet<u64> = std::iter::once(0).chain(others).collect();
    set.into_iter().collect()
}

/// All legal actions if there are few, otherwise some at random.
pub(super) fn some_actions(legal: &[u16], rng: &mut RngStream) -> Vec<u16> {
    match legal.len() <= ACTIONS {
        true => legal.to_vec(),
        false => (0..ACTIONS).map(|_| legal[rng.below(legal.len())]).collect(),
    }
}

/// Plays at random from `state`, after the positions with the keys `played`, as far as a search can: until chance decides or the game is over.
///
/// # Errors
/// What a legal list or the player to move has wrong.
pub(super) fn play_on<G: Game>(
    game: &G,
    state: &G::State,
    played: &[u64],
    rng: &mut RngStream,
) -> Result<(), String> {
    let (mut state, mut played) = (*state, played.to_vec());
    for _ in 0..=game.sizes().max_plies {
        let turn = game.turn(&state);
        let Turn::Player(_) = turn else { return Ok(()) };
        let list = legal(game, &state, &played);
        check_list(game, turn, &list)?;
        let before = state;
        game.step(&mut state, list[rng.below(list.len())], History { played: &played, path: &[] });
        if game.sizes().uses_history {
            played.push(game.history_key(&before));
        }
    }
    Err(format!("play from there is not over after max_plies = {}", game.sizes().max_plies))
}

/// Whether `list` can be the legal actions or outcomes of a position at this turn.
///
/// # Errors
/// What it has wrong.
pub(super) fn check_list<G: Game>(game: &G, turn: Turn, list: &[u16]) -> Result<(), String> {
    let sizes = game.sizes();
    let (limit, max, bound) = match turn {
        Turn::Over => return Ok(()),
        Turn::Chance => ("num_chance", sizes.num_chance, sizes.num_chance),
        Turn::Player(player) => {
            holds!(usize::from(player) < sizes.num_players, "player {player} is to move");
            ("max_legal", sizes.max_legal, sizes.num_actions)
        }
    };
    holds!(!list.is_empty(), "no action is legal though the game is not over");
    holds!(list.len() <= max, "{} actions are legal, more than {limit} = {max}", list.len());
    holds!(list.windows(2).all(|pair| pair[0] < pair[1]), "not ascending: {list:?}");
    holds!(list.iter().all(|&action| usize::from(action) < bound), "not below {bound}: {list:?}");
    Ok(())
}
