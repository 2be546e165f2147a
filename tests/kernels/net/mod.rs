//! The network's kernels against the reference and against themselves: the same sources as on a GPU, compiled as host C++,
//! the tensor cores' instruction included with the fragments that PTX says 32 lanes hold.

mod layer;
mod warpgroups;

use crate::host_compiler::Effort;
use crate::host_device::{HostBuffer, HostDevice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use vecaz::Error;
use vecaz::config::Arch;
use vecaz::device::{Device, Limits};
use vecaz::game::{ObsShape, PointActions, PointOrder};
use vecaz::model::{NetSpec, Weights};
use vecaz::net::gpu::network::{DeviceNetwork, ObsFormat, Slots};
use vecaz::net::gpu::{Arithmetic, DeviceForward, ElementType, ForwardPlan};
use vecaz::net::reference;
use vecaz::rng::{Key, Purpose};

/// Shape, weights and observations of a case.
struct Case {
    spec: NetSpec,
    weights: Weights,
    /// `[boards, F]`
    obs: Vec<f32>,
}

/// Logits `[boards, A]` and values `[boards, P]`.
type Outputs = (Vec<f32>, Vec<f32>);

/// A device for forwards of few boards, which take less time than compiling them.
fn host(seed: u64) -> HostDevice {
    HostDevice::new(seed).with_effort(Effort::Little)
}

fn resnet([planes, height, width]: [usize; 3], blocks: usize, channels: usize) -> NetSpec {
    NetSpec {
        arch: Arch::Resnet,
        blocks,
        channels,
        policy_channels: 5,
        value_channels: 3,
        value_hidden: 18,
        obs: ObsShape { channels: planes, height, width },
        num_actions: height * width + 1,
        num_players: 2,
        zero_sum_pair: true,
        ..NetSpec::default()
    }
}

/// The same network with logits at points: `planes` at each in this order, and `others` at none.
fn at_points(spec: NetSpec, order: PointOrder, planes: usize, others: usize) -> NetSpec {
    let num_actions = planes * spec.obs.height * spec.obs.width + others;
    NetSpec { num_actions, point_actions: Some(PointActions { planes, order }), ..spec }
}

fn mlp(features: usize, blocks: usize, channels: usize) -> NetSpec {
    NetSpec {
        arch: Arch::Mlp,
        obs: ObsShape { channels: features, height: 1, width: 1 },
        num_actions: 53,
        num_players: 4,
        zero_sum_pair: false,
        ..resnet([features, 1, 1], blocks, channels)
    }
}

/// On the edges of K_n.
fn edge(vertices: usize, blocks: usize, channels: usize) -> NetSpec {
    let edges = vertices * (vertices - 1) / 2;
    NetSpec { arch: Arch::Edge, num_actions: edges, ..resnet([4, edges, 1], blocks, channels) }
}

fn case(spec: NetSpec, boards: usize, seed: u64) -> Case {
    let weights = spec.model().expect("a network").random_weights(Key::new(seed, Purpose::Weights));
    let mut stream = Key::new(seed, Purpose::Evaluation).stream();
    let obs = (0..boards * spec.obs.len()).map(|_| stream.uniform() * 2.0 - 1.0).collect();
    Case { spec, weights, obs }
}

impl Case {
    fn boards(&self) -> usize {
        self.obs.len() / self.spec.obs.len()
    }

    fn reference(&self) -> Outputs {
        let model = self.spec.model().expect("a network");
        let (mut logits, mut values) = (Vec::new(), Vec::new());
        for obs in self.obs.chunks_exact(self.spec.obs.len()) {
            let (l, v) = reference::forward(&model, &self.weights, obs).expect("weights of this shape");
            logits.extend(l);
            values.extend(v);
        }
        (logits, values)
    }

    fn on(&self, device: &HostDevice, arithmetic: impl Into<Arithmetic>) -> Outputs {
        let mut net =
            DeviceForward::new(device, &self.spec, &self.weights, arithmetic, self.boards()).expect("fits");
        let outputs = ask(device, &mut net, &self.spec, &self.obs);
        net.check(device).expect("finite");
        outputs
    }
}

/// An array on the device.
fn upload(device: &HostDevice, bytes: &[u8]) -> HostBuffer {
    let mut buffer = device.alloc(bytes.len()).expect("memory");
    device.upload(&mut buffer, 0, bytes).expect("fits");
    buffer
}

fn download(device: &HostDevice, from: &HostBuffer, count: usize) -> Vec<f32> {
    let mut out = vec![0.0; count];
    device.download(from, 0, bytemuck::cast_slice_mut(&mut out)).expect("fits");
    out
}

fn download_words(device: &HostDevice, from: &HostBuffer, count: usize) -> Vec<u32> {
    let mut out = vec![0; count];
    device.download(from, 0, bytemuck::cast_slice_mut(&mut out)).expect("fits");
    out
}

/// Logits and values of `obs`, which must be as many as the slots of `net`.
fn ask(device: &HostDevice, net: &mut DeviceForward<HostDevice>, spec: &NetSpec, obs: &[f32]) -> Outputs {
    ask_live(device, net, spec, obs, None)
}

/// The same of the first `live` slots; the others keep what is not a number.
fn ask_live(
    device: &HostDevice,
    net: &mut DeviceForward<HostDevice>,
    spec: &NetSpec,
    obs: &[f32],
    live: Option<u32>,
) -> Outputs {
    let num = obs.len() / spec.obs.len();
    let live = live.map(|live| upload(device, bytemuck::bytes_of(&live)));
    let obs = match net.format() {
        ObsFormat::F32 => upload(device, bytemuck::cast_slice(obs)),
        ObsFormat::Bf16 => {
            let bf16: Vec<u16> = obs.iter().map(|&x| ElementType::Bf16.bits(x) as u16).collect();
            upload(device, bytemuck::cast_slice(&bf16))
        }
    };
    let (logits, values) = (num * spec.num_actions, num * spec.num_players);
    // What was there before is no number.
    let mut outputs = [logits, values].map(|count| upload(device, &vec![0xFF; 4 * count]));
    let [l, v] = &mut outputs;
    net.forward(device, Slots { num, live: live.as_ref(), obs: &obs, logits: l, values: v }).expect("runs");
    (download(device, &outputs[0], logits), download(device, &outputs[1], values))
}

/// Largest difference, as a share of 1 + the largest number.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let scale = 1.0 + b.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
    let off = |(a, b): (&f32, &f32)| if (a - b).is_nan() { f32::INFINITY } else { (a - b).abs() };
    a.iter().zip(b).map(off).fold(0.0, f32::max) / scale
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Boards from 3 x 3 to 19 x 19 and K_3 to K_17, channels that fill no tile, batches that fill no block.
fn cases() -> Vec<Case> {
    vec![
        case(resnet([2, 3, 3], 1, 5), 1, 1),
        case(resnet([2, 6, 7], 2, 32), 7, 2),
        case(resnet([3, 5, 9], 1, 70), 5, 3),
        case(resnet([4, 19, 19], 1, 16), 2, 4),
        case(resnet([17, 4, 3], 4, 20), 23, 5),
        case(resnet([1, 8, 1], 0, 33), 3, 6),
        case(resnet([2, 3, 4], 1, 130), 3, 7),
        case(at_points(resnet([3, 5, 9], 1, 20), PointOrder::Rows, 1, 1), 5, 31),
        case(at_points(resnet([2, 6, 7], 1, 20), PointOrder::Columns, 5, 2), 7, 32),
        case(mlp(31, 2, 37), 9, 8),
        case(mlp(200, 1, 130), 33, 9),
        case(edge(3, 1, 1), 7, 10),
        case(edge(6, 2, 32), 9, 11),
        case(edge(9, 1, 70), 3, 12),
        case(edge(17, 1, 24), 2, 13),
        case(edge(4, 0, 33), 5, 14),
        case(edge(5, 3, 20), 23, 15),
        case(edge(7, 1, 130), 2, 16),
    ]
}

#[test]
fn f32_is_the_reference() {
    for case in cases() {
        let (logits, values) = case.reference();
        let (l, v) = case.on(&host(5), ElementType::F32);
        assert!(difference(&l, &logits) < 1e-5, "{:?}: {}", case.spec, difference(&l, &logits));
        assert!(difference(&v, &values) < 1e-5, "{:?}: {}", case.spec, difference(&v, &values));
    }
}

/// The largest share by which a rounding to `element_type` changes a number.
fn rounding(element_type: ElementType) -> f32 {
    match element_type {
        ElementType::Bf16 => 1.0 / 512.0,
        ElementType::F16 | ElementType::Tf32 => 1.0 / 2048.0,
        ElementType::F32 => 1.0 / 16_777_216.0,
    }
}

/// Activations and weights are rounded once a layer, around triangles two of the activations that are multiplied. The errors of
/// layers are independent and a layer keeps the size of what goes through it, so they grow with the root of the number of layers;
/// three times that is not exceeded among so many outputs.
fn bound(case: &Case, element_type: ElementType) -> f32 {
    let a_block = if case.spec.arch == Arch::Edge { 4 } else { 2 };
    let layers = (a_block * case.spec.blocks + 3) as f32;
    3.0 * rounding(element_type) * (2.0 * layers).sqrt()
}

fn check_rounded(case: &Case, device: &HostDevice, element_type: ElementType) {
    check_outputs(case, element_type, &case.on(device, element_type));
}

fn check_outputs(case: &Case, element_type: ElementType, (l, v): &Outputs) {
    let (logits, values) = case.reference();
    let (limit, off) = (bound(case, element_type), difference(l, &logits));
    assert!(off < limit, "{element_type:?} {:?}: logits off by {off}, at most {limit}", case.spec);
    assert!(difference(v, &values) < limit, "{element_type:?} {:?}: {}", case.spec, difference(v, &values));
    assert!(off > 1e-3 * rounding(element_type), "{element_type:?} {:?}: nothing was rounded", case.spec);
}

#[test]
fn sixteen_bits_are_the_reference_within_their_rounding() {
    for case in cases() {
        check_rounded(&case, &host(6), ElementType::Bf16);
    }
    for case in cases().into_iter().skip(1).step_by(3) {
        check_rounded(&case, &host(7), ElementType::F16);
    }
    for case in cases().into_iter().step_by(4) {
        check_rounded(&case, &host(7), ElementType::Tf32);
    }
}

#[test]
fn without_tensor_cores_and_with_little_memory_too() {
    for case in [case(resnet([2, 6, 7], 1, 40), 5, 11), case(edge(7, 1, 40), 5, 11)] {
        check_rounded(&case, &host(6).with_define("VZ_NET_PLAIN", 1), ElementType::Bf16);
        let turing = Limits { capability: 75, multiprocessors: 40, shared: 64 << 10 };
        check_rounded(&case, &host(6).with_limits(turing), ElementType::F16);
    }
}

#[test]
fn a_board_has_the_same_outputs_in_any_slot_of_any_batch() {
    // With one multiprocessor blocks are as large as they come, with very many as small.
    let limits = |multiprocessors| Limits { capability: 90, multiprocessors, shared: 227 << 10 };
    for (spec, boards) in [(resnet([2, 6, 7], 1, 70), 9), (mlp(31, 1, 37), 40), (edge(7, 1, 70), 9)] {
        let Case { weights, obs, .. } = case(spec.clone(), boards, 12);
        let formats: &[ElementType] = match spec.arch {
            Arch::Resnet => &[ElementType::Bf16, ElementType::F32],
            Arch::Mlp | Arch::Edge => &[ElementType::Bf16],
        };
        for &element_type in formats {
            let run = |obs: &[f32], multiprocessors| {
                let device = host(8).with_limits(limits(multiprocessors));
                let slots = obs.len() / spec.obs.len();
                let mut net =
                    DeviceForward::new(&device, &spec, &weights, element_type, slots).expect("fits");
                ask(&device, &mut net, &spec, obs)
            };
            let (logits, values) = run(&obs, 1);
            assert_eq!(bits(&run(&obs, 100_000).0), bits(&logits), "{element_type:?} {spec:?}");
            let features = spec.obs.len();
            let backwards: Vec<f32> = obs.chunks_exact(features).rev().flatten().copied().collect();
            let (l, v) = run(&backwards, 1);
            for board in 0..boards {
                let of = |x: &[f32], each: usize, board: usize| bits(&x[board * each..][..each]);
                let other = boards - 1 - board;
                assert_eq!(of(&l, spec.num_actions, other), of(&logits, spec.num_actions, board));
                assert_eq!(of(&v, spec.num_players, other), of(&values, spec.num_players, board));
            }
            let (l, v) = run(&obs[features..3 * features], 132);
            assert_eq!(bits(&l), bits(&logits[spec.num_actions..3 * spec.num_actions]));
            assert_eq!(bits(&v), bits(&values[spec.num_players..3 * spec.num_players]));
        }
    }
}

#[test]
fn live_slots_alone_are_evaluated() {
    for (spec, boards) in [(resnet([2, 6, 7], 1, 40), 7), (mlp(31, 1, 37), 40), (edge(6, 1, 24), 9)] {
        let Case { spec, weights, obs } = case(spec, boards, 12);
        let device = host(8);
        let mut net = DeviceForward::new(&device, &spec, &weights, ElementType::Bf16, boards).expect("fits");
        let (logits, values) = ask(&device, &mut net, &spec, &obs);
        for live in [0, 1, boards / 2, boards - 1, boards, boards + 3] {
            let (l, v) = ask_live(&device, &mut net, &spec, &obs, Some(live as u32));
            for (found, all, each) in [(l, &logits, spec.num_actions), (v, &values, spec.num_players)] {
                let evaluated = each * live.min(boards);
                assert_eq!(bits(&found[..evaluated]), bits(&all[..evaluated]), "{live} of {spec:?}");
                let untouched = found[evaluated..].iter().all(|x| x.to_bits() == u32::MAX);
                assert!(untouched, "a slot past the {live} live ones was evaluated by {spec:?}");
            }
        }
    }
}

#[test]
fn without_the_barrier_outputs_differ() {
    for case in [case(resnet([2, 6, 7], 1, 70), 6, 13), case(edge(7, 1, 70), 12, 13)] {
        // Blocks as large as they come: of several warps.
        let limits = Limits { capability: 90, multiprocessors: 1, shared: 227 << 10 };
        let right = case.on(&host(4).with_limits(limits), ElementType::Bf16);
        let outputs = |barrier| {
            let device = host(4).with_limits(limits).without_barrier(barrier);
            catch_unwind(AssertUnwindSafe(|| case.on(&device, ElementType::Bf16))).ok()
        };
        assert!(outputs(0).as_ref() == Some(&right), "the barrier left in");
        assert!(outputs(30) != Some(right), "nothing differs without the barrier");
    }
}

#[test]
fn new_weights_take_the_place_of_the_old() {
    for old in [case(resnet([2, 3, 4], 1, 20), 3, 14), case(edge(5, 1, 20), 3, 14)] {
        let new = Case {
            weights: old.spec.model().expect("a network").random_weights(Key::new(15, Purpose::Weights)),
            obs: old.obs.clone(),
            ..old
        };
        let device = host(4);
        let mut net =
            DeviceForward::new(&device, &new.spec, &old.weights, ElementType::Bf16, 3).expect("fits");
        net.set_weights(&device, &new.weights).expect("of the same shape");
        assert_eq!(ask(&device, &mut net, &new.spec, &new.obs), new.on(&host(5), ElementType::Bf16));
    }
}

#[test]
fn a_forward_allocates_and_copies_nothing() {
    // Observations, stem, two blocks of two or three; head, dense, values or logits, mean, dense, values.
    for (case, launches) in [(case(resnet([2, 3, 4], 2, 20), 3, 16), 9), (case(edge(4, 2, 20), 3, 16), 12)] {
        let device = host(4);
        let mut net =
            DeviceForward::new(&device, &case.spec, &case.weights, ElementType::Bf16, 3).expect("fits");
        let [obs, mut logits, mut values] =
            [1 << 10, 1 << 10, 1 << 10].map(|bytes| device.alloc(bytes).expect("memory"));
        let before = (device.launches(), device.downloads(), device.uploads(), device.allocations());
        net.forward(
            &device,
            Slots { num: 3, live: None, obs: &obs, logits: &mut logits, values: &mut values },
        )
        .expect("runs");
        let after = (device.launches(), device.downloads(), device.uploads(), device.allocations());
        assert_eq!(after, (before.0 + launches, before.1, before.2, before.3));
        let error = net.forward(
            &device,
            Slots { num: 2, live: None, obs: &obs, logits: &mut logits, values: &mut values },
        );
        assert!(error.is_err_and(|e| e.to_string().contains("found 2, expected 3")));
    }
}

#[test]
fn what_is_taken_was_planned() {
    const FREE: usize = 1 << 30;
    for case in cases() {
        let device = host(4).with_free_bytes(FREE);
        let limits = device.limits().expect("known");
        let plan = ForwardPlan::new(&case.spec, &case.weights, ElementType::Bf16, case.boards(), limits);
        let plan = plan.expect("fits");
        let need = plan.need().bytes(case.boards()) as usize;
        let net = DeviceForward::planned(&device, plan).expect("fits");
        let taken = FREE - device.free_bytes().expect("known");
        assert_eq!(taken, need + 4, "{:?}", case.spec); // and a word that tells of what is no number
        drop(net);
    }
}

#[test]
fn extreme_weights_are_reported() {
    let Case { spec, weights, obs } = case(resnet([2, 3, 4], 1, 20), 3, 17);
    let device = host(4);
    let check = |weights: &Weights, element_type| {
        let mut net = DeviceForward::new(&device, &spec, weights, element_type, 3)?;
        ask(&device, &mut net, &spec, &obs);
        net.check(&device)
    };
    for element_type in [ElementType::Bf16, ElementType::F16, ElementType::F32] {
        assert!(check(&weights, element_type).is_ok());
        let mut huge = weights.clone();
        huge.get_mut("policy.linear.weight").expect("there").data.fill(3e38);
        let error = check(&huge, element_type).expect_err("infinite");
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
        let mut folded = weights.clone();
        folded.get_mut("blocks.0.bn2.weight").expect("there").data.fill(100.0);
        folded.get_mut("blocks.0.conv1.weight").expect("there").data[5] = 3e38;
        assert!(matches!(check(&folded, element_type), Err(Error::NotFinite { .. })));
    }
    // 80,000 is past half precision and not past bfloat16.
    let mut large = weights.clone();
    large.get_mut("bn.weight").expect("there").data.fill(80_000.0);
    assert!(check(&large, ElementType::Bf16).is_ok());
    assert!(check(&large, ElementType::F16).is_err());
}

#[test]
fn an_edge_network_hears_of_its_extremes_and_of_what_is_no_graph() {
    let Case { spec, weights, obs } = case(edge(4, 1, 20), 3, 18);
    let device = host(4);
    let check = |spec: &NetSpec, name: &str, value: f32| {
        let mut weights = weights.clone();
        weights.get_mut(name).expect("there").data.fill(value);
        let mut net = DeviceForward::new(&device, spec, &weights, ElementType::F16, 3)?;
        ask(&device, &mut net, spec, &obs);
        net.check(&device)
    };
    assert!(check(&spec, "bn.bias", 0.5).is_ok());
    for (name, value) in [
        ("policy.linear.weight", 3e38),   // logits of edges
        ("blocks.0.vertex.weight", 1e38), // what vertices send
        ("blocks.0.bn2.bias", 60_000.0),  // products around triangles, past half precision
        ("value.hidden.weight", 1e5),     // past half precision before any product
    ] {
        assert!(matches!(check(&spec, name, value), Err(Error::NotFinite { .. })), "{name}");
    }
    let no_graph = NetSpec { obs: ObsShape { height: 7, ..spec.obs }, num_actions: 7, ..spec };
    let error = check(&no_graph, "bn.bias", 0.5).expect_err("no such graph").to_string();
    assert!(error.contains("net.arch: got edge, expected resnet or mlp"), "{error}");
}
