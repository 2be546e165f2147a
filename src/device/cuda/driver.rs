//! The NVIDIA driver: whether there is one that this program can use, its error messages, and the current context.

use super::libraries::{BUILT_FOR, CudaLibrary, DRIVER_FUNCTIONS, needed_driver, version_name};
use crate::config::DeviceName;
use crate::error::{Error, Result};
use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Refuses GPU number `number` where there is no driver, it is too old, or it has no such GPU.
///
/// # Errors
/// [`Error::Device`] in one sentence.
pub fn check_driver(number: u32) -> Result<()> {
    let name = DeviceName::Cuda(number);
    CudaLibrary::Driver.load(&name.to_string())?;
    let version = driver_version(name)?;
    if version < BUILT_FOR {
        let (found, needed) = (version_name(version), needed_driver());
        let what =
            format!("the NVIDIA driver is too old: it is for CUDA {found}, this program needs {needed}");
        return Err(failure(name, what));
    }
    CudaLibrary::Driver.require(DRIVER_FUNCTIONS, &name.to_string())?;
    let count = match result::init().and_then(|()| result::device::get_count()) {
        Ok(count) => u32::try_from(count).unwrap_or(0),
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => 0,
        Err(e) => return Err(failure(name, format!("the NVIDIA driver does not start: {}", error_text(e)))),
    };
    match count {
        0 => Err(failure(name, "the NVIDIA driver finds no GPU on this machine".into())),
        1 if number > 0 => Err(failure(name, "there is no such GPU; the only one is cuda:0".into())),
        _ if number >= count => {
            Err(failure(name, format!("there is no such GPU; they are cuda:0 to cuda:{}", count - 1)))
        }
        _ => Ok(()),
    }
}

/// The CUDA version of the driver, counted as [`BUILT_FOR`].
pub(super) fn driver_version(name: DeviceName) -> Result<u32> {
    let mut version = 0;
    // SAFETY: the driver is loaded; the pointer is to an integer of ours.
    let result = unsafe { sys::cuDriverGetVersion(&mut version) }.result();
    result.map_err(|e| {
        failure(name, format!("the NVIDIA driver does not give its version: {}", error_text(e)))
    })?;
    Ok(u32::try_from(version).unwrap_or(0))
}

/// Makes `context` current to this thread before memory is freed. Unlike [`CudaContext::bind_to_thread`] it ignores an error that
/// cudarc keeps for a later call.
pub(super) fn bind(context: &CudaContext) {
    // SAFETY: the context is retained as long as its owner lives.
    let _ = unsafe { result::ctx::set_current(context.cu_ctx()) };
}

/// Makes the context of `stream` current to this thread and synchronises the stream before memory is freed. The call that waits for
/// failed work reports the failure.
pub(super) fn finish(stream: &CudaStream) {
    bind(stream.context());
    // SAFETY: the stream is there as long as its owner.
    let _ = unsafe { result::stream::synchronize(stream.cu_stream()) };
}

/// The driver's text for an error.
pub(super) fn error_text(error: DriverError) -> String {
    let text = |s: Result<&std::ffi::CStr, DriverError>| s.ok().map(|s| s.to_string_lossy().into_owned());
    match (text(error.error_name()), text(error.error_string())) {
        (Some(name), Some(string)) => format!("{string} ({name})"),
        _ => format!("{:?}", error.0),
    }
}

/// The error `what` of the device `name`.
pub(super) fn failure(name: DeviceName, what: String) -> Error {
    Error::Device { device: name.to_string(), what }
}

/// Keeps the driver's context of GPU `number` until the program ends. Otherwise every device that is opened while no other is would
/// create it again, which takes a good part of a second.
pub(super) fn keep(number: u32, context: &Arc<CudaContext>) {
    static KEPT: Mutex<BTreeMap<u32, Arc<CudaContext>>> = Mutex::new(BTreeMap::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.entry(number).or_insert_with(|| context.clone());
}

/// Compute capability, major * 10 + minor.
pub(super) fn capability(context: &CudaContext) -> Result<u32, DriverError> {
    let (major, minor) = context.compute_capability()?;
    Ok(u32::try_from(10 * major + minor).unwrap_or(0))
}

/// A number of bytes as MiB or GiB.
pub(super) fn size(bytes: usize) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 1024.0 { format!("{mib:.1} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}
