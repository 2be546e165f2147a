//! Opens GPUs where this build has CUDA, and refuses them where it has not.

use super::collective::LinkedDevice;
use super::interface::Device;
use crate::config::{DeviceName, Devices};
use crate::error::Result;

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

/// Something that opens a device of any kind when it first needs it.
pub trait WithOpener {
    /// The type of its result.
    type Out;

    /// Takes the function that opens the device.
    fn run<D: Device + 'static>(self, open: impl Fn() -> Result<D> + Send + Sync + 'static) -> Self::Out;
}

/// Opens GPU number `number` with the user's store of compiled programs.
#[cfg(feature = "cuda")]
fn open(number: u32) -> Result<super::cuda::CudaDevice> {
    expect_linux(number)?;
    let device = super::cuda::CudaDevice::open(number, super::store::Store::of_user())?;
    tracing::debug!("cuda:{number} is {}", device.describe()?);
    Ok(device)
}

/// Refuses GPUs on other systems, for which nothing here has been tried.
#[cfg(feature = "cuda")]
fn expect_linux(number: u32) -> Result<()> {
    match cfg!(target_os = "linux") {
        true => Ok(()),
        false => Err(crate::Error::Device {
            device: format!("cuda:{number}"),
            what: "GPUs are used on Linux only, on Windows in WSL 2; use --device cpu".into(),
        }),
    }
}

/// Does `work` on the GPUs with these numbers, linked by NCCL where they are several.
///
/// # Errors
/// [`crate::Error::Device`] where a GPU cannot be used or GPUs cannot be linked, [`crate::Error::Unsupported`] where this build has no
/// CUDA, and those of the work.
pub fn on_cuda<W: OnDevices>(numbers: &[u32], work: W) -> Result<W::Out> {
    #[cfg(feature = "cuda")]
    return work
        .run(super::cuda::linked(numbers.iter().map(|&number| open(number)).collect::<Result<_>>()?)?);
    #[cfg(not(feature = "cuda"))]
    {
        drop(work);
        Err(without_cuda(numbers.first().copied().unwrap_or(0)))
    }
}

/// Gives `work` what opens GPU number `number`. Nothing is opened before it is called.
///
/// # Errors
/// [`crate::Error::Unsupported`] where this build has no CUDA.
pub fn with_cuda<W: WithOpener>(number: u32, work: W) -> Result<W::Out> {
    #[cfg(feature = "cuda")]
    return Ok(work.run(move || open(number)));
    #[cfg(not(feature = "cuda"))]
    {
        drop(work);
        Err(without_cuda(number))
    }
}

/// Refuses GPUs that cannot be used, before anything is done for them.
///
/// # Errors
/// [`crate::Error::Device`] in one sentence: no driver, one too old, no such GPU. [`crate::Error::Unsupported`] where this build has no
/// CUDA.
pub fn check_devices(devices: &Devices) -> Result<()> {
    devices.all().iter().try_for_each(|name| match *name {
        DeviceName::Cpu | DeviceName::Metal => Ok(()),
        #[cfg(feature = "cuda")]
        DeviceName::Cuda(number) => expect_linux(number).and_then(|()| super::cuda::check_driver(number)),
        #[cfg(not(feature = "cuda"))]
        DeviceName::Cuda(number) => Err(without_cuda(number)),
    })
}

#[cfg(not(feature = "cuda"))]
fn without_cuda(number: u32) -> crate::Error {
    crate::Error::without_feature(format!("cuda:{number}"), "cuda")
}
