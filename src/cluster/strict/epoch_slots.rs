//! The game slots at the start of an epoch, as the learner publishes them for workers: by partition, without samples.

use super::partitions;
use crate::backend::AnyGame;
use crate::play::GameSlot;
use std::ops::Range;

/// The field of the number of finished games, next to those of the partitions.
pub const FINISHED: &str = "finished";
/// Level of compression of zstd.
const COMPRESSION: i32 = 1;

/// The game slots at the start of an epoch, as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochSlots {
    /// Games that were finished before the epoch.
    pub finished: u64,
    /// Bytes of the slots of each partition: CRC-32C u32 of the rest, and a zstd frame of the slots by postcard.
    pub partitions: Vec<Vec<u8>>,
}

impl EpochSlots {
    /// Encodes `slots`, `[N]`.
    pub fn of(slots: &[GameSlot]) -> Self {
        let partition = |range: Range<usize>| {
            let slots: Vec<GameSlot> = slots[range].iter().map(GameSlot::without_samples).collect();
            // Neither writing to memory nor compressing it fails.
            let raw = postcard::to_stdvec(&slots).unwrap_or_default();
            let body = zstd::bulk::compress(&raw, COMPRESSION).unwrap_or_default();
            [&crc32c::crc32c(&body).to_le_bytes()[..], &body].concat()
        };
        Self {
            finished: crate::run::local_selfplay::finished_in(slots.iter()),
            partitions: partitions(slots.len()).map(partition).collect(),
        }
    }

    /// Decodes the slots of the partition with the slots of `range`.
    ///
    /// # Errors
    /// The fault of the bytes: a checksum, a size, or a position that does not follow from its game's actions.
    pub fn read(bytes: &[u8], range: Range<usize>, game: &dyn AnyGame) -> Result<Vec<GameSlot>, String> {
        let Some((sum, body)) = bytes.split_first_chunk::<4>() else {
            return Err(format!("{} bytes, expected at least the 4 of a checksum", bytes.len()));
        };
        let (found, sum) = (crc32c::crc32c(body), u32::from_le_bytes(*sum));
        if found != sum {
            return Err(format!("checksum {found:08x}, expected {sum:08x} by the first 4 bytes"));
        }
        let raw = zstd::bulk::decompress(body, max_raw_bytes(game, range.len()))
            .map_err(|e| format!("cannot decompress them: {e}"))?;
        let slots: Vec<GameSlot> =
            postcard::from_bytes(&raw).map_err(|e| format!("cannot decode them as game slots: {e}"))?;
        if slots.len() != range.len() {
            return Err(format!("{} slots, expected {}", slots.len(), range.len()));
        }
        range.zip(&slots).try_for_each(|(number, slot)| slot.check(game, number as u64))?;
        Ok(slots)
    }

    /// Upper bound on the published bytes of a partition with so many slots.
    pub fn max_bytes(game: &dyn AnyGame, slots: usize) -> u64 {
        zstd::zstd_safe::compress_bound(max_raw_bytes(game, slots)) as u64 + 4
    }
}

/// Upper bound on the bytes of so many slots before compression.
fn max_raw_bytes(game: &dyn AnyGame, slots: usize) -> usize {
    /// Numbers and lengths of lists.
    const NUMBERS: usize = 80;
    // An action and the key of its position.
    let plies = (3 + 10) * (game.sizes().max_plies + 1);
    slots * (NUMBERS + game.state_size() + plies) + 10
}
