//! Kernels on an NVIDIA GPU: one stream for all launches and nearly all copies, in the order of the calls, and a second one for
//! copies concurrent with the launches.

mod compile; // NVRTC
mod cuda_device; // a GPU as the rest of the program uses it
mod driver; // the driver and its errors
mod launches; // launches as errors name them
mod libraries; // CUDA's libraries, loaded when needed
mod machine_code; // compiled programs, from the store
mod memory; // buffers and graphs
mod module; // loaded programs and their kernels
mod nccl; // sums over several GPUs
mod pinned; // page-locked memory
mod timing; // times of launches

pub use cuda_device::CudaDevice;
pub use driver::check_driver;
pub use libraries::{CudaLibrary, DRIVER_FUNCTIONS};
pub use machine_code::code_for;
pub use memory::{CudaBuffer, CudaGraphExec};
pub use module::Loaded;
pub use nccl::{NcclSums, linked};
pub use pinned::CudaPinned;
