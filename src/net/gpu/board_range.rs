//! Boards that go through the network together.

use super::blocks::Boards;
use crate::device::Device;

/// Boards that go through the network together: the batch, or a part of it.
pub(super) struct BoardRange<'a, B> {
    /// The slot of the first board.
    pub(super) first: usize,
    pub(super) boards: usize,
    /// How many slots of the batch are to be evaluated; all of them for None.
    pub(super) live: Option<&'a B>,
}

impl<B> Clone for BoardRange<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for BoardRange<'_, B> {}

impl<B> BoardRange<'_, B> {
    /// As kernels take them.
    pub(super) fn boards<D: Device<Buffer = B>>(&self, device: &D) -> Boards {
        let live = self.live.map_or(0, |live| device.address(live));
        Boards { live, boards: self.boards as u32, first: self.first as u32 }
    }
}
