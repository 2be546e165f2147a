//! The products of training by themselves against the formula: layers whose sizes no tile divides, in every tiling, to the bit,
//! since every sum has one order.

use super::{batch, config, spec, weights};
use crate::host_device::HostDevice;
use bytemuck::NoUninit;
use half::{bf16, f16};
use vecaz::batch::programs::training;
use vecaz::config::{Arch, TrainConfig, TrainPrecision};
use vecaz::device::{Arg, Device, LaunchShape, Limits};
use vecaz::game::ObsShape;
use vecaz::model::Connectivity;
use vecaz::model::{NetSpec, Weights};
use vecaz::net::gpu_train::blocks::{Activation, LinearBlock, WeightGradientBlock};
use vecaz::net::gpu_train::{LinearShape, Tiling};
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::train::Trainer;
use vecaz::train::device::DeviceTrainer;

/// A layer with random operands.
struct Case {
    mode: Connectivity,
    shape: LinearShape,
    boards: usize,
    precision: TrainPrecision,
    x: Vec<f32>,
    /// By row of the matrix, in the order of sums; by position first where each has its own.
    weights: Vec<f32>,
    bias: Vec<f32>,
    /// What is added, and what opens: as the output.
    added: Vec<f32>,
    opened: Vec<f32>,
    /// A gradient of the output, without what lies beside it. `[rows, columns]`
    dy: Vec<f32>,
}

/// The nearest number of the format.
fn rounded(precision: TrainPrecision, x: f32) -> f32 {
    match precision {
        TrainPrecision::F32 => x,
        TrainPrecision::Bf16 => bf16::from_f32(x).to_f32(),
        TrainPrecision::F16 => f16::from_f32(x).to_f32(),
    }
}

fn bytes_of(precision: TrainPrecision) -> usize {
    if precision == TrainPrecision::F32 { 4 } else { 2 }
}

/// The numbers as they lie in a buffer.
fn packed(precision: TrainPrecision, numbers: &[f32]) -> Vec<u8> {
    let bits = |x: f32| match precision {
        TrainPrecision::F32 => x.to_le_bytes().to_vec(),
        TrainPrecision::Bf16 => bf16::from_f32(x).to_le_bytes().to_vec(),
        TrainPrecision::F16 => f16::from_f32(x).to_le_bytes().to_vec(),
    };
    numbers.iter().flat_map(|&x| bits(x)).collect()
}

fn unpacked(precision: TrainPrecision, bytes: &[u8]) -> Vec<f32> {
    let pair = |x: &[u8]| [x[0], x[1]];
    match precision {
        TrainPrecision::F32 => bytemuck::pod_collect_to_vec(bytes),
        TrainPrecision::Bf16 => bytes.chunks(2).map(|x| bf16::from_le_bytes(pair(x)).to_f32()).collect(),
        TrainPrecision::F16 => bytes.chunks(2).map(|x| f16::from_le_bytes(pair(x)).to_f32()).collect(),
    }
}

impl Case {
    /// A layer of `inputs` to `columns` with columns of others beside both, on boards of this height and width.
    fn new(
        mode: Connectivity,
        [height, width]: [usize; 2],
        [inputs, columns]: [usize; 2],
        boards: usize,
        precision: TrainPrecision,
    ) -> Self {
        let area = height * width;
        let taps = match mode {
            Connectivity::Pointwise => 1,
            Connectivity::Conv3x3 => 9,
            Connectivity::Flatten | Connectivity::Spread => area,
        };
        let (x_width, out_width) = (inputs + 24, columns + 16);
        let numbers = [height, width, taps, inputs, columns, x_width, 16, out_width, 8, columns - 3];
        let [height, width, taps, inputs, columns, x_width, x_offset, out_width, out_offset, biases] =
            numbers.map(|n| n as u32);
        let shape = LinearShape {
            mode,
            height,
            width,
            taps,
            inputs,
            columns,
            x_width,
            x_offset,
            out_width,
            out_offset,
            biases,
        };
        let mut stream = Key::new(7, Purpose::Weights).stream();
        let random = |num: usize, stream: &mut RngStream| -> Vec<f32> {
            (0..num).map(|_| rounded(precision, stream.normal())).collect()
        };
        let [sources, positions] = match mode {
            Connectivity::Pointwise | Connectivity::Conv3x3 => [area, area],
            Connectivity::Flatten => [area, 1],
            Connectivity::Spread => [1, area],
        };
        let outputs = boards * positions * out_width as usize;
        Self {
            mode,
            shape,
            boards,
            precision,
            x: random(boards * sources * x_width as usize, &mut stream),
            weights: random((taps * inputs * columns) as usize, &mut stream),
            bias: (0..biases).map(|_| stream.normal()).collect(),
            added: random(outputs, &mut stream),
            opened: random(outputs, &mut stream),
            dy: random(boards * positions * columns as usize, &mut stream),
        }
    }

    fn rows(&self) -> usize {
        self.added.len() / self.shape.out_width as usize
    }

    /// Tap and input of every row of the matrix, in the order of sums.
    fn order(&self) -> Vec<(usize, usize)> {
        let (taps, inputs) = (self.shape.taps as usize, self.shape.inputs as usize);
        let mut all: Vec<_> = (0..taps).flat_map(|tap| (0..inputs).map(move |input| (tap, input))).collect();
        if self.mode == Connectivity::Conv3x3 {
            all.sort_by_key(|&(tap, input)| (input / 32, tap, input));
        }
        all
    }

    /// What output row `row` reads through a tap.
    fn read(&self, row: usize, tap: usize, input: usize) -> f32 {
        let [height, width] = [self.shape.height, self.shape.width].map(|n| n as usize);
        let area = height * width;
        let source = match self.mode {
            Connectivity::Pointwise => row,
            Connectivity::Flatten => row * area + tap,
            Connectivity::Spread if tap != row % area => return 0.0,
            Connectivity::Spread => row / area,
            Connectivity::Conv3x3 => {
                let (y, x) = (row % area / width + tap / 3, row % width + tap % 3);
                if y == 0 || y > height || x == 0 || x > width {
                    return 0.0;
                }
                row / area * area + (y - 1) * width + x - 1
            }
        };
        self.x[source * self.shape.x_width as usize + (self.shape.x_offset as usize) + input]
    }

    /// The sums of every row. `[rows, columns]`
    fn sums(&self) -> Vec<f32> {
        let (columns, order) = (self.shape.columns as usize, self.order());
        let mut out = vec![0.0f32; self.rows() * columns];
        for (row, out) in out.chunks_mut(columns).enumerate() {
            for (&(tap, input), weights) in order.iter().zip(self.weights.chunks(columns)) {
                let x = self.read(row, tap, input);
                out.iter_mut().zip(weights).for_each(|(sum, w)| *sum += x * w);
            }
        }
        out
    }

    /// The output where `finish` makes it of the sum, the column and the index in the output; `beside` elsewhere.
    fn output(&self, beside: &[f32], finish: impl Fn(f32, usize, usize) -> f32) -> Vec<f32> {
        let [columns, width, offset] =
            [self.shape.columns, self.shape.out_width, self.shape.out_offset].map(|n| n as usize);
        let mut out = beside.to_vec();
        for (i, &sum) in self.sums().iter().enumerate() {
            let index = i / columns * width + offset + i % columns;
            out[index] = finish(sum, i % columns, index);
        }
        out
    }

    fn biased(&self, sum: f32, column: usize) -> f32 {
        self.bias.get(column).map_or(sum, |bias| sum + bias)
    }

    /// The parts of the gradient. `[splits, taps * inputs, columns]`
    fn gradient(&self, splits: usize) -> Vec<f32> {
        let (columns, rows, order) = (self.shape.columns as usize, self.rows(), self.order());
        let share = rows.div_ceil(splits).next_multiple_of(32);
        let mut out = vec![0.0f32; splits * order.len() * columns];
        for (i, out) in out.chunks_mut(columns).enumerate() {
            let (split, (tap, input)) = (i / order.len(), order[i % order.len()]);
            for row in (split * share).min(rows)..((split + 1) * share).min(rows) {
                let x = self.read(row, tap, input);
                out.iter_mut().zip(&self.dy[row * columns..]).for_each(|(sum, dy)| *sum += x * dy);
            }
        }
        out
    }

    /// Where `device`, with all operands on it, makes something else than the formula.
    fn wrong(&self, device: HostDevice, tilings: &[Tiling]) -> Vec<String> {
        let uploaded = Uploaded::new(self, device);
        let [width, bytes] = [self.shape.out_width as usize, bytes_of(self.precision)];
        let round = |x: f32| rounded(self.precision, x);
        let beside = vec![round(0.25); self.rows() * width];
        let forward = self.output(&beside, |sum, column, index| {
            round((self.biased(sum, column) + self.added[index]).max(0.0))
        });
        let backward = self.output(&self.added, |sum, _, index| {
            if self.opened[index] > 0.0 { round(sum + self.added[index]) } else { 0.0 }
        });
        let parts = self.gradient(3);
        let mut wrong = Vec::new();
        for &tiling in tilings {
            let mut check = |what: &str, found: Vec<f32>, right: &[f32]| {
                if let Some(at) = (0..right.len()).find(|&i| found[i] != right[i]) {
                    wrong.push(format!(
                        "{what} {tiling:?}: {} at {at}, not {}; {:?}, {} boards, {:?}",
                        found[at], right[at], self.shape, self.boards, self.precision
                    ));
                }
            };
            let launch = tiling.product(&self.shape, self.rows(), bytes);
            check("forward", uploaded.forward(tiling, launch, &beside), &forward);
            check("backward", uploaded.backward(tiling, launch), &backward);
            if self.mode != Connectivity::Spread {
                let launch = tiling.gradient(&self.shape, 3, bytes);
                check("gradient", uploaded.gradient(tiling, launch, parts.len()), &parts);
            }
            if tiling == Tiling::Narrow {
                let right = self.output(&vec![0.5; beside.len()], |sum, column, _| self.biased(sum, column));
                check("outputs", uploaded.outputs(launch), &right);
            }
        }
        wrong
    }
}

/// A case on a device.
struct Uploaded<'a> {
    case: &'a Case,
    device: HostDevice,
    /// The shape, and the same without a bias, as those of the backward direction are.
    shapes: [<HostDevice as Device>::Buffer; 2],
    /// x, weights, added, opened, dy.
    operands: [<HostDevice as Device>::Buffer; 5],
    bias: <HostDevice as Device>::Buffer,
}

fn upload(device: &HostDevice, bytes: &[u8]) -> <HostDevice as Device>::Buffer {
    let mut buffer = device.alloc(bytes.len()).expect("memory");
    device.upload(&mut buffer, 0, bytes).expect("a copy");
    buffer
}

impl<'a> Uploaded<'a> {
    fn new(case: &'a Case, mut device: HostDevice) -> Self {
        device.load(&training(None, case.precision).expect("sources")).expect("a program");
        let operands = [&case.x, &case.weights, &case.added, &case.opened, &case.dy];
        Self {
            case,
            shapes: [case.shape, LinearShape { biases: 0, ..case.shape }]
                .map(|shape| upload(&device, bytemuck::bytes_of(&shape))),
            operands: operands.map(|numbers| upload(&device, &packed(case.precision, numbers))),
            bias: upload(&device, bytemuck::cast_slice(&case.bias)),
            device,
        }
    }

    /// The block of a layer, 0: forward, 1: backward, without bias, residual or mask.
    fn block(&self, direction: usize, out: &<HostDevice as Device>::Buffer) -> LinearBlock {
        let [x, weights, ..] = &self.operands;
        LinearBlock {
            shape: self.shapes[direction].address(),
            x: x.address(),
            weights: weights.address(),
            bias: 0,
            residual: 0,
            relu_mask: 0,
            out: out.address(),
            outputs: out.address(),
            rows: self.case.rows() as u32,
            activation: Activation::Identity,
        }
    }

    fn launch(&self, kernel: &'static str, launch: LaunchShape, block: &impl NoUninit) {
        self.device.launch(kernel, launch, &[Arg::of(block)]).expect("a launch");
    }

    /// With bias, residual and the ReLU, over `beside`.
    fn forward(&self, tiling: Tiling, launch: LaunchShape, beside: &[f32]) -> Vec<f32> {
        let out = upload(&self.device, &packed(self.case.precision, beside));
        let block = LinearBlock {
            bias: self.bias.address(),
            residual: self.operands[2].address(),
            activation: Activation::Relu,
            ..self.block(0, &out)
        };
        self.launch(tiling.linear_kernel(), launch, &block);
        unpacked(self.case.precision, out.bytes())
    }

    /// Added to what is there, where it is opened.
    fn backward(&self, tiling: Tiling, launch: LaunchShape) -> Vec<f32> {
        let [_, _, added, opened, _] = &self.operands;
        let out = upload(&self.device, added.bytes());
        let block =
            LinearBlock { residual: out.address(), relu_mask: opened.address(), ..self.block(1, &out) };
        self.launch(tiling.linear_kernel(), launch, &block);
        unpacked(self.case.precision, out.bytes())
    }

    fn outputs(&self, launch: LaunchShape) -> Vec<f32> {
        let out = upload(&self.device, bytemuck::cast_slice(&vec![0.5f32; self.case.added.len()]));
        let block = LinearBlock { bias: self.bias.address(), ..self.block(0, &out) };
        self.launch("linear_outputs", launch, &block);
        bytemuck::pod_collect_to_vec(out.bytes())
    }

    fn gradient(&self, tiling: Tiling, launch: LaunchShape, numbers: usize) -> Vec<f32> {
        let [x, _, _, _, dy] = &self.operands;
        let out = self.device.alloc(4 * numbers).expect("memory");
        let block = WeightGradientBlock {
            shape: self.shapes[0].address(),
            x: x.address(),
            dy: dy.address(),
            parts: out.address(),
            rows: self.case.rows() as u32,
            splits: 3,
        };
        self.launch(tiling.gradient_kernel(), launch, &block);
        bytemuck::pod_collect_to_vec(out.bytes())
    }
}

/// Modes, boards, inputs and columns, and numbers of boards, of which each needs less than a tile, a step or a chunk of inputs
/// somewhere, or some and a part.
const LAYERS: [(Connectivity, [usize; 2], [usize; 2], usize); 12] = [
    (Connectivity::Conv3x3, [3, 5], [8, 24], 1),
    (Connectivity::Conv3x3, [3, 5], [8, 136], 19),
    (Connectivity::Conv3x3, [6, 7], [40, 72], 7),
    (Connectivity::Conv3x3, [1, 2], [72, 8], 66),
    (Connectivity::Conv3x3, [9, 4], [24, 40], 8),
    (Connectivity::Pointwise, [3, 5], [136, 8], 18),
    (Connectivity::Pointwise, [1, 1], [40, 200], 131),
    (Connectivity::Flatten, [3, 5], [8, 40], 1),
    (Connectivity::Flatten, [4, 3], [40, 136], 137),
    (Connectivity::Spread, [3, 5], [8, 24], 1),
    (Connectivity::Spread, [2, 3], [72, 40], 131),
    (Connectivity::Spread, [1, 2], [24, 136], 260),
];

#[test]
fn every_tiling_makes_the_sums_of_the_formula() {
    let mut wrong = Vec::new();
    for precision in [TrainPrecision::F32, TrainPrecision::Bf16, TrainPrecision::F16] {
        for (mode, board, sizes, boards) in LAYERS {
            let case = Case::new(mode, board, sizes, boards, precision);
            wrong.extend(case.wrong(HostDevice::new(5), &Tiling::ALL));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn without_the_barrier_sums_differ() {
    let (mode, board, sizes, boards) = LAYERS[2];
    let case = Case::new(mode, board, sizes, boards, TrainPrecision::Bf16);
    for tiling in Tiling::ALL {
        let wrong = case.wrong(HostDevice::new(5).without_barrier(40), &[tiling]);
        assert!(wrong.len() >= 3, "{tiling:?}: {wrong:#?}");
    }
}

/// Weights after an update on a device of so many multiprocessors.
fn updated(spec: &NetSpec, precision: TrainPrecision, multiprocessors: u32) -> Weights {
    let config = TrainConfig { precision, ..config() };
    let start = Trainer::with_weights(spec, &config, &weights(spec)).expect("a trainer").state();
    let device = HostDevice::new(4);
    let limits = Limits { multiprocessors, ..device.limits().expect("known") };
    let device = device.with_limits(limits);
    let mut trainer = DeviceTrainer::with_state(device, spec, &config, None, &start).expect("a trainer");
    trainer.step(&batch(spec, 21, 8)).expect("finite");
    trainer.state().expect("a state")
}

#[test]
fn an_update_is_the_same_on_a_device_of_any_size() {
    let resnet = spec(Arch::Resnet);
    let small = ObsShape { channels: 2, height: 3, width: 3 };
    let wide = NetSpec { blocks: 1, channels: 72, obs: small, num_actions: 70, ..resnet.clone() };
    let tall = NetSpec { blocks: 1, channels: 40, ..resnet };
    for spec in [wide, tall] {
        for precision in [TrainPrecision::F32, TrainPrecision::Bf16] {
            let (large, tiny) = (updated(&spec, precision, 132), updated(&spec, precision, 1));
            assert!(large == tiny, "{precision:?} {spec:?}");
        }
    }
}
