//! CUDA's libraries, loaded when they are first needed: the program is linked to none. Where one is missing, the error says which
//! and how to get it. No function of a library may be called before it is loaded here: cudarc looks functions up at their first
//! call and panics where the library, or the function in it, is missing.

use crate::device::store::user_cache;
use crate::error::{Error, Result};
use cudarc::driver::sys;
use libloading::Library;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The CUDA version that this program was built for, counted as the driver does: 13000 is 13.0.
pub const BUILT_FOR: u32 = sys::CUDA_VERSION;
/// The driver that came with each version of CUDA: the oldest that runs programs of that version.
const DRIVERS: [(u32, u32); 7] =
    [(12_040, 550), (12_050, 555), (12_060, 560), (12_080, 570), (12_090, 575), (13_000, 580), (13_010, 590)];

/// The functions of the driver that this program calls, by itself or by cudarc, besides the one that gives the driver's version; names
/// between spaces.
pub const DRIVER_FUNCTIONS: &str = "\
cuCtxGetCurrent cuCtxSetCurrent cuCtxSynchronize cuDeviceCanAccessPeer cuDeviceGet cuDeviceGetAttribute
cuDeviceGetCount cuDeviceGetDefaultMemPool cuDeviceGetName cuDevicePrimaryCtxRelease_v2
cuDevicePrimaryCtxRetain cuEventCreate cuEventDestroy_v2 cuEventElapsedTime_v2 cuEventRecord
cuEventSynchronize cuFuncGetParamInfo cuFuncLoad cuFuncSetAttribute cuGetErrorName cuGetErrorString
cuGraphDestroy cuGraphExecDestroy cuGraphInstantiateWithFlags cuGraphLaunch cuInit cuLaunchKernel
cuMemAllocAsync cuMemFreeAsync cuMemFreeHost cuMemGetInfo_v2 cuMemHostAlloc cuMemPoolSetAccess
cuMemcpyDtoHAsync_v2 cuMemcpyHtoDAsync_v2 cuMemsetD8Async cuModuleEnumerateFunctions cuModuleGetFunction
cuModuleGetFunctionCount cuModuleLoadData cuModuleUnload cuStreamBeginCapture_v2 cuStreamCreate
cuStreamDestroy_v2 cuStreamEndCapture cuStreamSynchronize cuStreamWaitEvent cuGetExportTable";
/// The function of the driver that gives its version. Drivers that are too old have it, and lack some of [`DRIVER_FUNCTIONS`].
const DRIVER_VERSION: &str = "cuDriverGetVersion";
/// The functions of NVRTC that this program calls.
const COMPILER_FUNCTIONS: &str = "\
nvrtcVersion nvrtcGetNumSupportedArchs nvrtcGetSupportedArchs nvrtcGetErrorString nvrtcCreateProgram
nvrtcDestroyProgram nvrtcCompileProgram nvrtcGetProgramLogSize nvrtcGetProgramLog nvrtcGetCUBIN";
/// The libraries that are loaded, until the program ends. cudarc finds them by their names.
static LOADED: Mutex<Vec<(CudaLibrary, Library)>> = Mutex::new(Vec::new());

/// A library of CUDA's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CudaLibrary {
    /// The driver, which comes with the GPU.
    Driver,
    /// NVRTC, the compiler of our kernels.
    Compiler,
    /// NVRTC's library of built-in functions, of the same version, which it opens by name.
    NvrtcBuiltins {
        /// 13 of 13.0.
        major: i32,
        /// 0 of 13.0.
        minor: i32,
    },
    /// cuBLAS, which benchmarks compare the network's kernels with.
    Cublas,
    /// cuBLASLt, which cuBLAS needs.
    CublasLt,
    /// NCCL: sums over several GPUs.
    Nccl,
}

impl CudaLibrary {
    /// The name of its file.
    pub fn file(self) -> String {
        let major = BUILT_FOR / 1000;
        match self {
            Self::Driver => "libcuda.so.1".into(),
            Self::Compiler => format!("libnvrtc.so.{major}"),
            Self::NvrtcBuiltins { major, minor } => format!("libnvrtc-builtins.so.{major}.{minor}"),
            Self::Cublas => format!("libcublas.so.{major}"),
            Self::CublasLt => format!("libcublasLt.so.{major}"),
            Self::Nccl => "libnccl.so.2".into(),
        }
    }

    /// Loads it until the program ends, from where the system looks for libraries or from one of the `folders`. Of the driver only
    /// the function that gives its version is certain to be there; [`CudaLibrary::require`] checks the others.
    ///
    /// # Errors
    /// [`Error::Device`] saying what is missing, or why the system cannot load it, and how to get it.
    pub fn load(self, device: &str) -> Result<()> {
        if LOADED.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|(loaded, _)| *loaded == self) {
            return Ok(());
        }
        let file = self.file();
        let paths = folders().into_iter().map(|folder| folder.join(&file));
        let mut reason = None;
        // SAFETY: the initialisers of NVIDIA's libraries only set up their own state.
        let open = |path: PathBuf| match unsafe { Library::new(&path) } {
            Ok(library) => Some(library),
            Err(error) => {
                reason = reason.take().or_else(|| loader_reason(&path, &loader_text(&error)));
                None
            }
        };
        let Some(library) = std::iter::once(PathBuf::from(&file)).chain(paths).find_map(open) else {
            let what = self.how_to_get(&match reason {
                Some(reason) => format!("cannot be loaded: {reason}"),
                None => "is not found".into(),
            });
            return Err(Error::Device { device: device.into(), what });
        };
        LOADED.lock().unwrap_or_else(PoisonError::into_inner).push((self, library));
        match self {
            Self::Driver => self.require(DRIVER_VERSION, device),
            Self::Compiler => self.require(COMPILER_FUNCTIONS, device),
            _ => Ok(()),
        }
    }

    /// Refuses the library, which is loaded, where it lacks one of `functions`, names between spaces: it is a stub, or another library of that name.
    ///
    /// # Errors
    /// [`Error::Device`] with the first function that is missing.
    pub fn require(self, functions: &str, device: &str) -> Result<()> {
        let loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, library)) = loaded.iter().find(|(loaded, _)| *loaded == self) else { return Ok(()) };
        // SAFETY: the address of the function is compared with null, and never called.
        let has = |name: &str| {
            unsafe { library.get::<*const ()>(name.as_bytes()) }.is_ok_and(|found| !found.is_null())
        };
        match functions.split_whitespace().find(|name| !has(name)) {
            None => Ok(()),
            Some(name) => {
                let what = self.how_to_get(&format!("is not NVIDIA's: it has no function {name}"));
                Err(Error::Device { device: device.into(), what })
            }
        }
    }

    /// How to get the library, whose file has this `defect`: "is not found".
    fn how_to_get(self, defect: &str) -> String {
        let (file, version) = (self.file(), version_name(BUILT_FOR));
        let major = BUILT_FOR / 1000;
        let (what, package) = match self {
            Self::Driver => {
                return format!(
                    "there is no NVIDIA driver on this machine ({file} {defect}); use --device cpu"
                );
            }
            Self::Compiler => ("CUDA's compiler", "nvidia-cuda-nvrtc"),
            Self::NvrtcBuiltins { .. } => ("a part of CUDA's compiler", "nvidia-cuda-nvrtc"),
            Self::Cublas | Self::CublasLt => ("CUDA's library of matrix products", "nvidia-cublas"),
            Self::Nccl => {
                return format!(
                    "training on several GPUs needs NCCL, and {file} {defect}: install NCCL 2, or the Python package \
                     nvidia-nccl-cu{major} and name its folder nvidia/nccl/lib in LD_LIBRARY_PATH, or train on one GPU \
                     (net.device)"
                );
            }
        };
        format!(
            "{what}, {file}, {defect}: install CUDA {version}, or the Python package {package} and name its folder \
             nvidia/cu{major}/lib in LD_LIBRARY_PATH"
        )
    }
}

/// The loader's own text for an error of the library that calls it.
pub(super) fn loader_text(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// The loader's reason not to load `path`; None if there is no such file.
fn loader_reason(path: &Path, error: &str) -> Option<String> {
    let is_missing =
        error.contains(&format!("{}: cannot open shared object file: No such file", path.display()));
    (!is_missing).then(|| error.to_string())
}

/// "13.0" for 13000.
pub fn version_name(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// "CUDA 13.0 (driver 580 or newer)" for 13000.
pub fn needed_driver() -> String {
    let name = version_name(BUILT_FOR);
    match DRIVERS.iter().find(|(version, _)| *version == BUILT_FOR) {
        Some((_, driver)) => format!("CUDA {name} (driver {driver} or newer)"),
        None => format!("CUDA {name}"),
    }
}

/// Folders where CUDA often is but the system does not look.
fn folders() -> Vec<PathBuf> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let installed = [PathBuf::from("/usr/local/cuda"), PathBuf::from("/opt/cuda")];
    let mut all: Vec<PathBuf> =
        homes.chain(installed).flat_map(|home| [home.join("lib64"), home.join("lib")]).collect();
    all.extend(["/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"].map(PathBuf::from));
    // Where kernels/wheels.sh puts it.
    let wheels = ["cuda-wheels/nvidia/cu13/lib", "cuda-wheels/nvidia/nccl/lib"];
    all.extend(user_cache().into_iter().flat_map(|cache| wheels.map(|folder| cache.join(folder))));
    all
}
