//! Networks that answer where the observations are.

use super::device::Device;
use crate::error::Result;

/// Number format in which a network takes observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObsFormat {
    /// 32-bit floats.
    F32,
    /// bfloat16, rounded to the nearest.
    Bf16,
}

/// The network's input and output on a device. Slot b L + l belongs to leaf l of row b; slots without a leaf that asks hold
/// whatever they held before, and their answers are not read.
pub struct Slots<'a, B> {
    /// B L.
    pub num: usize,
    /// `[B L, F]`
    pub obs: &'a B,
    /// `[B L, A]`, 32-bit floats.
    pub logits: &'a mut B,
    /// `[B L, P]`, 32-bit floats, in seats relative to the observer.
    pub answers: &'a mut B,
}

/// A network whose input and output stay on the device `D`. The number of slots never changes, so a forward can be captured
/// and launched again; it must be batch-invariant as [`crate::net::Network`] is.
pub trait DeviceNetwork<D: Device>: Send {
    /// How observations are to be written.
    fn format(&self) -> ObsFormat;

    /// Answers all slots.
    ///
    /// # Errors
    /// What the device says.
    fn forward(&mut self, device: &D, slots: Slots<'_, D::Buffer>) -> Result<()>;

    /// Looks, with one small copy, whether all answers have been numbers so far; a network that cannot give others need not.
    ///
    /// # Errors
    /// [`crate::Error::NotFinite`], and what the device says.
    fn check(&self, device: &D) -> Result<()> {
        let _ = device;
        Ok(())
    }
}
