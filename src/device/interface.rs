//! The devices that run kernels: a GPU, or in the tests the host, with the same sources compiled as C++.

use super::kernel_times::KernelTime;
use crate::error::Result;
use bytemuck::NoUninit;

/// Threads of a warp, on every GPU.
pub(crate) const WARP: usize = 32;

/// A compiled program's source: one game, or one network, with its sizes as constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The game's name in the registry, or another name of the program, for error messages.
    pub game: String,
    /// One translation unit, complete: everything it includes is in `headers`.
    pub source: String,
    /// Name and text of every file that the source includes.
    pub headers: Vec<(String, String)>,
    /// Constants, passed as `-DNAME=VALUE`.
    pub defines: Vec<(String, String)>,
    /// Which GPUs its code must run on.
    pub code: GpuCode,
}

/// Which instructions a program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuCode {
    /// Those that later GPUs have too.
    Portable,
    /// Some of one architecture only, such as Hopper's `wgmma`: no other GPU runs it.
    ArchSpecific,
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

/// One argument of a kernel.
#[derive(Debug)]
pub enum Arg<'a, B> {
    /// The address of a buffer, `offset` bytes on.
    Buffer(&'a B, usize),
    /// The bytes of a struct that the kernel takes by value, at most 4 KiB. The buffers whose addresses it has outlive the launch.
    Struct(&'a [u8]),
    /// A 32-bit integer.
    I32(i32),
    /// A 32-bit unsigned integer.
    U32(u32),
    /// A 64-bit unsigned integer.
    U64(u64),
    /// A 32-bit float.
    F32(f32),
}

impl<'a, B> Arg<'a, B> {
    /// A struct by value.
    pub fn of<T: NoUninit>(block: &'a T) -> Self {
        Self::Struct(bytemuck::bytes_of(block))
    }
}

impl<B> Clone for Arg<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Arg<'_, B> {}

/// The limits of a device that decide the shapes of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Compute capability, major * 10 + minor.
    pub capability: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block may have.
    pub shared: u32,
}

impl Limits {
    /// The lowest limits of GPUs with compute capability `capability`, for kernels compiled on a machine without one.
    pub fn of(capability: u32, multiprocessors: u32) -> Self {
        let kib = match capability {
            ..80 => 64,
            80 | 87 => 163,
            86 | 89 | 120.. => 99,
            _ => 227,
        };
        Self { capability, multiprocessors, shared: kib << 10 }
    }
}

/// Page-locked host memory, which a device copies to and from while the host continues.
///
/// The bytes lie at an address that is a multiple of 16.
pub trait Pinned: Send {
    /// The bytes. Waits until every copy that was started is done.
    ///
    /// # Errors
    /// The driver's, including the failure of an earlier kernel.
    fn bytes(&self) -> Result<&[u8]>;

    /// The bytes, to be written. Waits until every copy that was started is done.
    ///
    /// # Errors
    /// As [`Pinned::bytes`].
    fn bytes_mut(&mut self) -> Result<&mut [u8]>;
}

/// Memory, kernels and the one stream that they run on: launches and copies are made in the order of the calls.
pub trait Device: Send + Sized {
    /// An array on the device.
    type Buffer: Send;

    /// Captured launches.
    type Graph: Send;

    /// A program, compiled and loaded.
    type Module: Send;

    /// Host memory for asynchronous copies.
    type Pinned: Pinned;

    /// A point in the order of launches, whose time the device notes.
    type Timestamp: Send;

    /// The device's limits.
    ///
    /// # Errors
    /// The driver's.
    fn limits(&self) -> Result<Limits>;

    /// Compiles and loads `program` for [`Device::launch_in`]; there may be any number of programs.
    ///
    /// # Errors
    /// The compiler's message, with the program's name.
    fn module(&self, program: &Program) -> Result<Self::Module>;

    /// Compiles and loads `program` for [`Device::launch`].
    ///
    /// # Errors
    /// The compiler's message, with the program's name.
    fn load(&mut self, program: &Program) -> Result<()>;

    /// An array of `bytes` zero bytes.
    ///
    /// # Errors
    /// [`crate::Error::Device`] with the size where it does not fit.
    fn alloc(&self, bytes: usize) -> Result<Self::Buffer>;

    /// The address of `buffer` on the device, for a struct that a kernel takes by value.
    fn address(&self, buffer: &Self::Buffer) -> u64;

    /// Bytes that can still be allocated, without what the driver takes to run programs. Waits for the device.
    ///
    /// # Errors
    /// The driver's.
    fn free_bytes(&self) -> Result<usize>;

    /// Copies `from` into `to`, from byte `offset` on.
    ///
    /// # Errors
    /// The driver's.
    fn upload(&self, to: &mut Self::Buffer, offset: usize, from: &[u8]) -> Result<()>;

    /// Copies from byte `offset` of `from` until `to` is full. Waits for the device.
    ///
    /// # Errors
    /// The driver's, including the failure of an earlier kernel.
    fn download(&self, from: &Self::Buffer, offset: usize, to: &mut [u8]) -> Result<()>;

    /// `bytes` zero bytes of host memory, for [`Device::start_upload`] and [`Device::start_download`].
    ///
    /// # Errors
    /// [`crate::Error::Device`] with the size where it does not fit.
    fn pinned(&self, bytes: usize) -> Result<Self::Pinned>;

    /// Starts a copy of the first `bytes` bytes of `from` to the beginning of `to`, and does not wait for it.
    ///
    /// # Errors
    /// The driver's.
    fn start_upload(&self, to: &mut Self::Buffer, from: &mut Self::Pinned, bytes: usize) -> Result<()>;

    /// Starts a copy of the first `bytes` bytes of `from` to the beginning of `to`, and does not wait for it.
    ///
    /// # Errors
    /// The driver's.
    fn start_download(&self, from: &Self::Buffer, to: &mut Self::Pinned, bytes: usize) -> Result<()>;

    /// Starts a copy of `bytes` bytes from `offset` on in `from` to the beginning of `to`, which is not ordered with launches, in
    /// either direction. The caller has waited for whatever wrote the bytes, and launches nothing that writes them before
    /// [`Pinned::bytes`] of `to`.
    ///
    /// # Errors
    /// The driver's.
    fn start_concurrent_download(
        &self,
        from: &Self::Buffer,
        offset: usize,
        to: &mut Self::Pinned,
        bytes: usize,
    ) -> Result<()>;

    /// Waits until all launches and copies so far are done.
    ///
    /// # Errors
    /// [`crate::Error::Device`] naming the kernels of which one failed.
    fn synchronise(&self) -> Result<()>;

    /// Launches `kernel` of the loaded program. It may write to any buffer among `args`.
    ///
    /// # Errors
    /// [`crate::Error::Device`] naming the kernel, the game and the launch shape.
    fn launch(&self, kernel: &'static str, shape: LaunchShape, args: &[Arg<'_, Self::Buffer>]) -> Result<()>;

    /// Begins a capture: until [`Device::end_capture`], launches are captured instead of made, and no other call is allowed. All
    /// kernels have been launched before, and [`Device::may_capture`] holds.
    ///
    /// # Errors
    /// The driver's.
    fn begin_capture(&self) -> Result<()>;

    /// Ends the capture: a graph of the launches since [`Device::begin_capture`].
    ///
    /// # Errors
    /// The driver's.
    fn end_capture(&self) -> Result<Self::Graph>;

    /// Launches `graph`: all captured launches in their order, with the arguments that they had. Their buffers must still exist.
    ///
    /// # Errors
    /// As [`Device::launch`].
    fn launch_graph(&self, graph: &Self::Graph) -> Result<()>;

    /// The point after all launches and copies so far.
    ///
    /// # Errors
    /// The driver's.
    fn timestamp(&self) -> Result<Self::Timestamp>;

    /// The seconds that the device took from `from` to `to`. Waits until it has passed both.
    ///
    /// # Errors
    /// The driver's, including the failure of an earlier kernel.
    fn seconds_between(&self, from: &Self::Timestamp, to: &Self::Timestamp) -> Result<f64>;

    /// Until [`Device::end_timing`], times every launch and every copy from and to page-locked memory on its own.
    fn begin_timing(&self);

    /// False while launches are timed, or if the driver is to report each where it fails: they are then made one by one.
    fn may_capture(&self) -> bool;

    /// The time of every kernel since [`Device::begin_timing`], the longest first. Waits for the device.
    ///
    /// # Errors
    /// The driver's, including the failure of a kernel.
    fn end_timing(&self) -> Result<Vec<KernelTime>>;

    /// Bytes copied so far, in both directions.
    fn copied(&self) -> u64;

    /// Launches `kernel` of `module`, as [`Device::launch`] does with the loaded program.
    ///
    /// # Errors
    /// As [`Device::launch`].
    fn launch_in(
        &self,
        module: &Self::Module,
        kernel: &'static str,
        shape: LaunchShape,
        args: &[Arg<'_, Self::Buffer>],
    ) -> Result<()>;
}
