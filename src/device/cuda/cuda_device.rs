//! A GPU as the rest of the program uses it.

use super::driver::{capability, check_driver, driver_version, error_text, failure, keep, size};
use super::launches::{Running, describe_launch};
use super::libraries::{CudaLibrary, version_name};
use super::machine_code::code_for;
use super::memory::{CudaBuffer, CudaGraphExec};
use super::module::{ArgumentBytes, Kernel, Loaded};
use super::pinned::CudaPinned;
use super::timing::Timing;
use crate::config::DeviceName;
use crate::device::interface::{Arg, Device, LaunchShape, Limits, Program};
use crate::device::kernel_times::{COPY_IN, COPY_OUT, KernelTime};
use crate::device::store::Store;
use crate::error::{Error, Result};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DevicePtr, DriverError, sys};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum memory that the driver takes for each multiprocessor: for two programs, the stacks of its 2,048 threads, 2.5 KiB each in
/// the largest kernel (`simulate_rows` of Blob with eight players), and the code.
const STACKS_BYTES: usize = 12 << 20;
/// The lowest compute capability, as major * 10 + minor: older tensor cores lack the products of the network's kernels.
const MIN_CAPABILITY: u32 = 75;

/// A GPU, and the program that is loaded on it.
pub struct CudaDevice {
    pub(super) name: DeviceName,
    pub(super) context: Arc<CudaContext>,
    /// Where all launches and nearly all copies are.
    pub(super) stream: Arc<CudaStream>,
    /// The stream of copies that are not ordered with launches.
    pub(super) copy_stream: Arc<CudaStream>,
    pub(super) store: Option<Store>,
    pub(super) loaded: Option<Arc<Loaded>>,
    /// Each launch waits for its kernel (`CUDA_LAUNCH_BLOCKING=1`), so that a failure is that kernel's.
    pub(super) is_blocking: bool,
    /// The launches since the last wait, each once, to be named if the next wait fails.
    pub(super) running: RefCell<Vec<Running>>,
    /// The launches of the graphs that were launched since the last wait, each graph once.
    pub(super) graph_launches: RefCell<Vec<Arc<[Running]>>>,
    /// `running` as it was when the present capture began.
    pub(super) before_capture: RefCell<Vec<Running>>,
    pub(super) timing: Timing,
    /// Bytes copied so far.
    pub(super) copied: AtomicU64,
}

impl CudaDevice {
    /// Opens GPU number `number`, which keeps its compiled programs in `store`.
    ///
    /// # Errors
    /// [`Error::Device`] in one sentence: no driver, a driver or a GPU too old, no such number, no compiler.
    pub fn open(number: u32, store: Option<Store>) -> Result<Self> {
        let name = DeviceName::Cuda(number);
        check_driver(number)?;
        CudaLibrary::Compiler.load(&name.to_string())?;
        let failed = |e: DriverError| failure(name, format!("it cannot be opened: {}", error_text(e)));
        let context = CudaContext::new(number as usize).map_err(failed)?;
        let of_gpu = capability(&context).map_err(failed)?;
        if of_gpu < MIN_CAPABILITY {
            let (major, minor) = (of_gpu / 10, of_gpu % 10);
            return Err(failure(
                name,
                format!("it has compute capability {major}.{minor}, and 7.5 (Turing) is required"),
            ));
        }
        keep(number, &context);
        // SAFETY: buffers are used and freed on `stream`, except by copies on `copy_stream`, for which the caller has waited (see
        // `start_concurrent_download`). So no event has to order their uses.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed)?;
        let copy_stream = context.new_stream().map_err(failed)?;
        Ok(Self {
            name,
            context,
            stream,
            copy_stream,
            store,
            loaded: None,
            is_blocking: std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value == "1"),
            running: RefCell::default(),
            graph_launches: RefCell::default(),
            before_capture: RefCell::default(),
            timing: Timing::default(),
            copied: AtomicU64::new(0),
        })
    }

    /// One line with the GPU's name, its compute capability and the driver's version.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn describe(&self) -> Result<String> {
        let failed = |e: DriverError| self.failed(error_text(e));
        let gpu = self.context.name().map_err(failed)?;
        let capability = capability(&self.context).map_err(failed)?;
        let driver = version_name(driver_version(self.name)?);
        Ok(format!(
            "{gpu}, compute capability {}.{}, driver for CUDA {driver}",
            capability / 10,
            capability % 10
        ))
    }

    pub(super) fn failed(&self, what: String) -> Error {
        failure(self.name, what)
    }

    /// The error of a call that reports the failure of an earlier launch: names all launches since the last wait.
    pub(super) fn lost(&self, error: DriverError) -> Error {
        let (running, graphs) = (self.running.borrow(), self.graph_launches.borrow());
        let name = |launch: &Running| {
            format!("{} of {}", describe_launch(launch.kernel, launch.shape), launch.program)
        };
        let mut names: Vec<String> = Vec::new();
        for launch in running.iter().chain(graphs.iter().flat_map(|launches| launches.iter())).map(name) {
            if !names.contains(&launch) {
                names.push(launch);
            }
        }
        let culprit = match names.as_slice() {
            [] => "the driver failed".to_string(),
            [one] => format!("kernel {one} failed"),
            several => {
                let all = several.join(", ");
                format!("one of these kernels failed ({all}; CUDA_LAUNCH_BLOCKING=1 tells which)")
            }
        };
        self.failed(format!("{culprit}: {}", error_text(error)))
    }

    /// `kernel` of `loaded`.
    fn kernel(&self, loaded: &Loaded, kernel: &'static str) -> Result<Arc<Kernel>> {
        loaded.kernel(kernel).map_err(|e| {
            self.failed(format!("the program of {} has no kernel {kernel}: {}", loaded.name(), error_text(e)))
        })
    }

    pub(super) fn outside(&self, offset: usize, bytes: usize, buffer: &CudaBuffer) -> Error {
        self.failed(format!("{bytes} bytes at {offset} are outside a buffer of {}", buffer.len()))
    }
}

impl Device for CudaDevice {
    type Buffer = CudaBuffer;
    type Graph = CudaGraphExec;
    type Module = Arc<Loaded>;
    type Pinned = CudaPinned;
    type Timestamp = CudaEvent;

    fn limits(&self) -> Result<Limits> {
        let attribute = |attribute| -> Result<u32> {
            let value = self.context.attribute(attribute).map_err(|e| self.failed(error_text(e)))?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        Ok(Limits {
            capability: capability(&self.context).map_err(|e| self.failed(error_text(e)))?,
            multiprocessors: attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            shared: attribute(
                sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
        })
    }

    fn module(&self, program: &Program) -> Result<Self::Module> {
        let capability = capability(&self.context).map_err(|e| self.failed(error_text(e)))?;
        let code = code_for(program, self.name, capability, self.store.as_ref())?;
        let loaded = Loaded::new(&program.game, &self.stream, &code).map_err(|e| {
            self.failed(format!("the kernels of {} cannot be loaded: {}", program.game, error_text(e)))
        })?;
        Ok(Arc::new(loaded))
    }

    fn load(&mut self, program: &Program) -> Result<()> {
        self.loaded = Some(self.module(program)?);
        Ok(())
    }

    fn alloc(&self, bytes: usize) -> Result<Self::Buffer> {
        CudaBuffer::zeroed(&self.stream, bytes).map_err(|e| {
            let needed = size(bytes);
            match (e.0, self.context.mem_get_info()) {
                (sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY, Ok((free, total))) => {
                    let (free, total) = (size(free), size(total));
                    self.failed(format!("out of memory: {needed} requested, {free} of {total} free"))
                }
                _ => self.failed(format!("{needed} cannot be allocated: {}", error_text(e))),
            }
        })
    }

    fn address(&self, buffer: &CudaBuffer) -> u64 {
        let (address, _no_event) = buffer.slice().device_ptr(&self.stream);
        address
    }

    fn free_bytes(&self) -> Result<usize> {
        // Memory that was freed in the order of the stream counts as free once the stream has got there.
        self.synchronise()?;
        let (free, total) = self.context.mem_get_info().map_err(|e| self.lost(e))?;
        let stacks = self.limits()?.multiprocessors as usize * STACKS_BYTES;
        Ok(free.saturating_sub(stacks.min(total / 16)))
    }

    fn upload(&self, to: &mut Self::Buffer, offset: usize, from: &[u8]) -> Result<()> {
        let end = offset.saturating_add(from.len());
        if end > to.len() {
            return Err(self.outside(offset, from.len(), to));
        }
        if from.is_empty() {
            return Ok(());
        }
        self.copied.fetch_add(from.len() as u64, Ordering::Relaxed);
        self.stream.memcpy_htod(from, &mut to.slice_mut().slice_mut(offset..end)).map_err(|e| self.lost(e))
    }

    fn download(&self, from: &Self::Buffer, offset: usize, to: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(to.len());
        if end > from.len() {
            return Err(self.outside(offset, to.len(), from));
        }
        self.copied.fetch_add(to.len() as u64, Ordering::Relaxed);
        if !to.is_empty() {
            self.stream.memcpy_dtoh(&from.slice().slice(offset..end), to).map_err(|e| self.lost(e))?;
        }
        self.synchronise()
    }

    fn pinned(&self, bytes: usize) -> Result<CudaPinned> {
        CudaPinned::new(&self.context, self.name, bytes)
    }

    fn start_upload(&self, to: &mut Self::Buffer, from: &mut CudaPinned, bytes: usize) -> Result<()> {
        if bytes > to.len().min(from.len()) {
            return Err(self.outside(0, bytes, to));
        }
        self.copied.fetch_add(bytes as u64, Ordering::Relaxed);
        let copied = self.timing.event(&self.stream).and_then(|before| {
            self.stream.memcpy_htod(&from.part(bytes), to.slice_mut())?;
            from.note_copy(&self.stream)?;
            self.timing.keep(COPY_IN, &self.stream, before)
        });
        copied.map_err(|e| self.lost(e))
    }

    fn start_download(&self, from: &Self::Buffer, to: &mut CudaPinned, bytes: usize) -> Result<()> {
        self.download_on(&self.stream, from, 0, to, bytes)
    }

    fn start_concurrent_download(
        &self,
        from: &Self::Buffer,
        offset: usize,
        to: &mut CudaPinned,
        bytes: usize,
    ) -> Result<()> {
        self.download_on(&self.copy_stream, from, offset, to, bytes)
    }

    fn synchronise(&self) -> Result<()> {
        self.stream.synchronize().map_err(|e| self.lost(e))?;
        self.running.borrow_mut().clear();
        self.graph_launches.borrow_mut().clear();
        Ok(())
    }

    fn launch(&self, kernel: &'static str, shape: LaunchShape, args: &[Arg<'_, Self::Buffer>]) -> Result<()> {
        let Some(loaded) = &self.loaded else {
            return Err(self.failed(format!("kernel {kernel} is launched before a program is loaded")));
        };
        self.launch_in(loaded, kernel, shape, args)
    }

    fn launch_in(
        &self,
        module: &Self::Module,
        kernel: &'static str,
        shape: LaunchShape,
        args: &[Arg<'_, Self::Buffer>],
    ) -> Result<()> {
        if shape.grid == 0 {
            return Ok(());
        }
        let found = self.kernel(module, kernel)?;
        let mut passed: Vec<ArgumentBytes<'_>> = args.iter().map(|arg| self.word(arg)).collect();
        let sizes: Vec<usize> = passed.iter().map(ArgumentBytes::bytes).collect();
        if sizes != found.parameters {
            let launch = describe_launch(kernel, shape);
            let expected = &found.parameters;
            return Err(
                self.failed(format!("kernel {launch} takes arguments of {expected:?} bytes, got {sizes:?}"))
            );
        }
        let launched = self.timing.event(&self.stream).and_then(|before| {
            // SAFETY: the arguments have the number and sizes of the kernel's parameters, as just checked; buffers outlive the
            // launch, since they are freed on its stream. That a kernel stays within its buffers is tested on the host, with the
            // same source.
            unsafe { found.launch(&self.stream, shape, &mut passed) }?;
            self.timing.keep(kernel, &self.stream, before)
        });
        match launched {
            Err(e @ DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))
            | Err(e @ DriverError(sys::CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)) => {
                let launch = describe_launch(kernel, shape);
                let program = module.name();
                Err(self
                    .failed(format!("kernel {launch} of {program} cannot be launched: {}", error_text(e))))
            }
            Err(e) => {
                self.note_launch(module, kernel, shape);
                Err(self.lost(e))
            }
            Ok(()) if self.is_blocking => Ok(()),
            Ok(()) => {
                self.note_launch(module, kernel, shape);
                Ok(())
            }
        }
    }

    fn begin_capture(&self) -> Result<()> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.stream.begin_capture(mode).map_err(|e| self.lost(e))?;
        self.before_capture.replace(self.running.take());
        Ok(())
    }

    fn end_capture(&self) -> Result<CudaGraphExec> {
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let launches = self.running.replace(self.before_capture.take()).into();
        let captured = self.stream.end_capture(flags).map_err(|e| self.lost(e))?;
        let graph = captured.ok_or_else(|| self.failed("a capture ended with no launch".into()))?;
        Ok(CudaGraphExec::new(graph, launches, &self.stream))
    }

    fn launch_graph(&self, graph: &CudaGraphExec) -> Result<()> {
        let mut launched = self.graph_launches.borrow_mut();
        if !launched.iter().any(|known| Arc::ptr_eq(known, &graph.launches)) {
            launched.push(graph.launches.clone());
        }
        drop(launched);
        graph.launch().map_err(|e| self.lost(e))
    }

    fn timestamp(&self) -> Result<CudaEvent> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        self.stream.record_event(flags).map_err(|e| self.lost(e))
    }

    fn seconds_between(&self, from: &CudaEvent, to: &CudaEvent) -> Result<f64> {
        from.elapsed_ms(to).map(|milliseconds| f64::from(milliseconds) / 1e3).map_err(|e| self.lost(e))
    }

    fn begin_timing(&self) {
        self.timing.begin();
    }

    fn may_capture(&self) -> bool {
        !self.timing.is_on() && !self.is_blocking
    }

    fn end_timing(&self) -> Result<Vec<KernelTime>> {
        self.synchronise()?;
        self.timing.end().map_err(|e| self.lost(e))
    }

    fn copied(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }
}

impl CudaDevice {
    /// Keeps a launch that may not be over.
    fn note_launch(&self, module: &Loaded, kernel: &'static str, shape: LaunchShape) {
        let mut running = self.running.borrow_mut();
        let launch = Running { program: module.name().clone(), kernel, shape };
        if !running.contains(&launch) {
            running.push(launch);
        }
    }

    /// Starts a copy on `stream` to page-locked memory.
    fn download_on(
        &self,
        stream: &Arc<CudaStream>,
        from: &CudaBuffer,
        offset: usize,
        to: &mut CudaPinned,
        bytes: usize,
    ) -> Result<()> {
        let end = offset.saturating_add(bytes);
        if end > from.len() || bytes > to.len() {
            return Err(self.outside(offset, bytes, from));
        }
        self.copied.fetch_add(bytes as u64, Ordering::Relaxed);
        let copied = self.timing.event(stream).and_then(|before| {
            stream.memcpy_dtoh(&from.slice().slice(offset..end), &mut to.part(bytes))?;
            to.note_copy(stream)?;
            self.timing.keep(COPY_OUT, stream, before)
        });
        copied.map_err(|e| self.lost(e))
    }

    fn word<'a>(&self, arg: &Arg<'a, CudaBuffer>) -> ArgumentBytes<'a> {
        match *arg {
            Arg::Buffer(buffer, offset) => ArgumentBytes::Eight(self.address(buffer) + offset as u64),
            Arg::I32(x) => ArgumentBytes::Four(x.cast_unsigned()),
            Arg::U32(x) => ArgumentBytes::Four(x),
            Arg::U64(x) => ArgumentBytes::Eight(x),
            Arg::F32(x) => ArgumentBytes::Four(x.to_bits()),
            Arg::Struct(bytes) => ArgumentBytes::Bytes(bytes),
        }
    }
}
