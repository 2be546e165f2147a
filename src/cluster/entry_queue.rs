//! Queue of the entries that the reader has read, for the run: a channel with a bound on bytes in addition to that on chunks. A chunk
//! of many short games takes several times its bytes after the replay.

use super::received::StreamId;
use super::strict::poll::PartitionPoll;
use crate::error::Result;
use crate::play::{FinishedGame, Sample};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// Upper bound on the chunks in the queue.
const MAX_CHUNKS: usize = 32;
/// Upper bound on the bytes of their games. A single chunk in the queue may exceed it.
pub(super) const MAX_BYTES: u64 = 64 << 20;
/// Bytes that the allocator takes for a list in addition to its elements.
const LIST_OVERHEAD: usize = 16;

/// The outcome of reading a chunk.
#[derive(Debug)]
pub(super) enum ChunkOutcome {
    /// The next chunk of its incarnation.
    Next {
        /// The worker's name.
        sender: String,
        /// The process that sent the chunk.
        incarnation: u64,
        /// The chunk's number.
        sequence: u64,
        /// The version of the weights.
        version: u64,
        /// The games, or the reason why they are refused.
        games: std::result::Result<Vec<FinishedGame>, RefusedGames>,
    },
    /// In strict order: a partition's poll.
    Poll(PartitionPoll),
    /// A chunk that was read before.
    Repeated,
    /// A chunk before which another one is missing.
    Gap,
    /// A chunk that is damaged, has another configuration or protocol, or comes from one incarnation too many.
    Refused,
}

/// The reason why the games of the next chunk of an incarnation are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedGames {
    /// The weights are too old.
    Stale,
    /// The games break the rules.
    Games,
}

/// An entry of the stream that was read.
#[derive(Debug)]
pub(super) struct StreamEntry {
    /// The stream's generation.
    pub generation: u64,
    /// The entry's id in the stream.
    pub id: StreamId,
    /// Bytes of the chunk on the wire.
    pub bytes: usize,
    /// Time of its arrival at the server, by this process's clock.
    pub since: Instant,
    /// The outcome of reading the chunk.
    pub outcome: ChunkOutcome,
}

/// The reader's end of the queue.
pub(super) struct EntrySender {
    sender: SyncSender<Result<StreamEntry>>,
    /// Bytes in the queue.
    queued: Arc<AtomicU64>,
}

/// The run's end of the queue.
pub(super) struct EntryReceiver {
    receiver: Receiver<Result<StreamEntry>>,
    /// Bytes in the queue.
    queued: Arc<AtomicU64>,
}

/// Both ends of an empty queue.
pub(super) fn channel() -> (EntrySender, EntryReceiver) {
    let (sender, receiver) = sync_channel(MAX_CHUNKS);
    let queued = Arc::new(AtomicU64::new(0));
    (EntrySender { sender, queued: queued.clone() }, EntryReceiver { receiver, queued })
}

impl EntrySender {
    /// Queues an entry, or returns it where the queue is full. Drops it once the run is over.
    pub(super) fn try_send(&self, entry: Result<StreamEntry>) -> Option<Result<StreamEntry>> {
        let bytes = bytes_of(&entry);
        // Only this end adds, so the true number is at most the loaded one.
        let queued = self.queued.load(Ordering::Relaxed);
        if queued > 0 && queued + bytes > MAX_BYTES {
            return Some(entry);
        }
        self.queued.fetch_add(bytes, Ordering::Relaxed);
        match self.sender.try_send(entry) {
            Err(TrySendError::Full(entry)) => {
                self.queued.fetch_sub(bytes, Ordering::Relaxed);
                Some(entry)
            }
            Ok(()) | Err(TrySendError::Disconnected(_)) => None,
        }
    }
}

impl EntryReceiver {
    /// The next entry, after at most `wait`.
    ///
    /// # Errors
    /// [`RecvTimeoutError`] where there is none.
    pub(super) fn receive(&self, wait: Duration) -> Result<Result<StreamEntry>, RecvTimeoutError> {
        let entry = match wait.is_zero() {
            true => self.receiver.try_recv().map_err(|e| match e {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            }),
            false => self.receiver.recv_timeout(wait),
        }?;
        self.queued.fetch_sub(bytes_of(&entry), Ordering::Relaxed);
        Ok(entry)
    }
}

/// Bytes of an entry in memory.
fn bytes_of(entry: &Result<StreamEntry>) -> u64 {
    let bytes = match entry.as_ref().map(|entry| &entry.outcome) {
        Ok(ChunkOutcome::Next { games: Ok(games), .. }) => games.iter().map(game_bytes).sum(),
        Ok(ChunkOutcome::Poll(poll)) => poll.bytes(),
        _ => 0,
    };
    bytes as u64
}

fn game_bytes(game: &FinishedGame) -> usize {
    let samples: usize = game.samples.iter().map(sample_bytes).sum();
    size_of::<FinishedGame>() + 2 * game.actions.len() + game.end.len() + samples
}

fn sample_bytes(sample: &Sample) -> usize {
    let Sample { state, player: _, actions, policy, values } = sample;
    size_of::<Sample>()
        + 4 * LIST_OVERHEAD
        + state.len()
        + size_of_val(&actions[..])
        + size_of_val(&policy[..])
        + size_of_val(&values[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk of one game that takes about `bytes`.
    fn entry(bytes: usize) -> Result<StreamEntry> {
        let sample = Sample { state: vec![0; bytes], ..Sample::default() };
        let game = FinishedGame { samples: vec![sample], ..FinishedGame::default() };
        let outcome = ChunkOutcome::Next {
            sender: String::new(),
            incarnation: 1,
            sequence: 1,
            version: 1,
            games: Ok(vec![game]),
        };
        Ok(StreamEntry { generation: 1, id: StreamId(1, 1), bytes, since: Instant::now(), outcome })
    }

    #[test]
    fn bytes_and_chunks_in_the_queue_are_bounded_and_one_chunk_of_any_size_passes() {
        let (sender, receiver) = channel();
        let max = MAX_BYTES as usize;
        let half = max / 2;
        assert!(sender.try_send(entry(2 * max)).is_none(), "the queue is empty");
        assert!(sender.try_send(entry(1)).is_some(), "too many bytes");
        receiver.receive(Duration::ZERO).expect("queued").expect("a chunk");
        assert!(matches!(receiver.receive(Duration::ZERO), Err(RecvTimeoutError::Timeout)));
        assert!(sender.try_send(entry(half - 1000)).is_none(), "half");
        assert!(sender.try_send(entry(half - 1000)).is_none(), "both halves");
        assert!(sender.try_send(entry(half)).is_some(), "a third half");
        (0..2).for_each(|_| drop(receiver.receive(Duration::from_millis(1)).expect("queued")));
        for chunk in 0..MAX_CHUNKS {
            assert!(sender.try_send(entry(1)).is_none(), "chunk {chunk}");
        }
        assert!(sender.try_send(entry(1)).is_some(), "too many chunks");
        (0..MAX_CHUNKS).for_each(|_| drop(receiver.receive(Duration::ZERO).expect("queued")));
        assert_eq!(receiver.queued.load(Ordering::Relaxed), 0);
        drop(receiver);
        assert!(sender.try_send(entry(1)).is_none(), "dropped");
    }
}
