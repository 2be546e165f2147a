//! A device made of the host: kernels compiled with the machine's C++ compiler and run by the emulator, threads in an order
//! that every launch draws anew.

use super::host_compiler::{self, Effort};
use libloading::{Library, Symbol};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use vecaz::backend::kernels::device::{Arg, Device, LaunchShape, Limits, Pinned, Program};
use vecaz::kernel_times::{COPY_IN, COPY_OUT, KernelTime};
use vecaz::{Error, Result};

/// Bytes that lie behind every buffer and must never change.
const GUARD: [u8; 64] = [0xA7; 64];
const ALIGNMENT: usize = 256;

/// Host memory, with a guard behind it.
pub struct HostBuffer {
    start: NonNull<u8>,
    bytes: usize,
    all: Buffers,
}

/// Address and bytes of every buffer of a device.
type Buffers = Arc<Mutex<BTreeMap<usize, usize>>>;

// SAFETY: the buffer owns its memory; nothing else holds the address beyond a call.
unsafe impl Send for HostBuffer {}

impl HostBuffer {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes + GUARD.len(), ALIGNMENT).expect("a size that memory has")
    }

    fn new(bytes: usize, all: Buffers) -> Self {
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

    /// Where it is, for work that is recorded.
    pub fn place(&self) -> HostPlace {
        HostPlace { start: self.start, bytes: self.bytes }
    }
}

/// The memory of a [`HostBuffer`] that outlives it.
#[derive(Clone, Copy)]
pub struct HostPlace {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is used by one thread at a time, that of the device.
unsafe impl Send for HostPlace {}

impl HostPlace {
    /// The bytes.
    pub fn bytes(&self) -> &'static [u8] {
        // SAFETY: as for the buffer, which a recording does not outlive.
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
    fn all(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}

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
    library: Arc<Library>,
    name: String,
}

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
    replays: Cell<u64>,
    recording: RefCell<Option<Vec<Recorded>>>,
    uploads: Cell<u64>,
    allocations: Cell<u64>,
    /// Every launch and its seconds since timing began.
    timed: RefCell<Option<Vec<(&'static str, f64)>>>,
}

/// A step of a recording: a launch with its arguments' bytes, or work of a host network.
enum Recorded {
    Launch {
        library: Weak<Library>,
        name: String,
        kernel: &'static str,
        shape: LaunchShape,
        values: Vec<Vec<u64>>,
        sizes: Vec<c_uint>,
    },
    Work(Box<dyn Fn() + Send>),
}

/// What [`HostDevice`] has recorded. As on a GPU it does not keep the programs that it launches, and is to go before they do.
pub struct HostGraph(Vec<Recorded>);

impl Drop for HostGraph {
    fn drop(&mut self) {
        let goes_late =
            |step: &Recorded| matches!(step, Recorded::Launch { library, .. } if library.strong_count() == 0);
        assert!(
            !self.0.iter().any(goes_late) || std::thread::panicking(),
            "a recording outlives a program that it launches"
        );
    }
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
            replays: Cell::new(0),
            recording: RefCell::default(),
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

    /// Recordings replayed so far.
    pub fn replays(&self) -> u64 {
        self.replays.get()
    }

    /// Does `work`, or records it: what a network of the host does between two launches.
    pub fn work(&self, work: impl Fn() + Send + 'static) {
        match self.recording.borrow_mut().as_mut() {
            Some(recorded) => recorded.push(Recorded::Work(Box::new(work))),
            None => work(),
        }
    }

    fn error(&self, what: String) -> Error {
        Error::Device { device: "host".into(), what }
    }
}

/// An argument's bytes, as words so that they are aligned, and how many they are.
fn bytes_of(arg: &Arg<'_, HostBuffer>) -> (Vec<u64>, c_uint) {
    match *arg {
        Arg::Buffer(buffer, offset) => {
            assert!(offset <= buffer.bytes, "an argument begins {offset} bytes into {} bytes", buffer.bytes);
            (vec![buffer.start.as_ptr() as u64 + offset as u64], 8)
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

impl Device for HostDevice {
    type Buffer = HostBuffer;
    type Graph = HostGraph;
    type Module = HostModule;
    type Pinned = HostPinned;

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
        buffer.start.as_ptr() as u64
    }

    fn free_bytes(&self) -> Result<usize> {
        Ok(self.free_bytes.saturating_sub(self.buffers.lock().expect("no panic").values().sum()))
    }

    fn upload(&self, to: &mut HostBuffer, offset: usize, from: &[u8]) -> Result<()> {
        self.copied.set(self.copied.get() + from.len() as u64);
        assert!(self.recording.borrow().is_none(), "a copy while launches are recorded");
        self.uploads.set(self.uploads.get() + 1);
        to.bytes_mut()[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn download(&self, from: &HostBuffer, offset: usize, to: &mut [u8]) -> Result<()> {
        self.downloads.set(self.downloads.get() + 1);
        self.copied.set(self.copied.get() + to.len() as u64);
        assert!(self.recording.borrow().is_none(), "a copy while launches are recorded");
        to.copy_from_slice(&from.bytes()[offset..offset + to.len()]);
        Ok(())
    }

    fn pinned(&self, bytes: usize) -> Result<HostPinned> {
        Ok(HostPinned { words: vec![0; bytes.div_ceil(16)], bytes })
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
        let (values, sizes): (Vec<Vec<u64>>, Vec<c_uint>) = args.iter().map(bytes_of).unzip();
        if let Some(recorded) = self.recording.borrow_mut().as_mut() {
            let HostModule { library, name } = module;
            let (library, name) = (Arc::downgrade(library), name.clone());
            recorded.push(Recorded::Launch { library, name, kernel, shape, values, sizes });
            return Ok(());
        }
        self.launches.set(self.launches.get() + 1);
        let start = Instant::now();
        self.run(module, kernel, shape, values, &sizes)?;
        self.note_time(kernel, start);
        if !self.guards_are_whole() {
            return Err(self.failed(module, kernel, shape, "wrote past the end of a buffer"));
        }
        Ok(())
    }

    fn begin_capture(&self) -> Result<()> {
        let before = self.recording.replace(Some(Vec::new()));
        assert!(before.is_none(), "a recording within a recording");
        assert!(!self.is_timing(), "a recording while launches are timed");
        Ok(())
    }

    fn end_capture(&self) -> Result<HostGraph> {
        Ok(HostGraph(self.recording.take().expect("a recording was state")))
    }

    fn launch_graph(&self, graph: &HostGraph) -> Result<()> {
        self.replays.set(self.replays.get() + 1);
        for step in &graph.0 {
            match step {
                Recorded::Work(work) => work(),
                Recorded::Launch { library, name, kernel, shape, values, sizes } => {
                    let library = library.upgrade().expect("the program is there");
                    let module = HostModule { library, name: name.clone() };
                    self.run(&module, kernel, *shape, values.clone(), sizes)?;
                }
            }
        }
        Ok(())
    }

    fn begin_timing(&self) {
        self.timed.replace(Some(Vec::new()));
    }

    fn is_timing(&self) -> bool {
        self.timed.borrow().is_some()
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

    /// True where no kernel has written past the end of a buffer.
    fn guards_are_whole(&self) -> bool {
        let buffers = self.buffers.lock().expect("no panic");
        // SAFETY: the guards lie within allocations, which are listed as long as they exist.
        let guard = |start: usize, bytes: usize| unsafe { *((start + bytes) as *const [u8; GUARD.len()]) };
        buffers.iter().all(|(&start, &bytes)| guard(start, bytes) == GUARD)
    }

    /// Runs a kernel with arguments of these bytes and sizes.
    fn run(
        &self,
        module: &HostModule,
        kernel: &'static str,
        shape: LaunchShape,
        mut values: Vec<Vec<u64>>,
        sizes: &[c_uint],
    ) -> Result<()> {
        let pointers: Vec<*mut c_void> = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        let name = CString::new(kernel).expect("a name");
        self.seed.set(self.seed.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        // SAFETY: the function has this signature in `host/emulator.hpp`; it checks the number of arguments and their sizes,
        // and every buffer outlives the call: those of a recording as long as it may be replayed.
        let failure = unsafe {
            let launch: Symbol<'_, LaunchFn> =
                module.library.get(b"emulator_launch\0").map_err(|e| self.error(e.to_string()))?;
            let num = sizes.len() as c_uint;
            let seed = self.seed.get();
            let (missing, arguments) = (self.missing_barrier, pointers.as_ptr());
            let LaunchShape { grid, block, shared } = shape;
            let failure =
                launch(name.as_ptr(), grid, block, seed, missing, arguments, sizes.as_ptr(), num, shared);
            (!failure.is_null()).then(|| CStr::from_ptr(failure).to_string_lossy().into_owned())
        };
        failure.map_or(Ok(()), |what| Err(self.failed(module, kernel, shape, &what)))
    }

    fn failed(&self, module: &HostModule, kernel: &str, shape: LaunchShape, what: &str) -> Error {
        self.error(format!("kernel {kernel} of {} with {shape:?}: {what}", module.name))
    }
}
