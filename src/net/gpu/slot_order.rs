//! Whether compacting slots lowers the cost: the computed cost of a forward on all slots against that on the live ones and of numbering them.
//!
//! Blocks past the last live slot leave at once, but a launch's time goes in whole waves, so that fewer rows gain nothing where the
//! busiest multiprocessor keeps as many blocks: always where all slots are one wave, and for some numbers of slots above.

use super::network::SlotOrder;
use crate::device_struct::device_constants;

device_constants! {
    fn device_constants;
    /// Maximum number of threads of the one block that counts rows or numbers leaves.
    pub(crate) const COUNTING_THREADS: usize as "int" = 512;
}

/// Shares of slots whose leaf needs the network, equally likely. Self-play of Connect Four with a network without training needs it for
/// 0.95 of the leaves with 64 simulations and for 0.93 with 400, since games end; trained ones reach more ends.
const LIVE_SHARES: [f64; 4] = [0.87, 0.90, 0.93, 0.96];
/// Cycles of `number_leaves` without rows: its launch, two dependent loads and a prefix sum. Assumed.
const NUMBERING_LATENCY: f64 = 5000.0;
/// Cycles of a thread of it for each of its rows: loads that overlap, one store. Assumed.
const NUMBERING_ROW: f64 = 60.0;
/// Cycles in which every launch reads the number of live slots before its first loads. Assumed.
const READING_LIVE: f64 = 700.0;

/// The order of lower computed cost for a forward of `slots` slots in `launches` launches; `cycles` has the cost of one of which so many
/// slots are live.
pub(super) fn cheapest(slots: usize, launches: usize, cycles: impl Fn(usize) -> f64) -> SlotOrder {
    if compact_cycles(slots, launches, &cycles) < cycles(slots) {
        SlotOrder::Compact
    } else {
        SlotOrder::ByLeaf
    }
}

/// The mean computed cost of a forward with compact slots, the numbering of leaves included.
pub(super) fn compact_cycles(slots: usize, launches: usize, cycles: impl Fn(usize) -> f64) -> f64 {
    let forward: f64 = LIVE_SHARES.iter().map(|share| cycles((slots as f64 * share).ceil() as usize)).sum();
    let numbering = NUMBERING_LATENCY + NUMBERING_ROW * slots.div_ceil(COUNTING_THREADS) as f64;
    forward / LIVE_SHARES.len() as f64 + numbering + READING_LIVE * launches as f64
}
