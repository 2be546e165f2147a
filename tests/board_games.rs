//! Othello, Hex and Gomoku in every kind of setting: the contract of the trait by random play; their files in configs/.

use std::path::Path;
use vecaz::config::Layers;
use vecaz::game::{Game, GameVisitor, History, Turn, dispatch};
use vecaz::rng::{Key, Purpose, Stream};

const SETTINGS: [(&str, &str); 16] = [
    ("othello", "size = 6"),
    ("othello", "size = 8"),
    ("othello", "size = 6\nend = 'two_passes'"),
    ("hex", "size = 3"),
    ("hex", "size = 4\nswap = true"),
    ("hex", "size = 7\nswap = true"),
    ("hex", "size = 11"),
    ("hex", "size = 13"),
    ("hex", "size = 19\nswap = true"),
    ("gomoku", "size = 5"),
    ("gomoku", "size = 5\nopening = 'swap2'"),
    ("gomoku", "size = 6\nrule = 'exact'"),
    ("gomoku", "size = 9\nopening = 'swap2'\nrule = 'exact'"),
    ("gomoku", "size = 15"),
    ("gomoku", "size = 15\nopening = 'swap2'"),
    ("gomoku", "size = 19"),
];

fn for_each_setting<V: GameVisitor + Copy>(visitor: V) {
    for (name, options) in SETTINGS {
        let options = options.parse().expect("TOML");
        dispatch(name, &options, visitor).expect("a valid setting");
    }
}

fn legal<G: Game>(game: &G, state: &G::State) -> Vec<u16> {
    let mut out = vec![0; game.sizes().num_edges()];
    let n = game.legal(state, History::default(), &mut out);
    out.truncate(n);
    out
}

fn stepped<G: Game>(game: &G, state: &G::State, action: u16) -> G::State {
    let mut next = *state;
    game.step(&mut next, action, History::default());
    next
}

fn observed<G: Game>(game: &G, state: &G::State, player: u8) -> Vec<f32> {
    let mut out = vec![f32::NAN; game.sizes().obs.len()];
    game.observe(state, player, &mut out);
    out
}

fn returns<G: Game>(game: &G, state: &G::State) -> [f32; 2] {
    let mut out = [f32::NAN; 2];
    game.returns(state, &mut out);
    out
}

/// Plays `num_games` random games and calls `look` with every state, the final ones too.
fn random_states<G: Game>(game: &G, num_games: u64, mut look: impl FnMut(&G::State, &mut Stream)) {
    for seed in 0..num_games {
        let mut rng = Key::new(seed, Purpose::Evaluation).stream();
        let mut state = game.init();
        let mut plies = 0;
        look(&state, &mut rng);
        while game.turn(&state) != Turn::Over {
            let actions = legal(game, &state);
            state = stepped(game, &state, actions[rng.below(actions.len())]);
            plies += 1;
            assert!(plies <= game.sizes().max_plies, "{} of {} plies", plies, game.sizes().max_plies);
            look(&state, &mut rng);
        }
    }
}

#[test]
fn legal_lists_observations_and_names_are_whole() {
    #[derive(Clone, Copy)]
    struct Check;
    impl GameVisitor for Check {
        type Out = ();
        fn visit<G: Game>(self, game: G) {
            let sizes = game.sizes();
            random_states(&game, 6, |state, rng| {
                for player in 0..2 {
                    let seen = observed(&game, state, player);
                    assert!(seen.iter().all(|x| [-1.0, 0.0, 1.0].contains(x)));
                }
                if game.turn(state) == Turn::Over {
                    let [first, second] = returns(&game, state);
                    assert!(first == -second && [-1.0, 0.0, 1.0].contains(&first));
                    return;
                }
                let actions = legal(&game, state);
                assert!(!actions.is_empty() && actions.len() <= sizes.max_legal);
                assert!(actions.is_sorted_by(|a, b| a < b));
                assert!(usize::from(actions[actions.len() - 1]) < sizes.num_actions);
                let action = actions[rng.below(actions.len())];
                let name = game.action_name(state, action);
                assert_eq!(game.parse_action(state, History::default(), &name.to_uppercase()), Some(action));
                assert_eq!(legal(&game, &game.canonical(state)), actions);
            });
        }
    }
    for_each_setting(Check);
}

#[test]
fn symmetries_commute_with_play_and_keep_what_is_seen() {
    #[derive(Clone, Copy)]
    struct Check;
    impl GameVisitor for Check {
        type Out = ();
        fn visit<G: Game>(self, game: G) {
            let symmetries = game.sizes().num_symmetries;
            random_states(&game, 2, |state, rng| {
                let symmetry = rng.below(symmetries as usize) as u64;
                let image = game.transform(state, symmetry);
                let player = |p| game.transform_player(p, symmetry);
                match (game.turn(state), game.turn(&image)) {
                    (Turn::Player(p), Turn::Player(q)) => assert_eq!(player(p), q),
                    (turn, image_turn) => {
                        assert_eq!(turn, image_turn);
                        let (here, there) = (returns(&game, state), returns(&game, &image));
                        assert!((0..2).all(|p| here[usize::from(p)] == there[usize::from(player(p))]));
                        return;
                    }
                }
                let actions = legal(&game, state);
                let mut images: Vec<u16> =
                    actions.iter().map(|&action| game.transform_action(action, symmetry)).collect();
                let action = rng.below(actions.len());
                assert_eq!(
                    game.transform(&stepped(&game, state, actions[action]), symmetry),
                    stepped(&game, &image, images[action]),
                );
                images.sort_unstable();
                assert_eq!(images, legal(&game, &image));
                // Each plane of the image shows the cells' images.
                let side = game.sizes().obs.height;
                let (seen, image_seen) = (observed(&game, state, 0), observed(&game, &image, player(0)));
                for (plane, image_plane) in seen.chunks(side * side).zip(image_seen.chunks(side * side)) {
                    for (cell, &x) in plane.iter().enumerate() {
                        let image_cell = game.transform_action(cell as u16, symmetry);
                        assert_eq!(x, image_plane[usize::from(image_cell)]);
                    }
                }
            });
        }
    }
    for_each_setting(Check);
}

#[test]
fn settings_and_states_survive_a_round_trip() {
    #[derive(Clone, Copy)]
    struct Check;
    impl GameVisitor for Check {
        type Out = ();
        fn visit<G: Game>(self, game: G) {
            let again = G::from_options(&game.options()).expect("its own settings");
            assert_eq!(again.options(), game.options());
            assert_eq!(again.sizes(), game.sizes());
            assert!(align_of::<G::State>() <= 8);
            random_states(&game, 1, |state, _| {
                let bytes = bytemuck::bytes_of(state).to_vec();
                assert_eq!(bytemuck::pod_read_unaligned::<G::State>(&bytes), *state);
            });
        }
    }
    for_each_setting(Check);
}

#[test]
fn configuration_files_resolve_to_games_of_their_size() {
    #[derive(Clone, Copy)]
    struct Actions;
    impl GameVisitor for Actions {
        type Out = usize;
        fn visit<G: Game>(self, game: G) -> usize {
            game.sizes().num_actions
        }
    }
    for (file, actions) in
        [("othello.toml", 65), ("hex.toml", 121), ("hex13.toml", 170), ("gomoku.toml", 225)]
    {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs").join(file);
        let config = Layers::default().file(&path).and_then(Layers::resolve).expect(file);
        let found = dispatch(config.game_name(), &config.game_options(), Actions).expect(file);
        assert_eq!(found, actions, "{file}");
    }
}
