//! A network for self-play on the CPU, as the configuration wants it.

use super::describe;
use crate::batch::ErasedRules;
use crate::config::{NetConfig, Precision};
use crate::error::{Error, Result};
use crate::model::{NetSpec, Weights};
use crate::net::cpu::{self, CpuNet};

/// Packs a network for self-play in the number format and with the instruction set of `config`. 8-bit scales are calibrated on positions
/// of random games.
///
/// # Errors
/// Those of [`CpuNet::new`] and [`CpuNet::int8_with_isa`]; [`Error::Unsupported`] for a format that only GPUs support and a game whose deals end it; [`Error::Config`] for an
/// instruction set that the machine or the format does not support, and for a format without kernels for the network's layers.
pub fn pack(game: &dyn ErasedRules, net: &NetSpec, weights: &Weights, config: &NetConfig) -> Result<CpuNet> {
    let precision = config.precision;
    let isa = || cpu::choose_isa(config.isa, precision);
    match precision {
        Precision::Int8 => {
            CpuNet::int8_with_isa(net, weights, &describe::observations(game, CALIBRATION)?, isa()?)
        }
        Precision::F32 | Precision::Bf16 => CpuNet::with_isa(net, weights, precision, isa()?),
        Precision::F16 | Precision::Tf32 => Err(Error::unsupported(
            format!("a network in {precision} on the CPU"),
            "the CPU supports f32, bf16 and int8",
        )),
    }
}

/// Number of positions on which 8-bit scales are calibrated.
const CALIBRATION: usize = 512;
