//! Sums over several devices, which training on them needs: gradients and the statistics of normalisations.

use super::interface::Device;
use crate::error::Result;
use std::sync::Arc;

/// The format of numbers that are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataType {
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
}

impl DataType {
    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// One device's end of what links it with the others.
pub trait Collective<D: Device>: Send + Sync {
    /// This device's number among those that are linked.
    fn rank(&self) -> usize;

    /// How many are linked.
    fn size(&self) -> usize;

    /// Makes the first `count` numbers of `buffer` the sums of those of all devices, the same bits on each. All devices call
    /// this for the same sums in the same order, each from a thread of its own. Like a launch it is asynchronous and keeps the order of
    /// the device's other work.
    ///
    /// # Errors
    /// Those of the library and of the device; [`Collective::abort`] on another device.
    fn all_reduce_sum(
        &self,
        device: &D,
        buffer: &mut D::Buffer,
        number: DataType,
        count: usize,
    ) -> Result<()>;

    /// Ends all sums of all devices for good, also those that are being waited for: something failed on this device.
    fn abort(&self);
}

/// A device, and its end of the link where it is one of several.
pub struct LinkedDevice<D: Device> {
    /// The device.
    pub device: D,
    /// None where it is alone.
    pub sums: Option<Arc<dyn Collective<D>>>,
}
