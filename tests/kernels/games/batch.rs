//! `batch.cu` against [`vecaz::batch::GameBatch`].

use super::entry::CODE;
use crate::host_compiler::Effort;
use crate::host_device::HostDevice;
use bytemuck::cast_slice;
use vecaz::backend::AnyGame;
use vecaz::backend::gpu::batch::{DeviceBatch, StepResults};
use vecaz::batch::GameBatch;
use vecaz::game::{Game, Turn};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};

/// Games of a batch: not a whole number of blocks.
const NUM_GAMES: usize = 131;
const SEED: u64 = 29;

/// A device whose programs are those of [`super::entry::Kernel`].
fn device() -> HostDevice {
    HostDevice::new(SEED).with_code(CODE).with_effort(Effort::Little)
}

/// Both batches, and the game with its type erased.
struct Pair<G: Game> {
    any: std::sync::Arc<dyn AnyGame>,
    rust: GameBatch<G>,
    kernels: DeviceBatch<HostDevice>,
}

impl<G: Game> Pair<G> {
    fn new(game: &G) -> Self {
        let any = any_game(G::NAME, &game.options()).expect("the game's own options");
        let kernels = DeviceBatch::new(device(), &*any, NUM_GAMES).expect("a batch");
        Self { any, rust: GameBatch::new(game.clone(), NUM_GAMES), kernels }
    }

    fn compare(&mut self, when: &str) {
        let states: &[u8] = cast_slice(self.rust.states());
        assert!(self.kernels.states().expect("states") == states, "{when}: states");
        assert_eq!(self.kernels.plies().expect("plies"), self.rust.plies(), "{when}: plies");
        assert_eq!(
            self.kernels.finished().expect("finished"),
            self.rust.finished(),
            "{when}: finished games"
        );
        let mut observed = vec![f32::NAN; NUM_GAMES * self.any.sizes().obs.len()];
        self.any.observe_batch(states, &mut observed);
        let same = self.kernels.observe().expect("observations") == observed;
        assert!(same, "{when}: observations");
        let legal = self.kernels.legal().expect("legal actions");
        for (slot, row) in legal.actions.chunks_exact(self.any.sizes().num_edges()).enumerate() {
            let row = &row[..usize::from(legal.lengths[slot])];
            assert_eq!(row, self.rust.legal(slot), "{when}: legal actions of game {slot}");
        }
    }

    /// One ply by the actions in Rust, with what it ends told as [`StepResults`] does.
    fn step_in_rust(&mut self, game: &G, actions: &[u16]) -> StepResults {
        self.rust.step(actions);
        let players = self.any.sizes().num_players;
        let mut stepped = StepResults { over: vec![0; NUM_GAMES], returns: vec![0.0; NUM_GAMES * players] };
        for (slot, state) in self.rust.states().iter().enumerate() {
            if game.turn(state) == Turn::Over {
                stepped.over[slot] = 1;
                game.returns(state, &mut stepped.returns[slot * players..(slot + 1) * players]);
            }
        }
        self.rust.refill();
        stepped
    }
}

/// Plays both batches, ply by ply and then many plies in one launch, with everything compared.
pub fn play_batches<G: Game>(game: &G) {
    let mut pair = Pair::new(game);
    pair.compare("at the start");
    let mut rng = Key::new(SEED, Purpose::Evaluation).stream();
    for ply in 0..40 {
        let actions: Vec<u16> = (0..NUM_GAMES)
            .map(|slot| {
                let legal = pair.rust.legal(slot);
                legal[rng.below(legal.len())]
            })
            .collect();
        let expected = pair.step_in_rust(game, &actions);
        assert_eq!(pair.kernels.step(&actions).expect("a step"), expected, "ply {ply}");
    }
    pair.compare("after steps");
    for plies in [1, 7, 50, 300] {
        pair.kernels.random_play(SEED, plies).expect("random play");
        (0..plies).for_each(|_| pair.rust.step_random(SEED));
        pair.compare("after random play");
    }
}

#[test]
fn wrong_numbers_of_games_and_actions_are_refused() {
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("a game");
    let mut batch = DeviceBatch::new(device(), &*game, 3).expect("a batch");
    let error = batch.step(&[0, 1]).expect_err("two actions").to_string();
    assert_eq!(error, "actions for a batch: found 2, expected 3, one a game");
    let error = DeviceBatch::new(device(), &*game, 1 << 30).err().expect("too many").to_string();
    assert_eq!(error, "1073741824 games: a batch holds at most 67108864");
}
