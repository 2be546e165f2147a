//! The description of a game in a network's file: meaning of arrays, action names, observations of random positions.

use super::evaluated::EvaluatedPositions;
use crate::batch::{ErasedRules, MAX_UNDECIDED_GAMES};
use crate::error::{Error, Result};
use crate::game::{History, Turn};
use crate::model::NetSpec;
use crate::rng::{Key, Purpose};

/// Number of random games from which action names are collected.
const NAMING_GAMES: u64 = 32;

/// The meaning of an observation and of the outputs, in words.
pub fn meaning(net: &NetSpec, positions: EvaluatedPositions) -> String {
    let observer = positions.observer();
    let values = if net.zero_sum_pair {
        format!("one value v for {observer}; the opponent's is -v")
    } else {
        format!("one value a player, in seats relative to {observer}")
    };
    let logits = match positions {
        EvaluatedPositions::Decisions => "raw, one an action, to be masked by the legal actions",
        EvaluatedPositions::Afterstates => "untrained",
    };
    format!(
        "observation: [channels, height, width] row-major, seen by {observer}; \
         logits: {logits}; values: {values}, in [-1, 1]"
    )
}

/// A position of a random game.
struct SampledPosition {
    state: Vec<u8>,
    turn: Turn,
    legal: Vec<u16>,
}

/// All positions of random game number `number` before its end. They depend only on the number.
fn random_game(game: &dyn ErasedRules, number: u64) -> Vec<SampledPosition> {
    let sizes = game.sizes();
    let mut rng = Key::new(0, Purpose::Evaluation).with(number).stream();
    let mut state = game.init();
    let mut played = Vec::new();
    let mut positions = Vec::new();
    loop {
        let history = History { played: &played, path: &[] };
        let (turn, legal) = (game.turn(&state), game.legal(&state, history));
        let index = match turn {
            Turn::Over => return positions,
            Turn::Chance => rng.weighted(&game.chance_probs(&state, &legal)),
            Turn::Player(_) => rng.below(legal.len()),
        };
        let action = legal[index];
        positions.push(SampledPosition { state: state.clone(), turn, legal });
        let key = sizes.uses_history.then(|| game.history_key(&state));
        game.step(&mut state, action, history);
        played.extend(key);
    }
}

fn decisions(game: &dyn ErasedRules, number: u64) -> Vec<SampledPosition> {
    let mut positions = random_game(game, number);
    positions.retain(|position| matches!(position.turn, Turn::Player(_)));
    positions
}

/// The observations of the player to move at one random position of each of `count` random games. `[count, F]`
///
/// # Errors
/// [`Error::Unsupported`] for a game whose deals end it before anybody decides.
pub fn observations(game: &dyn ErasedRules, count: usize) -> Result<Vec<f32>> {
    let features = game.sizes().obs.len();
    let mut out = vec![0.0; count * features];
    for (number, obs) in out.chunks_exact_mut(features).enumerate() {
        // A game that its deal ends has no decision.
        let games =
            (0..MAX_UNDECIDED_GAMES).map(|attempt| decisions(game, attempt * count as u64 + number as u64));
        let positions = { games }.find(|positions| !positions.is_empty()).ok_or_else(|| {
            let why = format!("each of {MAX_UNDECIDED_GAMES} random games ends in its deal");
            Error::unsupported(format!("a network of {}", game.name()), why)
        })?;
        let index = Key::new(1, Purpose::Evaluation).with(number as u64).stream().below(positions.len());
        game.observe_batch(&positions[index].state, obs);
    }
    Ok(out)
}

/// The name of every action that was legal in the random games and had the same name in all positions; None for other actions. `[A]`
pub fn action_names(game: &dyn ErasedRules) -> Vec<Option<String>> {
    let mut names: Vec<Vec<String>> = vec![Vec::new(); game.sizes().num_actions];
    for position in (0..NAMING_GAMES).flat_map(|number| decisions(game, number)) {
        for action in position.legal {
            let name = game.action_name(&position.state, action);
            let known = &mut names[usize::from(action)];
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }
    names.into_iter().map(|mut known| if known.len() == 1 { known.pop() } else { None }).collect()
}
