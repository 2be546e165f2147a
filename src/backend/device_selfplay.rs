//! Self-play that a device drives by itself: who drives it, and the bytes that it copies.

/// The side that drives self-play: it plays the decided plies at the end of a pass, and begins the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassDriver {
    /// The caller of the backend.
    Caller,
    /// The backend itself.
    Backend {
        /// Maximum number of passes of one poll ([`super::DevicePasses::end_poll`]).
        max_passes: u32,
    },
}

/// Bytes copied between host and device, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Within passes.
    pub inside: u64,
    /// In all.
    pub total: u64,
}
