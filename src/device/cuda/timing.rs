//! Times of single launches, by events before and after each.

use crate::device::kernel_times::KernelTime;
use cudarc::driver::{CudaEvent, CudaStream, DriverError, sys};
use std::cell::RefCell;

/// The launches that were timed; None while launches are not timed.
#[derive(Default)]
pub struct Timing(RefCell<Option<Vec<Timed>>>);

/// A launch of a kernel, with events before and after it.
struct Timed {
    kernel: &'static str,
    before: CudaEvent,
    after: CudaEvent,
}

impl Timing {
    /// Times launches from now on.
    pub fn begin(&self) {
        self.0.replace(Some(Vec::new()));
    }

    /// True while launches are timed.
    pub fn is_on(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Records an event on `stream` while launches are timed.
    pub fn event(&self, stream: &CudaStream) -> Result<Option<CudaEvent>, DriverError> {
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        self.is_on().then(|| stream.record_event(Some(flags))).transpose()
    }

    /// Keeps the times of `kernel`, which was launched on `stream` after `before`.
    pub fn keep(
        &self,
        kernel: &'static str,
        stream: &CudaStream,
        before: Option<CudaEvent>,
    ) -> Result<(), DriverError> {
        let after = self.event(stream)?;
        if let (Some(launches), Some(before), Some(after)) = (self.0.borrow_mut().as_mut(), before, after) {
            launches.push(Timed { kernel, before, after });
        }
        Ok(())
    }

    /// The time of every kernel, once all launches are done.
    pub fn end(&self) -> Result<Vec<KernelTime>, DriverError> {
        let launches = self.0.take().unwrap_or_default();
        let seconds = |launch: &Timed| -> Result<_, DriverError> {
            Ok((launch.kernel, f64::from(launch.before.elapsed_ms(&launch.after)?) / 1e3))
        };
        Ok(KernelTime::of(launches.iter().map(seconds).collect::<Result<Vec<_>, _>>()?))
    }
}
