//! Launches timed one by one, by events before and after each.

use crate::kernel_times::KernelTime;
use cudarc::driver::{CudaEvent, CudaStream, DriverError, sys};
use std::cell::RefCell;

/// What is known of launches while they are timed.
#[derive(Default)]
pub struct Timing(RefCell<Option<Vec<Timed>>>);

/// A launch of a kernel, with events before and after it.
struct Timed {
    kernel: &'static str,
    before: CudaEvent,
    after: CudaEvent,
}

impl Timing {
    /// From here on launches are timed.
    pub fn begin(&self) {
        self.0.replace(Some(Vec::new()));
    }

    /// True where they are.
    pub fn is_on(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// An event of this moment of `stream`, where launches are timed.
    pub fn event(&self, stream: &CudaStream) -> Result<Option<CudaEvent>, DriverError> {
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        self.is_on().then(|| stream.record_event(Some(flags))).transpose()
    }

    /// Notes that `kernel` was launched on `stream` between `before` and now.
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

    /// What every kernel took, once all launches are done.
    pub fn end(&self) -> Result<Vec<KernelTime>, DriverError> {
        let launches = self.0.take().unwrap_or_default();
        let seconds = |launch: &Timed| -> Result<_, DriverError> {
            Ok((launch.kernel, f64::from(launch.before.elapsed_ms(&launch.after)?) / 1e3))
        };
        Ok(KernelTime::of(launches.iter().map(seconds).collect::<Result<Vec<_>, _>>()?))
    }
}
