//! A backend on a GPU.

use super::kernel_backend::KernelBackend;
use crate::backend::Backend;
use crate::backend::plan::BackendPlan;
use crate::batch::ErasedRules;
use crate::device::collective::LinkedDevice;
use crate::device::{Device, OnDevices, on_cuda};
use crate::error::Result;

/// A backend with the games and trees of `game` on GPU number `number`.
///
/// # Errors
/// [`crate::Error::Device`] where that GPU cannot be used, as [`KernelBackend::new`], and [`crate::Error::Unsupported`] where this build
/// has no CUDA.
pub fn cuda_backend(game: &dyn ErasedRules, plan: BackendPlan, number: u32) -> Result<Box<dyn Backend>> {
    struct Make<'a>(&'a dyn ErasedRules, BackendPlan);
    impl OnDevices for Make<'_> {
        type Out = Vec<Box<dyn Backend>>;
        fn run<D: Device + 'static>(self, devices: Vec<LinkedDevice<D>>) -> Result<Self::Out> {
            let made = |LinkedDevice { device, .. }| -> Result<Box<dyn Backend>> {
                Ok(Box::new(KernelBackend::new(device, self.0, self.1)?))
            };
            devices.into_iter().map(made).collect()
        }
    }
    let made = on_cuda(&[number], Make(game, plan))?;
    made.into_iter()
        .next()
        .ok_or_else(|| crate::Error::unsupported("a backend on a GPU", "no GPU was opened"))
}
