//! The games in progress at the start of an epoch, as the learner publishes them for workers: part by part, without their samples.

use super::parts;
use crate::batch::AnyGame;
use crate::selfplay::GameSlot;
use std::ops::Range;

/// The field of the number of finished games, beside those of the parts.
pub const FINISHED: &str = "finished";
/// Level of compression.
const COMPRESSION: i32 = 1;

/// The starts of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Games that were finished before it.
    pub finished: u64,
    /// Bytes of the slots of each part.
    pub parts: Vec<Vec<u8>>,
}

impl Starts {
    /// Those of `slots`. `[N]`
    pub fn of(slots: &[GameSlot]) -> Self {
        let part = |range: Range<usize>| {
            let slots: Vec<GameSlot> = slots[range].iter().map(GameSlot::without_samples).collect();
            // Neither writing to memory nor compressing it fails.
            let raw = postcard::to_stdvec(&slots).unwrap_or_default();
            let body = zstd::bulk::compress(&raw, COMPRESSION).unwrap_or_default();
            [&crc32c::crc32c(&body).to_le_bytes()[..], &body].concat()
        };
        Self {
            finished: crate::run::local_selfplay::finished_in(slots.iter()),
            parts: parts(slots.len()).map(part).collect(),
        }
    }

    /// The slots in `range` of which these are the bytes.
    ///
    /// # Errors
    /// What is wrong with them: a checksum, a size, or a position to which its game does not lead.
    pub fn read(bytes: &[u8], range: Range<usize>, game: &dyn AnyGame) -> Result<Vec<GameSlot>, String> {
        let Some((sum, body)) = bytes.split_first_chunk::<4>() else {
            return Err(format!("{} bytes", bytes.len()));
        };
        if crc32c::crc32c(body).to_le_bytes() != *sum {
            return Err("their checksum differs".into());
        }
        let raw = zstd::bulk::decompress(body, most_bytes(game, range.len())).map_err(|e| e.to_string())?;
        let slots: Vec<GameSlot> = postcard::from_bytes(&raw).map_err(|e| e.to_string())?;
        if slots.len() != range.len() {
            return Err(format!("{} slots, expected {}", slots.len(), range.len()));
        }
        range.zip(&slots).try_for_each(|(number, slot)| slot.check(game, number as u64))?;
        Ok(slots)
    }

    /// The most bytes of a part with so many slots, as they are published.
    pub fn most_bytes(game: &dyn AnyGame, slots: usize) -> u64 {
        zstd::zstd_safe::compress_bound(most_bytes(game, slots)) as u64 + 4
    }
}

/// The most bytes of so many slots before compression.
fn most_bytes(game: &dyn AnyGame, slots: usize) -> usize {
    /// Numbers and lengths of lists.
    const NUMBERS: usize = 80;
    // An action and the key of its position.
    let plies = (3 + 10) * (game.sizes().max_plies + 1);
    slots * (NUMBERS + game.state_size() + plies) + 10
}
