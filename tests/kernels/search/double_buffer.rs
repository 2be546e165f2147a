//! Games and trees on the CPU with the network's own kernels elsewhere, evaluating one half of the games while the threads are
//! in the trees of the other: the same games, to the bit.

use super::resident::{CASES, RESNET, evaluator, parts};
use super::selfplay::{Played, config};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use vecaz::backend::RootCache;
use vecaz::config::{Config, Precision};
use vecaz::device::kernel_times::{COPY_IN, COPY_OUT, KernelTime};
use vecaz::net::double_buffer::{DoubleBufferedNetwork, NetOutputs, ObsBuffer};
use vecaz::net::gpu::DeviceEvaluator;
use vecaz::net::{IoShape, Network};
use vecaz::registry::any_game;
use vecaz::selfplay::SelfPlay;
use vecaz::{Error, Result};

use crate::host_device::HostDevice;

/// A network evaluated shard by shard, as if it had one batch.
struct SingleBuffered(Box<dyn Network>);

impl Network for SingleBuffered {
    fn shape(&self) -> IoShape {
        self.0.shape()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        self.0.forward(obs, logits, values)
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(Self(self.0.fork()))
    }
}

/// Calls of a double-buffered network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Start(usize),
    Finish(usize),
}

type Calls = Arc<Mutex<Vec<Call>>>;

/// A network that must be double-buffered, with its calls noted.
struct DoubleBuffered {
    network: Box<dyn Network>,
    calls: Calls,
}

impl Network for DoubleBuffered {
    fn shape(&self) -> IoShape {
        self.network.shape()
    }

    fn forward(&mut self, _obs: &[f32], _logits: &mut [f32], _values: &mut [f32]) -> Result<()> {
        panic!("evaluated by whole shards")
    }

    fn double_buffered(&self, max_leaves: usize) -> Result<Option<Box<dyn DoubleBufferedNetwork>>> {
        let batches = self.network.double_buffered(max_leaves)?.expect("a network on a device has batches");
        Ok(Some(Box::new(Noting { batches, calls: self.calls.clone() })))
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(Self { network: self.network.fork(), calls: self.calls.clone() })
    }
}

struct Noting {
    batches: Box<dyn DoubleBufferedNetwork>,
    calls: Calls,
}

impl DoubleBufferedNetwork for Noting {
    fn input_buffer(&mut self, batch: usize, leaves: usize) -> Result<ObsBuffer<'_>> {
        self.batches.input_buffer(batch, leaves)
    }

    fn start(&mut self, batch: usize) -> Result<()> {
        self.calls.lock().expect("no panic").push(Call::Start(batch));
        self.batches.start(batch)
    }

    fn finish(&mut self, batch: usize) -> Result<NetOutputs<'_>> {
        self.calls.lock().expect("no panic").push(Call::Finish(batch));
        self.batches.finish(batch)
    }

    fn copied(&self) -> u64 {
        self.batches.copied()
    }

    fn begin_timing(&mut self) {
        self.batches.begin_timing();
    }

    fn end_timing(&mut self) -> Result<Vec<KernelTime>> {
        self.batches.end_timing()
    }
}

/// Two polls with each network, on so many threads.
fn play(config: &Config, networks: &[&dyn Network], threads: usize) -> Result<Played> {
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let mut selfplay = SelfPlay::new(&game, config, networks[0], Vec::new(), threads)?;
    let mut games = Vec::new();
    for network in networks {
        selfplay.set_network(*network, RootCache::default())?;
        for _ in 0..2 {
            games.extend(selfplay.poll()?);
        }
    }
    Ok(Played { games, slots: selfplay.slots().cloned().collect() })
}

#[test]
fn games_are_the_same_double_buffered_with_the_weights_swapped() {
    for (game, search, selfplay, net, precision) in CASES {
        let config = config(game, search, selfplay);
        let rules = any_game(config.game_name(), &config.game_options()).expect("registered");
        let opened_twice = |opened: &Arc<AtomicUsize>| -> [DeviceEvaluator<HostDevice>; 2] {
            [1, 2].map(|seed| evaluator(parts(rules.as_ref(), net, precision, seed), opened))
        };
        let [old, new] = opened_twice(&Arc::default()).map(|network| SingleBuffered(Box::new(network)));
        let right = play(&config, &[&old, &new], 1).expect("finite");
        assert!(!right.games.is_empty(), "{game}");
        let (opened, calls) = (Arc::new(AtomicUsize::new(0)), Calls::default());
        let [old, new] = opened_twice(&opened)
            .map(|network| DoubleBuffered { network: Box::new(network), calls: calls.clone() });
        let found = play(&config, &[&old, &new], 3).expect("finite");
        assert_eq!(found, right, "{game} {precision:?} on 3 threads");
        assert_eq!(opened.load(Ordering::Relaxed), 4, "two streams for each set of weights");
        assert!(!calls.lock().expect("no panic").is_empty(), "{game}");
    }
}

#[test]
fn one_batch_is_evaluated_while_the_other_is_made() {
    const PASSES: usize = 5;
    let config = config(
        "name = 'connect_four'",
        "simulations = 40\ncache_entries = 0",
        &format!("games = 4\npasses_per_poll = {PASSES}"),
    );
    let game = any_game("connect_four", &toml::Table::new()).expect("registered");
    let calls = Calls::default();
    let network = evaluator(parts(game.as_ref(), RESNET, Precision::Bf16, 1), &Arc::default());
    let network = DoubleBuffered { network: Box::new(network), calls: calls.clone() };
    let mut selfplay = SelfPlay::new(&game, &config, &network, Vec::new(), 2).expect("fits");
    selfplay.set_network(&network, RootCache::default()).expect("finite weights");
    selfplay.poll().expect("finite");
    let pass = [Call::Start(1), Call::Finish(0), Call::Start(0), Call::Finish(1)];
    let mut expected = vec![Call::Start(0)];
    expected.extend(pass.repeat(PASSES));
    expected.remove(4 * PASSES - 1); // no pass after the last
    assert_eq!(*calls.lock().expect("no panic"), expected);
}

#[test]
fn what_travels_there_and_back_is_counted_and_timed() {
    const PASSES: u64 = 3;
    let config = config(
        "name = 'connect_four'",
        "simulations = 40\ncache_entries = 0",
        &format!("games = 4\npasses_per_poll = {PASSES}"),
    );
    let game = any_game("connect_four", &toml::Table::new()).expect("registered");
    let network = evaluator(parts(game.as_ref(), RESNET, Precision::Bf16, 1), &Arc::default());
    let mut selfplay = SelfPlay::new(&game, &config, &network, Vec::new(), 2).expect("fits");
    selfplay.set_network(&network, RootCache::default()).expect("finite weights");
    assert!(selfplay.timed_poll().expect("no forward").is_none(), "before the first poll");
    selfplay.poll().expect("finite");
    // Of each game observations of 16 bits, logits and values; of each half the word that tells numbers.
    let IoShape { obs_len, num_actions, num_players } = network.shape();
    let of_pass = 4 * (2 * obs_len + 4 * num_actions + 4 * num_players) + 2 * 4;
    let copied = selfplay.take_metrics().copied;
    assert_eq!((copied.inside, copied.total), (PASSES * of_pass as u64, PASSES * of_pass as u64));
    let (times, seconds) = selfplay.timed_poll().expect("finite").expect("in batches");
    let launches =
        |name| times.iter().find(|time| time.kernel == name).map(|time: &KernelTime| time.launches);
    assert_eq!(launches(COPY_IN), Some(2 * PASSES));
    assert_eq!(launches(COPY_OUT), Some(2 * 3 * PASSES), "logits, values and the word");
    assert!(times.len() > 2, "kernels too: {times:?}");
    assert!(seconds > 0.0);
}

#[test]
fn halves_refuse_outputs_that_are_no_numbers_and_batches_that_are_too_large() {
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let mut huge = parts(game.as_ref(), RESNET, Precision::F32, 1);
    huge.weights.get_mut("policy.linear.weight").expect("there").data.fill(3e38);
    let network = evaluator(huge, &Arc::default());
    let config = config("name = 'tic_tac_toe'", "simulations = 6", "games = 2\npasses_per_poll = 4");
    let Err(error) = play(&config, &[&network], 2) else { panic!("infinite logits") };
    assert_eq!(error.to_string(), "a logit or value of the network is not finite (NaN)");

    let mut batches = network.double_buffered(4).expect("a device").expect("two of them");
    assert!(batches.input_buffer(1, 4).is_ok());
    assert!(matches!(batches.input_buffer(0, 5), Err(Error::Mismatch { .. })));
}
