//! A compiled program, and the call of one of its kernels.

use super::memory::HostBuffer;
use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use vecaz::device::{Arg, LaunchShape};

type LaunchFn = unsafe extern "C" fn(
    *const c_char,
    c_uint,
    c_uint,
    u64,
    c_int,
    *const *mut c_void,
    *const c_uint,
    c_uint,
    c_uint,
) -> *const c_char;

/// A compiled program.
#[derive(Clone)]
pub struct HostModule {
    pub library: Arc<Library>,
    /// The program's game.
    pub name: String,
}

/// The arguments of a launch: the bytes of each, as words so that they are aligned, and how many bytes they are.
#[derive(Clone)]
pub struct Arguments {
    values: Vec<Vec<u64>>,
    sizes: Vec<c_uint>,
}

/// What a launch draws or leaves out.
#[derive(Clone, Copy)]
pub struct Emulation {
    /// The order of the threads.
    pub seed: u64,
    /// The number of the barriers that are left out; 0: none.
    pub missing_barrier: c_int,
}

impl Arguments {
    /// Those of a launch on a device.
    pub fn new(args: &[Arg<'_, HostBuffer>]) -> Self {
        let (values, sizes) = args.iter().map(bytes_of).unzip();
        Self { values, sizes }
    }
}

impl HostModule {
    /// Runs a kernel; what went wrong if something did.
    ///
    /// # Safety
    /// Every buffer of the arguments outlives the call.
    pub unsafe fn run(
        &self,
        kernel: &str,
        shape: LaunchShape,
        arguments: Arguments,
        emulation: Emulation,
    ) -> Option<String> {
        let Arguments { mut values, sizes } = arguments;
        let pointers: Vec<*mut c_void> = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        let name = CString::new(kernel).expect("a name");
        let (num, LaunchShape { grid, block, shared }) = (sizes.len() as c_uint, shape);
        let Emulation { seed, missing_barrier } = emulation;
        // SAFETY: the function has this signature in `host/emulator.hpp`; it checks the number of arguments and their sizes, and the
        // caller vouches for the buffers.
        unsafe {
            let launch: Symbol<'_, LaunchFn> = match self.library.get(b"emulator_launch\0") {
                Ok(launch) => launch,
                Err(error) => return Some(error.to_string()),
            };
            let (pointers, sizes) = (pointers.as_ptr(), sizes.as_ptr());
            let failure =
                launch(name.as_ptr(), grid, block, seed, missing_barrier, pointers, sizes, num, shared);
            (!failure.is_null()).then(|| CStr::from_ptr(failure).to_string_lossy().into_owned())
        }
    }
}

/// An argument's bytes, as words so that they are aligned, and how many they are.
fn bytes_of(arg: &Arg<'_, HostBuffer>) -> (Vec<u64>, c_uint) {
    match *arg {
        Arg::Buffer(buffer, offset) => {
            let bytes = buffer.bytes().len();
            assert!(offset <= bytes, "an argument begins {offset} bytes into {bytes} bytes");
            (vec![buffer.address() + offset as u64], 8)
        }
        Arg::I32(x) => (vec![u64::from(x as u32)], 4),
        Arg::U32(x) => (vec![u64::from(x)], 4),
        Arg::U64(x) => (vec![x], 8),
        Arg::F32(x) => (vec![u64::from(x.to_bits())], 4),
        Arg::Struct(bytes) => {
            let mut words = vec![0; bytes.len().div_ceil(8)];
            bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
            (words, bytes.len() as c_uint)
        }
    }
}
