//! The memory of a host device: buffers with guards after them, and memory for copies.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use vecaz::Result;
use vecaz::device::Pinned;

/// Bytes that lie after every buffer and must never change.
const GUARD: [u8; 64] = [0xA7; 64];
const ALIGNMENT: usize = 256;

/// Host memory, with a guard after it.
pub struct HostBuffer {
    start: NonNull<u8>,
    bytes: usize,
    all: Buffers,
}

/// Address and bytes of every buffer of a device.
pub type Buffers = Arc<Mutex<BTreeMap<usize, usize>>>;

// SAFETY: the buffer owns its memory; nothing else holds the address beyond a call.
unsafe impl Send for HostBuffer {}

impl HostBuffer {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes + GUARD.len(), ALIGNMENT).expect("a size that memory has")
    }

    /// `bytes` zeros, listed in `all` as long as they exist.
    pub fn new(bytes: usize, all: Buffers) -> Self {
        // SAFETY: the layout's size is not 0, since the guard is part of it.
        let start = NonNull::new(unsafe { alloc_zeroed(Self::layout(bytes)) }).expect("memory");
        // SAFETY: the guard lies within the allocation.
        unsafe { start.add(bytes).as_ptr().copy_from_nonoverlapping(GUARD.as_ptr(), GUARD.len()) };
        all.lock().expect("no panic").insert(start.as_ptr() as usize, bytes);
        Self { start, bytes, all }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation holds so many initialised bytes, and kernels run only within `launch`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The address of its first byte.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Where it is, for work that is recorded.
    pub fn address_range(&self) -> HostRange {
        HostRange { start: self.start, bytes: self.bytes }
    }
}

/// True where no kernel has written past the end of a buffer.
pub fn guards_are_whole(buffers: &Buffers) -> bool {
    let buffers = buffers.lock().expect("no panic");
    // SAFETY: the guards lie within allocations, which are listed as long as they exist.
    let guard = |start: usize, bytes: usize| unsafe { *((start + bytes) as *const [u8; GUARD.len()]) };
    buffers.iter().all(|(&start, &bytes)| guard(start, bytes) == GUARD)
}

/// The memory of a [`HostBuffer`] that outlives it.
#[derive(Clone, Copy)]
pub struct HostRange {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is used by one thread at a time, that of the device.
unsafe impl Send for HostRange {}

impl HostRange {
    /// The bytes.
    pub fn bytes(&self) -> &'static [u8] {
        // SAFETY: as for the buffer, which a graph does not outlive.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(self) -> &'static mut [u8] {
        // SAFETY: as for `bytes`; nobody else looks while the device is at work.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        self.all.lock().expect("no panic").remove(&(self.start.as_ptr() as usize));
        // SAFETY: allocated with the same layout.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
    }
}

/// Host memory for copies, which are made when they are started.
pub struct HostPinned {
    /// As words, so that the bytes are aligned.
    words: Vec<u128>,
    bytes: usize,
}

impl Pinned for HostPinned {
    fn bytes(&self) -> Result<&[u8]> {
        Ok(&bytemuck::cast_slice(&self.words)[..self.bytes])
    }

    fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        Ok(self.all())
    }
}

impl HostPinned {
    /// `bytes` zeros.
    pub fn new(bytes: usize) -> Self {
        Self { words: vec![0; bytes.div_ceil(16)], bytes }
    }

    /// The bytes, to be written.
    pub fn all(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}
