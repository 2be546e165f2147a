//! The learner's side of an epoch: merges the polls of all partitions. A poll is taken when all partitions have sent it.

use super::super::bounds::MAX_BUFFER_BYTES;
use super::poll::{PartitionPoll, max_records};
use super::{POLLS_AHEAD, partitions};
use crate::backend::AnyGame;
use crate::play::PlayPlan;
use crate::play::{FinishedGame, GameSlot};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The outcome of offering a partition's poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// The poll is buffered until all partitions have sent it.
    Buffered,
    /// The buffer is full of earlier polls. This one is needed later and must be offered again.
    BufferFull,
    /// The poll was offered before.
    Repeated,
    /// The poll has the weights of another epoch.
    OtherVersion,
    /// The partition does not exist, the poll has more plies than a poll may have, or its worker was refused in this epoch.
    Impossible,
}

/// A partition's poll that breaks the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The worker's name.
    pub sender: String,
    /// The worker's process.
    pub incarnation: u64,
    /// The partition.
    pub partition: usize,
    /// The fault of the poll.
    pub what: String,
    /// Processes that were refused in this partition and this epoch, including this one. If more than a few processes are refused, a
    /// poll accepted earlier was probably wrong.
    pub processes: usize,
}

/// The game slots of a run, and the buffer of polls that some partitions have not sent yet.
pub struct PollMerger {
    game: Arc<dyn AnyGame>,
    plan: PlayPlan,
    partitions: Vec<Range<usize>>,
    /// The slots after the last poll that was taken. `[N]`
    slots: Vec<GameSlot>,
    version: u64,
    /// The number of polls of the epoch that were taken.
    taken: u64,
    /// Buffered polls of each partition, by number. `[partitions]`
    buffer: Vec<BTreeMap<u64, PartitionPoll>>,
    /// Bytes of the buffered polls.
    bytes: u64,
    /// Upper bound on `bytes`. The next poll of each partition is buffered even beyond it.
    max_buffer_bytes: u64,
    /// True if the full buffer has dropped a poll since the last one that was taken.
    has_dropped: bool,
    /// True if polls that were too far ahead were passed over.
    has_passed_over: bool,
    /// True if a poll was taken after the full buffer had dropped some, so that these may fit now.
    needs_reread: bool,
    /// Processes of which a poll was refused in this epoch. `[partitions]`
    refused: Vec<BTreeSet<u64>>,
    passes_per_poll: u32,
}

impl PollMerger {
    /// A merger of polls of `passes_per_poll` passes that begins with `slots`, `[N]`.
    pub fn new(game: Arc<dyn AnyGame>, plan: PlayPlan, slots: Vec<GameSlot>, passes_per_poll: u32) -> Self {
        let partitions: Vec<Range<usize>> = partitions(slots.len()).collect();
        let buffer = vec![BTreeMap::new(); partitions.len()];
        let refused = vec![BTreeSet::new(); partitions.len()];
        Self {
            game,
            plan,
            partitions,
            slots,
            version: 0,
            taken: 0,
            buffer,
            bytes: 0,
            max_buffer_bytes: MAX_BUFFER_BYTES,
            has_dropped: false,
            has_passed_over: false,
            needs_reread: false,
            refused,
            passes_per_poll,
        }
    }

    /// The same with a buffer of `max_buffer_bytes` bytes.
    pub fn with_buffer_limit(self, max_buffer_bytes: u64) -> Self {
        Self { max_buffer_bytes, ..self }
    }

    /// Begins the epoch that is played with the weights of `version`.
    pub fn begin(&mut self, version: u64) {
        (self.version, self.taken, self.bytes) = (version, 0, 0);
        (self.has_dropped, self.has_passed_over, self.needs_reread) = (false, false, false);
        self.buffer.iter_mut().for_each(BTreeMap::clear);
        self.refused.iter_mut().for_each(BTreeSet::clear);
    }

    /// The game slots after the last poll that was taken. `[N]`
    pub fn slots(&self) -> &[GameSlot] {
        &self.slots
    }

    /// The version of the weights with which the epoch is played.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number of polls of the epoch that were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Buffers a partition's poll until all partitions have sent it.
    pub fn offer(&mut self, poll: PartitionPoll) -> Offered {
        if poll.version != self.version {
            return Offered::OtherVersion;
        }
        if poll.poll <= self.taken {
            return Offered::Repeated;
        }
        let (partition, number) = (poll.partition, poll.poll);
        let Some(buffered) = self.buffer.get_mut(partition) else { return Offered::Impossible };
        let max = max_records(self.partitions[partition].len(), self.passes_per_poll);
        if poll.plies.len() > max || self.refused[partition].contains(&poll.incarnation) {
            return Offered::Impossible;
        }
        if number > self.taken + POLLS_AHEAD {
            // Of a worker that sends all again, before it knows that this learner has begun the epoch again.
            self.has_passed_over = true;
            return Offered::BufferFull;
        }
        if buffered.contains_key(&number) {
            return Offered::Repeated;
        }
        self.bytes += poll.bytes() as u64;
        buffered.insert(number, poll);
        self.enforce_buffer_limit();
        match self.buffer[partition].contains_key(&number) {
            true => Offered::Buffered,
            false => Offered::BufferFull,
        }
    }

    /// Drops the polls that are the furthest ahead until the others fit into the buffer.
    fn enforce_buffer_limit(&mut self) {
        let next = self.taken + 1;
        while self.bytes > self.max_buffer_bytes {
            let last = |(partition, buffered): (usize, &BTreeMap<u64, PartitionPoll>)| {
                buffered.last_key_value().map(|(number, _)| (*number, partition))
            };
            let furthest = self.buffer.iter().enumerate().filter_map(last).max();
            let Some((number, partition)) = furthest.filter(|(number, _)| *number > next) else { return };
            self.buffer[partition].remove(&number).iter().for_each(|poll| self.bytes -= poll.bytes() as u64);
            self.has_dropped = true;
        }
    }

    /// Bytes of the buffered polls.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the polls of this epoch must be offered again: the full buffer has dropped some, and a poll was taken since. True once.
    pub fn take_reread_request(&mut self) -> bool {
        std::mem::take(&mut self.needs_reread)
    }

    /// Takes the next poll if all partitions have sent it: plays its plies and returns the games that it has ended, sorted by pass and
    /// slot. If some partition's plies break the rules, no slot changes, and all buffered polls of that partition are dropped and must
    /// be offered again.
    pub fn take(&mut self) -> Option<Result<Vec<FinishedGame>, Refused>> {
        let poll = self.taken + 1;
        let sent: Option<Vec<&PartitionPoll>> =
            self.buffer.iter().map(|buffered| buffered.get(&poll)).collect();
        let mut slots = Vec::with_capacity(self.slots.len());
        let mut ended = Vec::new();
        for (range, sent) in self.partitions.iter().zip(sent?) {
            slots.extend_from_slice(&self.slots[range.clone()]);
            if let Err(what) = self.play(&mut slots, range, sent, &mut ended) {
                let (sender, incarnation, partition) =
                    (sent.sender.clone(), sent.incarnation, sent.partition);
                let dropped = std::mem::take(&mut self.buffer[partition]);
                self.bytes -= dropped.values().map(|poll| poll.bytes() as u64).sum::<u64>();
                self.refused[partition].insert(incarnation);
                let processes = self.refused[partition].len();
                return Some(Err(Refused { sender, incarnation, partition, what, processes }));
            }
        }
        self.slots = slots;
        self.taken = poll;
        let played = self.buffer.iter_mut().filter_map(|buffered| buffered.remove(&poll));
        self.bytes -= played.map(|poll| poll.bytes() as u64).sum::<u64>();
        self.needs_reread |= std::mem::take(&mut self.has_dropped);
        if self.has_passed_over && self.buffer.iter().any(BTreeMap::is_empty) {
            (self.needs_reread, self.has_passed_over) = (true, false);
        }
        ended.sort_by_key(|(pass, game): &(u64, FinishedGame)| (*pass, game.slot));
        Some(Ok(ended.into_iter().map(|(_, game)| game).collect()))
    }

    /// Plays the plies of a poll in `slots [N]`, in the partition with the slots of `range`. Adds the ended games with their passes to
    /// `ended`.
    fn play(
        &self,
        slots: &mut [GameSlot],
        range: &Range<usize>,
        poll: &PartitionPoll,
        ended: &mut Vec<(u64, FinishedGame)>,
    ) -> Result<(), String> {
        for plies in &poll.plies {
            let number = plies.record.slot as usize;
            if !range.contains(&number) {
                return Err(format!(
                    "slot {number}, expected {} to {} of partition {}",
                    range.start,
                    range.end - 1,
                    poll.partition
                ));
            }
            let finished = plies.record.play_in(&mut slots[number], self.game.as_ref(), &self.plan)?;
            match (finished, plies.ended_by) {
                (Some(game), Some(pass)) => ended.push((pass, game)),
                (None, None) => {}
                (Some(_), None) => {
                    return Err(format!(
                        "slot {number}: a game in progress by the poll, expected its end by the rules"
                    ));
                }
                (None, Some(_)) => {
                    return Err(format!(
                        "slot {number}: a finished game by the poll, expected one in progress by the rules"
                    ));
                }
            }
        }
        Ok(())
    }
}
