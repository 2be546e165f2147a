//! Networks that answer on the device, and outputs that are all the same: the results must be those of a network on the host.

use super::scenario::{Facts, Limit, Scenario, assert_same, cpu, facts, finish, kernels, tree_bytes};
use super::{BOTH_RULES, GUMBEL, GUMBEL_AND_PUCT, Noisy, PUCT, config, scenario};
use crate::host_device::{HostBuffer, HostDevice};
use vecaz::backend::{Backend, DevicePasses, PlyPlan, TreeRows};
use vecaz::net::gpu::network::{DeviceNetwork, ObsFormat, SlotOrder, Slots};
use vecaz::net::{HashNet, Network, UniformNet};
use vecaz::{Error, Result};

/// A host network, given all slots of a device whose memory is the host's.
pub struct OnDevice<N> {
    pub network: N,
    pub format: ObsFormat,
    pub order: SlotOrder,
    /// Forwards, recorded or made at once.
    pub forwards: usize,
}

impl<N: Network + Clone + 'static> DeviceNetwork<HostDevice> for OnDevice<N> {
    fn format(&self) -> ObsFormat {
        self.format
    }

    fn slot_order(&self) -> SlotOrder {
        self.order
    }

    fn forward(&mut self, device: &HostDevice, slots: Slots<'_, HostBuffer>) -> Result<()> {
        self.forwards += 1;
        let (network, format, num) = (self.network.clone(), self.format, slots.num);
        let [obs, logits, outputs] =
            [slots.obs, &*slots.logits, &*slots.values].map(HostBuffer::address_range);
        assert_eq!(slots.live.is_some(), self.order == SlotOrder::Compact);
        let live = slots.live.map(HostBuffer::address_range);
        device.work(move || {
            let mut network = network.clone();
            let shape = network.shape();
            let obs: Vec<f32> = match format {
                ObsFormat::F32 => bytemuck::cast_slice(obs.bytes()).to_vec(),
                ObsFormat::Bf16 => {
                    let bf16: &[u16] = &bytemuck::cast_slice(obs.bytes())[..num * shape.obs_len];
                    bf16.iter().map(|&bits| f32::from_bits(u32::from(bits) << 16)).collect()
                }
            };
            let [logits, outputs] =
                [logits, outputs].map(|range| bytemuck::cast_slice_mut(range.bytes_mut()));
            let live = live.map_or(num, |live| bytemuck::cast_slice::<u8, u32>(live.bytes())[0] as usize);
            // What is given for the other slots must not matter.
            let (logits, other_logits) = logits.split_at_mut(live * shape.num_actions);
            let (outputs, other_outputs) = outputs.split_at_mut(live * shape.num_players);
            other_logits.iter_mut().chain(other_outputs).for_each(|x| *x = f32::NAN);
            network.forward(&obs[..live * shape.obs_len], logits, outputs).expect("it does not fail");
        });
        Ok(())
    }
}

fn begin(backend: &mut dyn Backend, scenario: &Scenario) {
    for (b, position) in scenario.positions().iter().enumerate() {
        backend.set_root(b, &position.state, &position.history).expect("a device");
        let simulations = scenario.config.simulations + b as u32;
        backend.begin(b, PlyPlan { simulations, exploration: Noisy, key: position.key }).expect("a device");
    }
}

/// The searches of `backend`, which are over, against the CPU's with `network`.
fn compare_with_cpu(backend: &mut dyn Backend, network: &mut dyn Network, scenario: &Scenario) {
    let mut right = cpu(scenario);
    begin(right.as_mut(), scenario);
    finish(right.as_mut(), network);
    for b in 0..right.rows() {
        assert_same(&facts(backend, b), &facts(right.as_mut(), b), &format!("row {b} of {scenario:?}"));
    }
}

/// What a search in one launch finds where all logits and values are 0.
pub fn in_one_launch(scenario: &Scenario, device: HostDevice) -> Vec<Facts> {
    let sizes = scenario.game().sizes();
    let mut backend = kernels(scenario, device);
    begin(&mut backend, scenario);
    let (logits, values) = (vec![0.0; sizes.num_actions], vec![0.0; sizes.num_players]);
    backend.simulate_constant_net(&logits, &values, 1000).expect("a device");
    (0..backend.rows()).map(|b| facts(&mut backend, b)).collect()
}

/// Games whose observations bfloat16 holds exactly.
const WHOLE: [(&str, &str, &[usize]); 3] = [
    ("connect_four", "", &[0, 9, 22, 30, 4]),
    ("go", "size = 5\nmax_plies = 60", &[2, 31]),
    ("hex", "size = 5", &[3]),
];

#[test]
fn a_network_on_the_device_gives_the_same_with_one_copy() {
    for game in WHOLE {
        for (selection, leaves, format, order) in [
            (PUCT, 1, ObsFormat::F32, SlotOrder::ByLeaf),
            (PUCT, 1, ObsFormat::F32, SlotOrder::Compact),
            (GUMBEL_AND_PUCT, 3, ObsFormat::Bf16, SlotOrder::ByLeaf),
            (GUMBEL, 3, ObsFormat::Bf16, SlotOrder::Compact),
        ] {
            let scenario = scenario(game, config(selection, 40, leaves));
            let network = HashNet(scenario.io_shape());
            let mut on_device = OnDevice { network: network.clone(), format, order, forwards: 0 };
            let mut backend = kernels(&scenario, HostDevice::new(8));
            begin(&mut backend, &scenario);
            let (mut passes, mut simulations) = (0, 0);
            while backend.num_unfinished().expect("a device") > 0 {
                let before = backend.with_device(HostDevice::downloads);
                simulations += backend.simulate(&mut on_device, 7).expect("a device").simulations;
                assert_eq!(backend.with_device(HostDevice::downloads), before + 1);
                passes += 7;
            }
            let launched_graphs = backend.with_device(HostDevice::graph_launches) as usize;
            assert_eq!(launched_graphs, passes / 7 * 6, "of every call, but the first pass");
            assert_eq!(on_device.forwards, passes / 7 * 2, "the first pass, and the recorded one");
            assert!(simulations > 0);
            compare_with_cpu(&mut backend, &mut network.clone(), &scenario);
        }
    }
}

#[test]
fn many_passes_are_few_calls() {
    let scenario = scenario(WHOLE[0], config(GUMBEL, 60, 1));
    let network = HashNet(scenario.io_shape());
    let mut on_device =
        OnDevice { network: network.clone(), format: ObsFormat::F32, order: SlotOrder::Compact, forwards: 0 };
    let mut backend = kernels(&scenario, HostDevice::new(8));
    begin(&mut backend, &scenario);
    backend.simulate(&mut on_device, 40).expect("a device");
    // The first by itself, twice sixteen, and seven.
    assert_eq!(backend.with_device(HostDevice::graph_launches), 2 + 7);
    assert_eq!(on_device.forwards, 1 + 1 + 16, "the first, and what is recorded");
    while backend.num_unfinished().expect("a device") > 0 {
        backend.simulate(&mut on_device, 40).expect("a device");
    }
    compare_with_cpu(&mut backend, &mut network.clone(), &scenario);
}

#[test]
fn constant_outputs_need_one_launch() {
    for game in super::GAMES {
        for selection in BOTH_RULES {
            let scenario = scenario(game, config(selection, 33, if selection == PUCT { 1 } else { 3 }));
            let sizes = scenario.game().sizes();
            let (logits, values) = (vec![0.0; sizes.num_actions], vec![0.0; sizes.num_players]);
            let mut backend = kernels(&scenario, HostDevice::new(2));
            begin(&mut backend, &scenario);
            assert!(backend.num_unfinished().expect("a device") > 0);
            let before = backend.with_device(|d| (d.launches(), d.downloads()));
            let done = backend.simulate_constant_net(&logits, &values, 1000).expect("a device");
            let after = backend.with_device(|d| (d.launches(), d.downloads()));
            assert_eq!(after, (before.0 + 2, before.1 + 1), "the search, and the count");
            assert!(done.simulations > 0 && done.evaluations > 0);
            assert_eq!(backend.num_unfinished().expect("a device"), 0);
            compare_with_cpu(&mut backend, &mut UniformNet(scenario.io_shape()), &scenario);
        }
    }
}

#[test]
fn a_pass_with_a_network_that_sees_nothing_is_one_launch() {
    let scenario = scenario(super::GAMES[1], config(GUMBEL, 30, 3));
    let mut network = UniformNet(scenario.io_shape());
    let mut backend = kernels(&scenario, HostDevice::new(2));
    begin(&mut backend, &scenario);
    let mut right = cpu(&scenario);
    begin(right.as_mut(), &scenario);
    let before = backend.with_device(|d| (d.launches(), d.downloads()));
    let counts = finish(&mut backend, &mut network);
    let after = backend.with_device(|d| (d.launches(), d.downloads()));
    assert_eq!(counts, finish(right.as_mut(), &mut network));
    let passes = counts[0];
    let commands = 2; // set_root, begin
    assert_eq!(after, (before.0 + commands + 2 * passes, before.1 + passes));
    compare_with_cpu(&mut backend, &mut network, &scenario);
}

#[test]
fn snapshots_go_from_either_engine_to_either_and_into_many_rows() {
    for game in [super::GAMES[1], super::GAMES[5], super::GAMES[8]] {
        let scenario = Scenario { limit: Limit::Nodes(60), ..scenario(game, config(PUCT, 80, 4)) };
        let mut network = HashNet(scenario.io_shape());
        let mut engines: [Box<dyn Backend>; 2] =
            [cpu(&scenario), Box::new(kernels(&scenario, HostDevice::new(3)))];
        for engine in &mut engines {
            begin(engine.as_mut(), &scenario);
            finish(engine.as_mut(), &mut network);
        }
        for limit in [70, 23, 1] {
            let [right, found] = [0, 1].map(|i| engines[i].snapshot(1, limit).expect("a device"));
            assert_eq!(tree_bytes(&found), tree_bytes(&right), "{limit} nodes of {scenario:?}");
            assert_eq!(found.history, right.history);
            assert_eq!(found.tree.count(0), limit.min(right.tree.count(0)));
            for (engine, snapshot) in engines.iter_mut().zip([&found, &right]) {
                for b in 0..engine.rows() {
                    engine.set_root_tree(b, if b == 0 { &right } else { snapshot }).expect("a device");
                    let key = scenario.positions()[b].key;
                    let simulations = scenario.config.simulations;
                    engine.begin(b, PlyPlan { simulations, exploration: Noisy, key }).expect("a device");
                }
                finish(engine.as_mut(), &mut network);
            }
            let [cpu, kernels] = &mut engines;
            for b in 0..cpu.rows() {
                let whose = format!("row {b} of {scenario:?}");
                assert_same(&facts(kernels.as_mut(), b), &facts(cpu.as_mut(), b), &whose);
            }
        }
    }
}

/// A root with two of its moves has no others, on any device, however often its search goes on.
#[test]
fn a_restricted_root_visits_its_moves_alone_on_either_engine() {
    for selection in BOTH_RULES {
        let game = ("hex", "size = 5", &[0][..]);
        let scenario = Scenario { limit: Limit::Nodes(250), ..scenario(game, config(selection, 70, 2)) };
        let mut network = HashNet(scenario.io_shape());
        let mut engines: [Box<dyn Backend>; 2] =
            [cpu(&scenario), Box::new(kernels(&scenario, HostDevice::new(3)))];
        for engine in &mut engines {
            begin(engine.as_mut(), &scenario);
            let mut root = engine.snapshot(0, 1).expect("a device");
            root.restrict_root(&[7, 18]);
            engine.set_root_tree(0, &root).expect("a device");
            for _ in 0..3 {
                let (simulations, key) = (scenario.config.simulations, scenario.positions()[0].key);
                engine.begin(0, PlyPlan { simulations, exploration: Noisy, key }).expect("a device");
                finish(engine.as_mut(), &mut network);
            }
        }
        let [cpu, kernels] = &mut engines;
        let right = facts(cpu.as_mut(), 0);
        assert_eq!(right.actions, [7, 18]);
        assert_same(&facts(kernels.as_mut(), 0), &right, &format!("{scenario:?}"));
    }
}

#[test]
fn a_failing_network_is_reported() {
    struct Broken;
    impl DeviceNetwork<HostDevice> for Broken {
        fn format(&self) -> ObsFormat {
            ObsFormat::F32
        }
        fn forward(&mut self, _device: &HostDevice, _slots: Slots<'_, HostBuffer>) -> Result<()> {
            Err(Error::NotFinite { what: "logits".into(), value: f32::NAN })
        }
    }
    let scenario = scenario(super::GAMES[0], config(PUCT, 30, 1));
    let mut backend = kernels(&scenario, HostDevice::new(2));
    begin(&mut backend, &scenario);
    let error = backend.simulate(&mut Broken, 2).expect_err("it says so");
    assert_eq!(error.to_string(), "logits is not finite (NaN)");
}
