//! A GPU against the CPU: games and whole self-play must agree to the bit, networks within the rounding of their numbers. Without a GPU
//! these tests say loudly that they are skipped; where VECAZ_REQUIRE_CUDA=1 is set they fail instead.
#![cfg(all(feature = "candle", feature = "cuda"))]

#[path = "support/parity.rs"]
mod parity;
#[path = "support/typed_games.rs"]
mod typed_games;

use parity::{BATCH, GAMES, HALF, PART, RESIDENT, RESIDENT_LEAVES, ResidentCase, networks};

use std::sync::Arc;
use typed_games::{GameVisitor, dispatch};
use vecaz::backend::AnyGame;
use vecaz::backend::RootCache;
use vecaz::backend::gpu::batch::DeviceBatch;
use vecaz::batch::GameBatch;
use vecaz::config::{
    Arch, Config, DeviceName, Layers, NetConfig, Precision, TensorCores, TrainConfig, TrainPrecision,
};
use vecaz::device::Device;
use vecaz::device::cuda::CudaDevice;
use vecaz::device::store::Store;
use vecaz::game::Game;
use vecaz::model::{NetSpec, Weights};
use vecaz::net::gpu::cuda_network;
use vecaz::net::gpu::network::{DeviceNetwork, ObsFormat, Slots};
use vecaz::net::gpu::{Arithmetic, DeviceForward, ElementType, MatrixInstruction};
use vecaz::net::{CandleNet, HashNet, IoShape, Network, NetworkDesc, UniformNet};
use vecaz::play::{FinishedGame, GameSlot};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::selfplay::SelfPlay;
use vecaz::train::device::DeviceTrainer;
use vecaz::train::{Losses, TargetColumns, TrainBatch, Trainer};

/// The GPU, or None, said loudly.
fn gpu() -> Option<CudaDevice> {
    match CudaDevice::open(0, Store::of_user()) {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var("VECAZ_REQUIRE_CUDA").as_deref() != Ok("1"), "{error}");
            eprintln!("##### SKIPPED: nothing is checked on a GPU: {error} #####");
            None
        }
    }
}

fn rules(name: &str, options: &str) -> Arc<dyn AnyGame> {
    any_game(name, &options.parse().expect("TOML")).expect("registered")
}

/// Where random play comes to: states, plies and finished games.
type RandomPositions = (Vec<u8>, Vec<u32>, Vec<u64>);

/// Random play by Rust.
struct RandomPlay {
    slots: usize,
    plies: usize,
}

impl GameVisitor for RandomPlay {
    type Out = RandomPositions;

    fn visit<G: Game>(self, game: G) -> RandomPositions {
        let mut batch = GameBatch::new(game, self.slots);
        for _ in 0..self.plies {
            batch.step_random(11);
        }
        let states = batch.states().iter().flat_map(|s| bytemuck::bytes_of(s).to_vec()).collect();
        (states, batch.plies().to_vec(), batch.finished().to_vec())
    }
}

#[test]
fn random_games_come_to_the_same_positions() {
    let (slots, plies) = (331, 173);
    for (name, options) in GAMES {
        let Some(device) = gpu() else { return };
        let game = rules(name, options);
        let mut batch = DeviceBatch::new(device, game.as_ref(), slots).expect("fits");
        batch.random_play(11, plies as u32).expect("played");
        let found = (
            batch.states().expect("copied"),
            batch.plies().expect("copied"),
            batch.finished().expect("copied"),
        );
        let right = dispatch(name, &game.options(), RandomPlay { slots, plies }).expect("registered");
        assert_eq!(found, right, "{name} {options}");
        // The views of the positions so reached, and what may be played there.
        let mut expected = vec![0.0; slots * game.sizes().obs.len()];
        game.observe_batch(&right.0, &mut expected);
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&batch.observe().expect("copied")), bits(&expected), "{name} {options}");
        if !game.sizes().uses_history {
            let legal = batch.legal().expect("copied");
            let edges = game.sizes().num_edges();
            for (slot, state) in right.0.chunks_exact(game.state_size()).enumerate() {
                let found = &legal.actions[slot * edges..][..usize::from(legal.lengths[slot])];
                assert_eq!(found, game.legal(state, Default::default()), "{name} {options} slot {slot}");
            }
        }
    }
}

/// All results of self-play on `device`, and the bytes copied within its passes.
fn selfplay(
    text: &str,
    device: DeviceName,
    network: &dyn Fn(&dyn AnyGame) -> Box<dyn Network>,
) -> (Vec<FinishedGame>, Vec<GameSlot>, u64) {
    let text = format!("{text}\n[run]\ndevice = \"{device}\"\n[net]\ndevice = \"cpu\"");
    let config: Config = Layers::default().text(&text, "test").and_then(Layers::resolve).expect("valid");
    let game = rules(config.game_name(), &config.game_options().to_string());
    let network = network(game.as_ref());
    let mut selfplay = SelfPlay::new(&game, &config, network.as_ref(), Vec::new(), 2).expect("fits");
    selfplay.set_network(network.as_ref(), RootCache::default()).expect("a network");
    let games = (0..3).flat_map(|_| selfplay.poll().expect("played")).collect();
    let inside = selfplay.take_metrics().copied.inside;
    (games, selfplay.slots().cloned().collect(), inside)
}

fn shape_of(game: &dyn AnyGame) -> IoShape {
    let sizes = game.sizes();
    IoShape { obs_len: sizes.obs.len(), num_actions: sizes.num_actions, num_players: sizes.num_players }
}

fn compare(game: &str, search: &str, slots: usize, network: fn(IoShape) -> Box<dyn Network>) {
    let text =
        format!("[game]\n{game}\n[search]\n{search}\n[selfplay]\ngames = {slots}\npasses_per_poll = 150");
    let network = |game: &dyn AnyGame| network(shape_of(game));
    let (games, playing, _) = selfplay(&text, DeviceName::Cpu, &network);
    let right = (games, playing);
    assert!(
        right.1.iter().any(|slot| slot.actions.len() + slot.game as usize > 1),
        "nothing was played: {text}"
    );
    let (games, playing, _) = selfplay(&text, DeviceName::Cuda(0), &network);
    assert_eq!((games, playing), right, "{text}");
}

#[test]
fn a_resident_network_plays_the_games_that_it_plays_through_the_host() {
    if gpu().is_none() {
        return;
    }
    for ResidentCase { game: (name, options), net: (arch, blocks, channels), precision, slots } in RESIDENT {
        let text = format!(
            "[game]\nname = '{name}'\n{options}\n[search]\nsimulations = 20\nleaves = {RESIDENT_LEAVES}\n[selfplay]\n\
             games = {slots}\npasses_per_poll = 60"
        );
        let network = |game: &dyn AnyGame| -> Box<dyn Network> {
            let spec =
                NetSpec::new(&NetConfig { arch, blocks, channels, ..NetConfig::default() }, &game.sizes());
            let weights = spec.model().expect("a network").random_weights(Key::new(1, Purpose::Weights));
            let parts = NetworkDesc { spec, weights, precision, tensor_cores: TensorCores::Auto };
            cuda_network(parts, DeviceName::Cuda(0).into()).expect("in this build")
        };
        let (games, playing, _) = selfplay(&text, DeviceName::Cpu, &network);
        let (found, now_playing, inside) = selfplay(&text, DeviceName::Cuda(0), &network);
        assert_eq!((found, now_playing), (games, playing), "{text} {precision:?}");
        assert_eq!(inside, 0, "{inside} bytes are copied within passes: {text}");
    }
}

#[test]
fn self_play_is_the_same_on_every_game() {
    if gpu().is_none() {
        return;
    }
    for (name, options) in GAMES {
        let game = format!("name = '{name}'\n{options}");
        let deals = if name == "blob" { "determinisations = 3" } else { "" };
        for search in
            ["algorithm = 'gumbel'\nsimulations = 23", "algorithm = 'puct'\nsimulations = 21\nleaves = 4"]
        {
            compare(&game, &format!("{search}\n{deals}"), 7, |shape| Box::new(HashNet(shape)));
        }
    }
}

#[test]
fn self_play_is_the_same_with_many_rows_and_constant_outputs() {
    if gpu().is_none() {
        return;
    }
    for search in
        ["algorithm = 'gumbel'\nsimulations = 60", "algorithm = 'puct'\nsimulations = 60\nsolver = false"]
    {
        compare("name = 'connect_four'", search, 1_037, |shape| Box::new(UniformNet(shape)));
        compare("name = 'hex'", search, 129, |shape| Box::new(UniformNet(shape)));
    }
}

/// Updates on random samples of Connect Four's or the clique game's shapes: the losses, and the state after them.
fn train(device: CudaDevice, arch: Arch, precision: TrainPrecision) -> (Vec<Losses>, Weights) {
    let (spec, config) = training(arch, precision);
    let mut trainer = DeviceTrainer::new(device, &spec, &config, None, 1).expect("a trainer");
    let losses = (0..UPDATES).map(|update| trainer.step(&samples(&spec, update)).expect("finite")).collect();
    (losses, trainer.state().expect("a state"))
}

const UPDATES: u64 = 20;

fn training(arch: Arch, precision: TrainPrecision) -> (NetSpec, TrainConfig) {
    let net = NetConfig { arch, blocks: 3, channels: 40, ..NetConfig::default() };
    let game = if arch == Arch::Edge { rules("clique", "n = 9") } else { rules("connect_four", "") };
    let spec = NetSpec::new(&net, &game.sizes());
    (spec, TrainConfig { precision, warmup_updates: 4, ..TrainConfig::default() })
}

fn samples(spec: &NetSpec, number: u64) -> TrainBatch {
    const ROWS: usize = 333;
    let mut rng = Key::new(number, Purpose::Evaluation).stream();
    let mut batch = TrainBatch {
        obs: (0..ROWS * spec.obs.len()).map(|_| rng.uniform().round()).collect(),
        legal: vec![1; ROWS * spec.num_actions],
        targets: TargetColumns::default(),
        weight: vec![1.0; ROWS],
    };
    let values = (0..ROWS * spec.num_players).map(|_| 2.0 * rng.uniform() - 1.0).collect();
    *batch.targets.column_mut("values") = values;
    *batch.targets.column_mut("policy") = vec![0.0; ROWS * spec.num_actions];
    for row in 0..ROWS {
        batch.targets["policy"][row * spec.num_actions + rng.below(spec.num_actions)] = 1.0;
    }
    batch
}

#[test]
fn training_follows_the_cpu_and_repeats_to_the_bit() {
    for arch in [Arch::Resnet, Arch::Edge] {
        for (precision, tolerance) in
            [(TrainPrecision::F32, 1e-3), (TrainPrecision::Bf16, 5e-2), (TrainPrecision::F16, 1e-2)]
        {
            let (Some(one), Some(other)) = (gpu(), gpu()) else { return };
            let (spec, config) = training(arch, TrainPrecision::F32);
            let mut right = Trainer::new(&spec, &config, 1).expect("a trainer");
            let (losses, state) = train(one, arch, precision);
            for (update, found) in losses.iter().enumerate() {
                let right = right.step(&samples(&spec, update as u64)).expect("finite");
                let apart = (found.total / right.total - 1.0).abs();
                assert!(apart < tolerance, "{arch:?} {precision:?} {update}: {found:?} {right:?}");
            }
            assert!(train(other, arch, precision) == (losses, state), "{arch:?} {precision:?}");
        }
    }
}

/// What goes into the values' tanh is divided by this in [`weights_of`]: it is as large as the logits, up to twenty and more.
const BEFORE_TANH: f32 = 32.0;

/// Random weights, of which those of the values are so small that no value is near 1.
fn weights_of(spec: &NetSpec) -> Weights {
    let mut weights = spec.model().expect("a network").random_weights(Key::new(1, Purpose::Weights));
    for name in ["value.out.weight", "value.out.bias"] {
        weights.get_mut(name).expect("a value head").data.iter_mut().for_each(|x| *x /= BEFORE_TANH);
    }
    weights
}

/// Logits and values of `obs` by a network's kernels on `device`.
fn ask(
    device: &CudaDevice,
    spec: &NetSpec,
    weights: &Weights,
    arithmetic: impl Into<Arithmetic>,
    obs: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    let num = obs.len() / spec.obs.len();
    let mut net = DeviceForward::new(device, spec, weights, arithmetic, num).expect("fits");
    let element_type = net.element_type();
    let bytes: Vec<u8> = match net.format() {
        ObsFormat::F32 => bytemuck::cast_slice(obs).to_vec(),
        ObsFormat::Bf16 => obs.iter().flat_map(|&x| (element_type.bits(x) as u16).to_ne_bytes()).collect(),
    };
    let mut on_device = device.alloc(bytes.len()).expect("fits");
    device.upload(&mut on_device, 0, &bytes).expect("copied");
    let (mut logits, mut values) =
        (vec![0.0f32; num * spec.num_actions], vec![0.0f32; num * spec.num_players]);
    let mut outputs = [&logits, &values].map(|x| device.alloc(4 * x.len()).expect("fits"));
    let [l, v] = &mut outputs;
    net.forward(device, Slots { num, live: None, obs: &on_device, logits: l, values: v }).expect("runs");
    net.check(device).expect("finite");
    device.download(&outputs[0], 0, bytemuck::cast_slice_mut(&mut logits)).expect("copied");
    device.download(&outputs[1], 0, bytemuck::cast_slice_mut(&mut values)).expect("copied");
    (logits, values)
}

/// What went into the tanh of `values`, as it would be with full weights: held to its rounding as the logits are.
fn before_tanh(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| BEFORE_TANH * value.atanh()).collect()
}

/// Largest difference, as a share of 1 + the largest number.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    let scale = 1.0 + b.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
    let off = |(a, b): (&f32, &f32)| if (a - b).is_nan() { f32::INFINITY } else { (a - b).abs() };
    a.iter().zip(b).map(off).fold(0.0, f32::max) / scale
}

/// The products of a sum are added up in other orders, and activations rounded after that.
#[test]
fn wgmma_is_mma_within_its_rounding_in_any_slot() {
    let Some(device) = gpu() else { return };
    if device.limits().expect("known").capability != 90 {
        eprintln!("skipped: wgmma needs compute capability 9.0");
        return;
    }
    let mut wrong = Vec::new();
    for spec in networks() {
        let weights = weights_of(&spec);
        let mut stream = Key::new(2, Purpose::Evaluation).stream();
        let obs: Vec<f32> = (0..BATCH * spec.obs.len()).map(|_| stream.uniform() * 2.0 - 1.0).collect();
        let a_block = if spec.arch == Arch::Edge { 4 } else { 2 };
        let layers = (a_block * spec.blocks + 3) as f32;
        for (element_type, steps) in [(ElementType::F16, 2048.0), (ElementType::Bf16, 512.0)] {
            let by =
                |cores, obs: &[f32]| ask(&device, &spec, &weights, Arithmetic { element_type, cores }, obs);
            let ((l, v), (logits, values)) =
                (by(MatrixInstruction::Wgmma, &obs), by(MatrixInstruction::Mma, &obs));
            let bound = 3.0 * (2.0 * layers).sqrt() / steps;
            let off = [difference(&l, &logits), difference(&before_tanh(&v), &before_tanh(&values))];
            if off.iter().any(|&off| off >= bound) {
                wrong.push(format!("{element_type:?} {spec:?}: off by {off:?}, at most {bound}"));
            }
            let last_board = BATCH - 1;
            let (first, last) = by(MatrixInstruction::Wgmma, &obs[last_board * spec.obs.len()..]);
            assert_eq!(
                (&first[..], &last[..]),
                (&l[last_board * spec.num_actions..], &v[last_board * spec.num_players..])
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_networks_kernels_are_candle_within_their_rounding() {
    let Some(device) = gpu() else { return };
    let capability = device.limits().expect("known").capability;
    let mut wrong = Vec::new();
    for spec in networks() {
        let weights = weights_of(&spec);
        let mut stream = Key::new(2, Purpose::Evaluation).stream();
        let obs: Vec<f32> = (0..BATCH * spec.obs.len()).map(|_| stream.uniform() * 2.0 - 1.0).collect();
        let mut net = CandleNet::new(&spec, &weights).expect("of this shape");
        let (mut logits, mut values) =
            (vec![0.0; BATCH * spec.num_actions], vec![0.0; BATCH * spec.num_players]);
        net.forward(&obs, &mut logits, &mut values).expect("finite");
        let a_block = if spec.arch == Arch::Edge { 4 } else { 2 };
        let layers = (a_block * spec.blocks + 3) as f32;
        let rounded = [(ElementType::F16, 2048.0), (ElementType::Bf16, 512.0), (ElementType::Tf32, 2048.0)];
        let bounds = rounded.map(|(element_type, steps)| (element_type, 3.0 * (2.0 * layers).sqrt() / steps));
        for (element_type, bound) in bounds.into_iter().chain([(ElementType::F32, 2e-5)]) {
            let (l, v) = ask(&device, &spec, &weights, element_type, &obs);
            let off = [difference(&l, &logits), difference(&before_tanh(&v), &before_tanh(&values))];
            if off.iter().any(|&off| off >= bound) {
                wrong.push(format!(
                    "{element_type:?} on {capability}, {spec:?}: off by {off:?}, at most {bound}"
                ));
            }
            // The same boards in other slots of a smaller batch.
            let (first, last) = (7, 7 + PART);
            let part = ask(
                &device,
                &spec,
                &weights,
                element_type,
                &obs[first * spec.obs.len()..last * spec.obs.len()],
            );
            assert_eq!(
                part.0,
                l[first * spec.num_actions..last * spec.num_actions],
                "{element_type:?} {spec:?}"
            );
            assert_eq!(
                part.1,
                v[first * spec.num_players..last * spec.num_players],
                "{element_type:?} {spec:?}"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Batches of unequal sizes, the second state before the first is waited for.
#[test]
fn double_buffering_changes_no_output() {
    if gpu().is_none() {
        return;
    }
    let formats = [Precision::Bf16, Precision::F32, Precision::F16];
    for (spec, precision) in networks().into_iter().zip(formats.into_iter().cycle()) {
        let weights = spec.model().expect("a network").random_weights(Key::new(1, Purpose::Weights));
        let tensor_cores = TensorCores::Auto;
        let parts = NetworkDesc { spec: spec.clone(), weights, precision, tensor_cores };
        let mut net = cuda_network(parts, DeviceName::Cuda(0).into()).expect("a GPU");
        let mut double_buffered = net.double_buffered(HALF).expect("fits").expect("two batches");
        let mut stream = Key::new(2, Purpose::Evaluation).stream();
        for round in 0..3 {
            let batches = [HALF - round, PART + round].map(|leaves| {
                let element_type = leaves * spec.obs.len();
                (leaves, (0..element_type).map(|_| stream.uniform() * 2.0 - 1.0).collect::<Vec<f32>>())
            });
            for (half, (leaves, obs)) in batches.iter().enumerate() {
                double_buffered.input_buffer(half, *leaves).expect("memory").fill(obs);
                double_buffered.start(half).expect("state");
            }
            for (half, (leaves, obs)) in batches.iter().enumerate() {
                let (mut logits, mut values) =
                    (vec![0.0; leaves * spec.num_actions], vec![0.0; leaves * spec.num_players]);
                net.forward(obs, &mut logits, &mut values).expect("finite");
                let outputs = double_buffered.finish(half).expect("finite");
                assert_eq!(outputs.logits, logits, "{precision:?} {spec:?}");
                assert_eq!(outputs.values, values, "{precision:?} {spec:?}");
            }
        }
    }
}
