//! Positions per second of the network's kernels on a GPU: one JSON object per line for each network, batch and tensor-core instruction.
//!
//!     cargo bench --bench device_forward
//!     cargo bench --bench device_forward -- 6x128 --slots 4096,32768 --element-type f16
//!     cargo bench --bench device_forward -- 6x128 --tensor-cores mma,wgmma
//!
//! `tflops` counts all nine taps of every square, `tflops_on_board` those on the board only. The last line has two peaks to compare
//! with: `gemm_bf16_tflops`, cuBLAS's product of large bf16 matrices, and `mma_tflops`, back-to-back mma.sync instructions. They are
//! measured after the networks, so that a missing or failing library costs no measurement. A measurement that fails is a line
//! with `error`, and the program then ends with exit code 1.

use clap::Parser;
use cudarc::cublas::result::CublasError;
use cudarc::cublas::sys::cublasOperation_t;
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{CudaContext, DriverError};
use half::bf16;
use serde_json::{Value, json};
use std::time::Instant;
use vecaz::config::{Arch, NetConfig};
use vecaz::device::cuda::{CudaDevice, CudaLibrary};
use vecaz::device::store::Store;
use vecaz::device::{Arg, Device, LaunchShape};
use vecaz::error::{Error, Result};
use vecaz::model::NetSpec;
use vecaz::net::gpu::network::{DeviceNetwork, ObsFormat, Slots};
use vecaz::net::gpu::{
    Arithmetic, DeviceForward, ElementType, MatrixInstruction, PEAK_BLOCK, PEAK_PRODUCTS, peak_program,
};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};

/// Networks: architecture, blocks, channels.
const NETWORKS: [(Arch, usize, usize); 5] = [
    (Arch::Resnet, 2, 32),
    (Arch::Resnet, 6, 64),
    (Arch::Resnet, 6, 128),
    (Arch::Resnet, 20, 256),
    (Arch::Edge, 3, 64),
];
/// Rows and columns of the matrices whose product is cuBLAS's peak.
const SIDE: usize = 8192;

#[derive(Parser)]
struct Args {
    /// Networks to measure, such as 6x128 or edge3x64; all if none is named.
    networks: Vec<String>,
    /// N: positions of a batch.
    #[arg(long, value_delimiter = ',', default_value = "1,16,128,1024,4096,16384,32768")]
    slots: Vec<usize>,
    /// bf16, f16, tf32 or f32.
    #[arg(long, default_value = "bf16")]
    element_type: String,
    /// mma, wgmma on Hopper, or both: all networks by the first, then all by the second.
    #[arg(long, value_delimiter = ',', default_value = "mma")]
    tensor_cores: Vec<String>,
    /// Seconds of each measurement at least.
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// The GPU's number.
    #[arg(long, default_value_t = 0)]
    gpu: u32,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The name of a network, and its sizes: a tower on Connect Four's board, or an edge network on K_14.
fn network((arch, blocks, channels): (Arch, usize, usize)) -> Result<(String, NetSpec)> {
    let net = NetConfig { arch, blocks, channels, ..NetConfig::default() };
    let (kind, sizes) = match arch {
        Arch::Edge => ("edge", any_game("clique", &toml::toml! { n = 14 })?.sizes()),
        Arch::Resnet | Arch::Mlp => ("", any_game("connect_four", &toml::Table::new())?.sizes()),
    };
    Ok((format!("{kind}{blocks}x{channels}"), NetSpec::new(&net, &sizes)))
}

/// Seconds of one `work`, which is called several times before each `wait`.
fn seconds_of(
    budget: f64,
    mut work: impl FnMut() -> Result<()>,
    wait: impl Fn() -> Result<()>,
) -> Result<f64> {
    work()?;
    wait()?;
    let start = Instant::now();
    work()?;
    wait()?;
    let once = start.elapsed().as_secs_f64().max(1e-6);
    let (each, start, mut done) = ((0.05 / once).ceil() as usize, Instant::now(), 0);
    while start.elapsed().as_secs_f64() < budget {
        for _ in 0..each {
            work()?;
        }
        wait()?;
        done += each;
    }
    Ok(start.elapsed().as_secs_f64() / done as f64)
}

/// Operations per second of cuBLAS on large bf16 matrices. Their entries are random, since a GPU multiplies zeros faster.
fn gemm_peak(args: &Args) -> Result<f64> {
    let name = format!("cuda:{}", args.gpu);
    [CudaLibrary::CublasLt, CudaLibrary::Cublas].iter().try_for_each(|library| library.load(&name))?;
    let failed = |what: String| Error::Device { device: name.clone(), what: format!("cuBLAS: {what}") };
    let from_driver = |e: DriverError| failed(e.to_string());
    let from_cublas = |e: CublasError| failed(e.to_string());
    let stream = CudaContext::new(args.gpu as usize).and_then(|gpu| gpu.new_stream()).map_err(from_driver)?;
    let mut random = Key::new(1, Purpose::Weights).stream();
    let numbers: Vec<bf16> = (0..SIDE * SIDE).map(|_| bf16::from_f32(random.uniform() - 0.5)).collect();
    let matrix = || stream.clone_htod(&numbers).map_err(from_driver);
    let (a, b, mut c) = (matrix()?, matrix()?, matrix()?);
    let blas = CudaBlas::new(stream.clone()).map_err(from_cublas)?;
    let side = SIDE as i32;
    let config = || GemmConfig {
        transa: cublasOperation_t::CUBLAS_OP_N,
        transb: cublasOperation_t::CUBLAS_OP_N,
        m: side,
        n: side,
        k: side,
        alpha: bf16::ONE,
        lda: side,
        ldb: side,
        beta: bf16::ZERO,
        ldc: side,
    };
    // SAFETY: each of the three matrices has SIDE times SIDE numbers, as the configuration says.
    let product = || unsafe { blas.gemm(config(), &a, &b, &mut c) }.map_err(from_cublas);
    let seconds = seconds_of(args.seconds, product, || stream.synchronize().map_err(from_driver))?;
    Ok(2.0 * (SIDE * SIDE * SIDE) as f64 / seconds)
}

/// Operations per second of mma.sync, the instruction of the layers.
fn mma_peak(args: &Args, device: &CudaDevice, element_type: ElementType) -> Result<f64> {
    let module = device.module(&peak_program(element_type))?;
    let blocks = 8 * device.limits()?.multiprocessors;
    let out = device.alloc(4 * (blocks * PEAK_BLOCK) as usize)?;
    let rounds = 20_000u32;
    let shape = LaunchShape { grid: blocks, block: PEAK_BLOCK, shared: 0 };
    let work = || device.launch_in(&module, "measure_peak", shape, &[Arg::Buffer(&out, 0), Arg::U32(rounds)]);
    let seconds = seconds_of(args.seconds, work, || device.synchronise())?;
    let warps = u64::from(blocks * PEAK_BLOCK / 32);
    let products_of_pairs = if element_type.per_word() == 2 { 1.0 } else { 0.5 };
    Ok(2.0 * products_of_pairs * (warps * u64::from(rounds) * PEAK_PRODUCTS) as f64 / seconds)
}

/// The forward of `num` positions at once through `spec`.
fn measure(
    args: &Args,
    device: &CudaDevice,
    spec: &NetSpec,
    (arithmetic, num): (Arithmetic, usize),
) -> Result<Value> {
    let weights = spec.model().expect("a network").random_weights(Key::new(1, Purpose::Weights));
    let mut net = DeviceForward::new(device, spec, &weights, arithmetic, num)?;
    let mut obs = device.alloc(4 * num * spec.obs.len())?;
    device.upload(&mut obs, 0, &random_planes(num * spec.obs.len(), net.format(), net.element_type()))?;
    let mut logits = device.alloc(4 * num * spec.num_actions)?;
    let mut values = device.alloc(4 * num * spec.num_players)?;
    let operations = |products: usize| 2.0 * products as f64 * num as f64;
    let (flops, on_board) =
        (operations(net.executed_macs_per_sample()), operations(net.weight_macs_per_sample()));
    let work = || {
        net.forward(device, Slots { num, live: None, obs: &obs, logits: &mut logits, values: &mut values })
    };
    let seconds = seconds_of(args.seconds, work, || device.synchronise())?;
    Ok(json!({
        "microseconds": 1e6 * seconds, "positions_per_second": num as f64 / seconds,
        "tflops": flops / seconds / 1e12, "tflops_on_board": on_board / seconds / 1e12,
    }))
}

/// Squares of random 0 and 1, as a network reads them: a GPU is faster on zeros alone.
fn random_planes(squares: usize, format: ObsFormat, element_type: ElementType) -> Vec<u8> {
    let mut random = Key::new(2, Purpose::Evaluation).stream();
    let squares = (0..squares).map(|_| random.uniform().round());
    match format {
        ObsFormat::F32 => squares.flat_map(f32::to_ne_bytes).collect(),
        ObsFormat::Bf16 => squares.flat_map(|x| (element_type.bits(x) as u16).to_ne_bytes()).collect(),
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let cores = args.tensor_cores.iter().map(|name| match name.as_str() {
        "mma" => Ok((name, MatrixInstruction::Mma)),
        "wgmma" => Ok((name, MatrixInstruction::Wgmma)),
        other => Err(Error::unsupported(format!("tensor cores {other}"), "expected mma or wgmma")),
    });
    let cores = cores.collect::<Result<Vec<_>>>()?;
    let element_type = match args.element_type.as_str() {
        "bf16" => ElementType::Bf16,
        "f16" => ElementType::F16,
        "tf32" => ElementType::Tf32,
        "f32" => ElementType::F32,
        other => {
            return Err(Error::unsupported(
                format!("element type {other}"),
                "expected bf16, f16, tf32 or f32",
            ));
        }
    };
    let device = CudaDevice::open(args.gpu, Store::of_user())?;
    let gpu = device.describe()?;
    let mut failure = None;
    for &(by, cores) in &cores {
        for (name, spec) in NETWORKS.into_iter().map(network).collect::<Result<Vec<_>>>()? {
            if !args.networks.is_empty() && !args.networks.contains(&name) {
                continue;
            }
            for &num in &args.slots {
                let mut line = json!({
                    "network": name, "element_type": args.element_type, "tensor_cores": by, "slots": num, "gpu": gpu,
                });
                match measure(&args, &device, &spec, (Arithmetic { element_type, cores }, num)) {
                    Ok(figures) => merge(&mut line, figures),
                    Err(error) => {
                        merge(&mut line, json!({ "error": error.to_string() }));
                        failure = failure.or(Some(error));
                    }
                }
                println!("{line}");
            }
        }
    }
    let mut line = json!({});
    let mma = match element_type {
        ElementType::F32 => None, // not a product of the tensor cores
        ElementType::Bf16 | ElementType::F16 | ElementType::Tf32 => {
            Some(mma_peak(&args, &device, element_type))
        }
    };
    for (name, peak) in [("mma", mma), ("gemm_bf16", Some(gemm_peak(&args)))] {
        match peak {
            Some(Ok(peak)) => line[format!("{name}_tflops")] = json!(peak / 1e12),
            Some(Err(error)) => line[format!("{name}_error")] = json!(error.to_string()),
            None => {}
        }
    }
    println!("{line}");
    failure.map_or(Ok(()), Err)
}

/// Adds the entries of `figures` to `line`; both are objects.
fn merge(line: &mut Value, figures: Value) {
    if let (Value::Object(line), Value::Object(figures)) = (line, figures) {
        line.extend(figures);
    }
}
