//! One layer by itself: a plain convolution in 16 bits, its sums alone and with bias and ReLU.

use super::{download_words, host, upload};
use crate::host_device::{HostBuffer, HostDevice};
use vecaz::device::source;
use vecaz::device::{Arg, Device, LaunchShape, Program};
use vecaz::net::gpu::{ElementType, ForwardLayer, LayerSpec, MatrixInstruction, padded_channels};
use vecaz::rng::{Key, Purpose, RngStream};

type Module = <HostDevice as Device>::Module;

/// A convolution with random operands, rounded to `element_type`.
struct Conv {
    spec: LayerSpec,
    /// Input channels; those of `spec.inputs` past them are 0.
    inputs: usize,
    boards: usize,
    /// `[boards, H, W, spec.inputs]`
    x: Vec<f32>,
    /// `[outputs, 9, inputs]`
    w: Vec<f32>,
    /// `[outputs]`
    bias: Vec<f32>,
}

impl Conv {
    fn new(
        (element_type, cores): (ElementType, MatrixInstruction),
        [height, width]: [usize; 2],
        [inputs, outputs]: [usize; 2],
        boards: usize,
    ) -> Self {
        let row = padded_channels(element_type, inputs);
        let spec = LayerSpec { element_type, cores, taps: 9, height, width, inputs: row, outputs };
        let mut stream = Key::new(3, Purpose::Weights).stream();
        let rounded = |x: f32| element_type.number(element_type.bits(x));
        let rows = boards * height * width;
        let channels = |own: usize, row: usize, stream: &mut RngStream| -> Vec<f32> {
            let value =
                |i: usize, stream: &mut RngStream| if i % row < own { rounded(stream.normal()) } else { 0.0 };
            (0..rows * row).map(|i| value(i, stream)).collect()
        };
        let x = channels(inputs, row, &mut stream);
        let w = (0..outputs * 9 * inputs).map(|_| rounded(0.1 * stream.normal())).collect();
        let bias = (0..outputs).map(|_| stream.normal()).collect();
        Self { spec, inputs, boards, x, w, bias }
    }

    fn rows(&self) -> usize {
        self.boards * self.spec.height * self.spec.width
    }

    fn weight(&self, output: usize, tap: usize, input: usize) -> f32 {
        self.w[(output * 9 + tap) * self.inputs + input]
    }

    /// The sums, as the formula reads. `[boards, H, W, outputs' row]`
    fn naive(&self) -> Vec<f64> {
        let LayerSpec { element_type, height, width, inputs: row, outputs, .. } = self.spec;
        let out_row = padded_channels(element_type, outputs);
        let mut out = vec![0.0; self.rows() * out_row];
        for (index, out) in out.iter_mut().enumerate() {
            let (square, output) = (index / out_row, index % out_row);
            let (board, y, x) = (square / (height * width), square / width % height, square % width);
            for tap in (0..9).filter(|_| output < outputs) {
                let (ty, tx) = (y + tap / 3, x + tap % 3);
                if (1..=height).contains(&ty) && (1..=width).contains(&tx) {
                    let from = ((board * height + ty - 1) * width + tx - 1) * row;
                    let products = self.x[from..][..self.inputs].iter().enumerate();
                    *out += products
                        .map(|(i, &x)| f64::from(x) * f64::from(self.weight(output, tap, i)))
                        .sum::<f64>();
                }
            }
        }
        out
    }
}

fn words(element_type: ElementType, x: &[f32]) -> Vec<u16> {
    x.iter().map(|&x| element_type.bits(x) as u16).collect()
}

fn program(layer: &ForwardLayer, element_type: ElementType) -> Program {
    let channels = padded_channels(element_type, layer.spec.outputs);
    let defines = [
        ("VZ_LAYER", layer.constants()),
        ("VZ_ELEMENT_TYPE", element_type.name().into()),
        ("VZ_CHANNELS", channels.to_string()),
    ];
    let defines = defines.map(|(name, value)| (name.to_string(), value)).to_vec();
    let mut program = source::compose("one layer", &["common.cuh", "plain_layer.cu"], defines);
    program.headers.push(("plain_layer.cu".into(), include_str!("plain_layer.cu").into()));
    program
}

#[test]
fn a_layer_by_itself_is_a_convolution() {
    for (element_type, cores, board, channels, boards) in [
        (ElementType::Bf16, MatrixInstruction::Mma, [6, 7], [32, 32], 5),
        (ElementType::F16, MatrixInstruction::Mma, [3, 5], [20, 70], 4),
        (ElementType::Bf16, MatrixInstruction::Mma, [9, 4], [150, 17], 3),
        (ElementType::Bf16, MatrixInstruction::Wgmma, [6, 7], [32, 32], 5),
        (ElementType::F16, MatrixInstruction::Wgmma, [3, 5], [20, 70], 4),
        (ElementType::Bf16, MatrixInstruction::Wgmma, [9, 4], [150, 170], 3),
    ] {
        let conv = Conv::new((element_type, cores), board, channels, boards);
        let device = host(9);
        let layer = ForwardLayer::new(conv.spec, conv.rows(), device.limits().expect("known")).expect("fits");
        let module = device.module(&program(&layer, element_type)).expect("compiles");
        check_pack(&device, &module, &layer, &conv);
        check_sums(&device, &module, &layer, &conv);
    }
}

/// The kernel that packs weights orders them as the host does.
fn check_pack(device: &HostDevice, module: &Module, layer: &ForwardLayer, conv: &Conv) {
    let packed = layer.pack(conv.inputs, |o, t, i| conv.weight(o, t, i));
    let plain = upload(device, bytemuck::cast_slice(&conv.w));
    let by_kernel = device.alloc(4 * packed.len()).expect("memory");
    let args = [
        Arg::Buffer(&plain, 0),
        Arg::Buffer(&by_kernel, 0),
        Arg::U32(conv.spec.outputs as u32),
        Arg::U32(conv.inputs as u32),
    ];
    device.launch_in(module, "pack", LaunchShape { grid: 1, block: 64, shared: 0 }, &args).expect("runs");
    assert_eq!(download_words(device, &by_kernel, packed.len()), packed, "the order of the weights");
}

/// The layer computes the sums of the convolution, by themselves and with bias and ReLU.
fn check_sums(device: &HostDevice, module: &Module, layer: &ForwardLayer, conv: &Conv) {
    let (element_type, rows) = (conv.spec.element_type, conv.rows());
    let packed = layer.pack(conv.inputs, |o, t, i| conv.weight(o, t, i));
    let weights = upload(device, bytemuck::cast_slice(&packed));
    let x = upload(device, bytemuck::cast_slice(&words(element_type, &conv.x)));
    let bias = upload(device, bytemuck::cast_slice(&layer.by_channel(&conv.bias)));
    let sums = conv.naive();
    let outputs = [0, 1].map(|_| upload(device, &vec![0xFF; 2 * sums.len()]));
    let operands = [Arg::Buffer(&x, 0), Arg::Buffer(&weights, 0), Arg::U32(rows as u32)];
    let plain_args = [&operands[..], &[Arg::Buffer(&outputs[0], 0)]].concat();
    let relu_args = [&operands[..], &[Arg::Buffer(&bias, 0), Arg::Buffer(&outputs[1], 0)]].concat();
    device.launch_in(module, "plain", layer.launch_shape(rows), &plain_args).expect("runs");
    device.launch_in(module, "bias_relu", layer.launch_shape(rows), &relu_args).expect("runs");

    let row = padded_channels(element_type, conv.spec.outputs);
    let bias_relu = |(i, sum): (usize, &f64)| {
        let bias = conv.bias.get(i % row).copied().unwrap_or(0.0);
        (sum + f64::from(bias)).max(0.0)
    };
    check_rounded(device, &outputs[0], element_type, &sums);
    check_rounded(
        device,
        &outputs[1],
        element_type,
        &sums.iter().enumerate().map(bias_relu).collect::<Vec<_>>(),
    );
}

/// The numbers of `output` are `expected` within one rounding of the result and sums in single precision.
fn check_rounded(device: &HostDevice, output: &HostBuffer, element_type: ElementType, expected: &[f64]) {
    let found = download_words(device, output, expected.len() / 2);
    let precision = if element_type == ElementType::Bf16 { 256.0 } else { 2048.0 };
    for (i, &expected) in expected.iter().enumerate() {
        let found = element_type.number(found[i / 2] >> (16 * (i % 2)) & 0xFFFF);
        let bound = expected.abs() / precision + 1e-4;
        assert!((f64::from(found) - expected).abs() <= bound, "{found}, expected {expected}, number {i}");
    }
}

/// The bits of the whole layer by each kernel for it, with the rows and columns of a block.
fn by_every_tile(conv: &Conv) -> Vec<([usize; 2], Vec<u32>)> {
    let (element_type, rows) = (conv.spec.element_type, conv.rows());
    let device = host(9);
    let outputs = rows * padded_channels(element_type, conv.spec.outputs);
    let by_tile = |layer: &ForwardLayer| {
        let module = device.module(&program(layer, element_type)).expect("compiles");
        let packed = layer.pack(conv.inputs, |o, t, i| conv.weight(o, t, i));
        let x = upload(&device, bytemuck::cast_slice(&words(element_type, &conv.x)));
        let weights = upload(&device, bytemuck::cast_slice(&packed));
        let bias = upload(&device, bytemuck::cast_slice(&layer.by_channel(&conv.bias)));
        let output = upload(&device, &vec![0xFF; 2 * outputs]);
        let [x, weights, bias, to] = [&x, &weights, &bias, &output].map(|buffer| Arg::Buffer(buffer, 0));
        let args = [x, weights, Arg::U32(rows as u32), bias, to];
        device.launch_in(&module, "bias_relu", layer.launch_shape(rows), &args).expect("runs");
        (layer.block_shape(), download_words(&device, &output, outputs / 2))
    };
    let layers = ForwardLayer::candidates(conv.spec, device.limits().expect("known")).expect("fit");
    layers.iter().map(by_tile).collect()
}

#[test]
fn every_tile_gives_the_same_bits() {
    for (cores, outputs, num_tiles) in [
        (MatrixInstruction::Mma, 32, 7),
        (MatrixInstruction::Mma, 128, 7),
        (MatrixInstruction::Wgmma, 128, 4),
    ] {
        let conv = Conv::new((ElementType::Bf16, cores), [6, 7], [70, outputs], 7);
        let found = by_every_tile(&conv);
        assert_eq!(found.len(), num_tiles, "tiles by {cores:?} for {outputs} channels");
        for (shape, bits) in &found {
            assert!(*bits == found[0].1, "tiles of {shape:?} and {:?} by {cores:?} differ", found[0].0);
        }
    }
}
