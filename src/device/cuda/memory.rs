//! Memory and captured launches on a GPU. cudarc frees both without binding their context to the thread that drops them, so their
//! owners here bind it first.

use super::driver::{bind, finish};
use super::launches::Running;
use cudarc::driver::{CudaGraph, CudaSlice, CudaStream, DriverError};
use std::sync::Arc;

/// An array on a GPU.
pub struct CudaBuffer {
    slice: CudaSlice<u8>,
}

impl CudaBuffer {
    /// `bytes` zero bytes, allocated and later freed in the order of `stream`.
    pub(super) fn zeroed(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, DriverError> {
        Ok(Self { slice: stream.alloc_zeros::<u8>(bytes.max(1))? })
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.slice.len()
    }

    /// False: every buffer has a byte at least.
    pub fn is_empty(&self) -> bool {
        self.slice.len() == 0
    }

    pub(super) fn slice(&self) -> &CudaSlice<u8> {
        &self.slice
    }

    pub(super) fn slice_mut(&mut self) -> &mut CudaSlice<u8> {
        &mut self.slice
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        bind(self.slice.context());
    }
}

/// Launches captured in a CUDA graph.
pub struct CudaGraphExec {
    graph: CudaGraph,
    pub(super) launches: Arc<[Running]>,
    stream: Arc<CudaStream>,
}

// SAFETY: a graph may be used from any thread, by one at a time; its owner is not shared between threads.
unsafe impl Send for CudaGraphExec {}

impl CudaGraphExec {
    pub(super) fn new(graph: CudaGraph, launches: Arc<[Running]>, stream: &Arc<CudaStream>) -> Self {
        Self { graph, launches, stream: stream.clone() }
    }

    pub(super) fn launch(&self) -> Result<(), DriverError> {
        self.graph.launch()
    }
}

impl Drop for CudaGraphExec {
    fn drop(&mut self) {
        // The graph may still run.
        finish(&self.stream);
    }
}
