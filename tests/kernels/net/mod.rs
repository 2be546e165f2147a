//! The network's kernels against the candle module and against themselves: the same sources as on a GPU, compiled as host C++,
//! the tensor cores' instruction included with the fragments that PTX says 32 lanes hold.

use crate::host_device::{HostBuffer, HostDevice};
use vecaz::backend::kernels::device::{Device, Limits};
use vecaz::backend::kernels::forward::{DeviceForward, Numbers};
use vecaz::backend::kernels::network::{DeviceNetwork, ObsFormat, Slots};
use vecaz::config::Arch;
use vecaz::game::ObsShape;
use vecaz::net::spec::{NetSpec, Weights};
use vecaz::net::{CandleNet, Network};
use vecaz::rng::{Key, Purpose};

/// Shape, weights and observations of a case.
struct Case {
    spec: NetSpec,
    weights: Weights,
    /// `[boards, F]`
    obs: Vec<f32>,
}

/// Logits `[boards, A]` and values `[boards, P]`.
type Answers = (Vec<f32>, Vec<f32>);

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
    }
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

fn case(spec: NetSpec, boards: usize, seed: u64) -> Case {
    let weights = spec.random(Key::new(seed, Purpose::Weights));
    let mut stream = Key::new(seed, Purpose::Evaluation).stream();
    let obs = (0..boards * spec.obs.len()).map(|_| stream.uniform() * 2.0 - 1.0).collect();
    Case { spec, weights, obs }
}

impl Case {
    fn boards(&self) -> usize {
        self.obs.len() / self.spec.obs.len()
    }

    fn candle(&self) -> Answers {
        let mut net = CandleNet::new(&self.spec, &self.weights).expect("weights of this shape");
        let mut logits = vec![0.0; self.boards() * self.spec.num_actions];
        let mut values = vec![0.0; self.boards() * self.spec.num_players];
        net.forward(&self.obs, &mut logits, &mut values).expect("finite");
        (logits, values)
    }

    fn on(&self, device: &HostDevice, numbers: Numbers) -> Answers {
        let mut net =
            DeviceForward::new(device, &self.spec, &self.weights, numbers, self.boards()).expect("fits");
        let answers = ask(device, &mut net, &self.spec, &self.obs);
        net.check(device).expect("finite");
        answers
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

/// Asks `net` about `obs`, which must be as many as its slots.
fn ask(device: &HostDevice, net: &mut DeviceForward<HostDevice>, spec: &NetSpec, obs: &[f32]) -> Answers {
    let num = obs.len() / spec.obs.len();
    let obs = match net.format() {
        ObsFormat::F32 => upload(device, bytemuck::cast_slice(obs)),
        ObsFormat::Bf16 => {
            let halves: Vec<u16> = obs.iter().map(|&x| Numbers::Bf16.bits(x) as u16).collect();
            upload(device, bytemuck::cast_slice(&halves))
        }
    };
    let (logits, values) = (num * spec.num_actions, num * spec.num_players);
    // What was there before is no number.
    let mut outputs = [logits, values].map(|count| upload(device, &vec![0xFF; 4 * count]));
    let [l, v] = &mut outputs;
    net.forward(device, Slots { num, obs: &obs, logits: l, answers: v }).expect("runs");
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

/// Boards from 3 x 3 to 19 x 19, channels that fill no tile, batches that fill no block.
fn cases() -> Vec<Case> {
    vec![
        case(resnet([2, 3, 3], 1, 5), 1, 1),
        case(resnet([2, 6, 7], 2, 32), 7, 2),
        case(resnet([3, 5, 9], 1, 70), 5, 3),
        case(resnet([4, 19, 19], 1, 16), 2, 4),
        case(resnet([17, 4, 3], 4, 20), 23, 5),
        case(resnet([1, 8, 1], 0, 33), 3, 6),
        case(resnet([2, 3, 4], 1, 130), 3, 7),
        case(mlp(31, 2, 37), 9, 8),
        case(mlp(200, 1, 130), 33, 9),
    ]
}

#[test]
fn f32_is_candle() {
    for case in cases() {
        let (logits, values) = case.candle();
        let (l, v) = case.on(&HostDevice::new(5), Numbers::F32);
        assert!(difference(&l, &logits) < 1e-5, "{:?}: {}", case.spec, difference(&l, &logits));
        assert!(difference(&v, &values) < 1e-5, "{:?}: {}", case.spec, difference(&v, &values));
    }
}
