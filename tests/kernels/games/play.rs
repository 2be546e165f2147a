//! Random games in Rust and in the kernel side by side; after every ply all that both tell must be equal to the bit.

use super::entry::Kernel;
use vecaz::game::{Game, History, Turn};
use vecaz::rng::{Key, Purpose, RngStream};

const SEED: u64 = 23;

/// Plies checked at least with one setting.
const NUM_PLIES: usize = 40_000;

/// Games played at least with one setting.
const NUM_GAMES: u64 = 500;

/// The environment variable with another number of them. With 1,000, chess, Go, backgammon, Hex, Gomoku, Othello and Connect Four
/// were compared on 2026-11-22, no difference found; the short games play more than that in any case.
const MIN_GAMES_VARIABLE: &str = "VECAZ_KERNEL_GAMES";

/// Of so many plies one's observations are compared, so that large ones leave time for many games.
fn observe_every<G: Game>(game: &G) -> u64 {
    let sizes = game.sizes();
    (sizes.obs.len() * sizes.num_players / 200).clamp(1, 16) as u64
}

/// Plays [`NUM_PLIES`], [`NUM_GAMES`] and the last game to its end; gives the number of games.
pub fn play_side_by_side<G: Game>(game: &G) -> u64 {
    let kernel = Kernel::new(game);
    let least = std::env::var(MIN_GAMES_VARIABLE)
        .map_or(NUM_GAMES, |games| games.parse().expect("a number of games"));
    let (mut plies, mut number) = (0, 0);
    while plies < NUM_PLIES || number < least {
        plies += play_one(game, &kernel, number);
        number += 1;
    }
    number
}

/// Plays game number `number` to its end; gives its plies.
fn play_one<G: Game>(game: &G, kernel: &Kernel<G>, number: u64) -> usize {
    let mut state = game.init();
    let mut keys = Vec::new();
    assert_eq!(kernel.init(), state, "init");
    for ply in 0.. {
        let mut rng = Key::new(SEED, Purpose::Evaluation).with(number).with(ply).stream();
        let context = Context { game, kernel, seeds: [SEED, number, ply] };
        context.compare_position(&state, &mut rng);
        if game.turn(&state) == Turn::Over {
            return ply as usize;
        }
        // Whatever part of the history is the game's and whatever the search path's, the rules are the same.
        let split = rng.below(keys.len() + 1);
        let history = History { played: &keys[..split], path: &keys[split..] };
        let legal = context.compare_legal(&state, history, &mut rng);
        let action = legal[rng.below(legal.len())];
        let before = state;
        context.compare_step(&mut state, action, history);
        if game.sizes().uses_history {
            keys.push(game.history_key(&before));
        }
    }
    unreachable!("games end")
}

struct Context<'a, G: Game> {
    game: &'a G,
    kernel: &'a Kernel<G>,
    /// Seed, game, ply.
    seeds: [u64; 3],
}

impl<G: Game> Context<'_, G> {
    /// Panics with the game, seed and ply where two outputs differ.
    fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, kernel: T, rust: T) {
        let [_, number, ply] = self.seeds;
        assert!(kernel == rust, "{what}: game {number} ply {ply}: kernel {kernel:?}, Rust {rust:?}");
    }

    fn same_floats(&self, what: &str, kernel: &[f32], rust: &[f32]) {
        let differs = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits();
        let first = kernel.iter().zip(rust).position(differs);
        self.same(what, first.map(|i| (i, kernel[i])), first.map(|i| (i, rust[i])));
        self.same(what, first.is_some(), false);
    }

    fn compare_position(&self, state: &G::State, rng: &mut RngStream) {
        let (game, kernel, sizes) = (self.game, self.kernel, self.game.sizes());
        self.same("turn", kernel.turn(state), game.turn(state));
        self.same("is_horizon", kernel.is_horizon(state), game.is_horizon(state));
        self.same("num_seated", kernel.num_seated(state), game.num_seated(state, sizes.num_players));
        self.same("history_key", kernel.history_key(state), game.history_key(state));
        if game.turn(state) == Turn::Over || game.is_horizon(state) {
            let mut returns = vec![f32::NAN; sizes.num_players];
            game.returns(state, &mut returns);
            self.same_floats("returns", &kernel.returns(state), &returns);
            game.stage_returns(state, &mut returns);
            self.same_floats("stage_returns", &kernel.stage_returns(state), &returns);
        }
        if self.seeds[2].is_multiple_of(observe_every(game)) || game.turn(state) == Turn::Over {
            (0..sizes.num_players as u8).for_each(|player| self.compare_observed(state, player));
        }
        let symmetry = rng.below(sizes.num_symmetries as usize) as u64;
        self.same("transform", kernel.transform(state, symmetry), game.transform(state, symmetry));
        self.compare_determinised(state, rng);
    }

    fn compare_observed(&self, state: &G::State, player: u8) {
        let mut observed = vec![f32::NAN; self.game.sizes().obs.len()];
        self.game.observe(state, player, &mut observed);
        self.same_floats("observe with one lane", &self.kernel.observe(state, player), &observed);
        self.same_floats("observe with 32 lanes", &self.kernel.observe_lanes(state, player), &observed);
    }

    fn compare_determinised(&self, state: &G::State, rng: &mut RngStream) {
        if !matches!(self.game.turn(state), Turn::Player(_)) {
            return;
        }
        let player = rng.below(self.game.sizes().num_players) as u8;
        let [seed, number, ply] = self.seeds;
        let mut stream = Key::new(seed, Purpose::Determinise).with(number).with(ply).stream();
        let drawn = self.game.determinise(state, player, &mut stream);
        let expected = (drawn, stream.next_u64());
        self.same("determinise", self.kernel.determinise(state, player, self.seeds), expected);
    }

    fn compare_legal(&self, state: &G::State, history: History<'_>, rng: &mut RngStream) -> Vec<u16> {
        let (game, kernel, sizes) = (self.game, self.kernel, self.game.sizes());
        let mut legal = vec![0; sizes.num_edges()];
        let n = game.legal(state, history, &mut legal);
        legal.truncate(n);
        self.same("legal", &kernel.legal(state, history), &legal);
        if game.turn(state) == Turn::Chance {
            let mut probs = vec![f32::NAN; n];
            game.chance_probs(state, &legal, &mut probs);
            self.same_floats("chance_probs", &kernel.chance_probs(state, &legal), &probs);
        } else {
            let symmetry = rng.below(sizes.num_symmetries as usize) as u64;
            let rust: Vec<u16> = legal.iter().map(|&a| game.transform_action(a, symmetry)).collect();
            let ours = legal.iter().map(|&a| kernel.transform_action(a, symmetry)).collect();
            self.same("transform_action", ours, rust);
        }
        legal
    }

    fn compare_step(&self, state: &mut G::State, action: u16, history: History<'_>) {
        let mut stepped = *state;
        self.kernel.step(&mut stepped, action, history);
        self.game.step(state, action, history);
        self.same("step", bytemuck::bytes_of(&stepped), bytemuck::bytes_of(state));
        self.same("step", stepped, *state);
    }
}
