//! Games, trees and search as kernels: the same work as [`super::cpu`], done by a [`device::Device`]. The kernels' sources are
//! under `kernels/`; Rust is the truth that they are checked against.

pub mod device;
pub mod store;
#[cfg(feature = "cuda")]
pub mod cuda;

use super::Backend;
use super::plan::BackendPlan;
use crate::batch::AnyGame;
use crate::error::{Error, Result};

/// A backend for `game` on GPU number `number`.
///
/// # Errors
/// [`Error::Device`] where that GPU cannot be used, [`Error::Unsupported`] where this build has no CUDA.
#[cfg(feature = "cuda")]
pub fn cuda_backend(game: &dyn AnyGame, _plan: BackendPlan, number: u32) -> Result<Box<dyn Backend>> {
    let device = cuda::CudaDevice::open(number, store::Store::of_user())?;
    let what = format!("{} on cuda:{number} ({})", game.name(), device.describe()?);
    Err(Error::unsupported(what, "games and trees are on the CPU in this version"))
}

/// The same without CUDA.
///
/// # Errors
/// [`Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn cuda_backend(_: &dyn AnyGame, _: BackendPlan, number: u32) -> Result<Box<dyn Backend>> {
    Err(without_cuda(number))
}

/// candle's name for GPU number `number`.
///
/// # Errors
/// As [`cuda_backend`], and what candle says.
#[cfg(feature = "cuda")]
pub fn candle_device(number: u32) -> Result<candle_core::Device> {
    cuda::check_driver(number)?;
    cuda::load_candle_libraries(number)?;
    Ok(candle_core::Device::new_cuda(number as usize)?)
}

/// The same without CUDA.
///
/// # Errors
/// [`Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn candle_device(number: u32) -> Result<candle_core::Device> {
    Err(without_cuda(number))
}

#[cfg(not(feature = "cuda"))]
fn without_cuda(number: u32) -> Error {
    Error::unsupported(format!("cuda:{number}"), "this program was built without CUDA")
}
