//! Programs loaded on a GPU, and their kernels.

use super::driver::finish;
use crate::device::interface::LaunchShape;
use cudarc::driver::{CudaStream, DriverError, result, sys};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of dynamic shared memory that a block may have without an attribute of its kernel.
const DEFAULT_SHARED: u32 = 48 << 10;

/// A program on the GPU.
pub struct Loaded {
    name: Arc<str>,
    /// The one that all its kernels are launched on.
    stream: Arc<CudaStream>,
    module: sys::CUmodule,
    kernels: Mutex<HashMap<&'static str, Arc<Kernel>>>,
}

// SAFETY: the driver's handles may be used from any thread where the context is current, and every use makes it current.
unsafe impl Send for Loaded {}
// SAFETY: as above; the driver orders calls from several threads.
unsafe impl Sync for Loaded {}

/// A kernel.
pub struct Kernel {
    function: sys::CUfunction,
    /// Bytes of each of its parameters.
    pub parameters: Vec<usize>,
    /// Maximum number of bytes of dynamic shared memory that it may be launched with so far.
    shared: AtomicU32,
}

// SAFETY: as for `Loaded`, which lives as long.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// The bytes of an argument.
pub enum ArgumentBytes<'a> {
    /// Of 4 bytes.
    Four(u32),
    /// Of 8 bytes.
    Eight(u64),
    /// Of a struct.
    Bytes(&'a [u8]),
}

impl ArgumentBytes<'_> {
    /// How many they are.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Four(_) => 4,
            Self::Eight(_) => 8,
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

impl Loaded {
    /// Loads the program `name` with all its kernels. `code` is machine code, or PTX with its final 0.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn new(name: &str, stream: &Arc<CudaStream>, code: &[u8]) -> Result<Self, DriverError> {
        stream.context().bind_to_thread()?;
        // SAFETY: the code is whole, as the compiler gave it, and outlives the call.
        let module = unsafe { result::module::load_data(code.as_ptr().cast()) }?;
        let loaded = Self { name: name.into(), stream: stream.clone(), module, kernels: Mutex::default() };
        loaded.load_kernels()?;
        Ok(loaded)
    }

    /// Loads all kernels now. Otherwise the driver loads each at its first launch and may first wait for all work on the GPU, which
    /// would block during an all-reduce that needs this GPU, and is an error during a capture.
    fn load_kernels(&self) -> Result<(), DriverError> {
        let mut count = 0;
        // SAFETY: the module is loaded; the pointer is to an integer of ours.
        unsafe { sys::cuModuleGetFunctionCount(&mut count, self.module) }.result()?;
        let mut functions = vec![ptr::null_mut(); count as usize];
        // SAFETY: the array has as many entries as the driver is given.
        unsafe { sys::cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, self.module) }.result()?;
        // SAFETY: these are functions of the module.
        functions.into_iter().try_for_each(|function| unsafe { sys::cuFuncLoad(function) }.result())
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The kernel called `name`, looked up once.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn kernel(&self, name: &'static str) -> Result<Arc<Kernel>, DriverError> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kernels.get(name) {
            return Ok(known.clone());
        }
        self.stream.context().bind_to_thread()?;
        let c_name = CString::new(name).map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))?;
        // SAFETY: the module is loaded, and its context current.
        let function = unsafe { result::module::get_function(self.module, c_name) }?;
        let found =
            Arc::new(Kernel { function, parameters: parameters(function), shared: DEFAULT_SHARED.into() });
        kernels.insert(name, found.clone());
        Ok(found)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Its kernels must have ended. Only this stream is waited for: waiting for the whole context is forbidden while any of its
        // streams is captured.
        finish(&self.stream);
        // SAFETY: the module and its kernels have no other owner, and none of them runs.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

impl Kernel {
    /// Launches it.
    ///
    /// # Errors
    /// Those of the driver.
    ///
    /// # Safety
    /// `words` have the number and sizes of the parameters, and what they point to outlives the launch.
    pub unsafe fn launch(
        &self,
        stream: &CudaStream,
        shape: LaunchShape,
        words: &mut [ArgumentBytes<'_>],
    ) -> Result<(), DriverError> {
        stream.context().bind_to_thread()?;
        self.allow_shared(shape.shared)?;
        // The driver only reads what these point to.
        let pointer = |word: &mut ArgumentBytes<'_>| match word {
            ArgumentBytes::Four(x) => ptr::from_mut(x).cast::<c_void>(),
            ArgumentBytes::Eight(x) => ptr::from_mut(x).cast(),
            ArgumentBytes::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
        };
        let mut pointers: Vec<*mut c_void> = words.iter_mut().map(pointer).collect();
        let (grid, block) = ((shape.grid, 1, 1), (shape.block, 1, 1));
        let stream = stream.cu_stream();
        // SAFETY: as promised by the caller; the driver copies the arguments before the call is over.
        unsafe { result::launch_kernel(self.function, grid, block, shape.shared, stream, &mut pointers) }
    }

    /// Allows it `shared` bytes of dynamic shared memory.
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
        let result = unsafe { sys::cuFuncGetParamInfo(function, index, &mut offset, &mut size) };
        (result == sys::CUresult::CUDA_SUCCESS).then_some(size)
    };
    (0..).map_while(size_of).collect()
}
