//! A device made of the host: kernels compiled with the machine's C++ compiler and run by the emulator, threads in an order
//! that every launch draws anew.

mod memory;
mod module;
mod graph;

pub use memory::HostBuffer;

use super::host_compiler::{self, Effort};
use graph::{CapturedNode, HostGraph};
use memory::{Buffers, HostPinned, guards_are_whole};
use module::{Arguments, Emulation, HostModule};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Instant;
use vecaz::device::kernel_times::{COPY_IN, COPY_OUT, KernelTime};
use vecaz::device::{Arg, Device, LaunchShape, Limits, Program};
use vecaz::{Error, Result};

/// The host as a device.
pub struct HostDevice {
    loaded: Option<HostModule>,
    limits: Limits,
    defines: Vec<(String, String)>,
    below: &'static str,
    effort: Effort,
    free_bytes: usize,
    buffers: Buffers,
    missing_barrier: c_int,
    seed: Cell<u64>,
    launches: Cell<u64>,
    downloads: Cell<u64>,
    copied: Cell<u64>,
    graph_launches: Cell<u64>,
    capture: RefCell<Option<Vec<CapturedNode>>>,
    uploads: Cell<u64>,
    allocations: Cell<u64>,
    /// Every launch and its seconds since timing began.
    timed: RefCell<Option<Vec<(&'static str, f64)>>>,
}

impl HostDevice {
    /// A device with as many bytes free as anyone wants, whose threads run in an order drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            loaded: None,
            limits: Limits { capability: 90, multiprocessors: 132, shared: 227 << 10 },
            defines: Vec::new(),
            below: "",
            effort: Effort::Much,
            free_bytes: usize::MAX,
            buffers: Arc::default(),
            missing_barrier: 0,
            seed: Cell::new(seed),
            launches: Cell::new(0),
            downloads: Cell::new(0),
            copied: Cell::new(0),
            graph_launches: Cell::new(0),
            capture: RefCell::default(),
            uploads: Cell::new(0),
            allocations: Cell::new(0),
            timed: RefCell::default(),
        }
    }

    /// The same with one more constant.
    pub fn with_define(mut self, name: &str, value: impl ToString) -> Self {
        self.defines.push((name.into(), value.to_string()));
        self
    }

    /// The same with more code below every program's.
    pub fn with_code(mut self, below: &'static str) -> Self {
        self.below = below;
        self
    }

    /// The same with so much effort in compiling.
    pub fn with_effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// The same with the barriers of this number left out.
    pub fn without_barrier(mut self, number: c_int) -> Self {
        self.missing_barrier = number;
        self
    }

    /// The same with `bytes` free before anything is made.
    pub fn with_free_bytes(mut self, bytes: usize) -> Self {
        self.free_bytes = bytes;
        self
    }

    /// The same with other limits than an H200's.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Kernels launched so far.
    pub fn launches(&self) -> u64 {
        self.launches.get()
    }

    /// Copies from the host so far.
    pub fn uploads(&self) -> u64 {
        self.uploads.get()
    }

    /// Buffers made so far.
    pub fn allocations(&self) -> u64 {
        self.allocations.get()
    }

    /// Copies to the host so far.
    pub fn downloads(&self) -> u64 {
        self.downloads.get()
    }

    /// Graphs launched so far.
    pub fn graph_launches(&self) -> u64 {
        self.graph_launches.get()
    }

    /// Does `work`, or records it: what a network of the host does between two launches.
    pub fn work(&self, work: impl Fn() + Send + 'static) {
        match self.capture.borrow_mut().as_mut() {
            Some(recorded) => recorded.push(CapturedNode::Work(Box::new(work))),
            None => work(),
        }
    }

    fn error(&self, what: String) -> Error {
        Error::Device { device: "host".into(), what }
    }
}

impl Device for HostDevice {
    type Buffer = HostBuffer;
    type Graph = HostGraph;
    type Module = HostModule;
    type Pinned = HostPinned;
    type Timestamp = Instant;

    fn limits(&self) -> Result<Limits> {
        Ok(self.limits)
    }

    fn module(&self, program: &Program) -> Result<HostModule> {
        let mut program = program.clone();
        program.defines.extend_from_slice(&self.defines);
        let loaded = host_compiler::library(&program, self.below, self.effort);
        let library = loaded.map_err(|what| self.error(format!("{}: {what}", program.game)))?;
        Ok(HostModule { library: library.into(), name: program.game })
    }

    fn load(&mut self, program: &Program) -> Result<()> {
        self.loaded = Some(self.module(program)?);
        Ok(())
    }

    fn alloc(&self, bytes: usize) -> Result<HostBuffer> {
        self.allocations.set(self.allocations.get() + 1);
        Ok(HostBuffer::new(bytes, self.buffers.clone()))
    }

    fn address(&self, buffer: &HostBuffer) -> u64 {
        buffer.address()
    }

    fn free_bytes(&self) -> Result<usize> {
        Ok(self.free_bytes.saturating_sub(self.buffers.lock().expect("no panic").values().sum()))
    }

    fn upload(&self, to: &mut HostBuffer, offset: usize, from: &[u8]) -> Result<()> {
        self.copied.set(self.copied.get() + from.len() as u64);
        assert!(self.capture.borrow().is_none(), "a copy while launches are recorded");
        self.uploads.set(self.uploads.get() + 1);
        to.bytes_mut()[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn download(&self, from: &HostBuffer, offset: usize, to: &mut [u8]) -> Result<()> {
        self.downloads.set(self.downloads.get() + 1);
        self.copied.set(self.copied.get() + to.len() as u64);
        assert!(self.capture.borrow().is_none(), "a copy while launches are recorded");
        to.copy_from_slice(&from.bytes()[offset..offset + to.len()]);
        Ok(())
    }

    fn pinned(&self, bytes: usize) -> Result<HostPinned> {
        Ok(HostPinned::new(bytes))
    }

    fn start_upload(&self, to: &mut HostBuffer, from: &mut HostPinned, bytes: usize) -> Result<()> {
        let start = Instant::now();
        self.upload(to, 0, &from.all()[..bytes])?;
        self.note_time(COPY_IN, start);
        Ok(())
    }

    fn start_download(&self, from: &HostBuffer, to: &mut HostPinned, bytes: usize) -> Result<()> {
        let start = Instant::now();
        self.download(from, 0, &mut to.all()[..bytes])?;
        self.note_time(COPY_OUT, start);
        Ok(())
    }

    fn start_concurrent_download(
        &self,
        from: &HostBuffer,
        offset: usize,
        to: &mut HostPinned,
        bytes: usize,
    ) -> Result<()> {
        self.download(from, offset, &mut to.all()[..bytes])
    }

    fn synchronise(&self) -> Result<()> {
        Ok(())
    }

    fn launch(&self, kernel: &'static str, shape: LaunchShape, args: &[Arg<'_, HostBuffer>]) -> Result<()> {
        let loaded = self.loaded.as_ref().ok_or_else(|| self.error("no program is loaded".into()))?;
        self.launch_in(loaded, kernel, shape, args)
    }

    fn launch_in(
        &self,
        module: &HostModule,
        kernel: &'static str,
        shape: LaunchShape,
        args: &[Arg<'_, HostBuffer>],
    ) -> Result<()> {
        let arguments = Arguments::new(args);
        if let Some(recorded) = self.capture.borrow_mut().as_mut() {
            let HostModule { library, name } = module;
            let (library, name) = (Arc::downgrade(library), name.clone());
            recorded.push(CapturedNode::Launch { library, name, kernel, shape, arguments });
            return Ok(());
        }
        self.launches.set(self.launches.get() + 1);
        let start = Instant::now();
        self.run(module, kernel, shape, arguments)?;
        self.note_time(kernel, start);
        if !guards_are_whole(&self.buffers) {
            return Err(self.failed(module, kernel, shape, "wrote past the end of a buffer"));
        }
        Ok(())
    }

    fn begin_capture(&self) -> Result<()> {
        let before = self.capture.replace(Some(Vec::new()));
        assert!(before.is_none(), "a capture within a capture");
        assert!(self.may_capture(), "a capture while launches are timed");
        Ok(())
    }

    fn end_capture(&self) -> Result<HostGraph> {
        Ok(HostGraph(self.capture.take().expect("a capture was begun")))
    }

    fn launch_graph(&self, graph: &HostGraph) -> Result<()> {
        self.graph_launches.set(self.graph_launches.get() + 1);
        for step in &graph.0 {
            match step {
                CapturedNode::Work(work) => work(),
                CapturedNode::Launch { library, name, kernel, shape, arguments } => {
                    let library = library.upgrade().expect("the program is there");
                    let module = HostModule { library, name: name.clone() };
                    self.run(&module, kernel, *shape, arguments.clone())?;
                }
            }
        }
        Ok(())
    }

    fn timestamp(&self) -> Result<Instant> {
        assert!(self.capture.borrow().is_none(), "a timestamp while launches are recorded");
        Ok(Instant::now())
    }

    fn seconds_between(&self, from: &Instant, to: &Instant) -> Result<f64> {
        Ok((*to - *from).as_secs_f64())
    }

    fn begin_timing(&self) {
        self.timed.replace(Some(Vec::new()));
    }

    fn may_capture(&self) -> bool {
        self.timed.borrow().is_none()
    }

    fn end_timing(&self) -> Result<Vec<KernelTime>> {
        Ok(KernelTime::of(self.timed.take().unwrap_or_default()))
    }

    fn copied(&self) -> u64 {
        self.copied.get()
    }
}

impl HostDevice {
    /// Notes, while it is timed, what began at `start` and is over.
    fn note_time(&self, what: &'static str, start: Instant) {
        if let Some(timed) = self.timed.borrow_mut().as_mut() {
            timed.push((what, start.elapsed().as_secs_f64()));
        }
    }

    /// Runs a kernel with these arguments.
    fn run(
        &self,
        module: &HostModule,
        kernel: &'static str,
        shape: LaunchShape,
        arguments: Arguments,
    ) -> Result<()> {
        let seed = self.seed.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.seed.set(seed);
        let emulation = Emulation { seed, missing_barrier: self.missing_barrier };
        // SAFETY: every buffer outlives the call, those of a graph as long as it may be launched.
        let failure = unsafe { module.run(kernel, shape, arguments, emulation) };
        failure.map_or(Ok(()), |what| Err(self.failed(module, kernel, shape, &what)))
    }

    fn failed(&self, module: &HostModule, kernel: &str, shape: LaunchShape, what: &str) -> Error {
        self.error(format!("kernel {kernel} of {} with {shape:?}: {what}", module.name))
    }
}
