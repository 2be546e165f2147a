//! Batches out of the replay against [`Replay::batch`]: the same bits.

use super::config;
use crate::host_compiler::Effort;
use crate::host_device::{HostBuffer, HostDevice};
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::batch::programs::program;
use vecaz::config::{Arch, NetConfig};
use vecaz::device::Device;
use vecaz::game::Turn;
use vecaz::net::NetSpec;
use vecaz::net::gpu_train::Samples;
use vecaz::play::Sample;
use vecaz::registry::Registry;
use vecaz::registry::any_game;
use vecaz::replay::{BatchPlan, Replay, Symmetries};
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::train::TrainBatch;
use vecaz::train::device::{DeviceReplay, DeviceTrainer, Residence};

/// Samples that the ring holds, and those of a batch.
pub const CAPACITY: usize = 90;
pub const BATCH: usize = 34;

/// Random plies, each a sample, from the start of a game to its end and on with the next.
pub struct Plies {
    game: Arc<dyn AnyGame>,
    position: Playthrough,
    rng: RngStream,
}

impl Plies {
    pub fn new(game: &Arc<dyn AnyGame>) -> Self {
        let rng = Key::new(9, Purpose::Evaluation).stream();
        Self { game: game.clone(), position: Playthrough::new(game.clone()), rng }
    }

    /// The next ply of a player, seen by any of them: the sample of a whole turn is that of the player who has moved.
    fn sample(&mut self) -> Sample {
        loop {
            let legal = self.position.legal();
            match self.position.turn() {
                Turn::Over => self.position = Playthrough::new(self.game.clone()),
                turn => {
                    let state = self.position.state().to_vec();
                    self.position.step(legal[self.rng.below(legal.len())]).expect("legal");
                    if let Turn::Player(_) = turn {
                        let player = self.rng.below(self.game.num_seated(&state)) as u8;
                        let mut policy = vec![0.0; legal.len()];
                        self.rng.dirichlet(0.5, &mut policy);
                        let values = (0..self.game.sizes().num_players)
                            .map(|_| 2.0 * self.rng.uniform() - 1.0)
                            .collect();
                        return Sample { state, player, actions: legal, policy, values };
                    }
                }
            }
        }
    }

    pub fn push(&mut self, replay: &mut Replay, num: usize) {
        (0..num).for_each(|_| replay.push(&self.sample(), &[]));
    }
}

pub fn plan(number: u64, symmetries: Symmetries) -> BatchPlan {
    BatchPlan { size: BATCH, seed: 5, number, symmetries }
}

fn download<T: bytemuck::Pod>(buffer: &HostBuffer) -> Vec<T> {
    bytemuck::pod_collect_to_vec(buffer.bytes())
}

/// A device that keeps the replay, and one that has no room for it.
fn devices() -> [(HostDevice, Residence); 2] {
    [(HostDevice::new(3), Residence::Device), (HostDevice::new(3).with_free_bytes(1000), Residence::Host)]
}

fn compare(game: &Arc<dyn AnyGame>) {
    let spec = NetSpec::new(&NetConfig::default(), &game.sizes());
    for (device, residence) in devices() {
        let mut device = device.with_effort(Effort::Little);
        device.load(&program(game.as_ref(), "gather").expect("kernels")).expect("a program");
        let mut on_device = DeviceReplay::new(&device, game.as_ref(), CAPACITY, BATCH / 2).expect("memory");
        assert_eq!(on_device.residence(), residence);
        let out = Samples::new(&device, &spec, BATCH / 2).expect("memory");
        let (mut plies, mut replay) = (Plies::new(game), Replay::new(game.as_ref(), CAPACITY));
        // Before the ring is full, as it becomes full, where it goes round, and more than once round.
        for (number, more) in [(1, 40), (2, 0), (3, 70), (4, 25), (5, 300)] {
            plies.push(&mut replay, more);
            for symmetries in [Symmetries::Random, Symmetries::Identity] {
                let plan = plan(number, symmetries);
                let whole = replay.batch(game.as_ref(), plan);
                let mut found = TrainBatch::default();
                for part in [0..BATCH / 2, BATCH / 2..BATCH] {
                    on_device.gather(&device, &replay, plan, part, &out).expect("a batch");
                    found.obs.extend(download::<f32>(&out.obs));
                    found.targets.column_mut("policy").extend(download::<f32>(&out.policy));
                    found.legal.extend(download::<u8>(&out.legal));
                    found.targets.column_mut("values").extend(download::<f32>(&out.values));
                    found.weight.extend(download::<f32>(&out.weight));
                }
                assert!(found == whole, "{} batch {number}, {symmetries:?}, {residence:?}", game.name());
            }
        }
    }
}

#[test]
fn batches_of_every_game_are_those_of_rust() {
    let games = Registry::built_in();
    let all = games.names().into_iter().map(|name| games.game(name, &toml::Table::new()).expect(name));
    all.filter(|game| game.cuda_source().is_some()).for_each(|game| compare(&game));
    let empty_seats = "players = 5\nseated = 0".parse().expect("TOML");
    compare(&any_game("blob", &empty_seats).expect("a game"));
}

#[test]
fn updates_out_of_the_replay_are_those_on_its_batches() {
    check_updates("connect_four", Arch::Mlp);
    check_updates("clique", Arch::Edge);
}

fn check_updates(name: &str, arch: Arch) {
    let game = any_game(name, &toml::Table::new()).expect("a game");
    let net = NetConfig { arch, blocks: 1, channels: 16, ..NetConfig::default() };
    let spec = NetSpec::new(&net, &game.sizes());
    let config = config();
    let (mut plies, mut replay) = (Plies::new(&game), Replay::new(game.as_ref(), CAPACITY));
    for (device, residence) in devices() {
        let trainer =
            |device| DeviceTrainer::new(device, &spec, &config, Some(game.as_ref()), 4).expect("a trainer");
        let (mut found, mut right) = (trainer(device), trainer(HostDevice::new(8)));
        let mut samples = DeviceReplay::new(found.device(), game.as_ref(), CAPACITY, BATCH).expect("memory");
        assert_eq!(samples.residence(), residence);
        for number in 0..3 {
            plies.push(&mut replay, 50);
            let plan = plan(number, Symmetries::Random);
            let expected = right.step(&replay.batch(game.as_ref(), plan)).expect("finite");
            assert_eq!(
                found.step_from(std::slice::from_mut(&mut samples), &replay, plan).expect("finite"),
                expected
            );
        }
        assert_eq!(found.state().expect("a state"), right.state().expect("a state"));
    }
}
