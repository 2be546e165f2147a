//! Compiles kernels for a GPU of another machine into a folder, on all threads. With the folder in `VECAZ_CACHE`, programs start on that
//! machine without compiling.
//!
//!     cargo run --release --example kernel_store -- 90 132 FOLDER < programs.txt
//!
//! 90 is the compute capability, 132 the number of multiprocessors, for which networks are specialised. Each line of the input is a
//! game's name and, after a bar, its options separated by `;`: `hex | size = 13; swap = true`. A third part selects a network for
//! the game instead of the game's own kernels: `connect_four | | resnet 6x128 bf16 1,128,4096` has blocks and channels, number format
//! and numbers of slots, optionally followed by `mma`; `connect_four | | training bf16` selects the training kernels. The line
//! `peak bf16` selects the kernel of `mma_tflops` in `benches/device_forward.rs`, and `parity` all kernels of the parity tests.

#[path = "../tests/support/parity.rs"]
mod parity;

use parity::{BATCH, GAMES, HALF, PART, RESIDENT, RESIDENT_LEAVES, networks};
use rayon::prelude::*;
use std::io::BufRead;
use std::path::Path;
use vecaz::backend::AnyGame;
use vecaz::batch::programs::{GAME_UNITS, program, training};
use vecaz::config::{Arch, DeviceName, NetConfig, Precision, TensorCores, TrainPrecision};
use vecaz::device::cuda::code_for;
use vecaz::device::store::Store;
use vecaz::device::{Limits, Program};
use vecaz::error::{Error, Result};
use vecaz::model::NetSpec;
use vecaz::net::gpu;
use vecaz::net::gpu::{Arithmetic, ElementType};
use vecaz::registry::any_game;

/// The programs of one line.
fn programs(line: &str, limits: Limits) -> Result<Vec<Program>> {
    match line {
        "parity" => return parity_programs(limits),
        "peak bf16" => return Ok(vec![gpu::peak_program(ElementType::Bf16)]),
        _ => {}
    }
    let mut parts = line.split('|').map(str::trim);
    let (name, options) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let invalid = |what: String| Error::ConfigText { origin: line.to_string(), what };
    let options =
        options.replace(';', "\n").parse().map_err(|e: toml::de::Error| invalid(e.message().to_string()))?;
    let game = any_game(name, &options)?;
    let words: Vec<&str> = parts.next().unwrap_or_default().split_whitespace().collect();
    match words.as_slice() {
        [] => GAME_UNITS.iter().map(|unit| program(game.as_ref(), unit)).collect(),
        ["training", precision] => {
            let precision = parsed::<TrainPrecision>(precision).map_err(invalid)?;
            Ok(vec![training(Some(game.as_ref()), precision)?, training(None, precision)?])
        }
        [arch, size, precision, slots, cores @ ..] if cores.len() < 2 => {
            let spec = network(arch, size, game.as_ref()).map_err(invalid)?;
            let precision = parsed::<Precision>(precision).map_err(invalid)?;
            let cores = parsed::<TensorCores>(cores.first().unwrap_or(&"auto")).map_err(invalid)?;
            let arithmetic = Arithmetic::of(precision, cores, limits.capability)?;
            let slots = slots.split(',').map(|n| n.parse::<usize>().map_err(|e| invalid(e.to_string())));
            slots.map(|slots| gpu::program(&spec, arithmetic, slots?, limits)).collect()
        }
        _ => Err(invalid("expected nothing, a network or training after the second bar".into())),
    }
}

/// The network of these words.
fn network(arch: &str, size: &str, game: &dyn AnyGame) -> std::result::Result<NetSpec, String> {
    let wrong = || format!("{size} is not a size, expected BLOCKSxCHANNELS");
    let (blocks, channels) = size.split_once('x').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
    let (blocks, channels) = (number(blocks)?, number(channels)?);
    let net = NetConfig { arch: parsed::<Arch>(arch)?, blocks, channels, ..NetConfig::default() };
    Ok(NetSpec::new(&net, &game.sizes()))
}

/// Parses a name as in a configuration.
fn parsed<T: serde::de::DeserializeOwned>(name: &str) -> std::result::Result<T, String> {
    serde_json::from_value(name.into()).map_err(|e| e.to_string())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wrong = || {
        let expected = "expected a compute capability such as 90, a number of multiprocessors, and a folder";
        Error::unsupported("these arguments", expected)
    };
    let [capability, multiprocessors, folder] = arguments.as_slice() else { return Err(wrong()) };
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let limits = Limits::of(number(capability)?, number(multiprocessors)?);
    let store = Store::at(Path::new(folder).join("programs"));
    let lines = std::io::stdin().lock().lines().collect::<std::io::Result<Vec<_>>>();
    let lines = lines.map_err(|e| Error::io("reading", "stdin", e))?;
    lines.iter().filter(|line| !line.starts_with('#')).par_bridge().try_for_each(|line| {
        programs(line, limits)?.par_iter().try_for_each(|program| {
            let code = code_for(program, DeviceName::Cuda(0), limits.capability, Some(&store))?;
            println!("{line}: {}, {} bytes", program.game, code.len());
            Ok(())
        })
    })
}

/// Every program that the parity tests compile on a device of these limits.
fn parity_programs(limits: Limits) -> Result<Vec<Program>> {
    let mut all = Vec::new();
    let beside_games = RESIDENT.iter().map(|beside| beside.game);
    for (name, options) in GAMES.into_iter().chain(beside_games) {
        let game = any_game(name, &options.parse().expect("TOML"))?;
        for unit in ["search", "passes", "batch"] {
            all.push(program(game.as_ref(), unit)?);
        }
    }
    for precision in [TrainPrecision::F32, TrainPrecision::Bf16, TrainPrecision::F16] {
        all.push(training(None, precision)?);
    }
    let by = |precision, cores| Arithmetic::of(precision, cores, limits.capability);
    for beside in &RESIDENT {
        let (arch, blocks, channels) = beside.net;
        let game = any_game(beside.game.0, &beside.game.1.parse().expect("TOML"))?;
        let net = NetConfig { arch, blocks, channels, ..NetConfig::default() };
        let spec = NetSpec::new(&net, &game.sizes());
        // As many slots as leaves for trees on the device; the next power of two for trees on the host.
        let leaves = beside.slots * RESIDENT_LEAVES;
        for slots in [leaves, leaves.next_power_of_two()] {
            all.push(gpu::program(&spec, by(beside.precision, TensorCores::Auto)?, slots, limits)?);
        }
    }
    for spec in networks() {
        for precision in [Precision::F16, Precision::Bf16, Precision::Tf32, Precision::F32] {
            for (cores, slots) in [
                (TensorCores::Mma, BATCH),
                (TensorCores::Mma, PART),
                (TensorCores::Auto, BATCH),
                (TensorCores::Auto, 1),
                (TensorCores::Auto, HALF),
            ] {
                all.push(gpu::program(&spec, by(precision, cores)?, slots, limits)?);
            }
        }
    }
    Ok(all)
}
