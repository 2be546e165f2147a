//! The memory that this process may still take: free memory of the machine and, on Linux, the remainder of the limits of its control groups
//! and of the process.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
use linux::limits;
#[cfg(target_os = "linux")]
pub use linux::peak_bytes;
#[cfg(not(target_os = "linux"))]
use other::limits;
#[cfg(not(target_os = "linux"))]
pub use other::peak_bytes;

/// Bytes of a MiB.
pub(super) const MIB: u64 = 1 << 20;

/// The memory that one limit leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeMemory {
    /// Remaining bytes.
    pub bytes: u64,
    /// The limit: a phrase that follows the number of MiB.
    pub origin: String,
}

impl FreeMemory {
    /// The minimum over all limits; None if the system reports nothing.
    pub fn of_process() -> Option<Self> {
        limits().into_iter().min_by_key(|free| free.bytes)
    }

    /// The share for a plan, which counts the large arrays only: 0.9.
    pub fn share(&self) -> u64 {
        self.bytes / 10 * 9
    }

    /// The share in words, such as "0.9 of the 2048 MiB that are free".
    pub fn describe(&self) -> String {
        format!("0.9 of the {} MiB {}", self.bytes / MIB, self.origin)
    }

    /// What the machine has free.
    fn of_machine(bytes: u64) -> Self {
        Self { bytes, origin: "that are free".into() }
    }
}
