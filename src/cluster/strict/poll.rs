//! One poll of one partition: the plies that it decided, as the bytes that a worker sends.
//!
//! The bytes are a chunk ([`super::super::chunk`]). Its number is that of the poll in its epoch, from 1; its games are those that the
//! poll has ended; its body is the partition's number and a list of [`SlotPlies`], by postcard.

use super::super::bounds::{RECORD, poll_bytes};
use crate::backend::AnyGame;
use crate::cluster::chunk::{Chunk, ChunkLimits, ChunkReader, Contents, MAX_ITEM_BYTES, Sealer};
use crate::error::{Error, Result};
use crate::play::{FinishedGame, GameRecord, GameSlot};
use serde::{Deserialize, Serialize};

pub use super::super::bounds::max_records;

/// Plies of one game in one poll.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotPlies {
    /// The pass of the poll that ended the game; None where the game continues.
    pub ended_by: Option<u64>,
    /// The plies.
    pub record: GameRecord,
}

const _: () = assert!(size_of::<SlotPlies>() <= RECORD);

/// The plies that a poll decided in a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionPoll {
    /// The worker's name.
    pub sender: String,
    /// The worker's process.
    pub incarnation: u64,
    /// The version of the weights.
    pub version: u64,
    /// The partition.
    pub partition: usize,
    /// The poll's number in its epoch, from 1.
    pub poll: u64,
    /// The plies; those of one slot in order.
    pub plies: Vec<SlotPlies>,
}

impl PartitionPoll {
    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        let plies = |SlotPlies { record, .. }: &SlotPlies| {
            let GameRecord { slot: _, game: _, first: _, actions, policy, valued, values } = record;
            size_of::<SlotPlies>()
                + size_of_val(&actions[..])
                + size_of_val(&policy[..])
                + size_of_val(&valued[..])
                + size_of_val(&values[..])
        };
        size_of::<Self>() + self.plies.iter().map(plies).sum::<usize>()
    }
}

/// The bounds of the chunks of partitions with up to `slots` slots, in polls of `passes` passes. A pass decides at most one ply of a slot.
///
/// # Errors
/// [`Error::Unsupported`] if that is more than a chunk may have.
pub fn limits(game: &dyn AnyGame, slots: usize, passes: u32) -> Result<ChunkLimits> {
    ChunkLimits::with(game, poll_bytes(game, slots, passes).min(MAX_ITEM_BYTES), "a poll")
}

/// The recorded plies of a slot's game, as counts.
#[derive(Clone, Copy, Debug)]
struct RecordedPlies {
    game: u64,
    actions: usize,
    samples: usize,
}

impl RecordedPlies {
    /// The first action and sample of game number `game` that are not recorded. Plies of the opening are never recorded.
    fn from(self, game: u64, opening: u32) -> (usize, usize) {
        match self.game == game {
            true => (self.actions, self.samples),
            false => (opening as usize, 0),
        }
    }
}

/// Records the plies that polls decide in a partition, each ply once.
pub struct Recorder {
    first: u64,
    slots: Vec<RecordedPlies>,
}

impl Recorder {
    /// A recorder that begins at the present positions of `slots`.
    pub fn new(slots: &[GameSlot]) -> Self {
        let recorded = |slot: &GameSlot| RecordedPlies {
            game: slot.game,
            actions: slot.actions.len(),
            samples: slot.samples.len(),
        };
        Self { first: slots.first().map_or(0, |slot| slot.slot), slots: slots.iter().map(recorded).collect() }
    }

    /// The plies of a poll that has ended the games `finished`, sorted by pass and slot, and left the games in progress of `slots`.
    pub fn record<'a>(
        &mut self,
        finished: &[(u64, FinishedGame)],
        slots: impl Iterator<Item = &'a GameSlot>,
    ) -> Vec<SlotPlies> {
        let mut plies = Vec::new();
        for (pass, game) in finished {
            let recorded = self.slots[(game.slot - self.first) as usize];
            let (action, sample) = recorded.from(game.game, game.opening);
            plies.push(SlotPlies { ended_by: Some(*pass), record: GameRecord::end_of(game, action, sample) });
        }
        for (recorded, slot) in self.slots.iter_mut().zip(slots) {
            let (action, sample) = recorded.from(slot.game, slot.opening);
            if slot.actions.len() > action {
                let record = GameRecord::in_progress(slot, action, sample);
                plies.push(SlotPlies { ended_by: None, record });
            }
            *recorded =
                RecordedPlies { game: slot.game, actions: slot.actions.len(), samples: slot.samples.len() };
        }
        plies
    }
}

/// The chunk of a poll.
///
/// # Errors
/// [`Error::Unsupported`] if the poll is larger than the rules allow, or compression fails.
pub fn seal(
    sealer: &mut Sealer,
    limits: &ChunkLimits,
    (version, poll): (u64, u64),
    partition: usize,
    plies: Vec<SlotPlies>,
) -> Result<Vec<u8>> {
    let ended = plies.iter().filter(|plies| plies.ended_by.is_some()).count();
    let raw = postcard::to_stdvec(&(partition as u32, plies));
    let raw = raw.map_err(|e| Error::unsupported("sending a poll", e.to_string()))?;
    if raw.len() > limits.raw_bytes {
        let what = format!("{} bytes, expected at most {}", raw.len(), limits.raw_bytes);
        return Err(Error::unsupported("sending a poll", what));
    }
    sealer.seal(&raw, Contents { sequence: poll, version, games: ended as u32, samples: 0 })
}

/// The poll of a chunk; its plies are not played yet. Their number is compared with `max`, that of [`max_records`], before memory is
/// allocated: a record without plies has a few bytes on the wire and many in memory.
///
/// # Errors
/// The fault of the chunk's body.
pub fn open(
    reader: &mut ChunkReader,
    chunk: &Chunk<'_>,
    max: usize,
) -> std::result::Result<PartitionPoll, String> {
    let (header, undecodable) = (chunk.header, |e| format!("cannot decode the body as a poll: {e}"));
    let body = reader.body(chunk)?;
    let (partition, list) = postcard::take_from_bytes::<u32>(body).map_err(undecodable)?;
    let (records, _) = postcard::take_from_bytes::<usize>(list).map_err(undecodable)?;
    if records > max {
        return Err(format!("{records} records of games, expected at most {max}"));
    }
    let (plies, rest) = postcard::take_from_bytes::<Vec<SlotPlies>>(list).map_err(undecodable)?;
    if !rest.is_empty() {
        return Err(format!("{} bytes after the poll, expected none", rest.len()));
    }
    Ok(PartitionPoll {
        sender: header.name(),
        incarnation: header.incarnation,
        version: header.version,
        partition: partition as usize,
        poll: header.sequence,
        plies,
    })
}
