//! Sums over devices that work on one thing together: what training on several of them needs.

use super::device::Device;
use crate::error::Result;
use std::sync::Arc;

/// The format of numbers that are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
}

impl Number {
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

    /// Makes the first `count` numbers of `buffer` the sums of those of all devices, the same bits on each. All devices ask for
    /// the same sums in the same order, each from a thread of its own; on the device it happens in the order of all else that is
    /// asked for.
    ///
    /// # Errors
    /// What the library or a device says; where another device has given up.
    fn all_reduce_sum(&self, device: &D, buffer: &mut D::Buffer, number: Number, count: usize) -> Result<()>;

    /// Ends all sums for good, those that others wait for too: this device asks for no more, since something failed on it.
    fn give_up(&self);
}

/// A device, and its end of the link where it is one of several.
pub struct Place<D: Device> {
    /// The device.
    pub device: D,
    /// None where it is alone.
    pub sums: Option<Arc<dyn Collective<D>>>,
}
