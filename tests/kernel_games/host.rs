//! A device that is the host: programs compiled as C++, threads one after another.

use crate::compile;
use libloading::Library;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use vecaz::backend::kernels::device::{Arg, Device, LaunchShape, Program};
use vecaz::{Error, Result};

/// Runs kernels that need no barrier and no shared memory.
#[derive(Default)]
pub struct HostDevice {
    library: Option<Library>,
}

/// Whole words, so that every address in it that a kernel uses is aligned.
pub struct Buffer(Box<[UnsafeCell<u64>]>);

type Launcher = unsafe extern "C" fn(u32, u32, *mut *mut c_void);

fn failed<T>(what: String) -> Result<T> {
    Err(Error::Device { device: "host".into(), what })
}

impl Buffer {
    /// The address of `bytes` bytes from `offset` on.
    fn range(&self, offset: usize, bytes: usize) -> Result<*mut u8> {
        let size = 8 * self.0.len();
        if offset + bytes > size {
            return failed(format!("bytes {offset}..{} of a buffer of {size}", offset + bytes));
        }
        Ok(self.0.as_ptr().cast_mut().cast::<u8>().wrapping_add(offset))
    }
}

impl Device for HostDevice {
    type Buffer = Buffer;

    fn load(&mut self, program: &Program) -> Result<()> {
        self.library = Some(compile::program(program));
        Ok(())
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        Ok(Buffer((0..bytes.div_ceil(8)).map(|_| UnsafeCell::new(0)).collect()))
    }

    fn free_bytes(&self) -> Result<usize> {
        Ok(1 << 30)
    }

    fn upload(&self, to: &mut Buffer, offset: usize, from: &[u8]) -> Result<()> {
        let start = to.range(offset, from.len())?;
        // SAFETY: `range` has checked the bytes; nobody else holds them, since `to` is borrowed alone.
        unsafe { start.copy_from(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn download(&self, from: &Buffer, offset: usize, to: &mut [u8]) -> Result<()> {
        let start = from.range(offset, to.len())?;
        // SAFETY: `range` has checked the bytes; no kernel is running, since launches return when they are done.
        unsafe { start.copy_to(to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    fn launch(&self, kernel: &'static str, shape: LaunchShape, args: &[Arg<'_, Buffer>]) -> Result<()> {
        let Some(library) = &self.library else { return failed("no program is loaded".into()) };
        let name = format!("launch_{kernel}");
        // SAFETY: launch.cpp gives every launcher this type.
        let Ok(launcher) = (unsafe { library.get::<Launcher>(&name) }) else {
            return failed(format!("there is no kernel {kernel}"));
        };
        let mut values: Vec<u64> = Vec::new();
        for arg in args {
            values.push(match arg {
                Arg::Buffer(buffer, offset) => buffer.range(*offset, 0)? as u64,
                Arg::I32(x) => u64::from(*x as u32),
                Arg::U32(x) => u64::from(*x),
                Arg::U64(x) => *x,
                Arg::F32(x) => u64::from(x.to_bits()),
            });
        }
        let mut pointers: Vec<*mut c_void> = values.iter_mut().map(|x| (&raw mut *x).cast()).collect();
        // SAFETY: on a little-endian machine an argument's bytes come first in its word; the kernels write within the
        // arrays whose lengths the caller has told, and buffers are cells, so writing through shared ones is allowed.
        unsafe { launcher(shape.grid, shape.block, pointers.as_mut_ptr()) };
        Ok(())
    }
}
