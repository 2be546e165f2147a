//! Programs in the memory of a GPU, and their kernels.

use super::super::device::LaunchShape;
use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of shared memory that a block gets without being asked for more.
const PLAIN_SHARED: u32 = 48 << 10;

/// A program on the GPU.
pub struct Loaded {
    name: Arc<str>,
    context: Arc<CudaContext>,
    module: sys::CUmodule,
    kernels: Mutex<HashMap<&'static str, Arc<Kernel>>>,
}

// SAFETY: the driver's handles may be used from any thread where the context is current, which every use sees to.
unsafe impl Send for Loaded {}
// SAFETY: as above; the driver orders calls from several threads.
unsafe impl Sync for Loaded {}

/// A kernel and what is known of it.
pub struct Kernel {
    function: sys::CUfunction,
    /// Bytes of each of its parameters.
    pub parameters: Vec<usize>,
    /// Bytes of dynamic shared memory that it may be launched with.
    shared: AtomicU32,
}

// SAFETY: as for `Loaded`, which lives as long.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// An argument as it is passed.
pub enum Word {
    /// Of 4 bytes.
    Four(u32),
    /// Of 8 bytes.
    Eight(u64),
}

impl Word {
    /// 4 or 8.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Four(_) => 4,
            Self::Eight(_) => 8,
        }
    }
}

impl Loaded {
    /// The program called `name` with all its kernels: machine code, or PTX with its final 0.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(name: &str, context: &Arc<CudaContext>, code: &[u8]) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        // SAFETY: the code is whole, as the compiler gave it, and outlives the call.
        let module = unsafe { result::module::load_data(code.as_ptr().cast()) }?;
        let loaded = Self { name: name.into(), context: context.clone(), module, kernels: Mutex::default() };
        loaded.load_kernels()?;
        Ok(loaded)
    }

    /// Loads all kernels now. The driver would load each at its first launch, for which it may wait for everything on the GPU:
    /// for a sum over several GPUs that waits for this one, or where launches are being recorded, that cannot be.
    fn load_kernels(&self) -> Result<(), DriverError> {
        let mut count = 0;
        // SAFETY: the module is loaded; the pointer is to an integer of ours.
        unsafe { sys::cuModuleGetFunctionCount(&mut count, self.module) }.result()?;
        let mut functions = vec![ptr::null_mut(); count as usize];
        // SAFETY: the array has as many entries as the driver is told.
        unsafe { sys::cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, self.module) }.result()?;
        // SAFETY: these are functions of the module.
        functions.into_iter().try_for_each(|function| unsafe { sys::cuFuncLoad(function) }.result())
    }

    /// What it is called.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The kernel called `name`, looked up once.
    ///
    /// # Errors
    /// What the driver says.
    pub fn kernel(&self, name: &'static str) -> Result<Arc<Kernel>, DriverError> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kernels.get(name) {
            return Ok(known.clone());
        }
        self.context.bind_to_thread()?;
        let c_name = CString::new(name).map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))?;
        // SAFETY: the module is loaded, and its context current.
        let function = unsafe { result::module::get_function(self.module, c_name) }?;
        let found =
            Arc::new(Kernel { function, parameters: parameters(function), shared: PLAIN_SHARED.into() });
        kernels.insert(name, found.clone());
        Ok(found)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // Kernels that still run must come to an end first. An error has been or will be told by whoever waits for the work
            // that failed.
            let _ = result::ctx::synchronize();
            // SAFETY: nobody has the module or its kernels any more, and none of them runs.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

impl Kernel {
    /// Launches it with arguments of the numbers and sizes of its parameters.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Safety
    /// `words` are as many and as large as the parameters, and what they point to outlives the launch.
    pub unsafe fn launch(
        &self,
        stream: &CudaStream,
        shape: LaunchShape,
        words: &mut [Word],
    ) -> Result<(), DriverError> {
        stream.context().bind_to_thread()?;
        self.allow_shared(shape.shared)?;
        let place = |word: &mut Word| match word {
            Word::Four(x) => ptr::from_mut(x).cast::<c_void>(),
            Word::Eight(x) => ptr::from_mut(x).cast(),
        };
        let mut places: Vec<*mut c_void> = words.iter_mut().map(place).collect();
        let (grid, block) = ((shape.grid, 1, 1), (shape.block, 1, 1));
        let stream = stream.cu_stream();
        // SAFETY: as promised by the caller; the driver copies the arguments before the call is over.
        unsafe { result::launch_kernel(self.function, grid, block, shape.shared, stream, &mut places) }
    }

    /// Lets it use `shared` bytes of dynamic shared memory.
    fn allow_shared(&self, shared: u32) -> Result<(), DriverError> {
        if shared <= self.shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(shared).unwrap_or(i32::MAX);
        // SAFETY: the function is loaded, and its context current.
        unsafe { result::function::set_function_attribute(self.function, attribute, bytes) }?;
        self.shared.store(shared, Ordering::Relaxed);
        Ok(())
    }
}

/// Bytes of each parameter of `function`.
fn parameters(function: sys::CUfunction) -> Vec<usize> {
    let size_of = |index| {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is loaded; the pointers are to integers of ours. Past the last parameter it is an error.
        let asked = unsafe { sys::cuFuncGetParamInfo(function, index, &mut offset, &mut size) };
        (asked == sys::CUresult::CUDA_SUCCESS).then_some(size)
    };
    (0..).map_while(size_of).collect()
}
