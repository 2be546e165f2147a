//! GPUs: their driver, compiled programs kept on disk, sums over several of them. A kernel's source and its launches come in; what runs it is
//! a GPU, or in the tests the host. Knows no game, no tree and no network.

mod interface; // what runs kernels: memory, launches, copies
pub mod kernel_times; // seconds by kernel and by copy
pub mod collective; // sums over devices
pub mod source; // the kernel sources, embedded in the program
pub mod store; // compiled programs on disk
#[cfg(feature = "cuda")]
pub mod cuda; // an NVIDIA GPU
mod open; // a GPU, where this build can

pub(crate) use interface::WARP;
pub use interface::{Arg, Device, GpuCode, LaunchShape, Limits, Pinned, Program};
pub use open::{OnDevices, WithOpener, check_devices, on_cuda, with_cuda};
