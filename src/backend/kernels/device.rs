//! What runs kernels: a GPU, or in the tests the same sources compiled as host C++.

use crate::error::Result;
use crate::kernel_times::KernelTime;

/// A compiled program's source: one game, or one network, with its sizes as constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The game's name in the registry, or what else the program is for.
    pub game: String,
    /// One translation unit, complete: everything it includes is in `headers`.
    pub source: String,
    /// Name and text of every file that the source includes.
    pub headers: Vec<(String, String)>,
    /// Constants, passed as `-DNAME=VALUE`.
    pub defines: Vec<(String, String)>,
    /// What its code may use.
    pub code: Code,
}

/// Which instructions a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Those that later GPUs have too.
    Common,
    /// Some that one architecture has alone, as Hopper has `wgmma`: no other GPU runs it.
    OfArchitecture,
}

/// How many threads run a kernel.
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
    /// A 32-bit integer.
    I32(i32),
    /// A 32-bit unsigned integer.
    U32(u32),
    /// A 64-bit unsigned integer.
    U64(u64),
    /// A 32-bit float.
    F32(f32),
}

impl<B> Clone for Arg<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Arg<'_, B> {}

/// What a device has, as far as it decides the shapes of kernels.
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
    /// What a GPU of compute capability `capability` has at least, for kernels that are compiled where it is not.
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

/// Host memory that a device copies to and from while the host does something else.
pub trait Pinned: Send {
    /// The bytes, once every copy that was asked for is made.
    ///
    /// # Errors
    /// What the driver says, an earlier kernel's failure included.
    fn bytes(&self) -> Result<&[u8]>;

    /// The bytes, to be written, once every copy that was asked for is made.
    ///
    /// # Errors
    /// As [`Pinned::bytes`].
    fn bytes_mut(&mut self) -> Result<&mut [u8]>;
}

/// Memory that kernels read and write, and the running of them. Launches and copies happen in the order in which they are
/// asked for.
pub trait Device: Send + Sized {
    /// An array on the device.
    type Buffer: Send;

    /// Launches that were recorded.
    type Graph: Send;

    /// A program, compiled and loaded.
    type Module: Send;

    /// Host memory for copies that nobody waits for.
    type Pinned: Pinned;

    /// What the device has.
    ///
    /// # Errors
    /// What the driver says.
    fn limits(&self) -> Result<Limits>;

    /// `program` compiled and loaded, for [`Device::launch_in`]; there may be any number of them.
    ///
    /// # Errors
    /// The compiler's own words, with the program's name.
    fn module(&self, program: &Program) -> Result<Self::Module>;

    /// The device with `program` compiled and loaded.
    ///
    /// # Errors
    /// The compiler's own words, with the game's name.
    fn load(&mut self, program: &Program) -> Result<()>;

    /// An array of `bytes` zero bytes.
    ///
    /// # Errors
    /// [`crate::Error::Device`] with the size where there is no room.
    fn alloc(&self, bytes: usize) -> Result<Self::Buffer>;

    /// Bytes that can still be allocated, once all that was asked for is done and programs have what they run in.
    ///
    /// # Errors
    /// What the driver says.
    fn free_bytes(&self) -> Result<usize>;

    /// Copies `from` to `to`, `offset` bytes into it.
    ///
    /// # Errors
    /// What the driver says.
    fn upload(&self, to: &mut Self::Buffer, offset: usize, from: &[u8]) -> Result<()>;

    /// Copies from `offset` bytes into `from` until `to` is full, once everything asked for before is done.
    ///
    /// # Errors
    /// What the driver says, an earlier kernel's failure included.
    fn download(&self, from: &Self::Buffer, offset: usize, to: &mut [u8]) -> Result<()>;

    /// `bytes` zero bytes of host memory, for [`Device::start_upload`] and [`Device::start_download`].
    ///
    /// # Errors
    /// [`crate::Error::Device`] with the size where there is no room.
    fn pinned(&self, bytes: usize) -> Result<Self::Pinned>;

    /// Asks for a copy of the first `bytes` bytes of `from` to the beginning of `to`, and does not wait for it.
    ///
    /// # Errors
    /// What the driver says.
    fn start_upload(&self, to: &mut Self::Buffer, from: &mut Self::Pinned, bytes: usize) -> Result<()>;

    /// Asks for a copy of the first `bytes` bytes of `from` to the beginning of `to`, and does not wait for it.
    ///
    /// # Errors
    /// What the driver says.
    fn start_download(&self, from: &Self::Buffer, to: &mut Self::Pinned, bytes: usize) -> Result<()>;

    /// Waits until everything that was asked for is done.
    ///
    /// # Errors
    /// [`crate::Error::Device`] naming the kernels of which one failed.
    fn synchronise(&self) -> Result<()>;

    /// Runs `kernel` of the loaded program. It may write to any buffer among `args`.
    ///
    /// # Errors
    /// [`crate::Error::Device`] naming the kernel, the game and the launch shape.
    fn launch(&self, kernel: &'static str, shape: LaunchShape, args: &[Arg<'_, Self::Buffer>]) -> Result<()>;

    /// From here to [`Device::end_capture`], launches are recorded and not made, and nothing else may be asked for. All
    /// kernels have been launched before.
    ///
    /// # Errors
    /// What the driver says.
    fn begin_capture(&self) -> Result<()>;

    /// The launches since [`Device::begin_capture`].
    ///
    /// # Errors
    /// What the driver says.
    fn end_capture(&self) -> Result<Self::Graph>;

    /// Makes all launches of `recording`, in their order, with the arguments that they had. Their buffers must still be there.
    ///
    /// # Errors
    /// As [`Device::launch`].
    fn replay(&self, recording: &Self::Graph) -> Result<()>;

    /// From here to [`Device::end_timing`], every launch is timed by itself, and so is every copy from and to page-locked memory.
    fn begin_timing(&self);

    /// True where launches are timed: none is to be recorded then.
    fn is_timing(&self) -> bool;

    /// What every kernel took since [`Device::begin_timing`], the longest first, once all is done.
    ///
    /// # Errors
    /// What the driver says, a kernel's failure included.
    fn end_timing(&self) -> Result<Vec<KernelTime>>;

    /// Bytes copied so far, both ways.
    fn copied(&self) -> u64;

    /// Runs `kernel` of `module`, as [`Device::launch`] does one of the loaded program.
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
