//! vecaz's kernels beside candle's own on the same GPU, with the same weights and positions: how far their outputs differ, and positions
//! per second of both. One JSON object per line for each network, batch and element type of vecaz's kernels; candle computes in f32.
//!
//!     cargo bench --bench device_candle --features candle-cuda
//!
//! Building that feature needs nvcc; in a build without it, candle refuses the GPU. Inputs and outputs stay in the GPU's memory. The
//! program ends with exit code 1 if outputs differ by more than their rounding.

use candle_core::{Device as CandleDevice, Tensor};
use clap::Parser;
use serde_json::json;
use std::time::Instant;
use vecaz::config::NetConfig;
use vecaz::device::Device;
use vecaz::device::cuda::CudaDevice;
use vecaz::device::store::Store;
use vecaz::error::{Error, Result};
use vecaz::model::{NetSpec, Weights};
use vecaz::net::CandleNet;
use vecaz::net::candle::BatchNormMode;
use vecaz::net::gpu::network::{DeviceNetwork, ObsFormat, Slots};
use vecaz::net::gpu::{DeviceForward, ElementType};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};

/// Element types of vecaz's kernels, in which candle's f32 is the reference.
const ELEMENT_TYPES: [(ElementType, &str); 3] =
    [(ElementType::F32, "f32"), (ElementType::Tf32, "tf32"), (ElementType::Bf16, "bf16")];

#[derive(Parser)]
struct Args {
    /// Residual towers to measure, as BLOCKSxCHANNELS.
    #[arg(default_values_t = ["2x32".to_string(), "6x128".to_string()])]
    networks: Vec<String>,
    /// N: positions of a batch.
    #[arg(long, value_delimiter = ',', default_value = "1024,4096")]
    slots: Vec<usize>,
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

/// Logits `[N, A]` and values `[N, V]` of a batch, and positions per second.
struct Evaluated {
    logits: Vec<f32>,
    values: Vec<f32>,
    rate: f64,
}

fn spec_of(network: &str) -> Result<NetSpec> {
    let sizes = network
        .split_once('x')
        .and_then(|(blocks, channels)| Some((blocks.parse().ok()?, channels.parse().ok()?)));
    let (blocks, channels) = sizes.ok_or_else(|| {
        Error::unsupported(format!("network {network}"), "expected BLOCKSxCHANNELS such as 6x128")
    })?;
    let net = NetConfig { blocks, channels, ..NetConfig::default() };
    Ok(NetSpec::new(&net, &any_game("connect_four", &toml::Table::new())?.sizes()))
}

/// Calls of `work` per second, which `wait` waits for.
fn rate(budget: f64, mut work: impl FnMut() -> Result<()>, wait: impl Fn() -> Result<()>) -> Result<f64> {
    const AT_ONCE: usize = 8;
    let (mut start, mut calls) = (Instant::now(), 0);
    while calls == 0 || start.elapsed().as_secs_f64() < budget {
        let is_warmup = calls == 0;
        (0..AT_ONCE).try_for_each(|_| work())?;
        wait()?;
        calls += AT_ONCE;
        if is_warmup {
            start = Instant::now();
        }
    }
    Ok((calls - AT_ONCE) as f64 / start.elapsed().as_secs_f64())
}

/// `obs` `[N, F]` by candle.
fn by_candle(args: &Args, spec: &NetSpec, weights: &Weights, obs: &[f32]) -> Result<Evaluated> {
    let gpu = CandleDevice::new_cuda(args.gpu as usize)?;
    let net = CandleNet::on(&gpu, spec.model()?, weights)?;
    let num = obs.len() / spec.obs.len();
    let obs = Tensor::from_slice(obs, (num, spec.obs.len()), &gpu)?;
    let (logits, values) = net.forward_t(&obs, BatchNormMode::Eval)?;
    let work = || net.forward_t(&obs, BatchNormMode::Eval).map(drop);
    let rate = num as f64 * rate(args.seconds, work, || Ok(gpu.synchronize()?))?;
    let flat = |tensor: Tensor| tensor.flatten_all()?.to_vec1::<f32>();
    Ok(Evaluated { logits: flat(logits)?, values: flat(values)?, rate })
}

/// `obs` `[N, F]` by vecaz's kernels.
fn by_vecaz(
    args: &Args,
    device: &CudaDevice,
    (spec, weights): (&NetSpec, &Weights),
    element_type: ElementType,
    obs: &[f32],
) -> Result<Evaluated> {
    let num = obs.len() / spec.obs.len();
    let mut net = DeviceForward::new(device, spec, weights, element_type, num)?;
    let bytes: Vec<u8> = match net.format() {
        ObsFormat::F32 => bytemuck::cast_slice(obs).to_vec(),
        ObsFormat::Bf16 => obs.iter().flat_map(|&x| (element_type.bits(x) as u16).to_ne_bytes()).collect(),
    };
    let mut obs = device.alloc(bytes.len())?;
    device.upload(&mut obs, 0, &bytes)?;
    let (mut logits, mut values) =
        (vec![0.0f32; num * spec.num_actions], vec![0.0f32; num * spec.num_players]);
    let (mut l, mut v) = (device.alloc(4 * logits.len())?, device.alloc(4 * values.len())?);
    let work = || net.forward(device, Slots { num, live: None, obs: &obs, logits: &mut l, values: &mut v });
    let rate = num as f64 * rate(args.seconds, work, || device.synchronise())?;
    device.download(&l, 0, bytemuck::cast_slice_mut(&mut logits))?;
    device.download(&v, 0, bytemuck::cast_slice_mut(&mut values))?;
    // Candle's network has one value of two opposite ones.
    let values = values.chunks_exact(spec.num_players).map(|of_players| of_players[0]).collect();
    Ok(Evaluated { logits, values, rate })
}

/// The largest difference, as a fraction of 1 + the largest number; not a number if one of `ours` is none.
fn difference(ours: &[f32], theirs: &[f32]) -> f32 {
    let largest = theirs.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
    let off =
        ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, |m: f32, x| if x <= m { m } else { x });
    off / (1.0 + largest)
}

/// The largest difference that `layers` in a row can make by rounding: a random walk of them, 0.5 to 1 step of the element type
/// each. In f32 only the order of the sums differs.
fn largest_rounding(element_type: ElementType, layers: usize) -> f32 {
    let steps = match element_type {
        ElementType::F32 => return 2e-5,
        ElementType::Tf32 | ElementType::F16 => 2048.0,
        ElementType::Bf16 => 512.0,
    };
    3.0 * (2.0 * layers as f32).sqrt() / steps
}

fn main() -> Result<()> {
    let args = Args::parse();
    let device = CudaDevice::open(args.gpu, Store::of_user())?;
    let gpu = device.describe()?;
    let mut wrong = None;
    for name in &args.networks {
        let spec = spec_of(name)?;
        let weights = spec.model()?.random_weights(Key::new(1, Purpose::Weights));
        for &num in &args.slots {
            let mut random = Key::new(2, Purpose::Evaluation).stream();
            let obs: Vec<f32> = (0..num * spec.obs.len()).map(|_| random.uniform().round()).collect();
            let theirs = by_candle(&args, &spec, &weights, &obs)?;
            for (element_type, element) in ELEMENT_TYPES {
                let ours = by_vecaz(&args, &device, (&spec, &weights), element_type, &obs)?;
                let off =
                    [difference(&ours.logits, &theirs.logits), difference(&ours.values, &theirs.values)];
                let limit = largest_rounding(element_type, 2 * spec.blocks + 3);
                let line = json!({
                    "network": name, "slots": num, "element_type": element, "positions_per_second": ours.rate,
                    "candle_f32_positions_per_second": theirs.rate, "ratio": ours.rate / theirs.rate,
                    "logits_differ": off[0], "values_differ": off[1], "at_most": limit, "gpu": gpu,
                });
                println!("{line}");
                if !off.iter().all(|&off| off < limit) {
                    let what = format!("{name} in {element} is off by {off:?}, at most {limit} is rounding");
                    wrong = wrong.or(Some(Error::Device { device: gpu.clone(), what }));
                }
            }
        }
    }
    wrong.map_or(Ok(()), Err)
}
