//! A network on a GPU.

use super::evaluator::DeviceEvaluator;
use crate::config::{DeviceName, Devices};
use crate::device::{Device, WithOpener, with_cuda};
use crate::error::Result;
use crate::net::{Network, NetworkDesc};

/// The network of `parts` on the GPUs `devices`, in our kernels. The first of them is opened at the first forward; backends on any
/// of them may have the resident network.
///
/// # Errors
/// [`crate::Error::Unsupported`] where this build has no CUDA.
pub fn cuda_network(parts: NetworkDesc, devices: Devices) -> Result<Box<dyn Network>> {
    struct Make(NetworkDesc, Devices);
    impl WithOpener for Make {
        type Out = Box<dyn Network>;
        fn run<D: Device + 'static>(self, open: impl Fn() -> Result<D> + Send + Sync + 'static) -> Self::Out {
            Box::new(DeviceEvaluator::new(self.0, self.1, open))
        }
    }
    match devices.first() {
        DeviceName::Cuda(number) => with_cuda(number, Make(parts, devices)),
        name @ (DeviceName::Cpu | DeviceName::Metal) => Err(crate::Error::unsupported(
            "the network's CUDA kernels",
            format!("{name} is no GPU of NVIDIA"),
        )),
    }
}
