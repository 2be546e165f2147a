//! The memory that a plan needs on a device, computed before anything is allocated.

use super::game_slots::max_game_slot_bytes;
use super::layout::SearchLayout;
use crate::error::{Error, Result};
use crate::net::gpu::network_need::NetworkNeed;

const MIB: u64 = 1 << 20;

/// The memory of rows, their game slots and their network.
#[derive(Clone, Copy, Debug)]
pub struct DeviceNeed<'a> {
    /// The rows.
    pub layout: &'a SearchLayout,
    /// Bytes of the trees that new games are cloned from.
    pub starts: u64,
    /// The resident network.
    pub network: NetworkNeed,
}

impl<'a> DeviceNeed<'a> {
    /// Rows with room for game slots, without a network and without trees that new games are cloned from.
    pub fn of_rows(layout: &'a SearchLayout) -> Self {
        Self { layout, starts: 0, network: NetworkNeed::default() }
    }

    /// Bytes for `rows` rows.
    pub fn bytes(&self, rows: usize) -> u64 {
        let trees = rows as u64 * self.layout.row_bytes().total() as u64;
        trees + self.game_slots(rows) + self.starts + self.network.bytes(rows * self.layout.leaves)
    }

    /// Bytes of game slots and commands; with several rows a game slot it is an upper bound.
    fn game_slots(&self, rows: usize) -> u64 {
        (max_game_slot_bytes(self.layout, rows) + self.layout.max_staged_bytes(rows)) as u64
    }

    /// Refuses a plan that does not fit into `have` bytes.
    ///
    /// # Errors
    /// [`Error::Memory`] with the numbers; its largest number of games is one of rows.
    pub fn check(&self, have: u64) -> Result<()> {
        let (b, t) = (self.layout.shape.rows, self.layout.shape.nodes);
        let need = self.bytes(b);
        if need <= have {
            return Ok(());
        }
        let (mut fits, mut too_many) = (0, b);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if self.bytes(middle) <= have {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        let row = self.layout.row_bytes().total();
        let mut detail = format!("on the device: {b} trees of {t} nodes at {row} bytes each");
        let network = self.network.bytes(b * self.layout.leaves);
        for (what, bytes) in
            [("games", self.game_slots(b)), ("first trees", self.starts), ("network", network)]
        {
            if bytes > 0 {
                detail += &format!(", {what} {} MiB", bytes.div_ceil(MIB));
            }
        }
        let largest_games = fits as u64;
        let limit = "free on the device".to_string();
        Err(Error::Memory {
            need_mib: need.div_ceil(MIB),
            have_mib: have / MIB,
            limit,
            detail,
            largest_games,
        })
    }
}
