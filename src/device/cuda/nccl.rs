//! All-reduce over several GPUs of one machine by NCCL, on each device's own stream.
//!
//! NCCL is not part of CUDA, and few machines need it. So it is loaded when several GPUs train, and never linked: a machine without it
//! builds and runs everything else. The functions and numbers below are those of nccl.h, unchanged since NCCL 2.0.

use super::cuda_device::CudaDevice;
use super::driver::error_text;
use super::libraries::{CudaLibrary, loader_text};
use super::memory::CudaBuffer;
use crate::device::collective::{Collective, DataType, LinkedDevice};
use crate::device::interface::Device;
use crate::error::{Error, Result};
use cudarc::driver::sys;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// `ncclSum`.
const SUM: c_int = 0;
/// `ncclFloat32`.
const FLOAT32: c_int = 7;
/// `ncclFloat64`.
const FLOAT64: c_int = 8;

/// `ncclComm_t`: the communicator of one GPU.
#[derive(Clone, Copy)]
struct Comm(*mut c_void);

// SAFETY: NCCL allows a communicator to be used from any thread, one at a time, which a mutex ensures.
unsafe impl Send for Comm {}

/// The functions of NCCL that this program calls.
struct Functions {
    init_all: unsafe extern "C" fn(*mut *mut c_void, c_int, *const c_int) -> c_int,
    all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        *mut c_void,
        *mut c_void,
    ) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    destroy: unsafe extern "C" fn(*mut c_void) -> c_int,
    abort: unsafe extern "C" fn(*mut c_void) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
}

impl Functions {
    /// The functions of the machine's NCCL, which stays loaded.
    fn get(device: &str) -> Result<&'static Self> {
        static FOUND: OnceLock<Functions> = OnceLock::new();
        CudaLibrary::Nccl.load(device)?;
        if let Some(found) = FOUND.get() {
            return Ok(found);
        }
        let found = Self::find().map_err(|e| Error::Device {
            device: device.into(),
            what: format!("NCCL cannot be loaded from {}: {}", CudaLibrary::Nccl.file(), loader_text(&e)),
        })?;
        Ok(FOUND.get_or_init(|| found))
    }

    fn find() -> Result<Self, libloading::Error> {
        // SAFETY: the library is loaded already and found by its name; the functions have the types of nccl.h.
        unsafe {
            let library = Library::new(CudaLibrary::Nccl.file())?;
            let found = Self {
                init_all: *library.get(b"ncclCommInitAll\0")?,
                all_reduce: *library.get(b"ncclAllReduce\0")?,
                group_start: *library.get(b"ncclGroupStart\0")?,
                group_end: *library.get(b"ncclGroupEnd\0")?,
                destroy: *library.get(b"ncclCommDestroy\0")?,
                abort: *library.get(b"ncclCommAbort\0")?,
                error_string: *library.get(b"ncclGetErrorString\0")?,
            };
            std::mem::forget(library);
            Ok(found)
        }
    }

    /// NCCL's text for a result that is not success.
    fn error_text(&self, code: c_int) -> String {
        // SAFETY: NCCL gives a text of its own for every number.
        let text = unsafe { CStr::from_ptr((self.error_string)(code)) };
        format!("{} (ncclResult_t {code})", text.to_string_lossy())
    }
}

/// The communicators of all GPUs.
struct Communicators {
    functions: &'static Functions,
    /// None once one GPU has aborted.
    comms: Vec<Mutex<Option<Comm>>>,
}

impl Communicators {
    fn comm(&self, rank: usize) -> MutexGuard<'_, Option<Comm>> {
        self.comms[rank].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Communicators {
    fn drop(&mut self) {
        for rank in 0..self.comms.len() {
            if let Some(Comm(comm)) = self.comm(rank).take() {
                // SAFETY: the communicator is there and it has no other owner; every sum was waited for.
                unsafe { (self.functions.destroy)(comm) };
            }
        }
    }
}

/// The communicator of one GPU.
pub struct NcclSums {
    link: Arc<Communicators>,
    rank: usize,
}

/// `devices` linked by NCCL where they are several.
///
/// # Errors
/// [`Error::Device`] if NCCL is absent or cannot make the communicators.
pub fn linked(devices: Vec<CudaDevice>) -> Result<Vec<LinkedDevice<CudaDevice>>> {
    if let [_] = devices.as_slice() {
        return Ok(devices.into_iter().map(|device| LinkedDevice { device, sums: None }).collect());
    }
    let names = devices.iter().map(|device| device.name.to_string()).collect::<Vec<_>>().join(",");
    let functions = Functions::get(&names)?;
    open_memory(&devices)?;
    let numbers: Vec<c_int> = devices.iter().map(|device| device.context.ordinal() as c_int).collect();
    let mut comms = vec![std::ptr::null_mut(); devices.len()];
    // SAFETY: both arrays have as many entries as there are devices.
    let made = unsafe { (functions.init_all)(comms.as_mut_ptr(), devices.len() as c_int, numbers.as_ptr()) };
    if made != 0 {
        let what = format!("NCCL cannot make their communicators: {}", functions.error_text(made));
        return Err(Error::Device { device: names, what });
    }
    let comms = comms.into_iter().map(|comm| Mutex::new(Some(Comm(comm)))).collect();
    let link = Arc::new(Communicators { functions, comms });
    connect(&devices, &link)?;
    let linked = |(rank, device)| {
        let sums: Arc<dyn Collective<CudaDevice>> = Arc::new(NcclSums { link: link.clone(), rank });
        LinkedDevice { device, sums: Some(sums) }
    };
    Ok(devices.into_iter().enumerate().map(linked).collect())
}

/// Makes one sum over all devices. NCCL connects the GPUs in their first sum, in which every thread waits for all others and cannot be
/// stopped; later ones only launch. Within a group one thread does that for all.
fn connect(devices: &[CudaDevice], link: &Arc<Communicators>) -> Result<()> {
    let mut numbers =
        devices.iter().map(|device| device.alloc(size_of::<f32>())).collect::<Result<Vec<_>>>()?;
    // SAFETY: the group is ended below, by the same thread.
    let begun = unsafe { (link.functions.group_start)() };
    let summed = devices.iter().zip(&mut numbers).enumerate().try_for_each(|(rank, (device, number))| {
        NcclSums { link: link.clone(), rank }.all_reduce_sum(device, number, DataType::F32, 1)
    });
    // SAFETY: the buffers outlive the sums, since they are freed in the order of their streams.
    let ended = unsafe { (link.functions.group_end)() };
    summed?;
    match [begun, ended].into_iter().find(|&code| code != 0) {
        None => devices.iter().try_for_each(Device::synchronise),
        Some(code) => {
            let error = link.functions.error_text(code);
            Err(devices[0].failed(format!("NCCL cannot connect it to the other GPUs: {error}")))
        }
    }
}

/// Gives each of `devices` access to the memory of the others that it can reach: stream-ordered allocations are otherwise accessible to
/// their own GPU alone, and within one process NCCL reads and writes the others' memory directly.
fn open_memory(devices: &[CudaDevice]) -> Result<()> {
    for owner in devices {
        let readers: Vec<sys::CUmemAccessDesc> = devices
            .iter()
            .filter(|reader| reader.context.ordinal() != owner.context.ordinal() && can_reach(reader, owner))
            .map(|reader| sys::CUmemAccessDesc {
                location: sys::CUmemLocation {
                    type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                    id: reader.context.ordinal() as c_int,
                },
                flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            })
            .collect();
        if readers.is_empty() {
            continue;
        }
        let mut pool = std::ptr::null_mut();
        // SAFETY: the pointer is to one of ours; the array has as many entries as its length says.
        let opened = unsafe { sys::cuDeviceGetDefaultMemPool(&mut pool, owner.context.cu_device()) }
            .result()
            .and_then(|()| {
                unsafe { sys::cuMemPoolSetAccess(pool, readers.as_ptr(), readers.len()) }.result()
            });
        opened.map_err(|e| {
            owner.failed(format!("peers cannot be given access to its memory: {}", error_text(e)))
        })?;
    }
    Ok(())
}

/// True where GPU `reader` can access the memory of `owner`; otherwise NCCL copies by way of the host.
fn can_reach(reader: &CudaDevice, owner: &CudaDevice) -> bool {
    let (mut can, reader, owner) = (0, reader.context.cu_device(), owner.context.cu_device());
    // SAFETY: the pointer is to an integer of ours.
    unsafe { sys::cuDeviceCanAccessPeer(&mut can, reader, owner) }.result().is_ok() && can != 0
}

impl Collective<CudaDevice> for NcclSums {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.link.comms.len()
    }

    fn all_reduce_sum(
        &self,
        device: &CudaDevice,
        buffer: &mut CudaBuffer,
        number: DataType,
        count: usize,
    ) -> Result<()> {
        if count * number.bytes() > buffer.len() {
            return Err(device.outside(0, count * number.bytes(), buffer));
        }
        let kind = match number {
            DataType::F32 => FLOAT32,
            DataType::F64 => FLOAT64,
        };
        device.context.bind_to_thread().map_err(|e| device.lost(e))?;
        let address = device.address(buffer) as *mut c_void;
        let functions = self.link.functions;
        let comm = self.link.comm(self.rank);
        let Some(Comm(comm)) = *comm else {
            return Err(device.failed("another GPU has aborted the all-reduce".into()));
        };
        let stream = device.stream.cu_stream().cast();
        // SAFETY: the numbers lie within the buffer, which is on this communicator's GPU and used on this stream alone.
        let result = unsafe { (functions.all_reduce)(address, address, count, kind, SUM, comm, stream) };
        match result {
            0 => Ok(()),
            code => {
                Err(device.failed(format!("NCCL cannot sum over the GPUs: {}", functions.error_text(code))))
            }
        }
    }

    /// Ends the kernels of all GPUs that wait for this one's. No thread waits within NCCL, since the GPUs are connected.
    fn abort(&self) {
        let own = self.rank;
        let others = (0..self.link.comms.len()).filter(|&rank| rank != own);
        for rank in std::iter::once(own).chain(others) {
            if let Some(Comm(comm)) = self.link.comm(rank).take() {
                // SAFETY: the communicator is there, and no other thread calls NCCL with it from now on.
                unsafe { (self.link.functions.abort)(comm) };
            }
        }
    }
}
