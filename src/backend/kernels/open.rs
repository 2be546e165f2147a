//! Opens GPUs where this build has CUDA, and refuses them where it has not.

use super::super::Backend;
use super::super::plan::BackendPlan;
use super::collective::LinkedDevice;
use super::device::Device;
use crate::batch::AnyGame;
use crate::config::{DeviceName, Devices};
use crate::error::Result;
use crate::net::{Network, NetworkDesc};

/// A backend with the games and trees of `game` on GPU number `number`.
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

/// Work on one or several devices of any kind.
pub trait OnDevices {
    /// The type of its result.
    type Out;

    /// Does the work on `devices`, which are linked where they are several.
    ///
    /// # Errors
    /// Those of the work.
    fn run<D: Device + 'static>(self, devices: Vec<LinkedDevice<D>>) -> Result<Self::Out>;
}

/// Does `work` on the GPUs with these numbers, linked by NCCL where they are several.
///
/// # Errors
/// As [`cuda_backend`], [`crate::Error::Device`] where GPUs cannot be linked, and those of the work.
#[cfg(feature = "cuda")]
pub fn on_cuda<W: OnDevices>(numbers: &[u32], work: W) -> Result<W::Out> {
    let open = |&number| super::cuda::CudaDevice::open(number, super::store::Store::of_user());
    let devices = numbers.iter().map(open).collect::<Result<Vec<_>>>()?;
    work.run(super::cuda::linked(devices)?)
}

/// Refuses, since this build has no CUDA.
///
/// # Errors
/// [`crate::Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn on_cuda<W: OnDevices>(numbers: &[u32], _: W) -> Result<W::Out> {
    Err(without_cuda(numbers.first().copied().unwrap_or(0)))
}

/// The network of `parts` on the GPUs `devices`, in our kernels. The first of them is opened at the first forward; backends on any
/// of them may have the resident network.
///
/// # Errors
/// [`crate::Error::Unsupported`] where this build has no CUDA.
#[cfg(feature = "cuda")]
pub fn cuda_network(parts: NetworkDesc, devices: Devices) -> Result<Box<dyn Network>> {
    let number = number_of(devices)?;
    let open = move || super::cuda::CudaDevice::open(number, super::store::Store::of_user());
    Ok(Box::new(super::forward::DeviceEvaluator::new(parts, devices, open)))
}

/// Refuses, since this build has no CUDA.
///
/// # Errors
/// [`crate::Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn cuda_network(_: NetworkDesc, devices: Devices) -> Result<Box<dyn Network>> {
    Err(without_cuda(number_of(devices)?))
}

/// The number of the first GPU.
fn number_of(devices: Devices) -> Result<u32> {
    match devices.first() {
        DeviceName::Cuda(number) => Ok(number),
        DeviceName::Cpu => Err(crate::Error::unsupported("the network's GPU kernels", "cpu is no GPU")),
    }
}

/// Refuses GPUs that cannot be used, before anything is done for them.
///
/// # Errors
/// [`crate::Error::Device`] in one sentence: no driver, one too old, no such GPU.
#[cfg(feature = "cuda")]
pub fn check_devices(devices: &Devices) -> Result<()> {
    devices.all().iter().try_for_each(|name| match *name {
        DeviceName::Cpu => Ok(()),
        DeviceName::Cuda(number) => super::cuda::check_driver(number),
    })
}

/// Refuses every GPU, since this build has no CUDA.
///
/// # Errors
/// [`crate::Error::Unsupported`].
#[cfg(not(feature = "cuda"))]
pub fn check_devices(devices: &Devices) -> Result<()> {
    match devices.first() {
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

#[cfg(not(feature = "cuda"))]
fn without_cuda(number: u32) -> crate::Error {
    crate::Error::unsupported(format!("cuda:{number}"), "this program was built without CUDA")
}
