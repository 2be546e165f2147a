//! One function per law of `trait Game`.

use super::history::{history_keys_follow_the_position, search_paths_are_history};
use super::law::{Law, caught, equal, holds};
use super::looks::{placed_pieces_give_the_position, views_describe_the_position, views_show_nothing_hidden};
use super::names::names_are_read_back;
use super::players::{aims_are_sentences, empty_seats_take_no_part};
use super::points::actions_are_at_their_points;
use super::targets::targets_are_complete;
use super::trail::Trail;
use super::walk::{
    Position, chance_probs, check_list, draws, legal, num_games, observe, play_on, returns, some_symmetries,
    stage_returns, walk,
};
use crate::batch::{ErasedGame, ErasedRules, GameBatch, Playthrough};
use crate::game::{Game, History, MAX_PLAYERS, Sizes, Turn};
use crate::rng::RngStream;
use crate::view::draw;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Positions of which one, in the mean, is drawn and played on from.
const POSITIONS_PER_DRAW: usize = 8;

/// A function that checks one law.
type Check<G> = fn(&G, &Trail) -> Law;

/// All laws with their names, in the order in which they are checked: a law may rely on those before it.
pub(super) fn laws<G: Game>() -> Vec<(&'static str, Check<G>)> {
    macro_rules! named {
        ($($law:ident)+) => { vec![$((stringify!($law), $law::<G> as Check<G>)),+] };
    }
    named![
        sizes_are_consistent play_is_legal_and_ends empty_seats_take_no_part aims_are_sentences
        options_make_the_same_game unknown_options_are_refused
        sight_options_change_no_rule chance_is_a_distribution returns_are_bounded
        tallies_are_cells_of_the_table symmetries_are_distinct_bijections symmetries_commute_with_play
        actions_are_at_their_points observations_are_finite_and_complete hidden_draws_keep_what_is_seen
        canonical_states_share_an_evaluation bytes_that_are_valid_can_be_observed
        history_keys_follow_the_position search_paths_are_history targets_are_complete names_are_read_back
        views_describe_the_position views_show_nothing_hidden placed_pieces_give_the_position
        erased_play_is_the_same batches_keep_finished_games
    ]
}

pub(super) fn sizes_are_consistent<G: Game>(game: &G, _trail: &Trail) -> Law {
    let sizes = game.sizes();
    holds!(
        (1..=MAX_PLAYERS).contains(&sizes.num_players),
        "num_players is {}, expected 1 to {MAX_PLAYERS}",
        sizes.num_players
    );
    let (legal, actions) = (sizes.max_legal, sizes.num_actions);
    holds!((1..=actions).contains(&legal), "max_legal is {legal}, expected 1 to num_actions = {actions}");
    holds!(actions <= usize::from(u16::MAX), "num_actions is {actions}, expected at most {}", u16::MAX);
    let run = sizes.max_chance_run;
    holds!(sizes.num_chance > 0 || run == 0, "max_chance_run is {run} in a game without chance outcomes");
    holds!(!sizes.obs.is_empty(), "obs is {:?}, without elements", sizes.obs);
    holds!(sizes.max_plies > 0, "max_plies is 0");
    holds!(sizes.num_symmetries > 0, "num_symmetries is 0, expected 1 for the identity alone");
    holds!(
        align_of::<G::State>() <= 8,
        "the alignment of State is {}, expected at most 8",
        align_of::<G::State>()
    );
    Ok(())
}

pub(super) fn options_make_the_same_game<G: Game>(game: &G, trail: &Trail) -> Law {
    let again = G::from_options(&game.options()).map_err(|e| format!("its own options are refused: {e}"))?;
    equal!(again.options(), game.options());
    equal!(again.sizes(), game.sizes());
    walk(game, trail, |position, _| {
        equal!(again.turn(&position.state), position.turn);
        equal!(legal(&again, &position.state, &position.keys), position.legal);
        Ok(())
    })
}

pub(super) fn unknown_options_are_refused<G: Game>(game: &G, _trail: &Trail) -> Law {
    let mut options = game.options();
    options.insert("no_such_option".into(), 1.into());
    let refused =
        G::from_options(&options).err().ok_or("the unknown key no_such_option is not refused")?.to_string();
    holds!(refused.contains("no_such_option"), "the message does not name the key: {refused}");
    Ok(())
}

pub(super) fn sight_options_change_no_rule<G: Game>(game: &G, trail: &Trail) -> Law {
    let mut options = game.options();
    for key in G::SIGHT_OPTIONS {
        holds!(options.remove(*key).is_some(), "{key} is no option");
    }
    let other = G::from_options(&options).map_err(|e| format!("the other options are refused alone: {e}"))?;
    equal!(other.init(), game.init());
    let (own, sizes) = (game.sizes(), other.sizes());
    equal!(Sizes { obs: own.obs, ..sizes }, own);
    walk(game, trail, |position, _| {
        let state = &position.state;
        equal!(other.turn(state), position.turn);
        equal!(legal(&other, state, &position.keys), position.legal);
        equal!(other.history_key(state), game.history_key(state));
        if position.is_over() {
            equal!(returns(&other, state), returns(game, state));
        }
        for &action in position.legal.iter().take(1) {
            let [mut next, mut expected] = [*state; 2];
            other.step(&mut next, action, position.history());
            game.step(&mut expected, action, position.history());
            equal!(next, expected);
        }
        Ok(())
    })
}

pub(super) fn play_is_legal_and_ends<G: Game>(game: &G, trail: &Trail) -> Law {
    let mut decides = false;
    walk(game, trail, |position, _| {
        decides |= matches!(position.turn, Turn::Player(_));
        check_list(game, position.turn, &position.legal)
            .map_err(|what| format!("{what}:\n{}", draw(game, &position.state)))
    })?;
    holds!(decides, "no player decides in any of {} games", num_games(game));
    Ok(())
}

pub(super) fn chance_is_a_distribution<G: Game>(game: &G, trail: &Trail) -> Law {
    let sizes = game.sizes();
    walk(game, trail, |position, _| {
        if position.turn != Turn::Chance {
            return Ok(());
        }
        let probs = chance_probs(game, &position.state, &position.legal);
        holds!(probs.iter().all(|p| (0.0..=1.0).contains(p)), "{probs:?}");
        let sum: f64 = probs.iter().map(|&p| f64::from(p)).sum();
        holds!((sum - 1.0).abs() < 1e-5, "the probabilities sum to {sum}");
        let run = chance_run(game, position);
        let max = sizes.max_chance_run;
        holds!(run <= max, "{run} chance states in a row, max_chance_run is {max}");
        Ok(())
    })
}

/// Number of consecutive chance states that a search visits after the last decision, including this one. 0 at the start of a game and
/// after a horizon, which searches do not reach.
fn chance_run<G: Game>(game: &G, position: &Position<G>) -> usize {
    let back = std::iter::once(&position.state).chain(position.before.iter().rev());
    for (run, state) in back.enumerate() {
        if matches!(game.turn(state), Turn::Player(_)) {
            return run;
        }
        if game.is_horizon(state) {
            return 0;
        }
    }
    0
}

/// Returns are those of a finished game, and at a horizon the value that search gives its leaf. NaN is what the game has not written.
pub(super) fn returns_are_bounded<G: Game>(game: &G, trail: &Trail) -> Law {
    let sizes = game.sizes();
    walk(game, trail, |position, _| {
        let at = match position.turn {
            Turn::Over => "at the end",
            Turn::Chance if game.is_horizon(&position.state) => "at a horizon",
            Turn::Chance | Turn::Player(_) => return Ok(()),
        };
        let seated = game.num_seated(&position.state, sizes.num_players);
        // The result of a game is asked for at its end alone.
        let whole = position.is_over().then(|| returns(game, &position.state));
        for values in whole.into_iter().chain([stage_returns(game, &position.state)]) {
            let are_in = values.iter().all(|value| (-1.0..=1.0).contains(value));
            holds!(are_in, "the returns {at} are {values:?}, expected one in [-1, 1] for each player");
            let sum: f32 = values.iter().sum();
            holds!(
                !sizes.zero_sum || sum.abs() < 1e-5,
                "declared zero-sum, but the returns {at} are {values:?}"
            );
            let are_equal = values[..seated].iter().all(|value| value == &values[0]);
            holds!(
                !sizes.cooperative || are_equal,
                "declared cooperative, but the returns {at} are {values:?}"
            );
        }
        if !position.is_over() {
            return Ok(());
        }
        let scores = game.scores(&position.state);
        equal!(scores.len(), sizes.num_players);
        holds!(scores.iter().all(|score| score.is_finite()), "{scores:?}");
        Ok(())
    })
}

pub(super) fn tallies_are_cells_of_the_table<G: Game>(game: &G, trail: &Trail) -> Law {
    let (table, players) = (game.tally_table(), game.sizes().num_players as u8);
    let [rows, columns] = table.map_or([0, 0], |table| [table.rows.len(), table.columns.len()]);
    walk(game, trail, |position, _| {
        let Some(before) = position.before.last() else { return Ok(()) };
        for player in 0..players {
            let cell = game.tally(before, &position.state, player);
            let is_in = cell.is_none_or(|cell| cell.row < rows && cell.column < columns);
            holds!(
                is_in,
                "player {player} counts in {cell:?} of a table of {rows} rows and {columns} columns"
            );
        }
        Ok(())
    })
}

pub(super) fn symmetries_are_distinct_bijections<G: Game>(game: &G, _trail: &Trail) -> Law {
    let sizes = game.sizes();
    let (actions, players) = (sizes.num_actions as u16, sizes.num_players as u8);
    let images = |symmetry| {
        let of_actions: Vec<u16> =
            (0..actions).map(|action| game.transform_action(action, symmetry)).collect();
        let of_players: Vec<u8> =
            (0..players).map(|player| game.transform_player(player, symmetry)).collect();
        (of_actions, of_players)
    };
    equal!(images(0), ((0..actions).collect(), (0..players).collect()), "symmetry 0 is the identity");
    let mut seen = HashMap::new();
    for symmetry in some_symmetries(sizes.num_symmetries, &mut draws(0)) {
        let (of_actions, of_players) = images(symmetry);
        let sorted = |mut list: Vec<u16>| {
            list.sort_unstable();
            list
        };
        equal!(sorted(of_actions.clone()), (0..actions).collect::<Vec<_>>(), "symmetry {symmetry}");
        let players_sorted = sorted(of_players.iter().copied().map(u16::from).collect());
        equal!(players_sorted, (0..u16::from(players)).collect::<Vec<_>>(), "symmetry {symmetry}");
        if let Some(other) = seen.insert((of_actions, of_players), symmetry) {
            return Err(format!("symmetries {other} and {symmetry} are the same"));
        }
    }
    Ok(())
}

pub(super) fn symmetries_commute_with_play<G: Game>(game: &G, trail: &Trail) -> Law {
    let count = game.sizes().num_symmetries;
    walk(game, trail, |position, rng| {
        equal!(game.transform(&position.state, 0), position.state, "symmetry 0 is the identity");
        // If histories have to be transformed too, checking every ply would take quadratic time.
        if game.sizes().uses_history && !position.before.len().is_multiple_of(7) && !position.is_over() {
            return Ok(());
        }
        for symmetry in some_symmetries(count, rng) {
            check_image(game, position, symmetry, rng)?;
        }
        Ok(())
    })
}

fn check_image<G: Game>(game: &G, position: &Position<G>, symmetry: u64, rng: &mut RngStream) -> Law {
    let image = game.transform(&position.state, symmetry);
    let board = || format!("symmetry {symmetry} of\n{}", draw(game, &position.state));
    let turn = match position.turn {
        Turn::Player(player) => Turn::Player(game.transform_player(player, symmetry)),
        other => other,
    };
    equal!(game.turn(&image), turn, "{}", board());
    if position.is_over() {
        let (own, images) = (returns(game, &position.state), returns(game, &image));
        for (player, value) in own.iter().enumerate() {
            let image_of_player = game.transform_player(player as u8, symmetry);
            equal!(images[usize::from(image_of_player)], *value, "{}", board());
        }
        return Ok(());
    }
    let keys: Vec<u64> = match game.sizes().uses_history {
        true => position.before.iter().map(|s| game.history_key(&game.transform(s, symmetry))).collect(),
        false => Vec::new(),
    };
    let image_of = |action| match position.turn {
        Turn::Chance => game.transform_outcome(action, symmetry),
        Turn::Player(_) | Turn::Over => game.transform_action(action, symmetry),
    };
    let mut expected: Vec<u16> = position.legal.iter().map(|&action| image_of(action)).collect();
    expected.sort_unstable();
    equal!(legal(game, &image, &keys), expected, "{}", board());
    if position.turn == Turn::Chance {
        let probs = chance_probs(game, &position.state, &position.legal);
        let of_images = chance_probs(game, &image, &expected);
        for (&outcome, prob) in position.legal.iter().zip(probs) {
            let at = expected.binary_search(&image_of(outcome)).expect("a legal image");
            // The image's probabilities may be summed in another order.
            holds!((of_images[at] - prob).abs() < 1e-6, "outcome {outcome}, {}", board());
        }
    }
    let action = position.legal[rng.below(position.legal.len())];
    let mut stepped = position.state;
    game.step(&mut stepped, action, position.history());
    let mut image_stepped = image;
    game.step(&mut image_stepped, image_of(action), History { played: &keys, path: &[] });
    equal!(image_stepped, game.transform(&stepped, symmetry), "action {action}, {}", board());
    Ok(())
}

pub(super) fn observations_are_finite_and_complete<G: Game>(game: &G, trail: &Trail) -> Law {
    let sizes = game.sizes();
    let mut seen = HashSet::new();
    walk(game, trail, |position, rng| {
        let symmetry = rng.next_u64() % sizes.num_symmetries;
        let image = game.transform(&position.state, symmetry);
        for player in 0..sizes.num_players as u8 {
            for state in [&position.state, &image] {
                let seen_now = observe(game, state, player);
                let missing = seen_now.iter().position(|x| !x.is_finite());
                equal!(missing, None, "the first entry not written or not finite, player {player}");
                equal!(seen_now, observe(game, state, player));
                seen.insert(seen_now.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
            }
        }
        Ok(())
    })?;
    holds!(seen.len() > 1, "the observations of all positions are equal");
    Ok(())
}

pub(super) fn hidden_draws_keep_what_is_seen<G: Game>(game: &G, trail: &Trail) -> Law {
    let sizes = game.sizes();
    let mut changed = false;
    walk(game, trail, |position, rng| {
        let Turn::Player(mover) = position.turn else { return Ok(()) };
        for player in 0..sizes.num_players as u8 {
            let drawn = game.determinise(&position.state, player, rng);
            changed |= drawn != position.state;
            equal!(game.turn(&drawn), position.turn, "player {player}");
            let known = |state| observe(game, state, player)[..game.known_obs()].to_vec();
            equal!(known(&drawn), known(&position.state), "player {player}");
            let again = game.determinise(&drawn, player, &mut draws(1));
            let same = game.determinise(&position.state, player, &mut draws(1));
            equal!(again, same, "what is drawn depends on what player {player} does not know");
            if player == mover {
                equal!(legal(game, &drawn, &position.keys), position.legal, "player {player}");
                // A search plays on from what it has drawn.
                if rng.below(POSITIONS_PER_DRAW) == 0 {
                    play_on(game, &drawn, &position.keys, rng)
                        .map_err(|what| format!("in a draw of player {player}: {what}"))?;
                }
            }
        }
        Ok(())
    })?;
    equal!(
        changed,
        sizes.hidden_information,
        "whether determinise changes states, against hidden_information"
    );
    Ok(())
}

/// A file may have any bytes: states that pass [`Game::is_valid`] are observed and transformed without a panic.
pub(super) fn bytes_that_are_valid_can_be_observed<G: Game>(game: &G, trail: &Trail) -> Law {
    let sizes = game.sizes();
    walk(game, trail, |position, rng| {
        holds!(game.is_valid(&position.state), "refused:\n{}", draw(game, &position.state));
        for changed in [0, 1, 1, 2, 3, size_of::<G::State>()] {
            let mut state = position.state;
            let bytes = bytemuck::bytes_of_mut(&mut state);
            for _ in 0..changed {
                let extremes = [0, 1, 127, 128, 255, rng.below(256) as u8];
                bytes[rng.below(bytes.len())] = extremes[rng.below(extremes.len())];
            }
            let is_valid = caught(|| game.is_valid(&state)).map_err(|panic| {
                format!("`is_valid` panics for a state of changed bytes ({panic}): {state:?}")
            })?;
            if !is_valid {
                continue;
            }
            let symmetry = rng.below(sizes.num_symmetries as usize) as u64;
            caught(|| can_be_observed(game, &state, symmetry))
                .unwrap_or_else(|panic| Err(format!("observing or transforming it panics ({panic})")))
                .map_err(|what| {
                    format!("a state of changed bytes passes `is_valid`, and {what}: {state:?}")
                })?;
        }
        Ok(())
    })
}

/// Observes a state and its image for all players.
fn can_be_observed<G: Game>(game: &G, state: &G::State, symmetry: u64) -> Law {
    let num_players = game.sizes().num_players;
    for state in [*state, game.transform(state, symmetry)] {
        if let Turn::Player(player) = game.turn(&state) {
            let is_one = usize::from(player) < num_players;
            holds!(is_one, "its turn is that of player {player} of {num_players}");
        }
        (0..num_players as u8).for_each(|player| drop(observe(game, &state, player)));
    }
    Ok(())
}

pub(super) fn canonical_states_share_an_evaluation<G: Game>(game: &G, trail: &Trail) -> Law {
    let mut known: HashMap<Vec<u8>, (Vec<f32>, Vec<u16>)> = HashMap::new();
    walk(game, trail, |position, _| {
        let Turn::Player(player) = position.turn else { return Ok(()) };
        let canonical = game.canonical(&position.state);
        equal!(game.canonical(&canonical), canonical, "canonical of canonical");
        let evaluation = (observe(game, &position.state, player), position.legal.clone());
        let key = bytemuck::bytes_of(&canonical).to_vec();
        let first = known.entry(key).or_insert_with(|| evaluation.clone());
        holds!(*first == evaluation, "one cache entry for two evaluations:\n{}", draw(game, &position.state));
        Ok(())
    })
}

pub(super) fn erased_play_is_the_same<G: Game>(game: &G, trail: &Trail) -> Law {
    let erased: Arc<dyn ErasedRules> = Arc::new(ErasedGame::new(game.clone()));
    equal!((erased.name(), erased.options()), (G::NAME, game.options()));
    equal!(erased.sizes(), game.sizes());
    for number in 0..num_games(game) {
        let mut rng = draws(number);
        let mut position = Position::start(game);
        trail.clear();
        let mut playthrough = Playthrough::new(erased.clone());
        loop {
            equal!(playthrough.state(), bytemuck::bytes_of(&position.state));
            equal!(bytemuck::pod_read_unaligned::<G::State>(playthrough.state()), position.state);
            equal!(playthrough.legal(), position.legal);
            equal!(playthrough.turn(), position.turn);
            if position.is_over() {
                break;
            }
            let action = position.choose(game, &mut rng);
            trail.add(game, &position.state, action);
            position.step(game, action);
            playthrough.step(action).map_err(|e| e.to_string())?;
        }
        equal!(erased.returns(playthrough.state()), returns(game, &position.state));
        holds!(playthrough.step(0).is_err(), "a finished game takes the action 0");
    }
    Ok(())
}

pub(super) fn batches_keep_finished_games<G: Game>(game: &G, _trail: &Trail) -> Law {
    const SLOTS: usize = 5;
    let mut batch = GameBatch::new(game.clone(), SLOTS);
    let mut rng: Vec<RngStream> = (0..SLOTS as u64).map(draws).collect();
    let mut lone: Vec<Position<G>> = (0..SLOTS).map(|_| Position::start(game)).collect();
    while lone.iter().any(|position| !position.is_over()) {
        // Finished slots get an action that must not be read.
        let mut actions = [u16::MAX; SLOTS];
        for slot in 0..SLOTS {
            equal!(batch.states()[slot], lone[slot].state, "slot {slot}");
            equal!(batch.legal(slot), lone[slot].legal, "slot {slot}");
            if !lone[slot].is_over() {
                actions[slot] = lone[slot].choose(game, &mut rng[slot]);
                lone[slot].step(game, actions[slot]);
            }
        }
        batch.step(&actions);
    }
    for (slot, position) in lone.iter().enumerate() {
        equal!(batch.states()[slot], position.state, "slot {slot} moved on after its end");
        equal!(batch.plies()[slot] as usize, position.before.len(), "slot {slot}");
    }
    equal!(batch.refill(), SLOTS);
    equal!(batch.states(), vec![game.init(); SLOTS]);
    Ok(())
}
