//! The memory that a network needs on a device, computed before anything is allocated.

/// The memory of a resident network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkNeed {
    /// Bytes of its packed weights.
    pub parameters: u64,
    /// Bytes of one board's activations.
    pub board: u64,
    /// Maximum number of boards whose activations exist at the same time.
    pub max_boards: usize,
}

impl NetworkNeed {
    /// Bytes for `slots` evaluation slots.
    pub fn bytes(&self, slots: usize) -> u64 {
        self.parameters + self.board * slots.min(self.max_boards) as u64
    }
}
