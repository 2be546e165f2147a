//! Opening a GPU, where this build can.

use super::super::Backend;
use super::super::plan::BackendPlan;
use super::device::Device;
use crate::batch::AnyGame;
use crate::config::DeviceName;
use crate::error::Result;
use crate::net::{NetParts, Network};

/// Games and trees of `game` on GPU number `number`.
///
/// # Errors
/// [`crate::Error::Device`] where that GPU cannot be used, as [`super::KernelBackend::new`], and
/// [`crate::Error::Unsupported`] where this build has no CUDA.
#[cfg(feature = "cuda")]
pub fn cuda_backend(game: &dyn AnyGame, plan: BackendPlan, number: u32) -> Result<Box<dyn Backend>> {
    let device = super::cuda::CudaDevice::open(number, super::store::Store::of_user())?;
    tracing::debug!("cuda:{number} is {}", device.describe()?);
    Ok(Box::new(super::KernelBackend::new(device, game, plan)?))
}

/// Work for any device, once there is one.
pub trait OnDevice {
    /// What comes of it.
    type Out;

    /// Does it.
    ///
    /// # Errors
    /// Its own.
    fn run<D: Device + 'static>(self, device: D) -> Result<Self::Out>;
}

/// Does `work` on GPU number `number`.
///
/// # Errors
/// As [`cuda_backend`], and those of the work.
#[cfg(feature = "cuda")]
pub fn on_cuda<W: OnDevice>(number: u32, work: W) -> Result<W::Out> {
    work.run(super::cuda::CudaDevice::open(number, super::store::Store::of_user())?)
}

/// Refuses, since this build has no CUDA.
///
/// # Errors
/// [`crate::Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn on_cuda<W: OnDevice>(number: u32, _: W) -> Result<W::Out> {
    Err(without_cuda(number))
}

/// The network of `parts` on GPU number `number`, by its own kernels; the GPU is opened when the network is first asked.
///
/// # Errors
/// [`crate::Error::Unsupported`] where this build has no CUDA.
#[cfg(feature = "cuda")]
pub fn cuda_network(parts: NetParts, number: u32) -> Result<Box<dyn Network>> {
    let open = move || super::cuda::CudaDevice::open(number, super::store::Store::of_user());
    Ok(Box::new(super::forward::DeviceEvaluator::new(parts, DeviceName::Cuda(number), open)))
}

/// Refuses, since this build has no CUDA.
///
/// # Errors
/// [`crate::Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn cuda_network(_: NetParts, number: u32) -> Result<Box<dyn Network>> {
    Err(without_cuda(number))
}

/// What candle calls GPU number `number`.
///
/// # Errors
/// As [`cuda_backend`], and what candle says.
#[cfg(feature = "cuda")]
pub fn candle_device(number: u32) -> Result<candle_core::Device> {
    super::cuda::check_driver(number)?;
    super::cuda::load_candle_libraries(number)?;
    Ok(candle_core::Device::new_cuda(number as usize)?)
}

/// Refuses a GPU that cannot be used, before anything is done for it.
///
/// # Errors
/// [`crate::Error::Device`] in one sentence: no driver, one too old, no such GPU.
#[cfg(feature = "cuda")]
pub fn check_device(name: DeviceName) -> Result<()> {
    match name {
        DeviceName::Cpu => Ok(()),
        DeviceName::Cuda(number) => super::cuda::check_driver(number),
    }
}

/// Refuses every GPU, since this build has no CUDA.
///
/// # Errors
/// [`crate::Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn check_device(name: DeviceName) -> Result<()> {
    match name {
        DeviceName::Cpu => Ok(()),
        DeviceName::Cuda(number) => Err(without_cuda(number)),
    }
}

/// Refuses, since this build has no CUDA.
///
/// # Errors
/// [`crate::Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn cuda_backend(_: &dyn AnyGame, _: BackendPlan, number: u32) -> Result<Box<dyn Backend>> {
    Err(without_cuda(number))
}

/// Refuses, since this build has no CUDA.
///
/// # Errors
/// [`crate::Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn candle_device(number: u32) -> Result<candle_core::Device> {
    Err(without_cuda(number))
}

#[cfg(not(feature = "cuda"))]
fn without_cuda(number: u32) -> crate::Error {
    crate::Error::unsupported(format!("cuda:{number}"), "this program was built without CUDA")
}
