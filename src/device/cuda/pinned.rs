//! Page-locked host memory, which the GPU copies to and from while the host continues.

use super::driver::{self, error_text, size};
use crate::config::DeviceName;
use crate::device::interface::Pinned;
use crate::error::Result;
use cudarc::driver::{
    CudaContext, CudaEvent, CudaStream, DriverError, HostSlice, PinnedHostSlice, SyncOnDrop,
};
use std::sync::Arc;

/// Page-locked host memory. Reading its bytes waits for the last copy that was started.
pub struct CudaPinned {
    memory: PinnedHostSlice<u8>,
    /// Recorded after the last copy. (The event within `memory` is recorded only where cudarc orders all uses by events.)
    copied: CudaEvent,
    name: DeviceName,
}

impl CudaPinned {
    pub(super) fn new(context: &Arc<CudaContext>, name: DeviceName, bytes: usize) -> Result<Self> {
        let failed = |e: DriverError| {
            let size = size(bytes);
            let what = format!("{size} of page-locked host memory cannot be allocated: {}", error_text(e));
            driver::failure(name, what)
        };
        let bytes = bytes.max(1);
        // SAFETY: the bytes are set below, before they can be read.
        let mut memory = unsafe { context.alloc_pinned_with_flags::<u8>(bytes, 0) }.map_err(failed)?;
        let start = memory.as_mut_ptr().map_err(failed)?;
        // SAFETY: the allocation has so many bytes.
        unsafe { start.write_bytes(0, bytes) };
        let copied = context.new_event(None).map_err(failed)?;
        Ok(Self { memory, copied, name })
    }

    /// Records that a copy was started on `stream`.
    pub(super) fn note_copy(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.copied.record(stream)
    }

    /// Waits for the last copy.
    fn wait(&self) -> Result<()> {
        self.copied.synchronize().map_err(|e| driver::failure(self.name, error_text(e)))
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.memory.len()
    }

    /// The first `bytes` bytes, for a copy.
    pub(super) fn part(&mut self, bytes: usize) -> PinnedPart<'_> {
        PinnedPart { memory: &mut self.memory, bytes }
    }
}

impl Pinned for CudaPinned {
    fn bytes(&self) -> Result<&[u8]> {
        self.wait()?;
        self.memory.as_slice().map_err(|e| driver::failure(self.name, error_text(e)))
    }

    fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        self.wait()?;
        let name = self.name;
        self.memory.as_mut_slice().map_err(|e| driver::failure(name, error_text(e)))
    }
}

impl Drop for CudaPinned {
    fn drop(&mut self) {
        // The memory is freed next, for which its context must be current. The call that waits for a copy reports its failure.
        driver::bind(self.copied.context());
        let _ = self.wait();
    }
}

/// The first bytes of page-locked memory.
pub(super) struct PinnedPart<'m> {
    memory: &'m mut PinnedHostSlice<u8>,
    bytes: usize,
}

impl HostSlice<u8> for PinnedPart<'_> {
    fn len(&self) -> usize {
        self.bytes
    }

    unsafe fn stream_synced_slice<'a>(&'a self, stream: &'a CudaStream) -> (&'a [u8], SyncOnDrop<'a>) {
        // SAFETY: the caller uses the bytes on `stream`.
        let (all, copied) = unsafe { self.memory.stream_synced_slice(stream) };
        (&all[..self.bytes], copied)
    }

    unsafe fn stream_synced_mut_slice<'a>(
        &'a mut self,
        stream: &'a CudaStream,
    ) -> (&'a mut [u8], SyncOnDrop<'a>) {
        // SAFETY: the caller uses the bytes on `stream`.
        let (all, copied) = unsafe { self.memory.stream_synced_mut_slice(stream) };
        (&mut all[..self.bytes], copied)
    }
}
