//! The identity of a worker's process, and the version of what processes send one another.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The version of all formats that are sent. Learner and workers need the same one.
pub const PROTOCOL: u32 = 1;

/// Bits of a slot's number within its incarnation: enough for the largest `selfplay.games`.
const SLOT_BITS: u32 = 20;
/// Bits of an incarnation in a slot's number. Many readers of JSON take numbers as 64-bit floats, which are exact up to 53 bits.
const INCARNATION_BITS: u32 = 53 - SLOT_BITS;

/// The number of a worker's process, drawn at random when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The number of the process's first slot in the whole run. The learner's own slots begin at 0.
    pub fn first_slot(self) -> u64 {
        (self.0 % ((1 << INCARNATION_BITS) - 1) + 1) << SLOT_BITS
    }

    /// The field of the process in hashes of the server.
    pub fn field(self) -> String {
        format!("{:016x}", self.0)
    }

    /// Whether this slot belongs to the process.
    pub fn has_slot(self, slot: u64) -> bool {
        slot >> SLOT_BITS == self.first_slot() >> SLOT_BITS
    }
}

/// A random number of 64 bits. The standard library seeds the keys of hash tables from the system's randomness.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
