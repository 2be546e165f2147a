//! One function per law of `trait Game`.

use crate::walk::{Position, chance_probs, draws, legal, num_games, observe, returns, walk};
use std::collections::{HashMap, HashSet};
use vecaz::batch::{GameBatch, Playthrough, erase};
use vecaz::game::{Game, History, Turn};
use vecaz::rng::RngStream;

/// Maximum number of symmetries checked per position.
const SYMMETRIES: u64 = 12;

pub fn sizes_are_consistent<G: Game>(game: &G) {
    let sizes = game.sizes();
    assert!((1..=8).contains(&sizes.num_players), "{sizes:?}");
    assert!((1..=sizes.num_actions).contains(&sizes.max_legal), "{sizes:?}");
    assert_eq!(sizes.num_edges(), sizes.max_legal.max(sizes.num_chance));
    assert!(sizes.num_chance > 0 || sizes.max_chance_run == 0, "{sizes:?}");
    assert!(!sizes.obs.is_empty() && sizes.max_plies > 0 && sizes.num_symmetries > 0, "{sizes:?}");
    assert!(align_of::<G::State>() <= 8);
}

pub fn options_make_the_same_game<G: Game>(game: &G) {
    let again = G::from_options(&game.options()).unwrap();
    assert_eq!(again.options(), game.options());
    assert_eq!(again.sizes(), game.sizes());
    walk(game, |position, _| {
        assert_eq!(again.turn(&position.state), position.turn);
        assert_eq!(legal(&again, &position.state, &position.keys), position.legal);
    });
}

pub fn unknown_options_are_refused<G: Game>(game: &G) {
    let mut options = game.options();
    options.insert("no_such_option".into(), 1.into());
    let refused = G::from_options(&options).err().expect("an unknown key must be refused").to_string();
    assert!(refused.contains("no_such_option"), "the message must name the key: {refused}");
}

pub fn play_is_legal_and_ends<G: Game>(game: &G) {
    let sizes = game.sizes();
    walk(game, |position, _| {
        let (most, bound) = match position.turn {
            Turn::Over => return,
            Turn::Chance => (sizes.num_chance, sizes.num_chance),
            Turn::Player(player) => {
                assert!(usize::from(player) < sizes.num_players, "player {player} is to move");
                (sizes.max_legal, sizes.num_actions)
            }
        };
        let list = &position.legal;
        assert!(
            !list.is_empty(),
            "nothing is legal though the game goes on:\n{}",
            game.display(&position.state)
        );
        assert!(list.len() <= most, "{} are legal, more than {most}", list.len());
        assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "not ascending: {list:?}");
        assert!(list.iter().all(|&action| usize::from(action) < bound), "not below {bound}: {list:?}");
    });
}

pub fn chance_is_a_distribution<G: Game>(game: &G) {
    let sizes = game.sizes();
    walk(game, |position, _| {
        if position.turn != Turn::Chance {
            return;
        }
        let probs = chance_probs(game, &position.state, &position.legal);
        assert!(probs.iter().all(|p| (0.0..=1.0).contains(p)), "{probs:?}");
        let sum: f64 = probs.iter().map(|&p| f64::from(p)).sum();
        assert!((sum - 1.0).abs() < 1e-5, "the probabilities sum to {sum}");
        let run = chance_run(game, position);
        let most = sizes.max_chance_run;
        assert!(run <= most, "{run} chance states in a row, max_chance_run is {most}");
    });
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

pub fn returns_are_bounded<G: Game>(game: &G) {
    let sizes = game.sizes();
    walk(game, |position, _| {
        if !position.is_over() {
            return;
        }
        let values = returns(game, &position.state);
        assert!(values.iter().all(|value| (-1.0..=1.0).contains(value)), "{values:?}");
        let sum: f32 = values.iter().sum();
        assert!(!sizes.zero_sum || sum.abs() < 1e-5, "declared zero-sum, but {values:?}");
        let scores = game.scores(&position.state);
        assert_eq!(scores.len(), sizes.num_players);
        assert!(scores.iter().all(|score| score.is_finite()), "{scores:?}");
    });
}

/// All symmetries if there are few, otherwise the identity and some others at random.
fn some_symmetries(count: u64, rng: &mut RngStream) -> Vec<u64> {
    if count <= SYMMETRIES {
        return (0..count).collect();
    }
    let others = (1..SYMMETRIES).map(|_| 1 + rng.next_u64() % (count - 1));
    let set: HashSet<u64> = std::iter::once(0).chain(others).collect();
    set.into_iter().collect()
}

pub fn symmetries_are_distinct_bijections<G: Game>(game: &G) {
    let sizes = game.sizes();
    let (actions, players) = (sizes.num_actions as u16, sizes.num_players as u8);
    let images = |symmetry| {
        let of_actions: Vec<u16> =
            (0..actions).map(|action| game.transform_action(action, symmetry)).collect();
        let of_players: Vec<u8> =
            (0..players).map(|player| game.transform_player(player, symmetry)).collect();
        (of_actions, of_players)
    };
    assert_eq!(images(0), ((0..actions).collect(), (0..players).collect()), "symmetry 0 is the identity");
    let mut seen = HashMap::new();
    for symmetry in some_symmetries(sizes.num_symmetries, &mut draws(0)) {
        let (of_actions, of_players) = images(symmetry);
        let sorted = |mut list: Vec<u16>| {
            list.sort_unstable();
            list
        };
        assert_eq!(sorted(of_actions.clone()), (0..actions).collect::<Vec<_>>(), "symmetry {symmetry}");
        let players_sorted = sorted(of_players.iter().copied().map(u16::from).collect());
        assert_eq!(players_sorted, (0..u16::from(players)).collect::<Vec<_>>(), "symmetry {symmetry}");
        if let Some(other) = seen.insert((of_actions, of_players), symmetry) {
            panic!("symmetries {other} and {symmetry} are the same");
        }
    }
}

pub fn symmetries_commute_with_play<G: Game>(game: &G) {
    let count = game.sizes().num_symmetries;
    walk(game, |position, rng| {
        assert_eq!(game.transform(&position.state, 0), position.state, "symmetry 0 is the identity");
        // If histories have to be transformed too, checking every ply would take quadratic time.
        if game.sizes().uses_history && !position.before.len().is_multiple_of(7) && !position.is_over() {
            return;
        }
        for symmetry in some_symmetries(count, rng) {
            check_image(game, position, symmetry, rng);
        }
    });
}

fn check_image<G: Game>(game: &G, position: &Position<G>, symmetry: u64, rng: &mut RngStream) {
    let image = game.transform(&position.state, symmetry);
    let board = || format!("symmetry {symmetry} of\n{}", game.display(&position.state));
    let turn = match position.turn {
        Turn::Player(player) => Turn::Player(game.transform_player(player, symmetry)),
        other => other,
    };
    assert_eq!(game.turn(&image), turn, "{}", board());
    if position.is_over() {
        let (own, images) = (returns(game, &position.state), returns(game, &image));
        for (player, value) in own.iter().enumerate() {
            let image_of_player = game.transform_player(player as u8, symmetry);
            assert_eq!(images[usize::from(image_of_player)], *value, "{}", board());
        }
        return;
    }
    let keys: Vec<u64> = match game.sizes().uses_history {
        true => position.before.iter().map(|s| game.history_key(&game.transform(s, symmetry))).collect(),
        false => Vec::new(),
    };
    // Symmetries leave chance outcomes unchanged.
    let image_of = |action| match position.turn {
        Turn::Chance => action,
        Turn::Player(_) | Turn::Over => game.transform_action(action, symmetry),
    };
    let mut expected: Vec<u16> = position.legal.iter().map(|&action| image_of(action)).collect();
    expected.sort_unstable();
    assert_eq!(legal(game, &image, &keys), expected, "{}", board());
    let action = position.legal[rng.below(position.legal.len())];
    let mut stepped = position.state;
    game.step(&mut stepped, action, position.history());
    let mut image_stepped = image;
    game.step(&mut image_stepped, image_of(action), History { played: &keys, path: &[] });
    assert_eq!(image_stepped, game.transform(&stepped, symmetry), "action {action}, {}", board());
}

pub fn observations_are_finite_and_complete<G: Game>(game: &G) {
    let sizes = game.sizes();
    let mut seen = HashSet::new();
    walk(game, |position, rng| {
        let symmetry = rng.next_u64() % sizes.num_symmetries;
        let image = game.transform(&position.state, symmetry);
        for player in 0..sizes.num_players as u8 {
            for state in [&position.state, &image] {
                let seen_now = observe(game, state, player);
                let missing = seen_now.iter().position(|x| !x.is_finite());
                assert_eq!(missing, None, "the first entry not written or not finite, player {player}");
                assert_eq!(seen_now, observe(game, state, player));
                seen.insert(seen_now.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
            }
        }
    });
    assert!(seen.len() > 3, "observations hardly change");
}

pub fn hidden_draws_keep_what_is_seen<G: Game>(game: &G) {
    let sizes = game.sizes();
    let mut changed = false;
    walk(game, |position, rng| {
        let Turn::Player(mover) = position.turn else { return };
        for player in 0..sizes.num_players as u8 {
            let drawn = game.determinise(&position.state, player, rng);
            changed |= drawn != position.state;
            assert_eq!(game.turn(&drawn), position.turn, "player {player}");
            let known = |state| observe(game, state, player)[..game.known_obs()].to_vec();
            assert_eq!(known(&drawn), known(&position.state), "player {player}");
            let again = game.determinise(&drawn, player, &mut draws(1));
            let same = game.determinise(&position.state, player, &mut draws(1));
            assert_eq!(again, same, "what is drawn depends on what player {player} does not know");
            if player == mover {
                assert_eq!(legal(game, &drawn, &position.keys), position.legal, "player {player}");
            }
        }
    });
    assert_eq!(changed, sizes.hidden_information, "hidden_information against what determinise does");
}

/// A file may have any bytes: states that pass [`Game::is_valid`] are observed and transformed without a panic.
pub fn bytes_that_are_valid_can_be_observed<G: Game>(game: &G) {
    let sizes = game.sizes();
    walk(game, |position, rng| {
        assert!(game.is_valid(&position.state), "refused:\n{}", game.display(&position.state));
        for changed in [0, 1, 1, 2, 3, size_of::<G::State>()] {
            let mut state = position.state;
            let bytes = bytemuck::bytes_of_mut(&mut state);
            for _ in 0..changed {
                let extremes = [0, 1, 127, 128, 255, rng.below(256) as u8];
                bytes[rng.below(bytes.len())] = extremes[rng.below(extremes.len())];
            }
            if !game.is_valid(&state) {
                continue;
            }
            let image = game.transform(&state, rng.below(sizes.num_symmetries as usize) as u64);
            for state in [state, image] {
                if let Turn::Player(player) = game.turn(&state) {
                    assert!(usize::from(player) < sizes.num_players, "player {player}");
                }
                (0..sizes.num_players as u8).for_each(|player| drop(observe(game, &state, player)));
            }
        }
    });
}

pub fn canonical_states_share_an_evaluation<G: Game>(game: &G) {
    let mut known: HashMap<Vec<u8>, (Vec<f32>, Vec<u16>)> = HashMap::new();
    walk(game, |position, _| {
        let Turn::Player(player) = position.turn else { return };
        let canonical = game.canonical(&position.state);
        assert_eq!(game.canonical(&canonical), canonical, "canonical of canonical");
        let evaluation = (observe(game, &position.state, player), position.legal.clone());
        let key = bytemuck::bytes_of(&canonical).to_vec();
        let first = known.entry(key).or_insert_with(|| evaluation.clone());
        assert!(
            *first == evaluation,
            "one cache entry for two evaluations:\n{}",
            game.display(&position.state)
        );
    });
}

pub fn history_keys_follow_the_position<G: Game>(game: &G) {
    if !game.sizes().uses_history {
        walk(game, |position, _| assert!(position.keys.is_empty()));
        return;
    }
    walk(game, |position, _| {
        if position.is_over() {
            let distinct: HashSet<u64> = position.keys.iter().copied().collect();
            let plies = position.keys.len();
            assert!(2 * distinct.len() > plies, "{} keys in {plies} plies", distinct.len());
            assert_eq!(game.history_key(&game.init()), position.keys[0]);
        }
    });
}

pub fn names_are_read_back<G: Game>(game: &G) {
    walk(game, |position, _| {
        assert!(!game.display(&position.state).trim().is_empty());
        for &action in &position.legal {
            let name = game.action_name(&position.state, action);
            let read = game.parse_action(&position.state, position.history(), &name);
            assert_eq!(read, Some(action), "the name {name:?}");
        }
        let nothing = game.parse_action(&position.state, position.history(), "no such action");
        assert_eq!(nothing, None);
    });
}

pub fn erased_play_is_the_same<G: Game>(game: &G) {
    let erased = erase(game.clone());
    assert_eq!((erased.name(), erased.options()), (G::NAME, game.options()));
    assert_eq!(erased.sizes(), game.sizes());
    for number in 0..num_games(game) {
        let mut rng = draws(number);
        let mut position = Position::start(game);
        let mut playthrough = Playthrough::new(erased.clone());
        loop {
            assert_eq!(playthrough.state(), bytemuck::bytes_of(&position.state));
            assert_eq!(bytemuck::pod_read_unaligned::<G::State>(playthrough.state()), position.state);
            assert_eq!(playthrough.legal(), position.legal);
            assert_eq!(playthrough.turn(), position.turn);
            if position.is_over() {
                break;
            }
            let action = position.choose(game, &mut rng);
            position.step(game, action);
            playthrough.step(action).unwrap();
        }
        assert_eq!(erased.returns(playthrough.state()), returns(game, &position.state));
        assert!(playthrough.step(0).is_err(), "a finished game takes no action");
    }
}

pub fn batches_keep_finished_games<G: Game>(game: &G) {
    const SLOTS: usize = 5;
    let mut batch = GameBatch::new(game.clone(), SLOTS);
    let mut rng: Vec<RngStream> = (0..SLOTS as u64).map(draws).collect();
    let mut lone: Vec<Position<G>> = (0..SLOTS).map(|_| Position::start(game)).collect();
    while lone.iter().any(|position| !position.is_over()) {
        // Finished slots get an action that must not be read.
        let mut actions = [u16::MAX; SLOTS];
        for slot in 0..SLOTS {
            assert_eq!(batch.states()[slot], lone[slot].state, "slot {slot}");
            assert_eq!(batch.legal(slot), lone[slot].legal, "slot {slot}");
            if !lone[slot].is_over() {
                actions[slot] = lone[slot].choose(game, &mut rng[slot]);
                lone[slot].step(game, actions[slot]);
            }
        }
        batch.step(&actions);
    }
    for (slot, position) in lone.iter().enumerate() {
        assert_eq!(batch.states()[slot], position.state, "slot {slot} moved on after its end");
        assert_eq!(batch.plies()[slot] as usize, position.before.len(), "slot {slot}");
    }
    assert_eq!(batch.refill(), SLOTS);
    assert_eq!(batch.states(), vec![game.init(); SLOTS]);
}
