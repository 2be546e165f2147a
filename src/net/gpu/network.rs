//! Networks that evaluate positions on the device that holds the observations.

use crate::device::Device;
use crate::error::{Error, Result};

/// Number format in which a network takes observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObsFormat {
    /// 32-bit floats.
    F32,
    /// bfloat16, rounded to the nearest.
    Bf16,
}

/// Which slot of the network's input and output a leaf gets. Results do not depend on it, since networks are batch-invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOrder {
    /// Leaf l of row b has slot b L + l. Slots whose leaf needs no evaluation are evaluated for nothing.
    ByLeaf,
    /// Leaves that need the network have the slots 0.. in row order. It takes a kernel of its own in every pass.
    Compact,
}

/// The network's input and output on a device. Slots without a leaf that needs the network hold whatever they held before, and
/// what the network gives for them is not read.
pub struct Slots<'a, B> {
    /// B L.
    pub num: usize,
    /// How many slots are to be evaluated, from slot 0 on, where slots are compact; all of them for None. `[1]`, 32-bit unsigned
    pub live: Option<&'a B>,
    /// `[B L, F]`
    pub obs: &'a B,
    /// `[B L, A]`, 32-bit floats.
    pub logits: &'a mut B,
    /// `[B L, P]`, 32-bit floats, in seats relative to the observer.
    pub values: &'a mut B,
}

/// A network whose input and output stay on the device `D`. The number of slots never changes, so a forward can be captured
/// and launched again; it must be batch-invariant as [`crate::net::Network`] is.
pub trait DeviceNetwork<D: Device>: Send {
    /// The number format in which observations are to be written.
    fn format(&self) -> ObsFormat;

    /// Which slots leaves are to have. The same in every call.
    fn slot_order(&self) -> SlotOrder {
        SlotOrder::ByLeaf
    }

    /// Evaluates all slots, or the live ones.
    ///
    /// # Errors
    /// Those of the device.
    fn forward(&mut self, device: &D, slots: Slots<'_, D::Buffer>) -> Result<()>;

    /// Device flag, not 0 once an output was NaN or infinite; None if the network has no such flag.
    fn not_finite(&self) -> Option<&D::Buffer> {
        None
    }

    /// Waits for the device and refuses outputs that are NaN or infinite.
    ///
    /// # Errors
    /// [`Error::NotFinite`], and those of the device.
    fn check(&self, device: &D) -> Result<()> {
        let Some(word) = self.not_finite() else { return Ok(()) };
        let mut found = [0; 4];
        device.download(word, 0, &mut found)?;
        all_finite(u32::from_ne_bytes(found))
    }
}

/// Refuses outputs that are NaN or infinite, by the flag of [`DeviceNetwork::not_finite`].
///
/// # Errors
/// [`Error::NotFinite`].
pub fn all_finite(word: u32) -> Result<()> {
    if word == 0 {
        return Ok(());
    }
    Err(Error::NotFinite { what: "a logit or value of the network".into(), value: f32::NAN })
}
