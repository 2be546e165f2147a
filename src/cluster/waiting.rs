//! Chunks that were read and wait for the run: a channel with a bound of bytes as well as of chunks, since a chunk of many short games
//! takes several times its bytes once they are replayed.

use super::received::StreamId;
use super::strict::poll::PartPoll;
use crate::error::Result;
use crate::selfplay::{FinishedGame, Sample};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// The most chunks that wait.
const MOST_CHUNKS: usize = 32;
/// The most bytes of their games, and one chunk more.
pub(super) const MOST_BYTES: u64 = 64 << 20;
/// Bytes that the allocator takes besides those of a list.
const LIST: usize = 16;

/// What became of a chunk.
#[derive(Debug)]
pub(super) enum ChunkOutcome {
    /// The next chunk of its incarnation, with its games: none if they are refused.
    Next {
        /// The worker's name.
        sender: String,
        /// The process that sent it.
        incarnation: u64,
        /// Its number.
        sequence: u64,
        /// The weights.
        version: u64,
        /// The games.
        games: std::result::Result<Vec<FinishedGame>, RefusedGames>,
    },
    /// In strict order: a part's poll.
    Poll(PartPoll),
    /// It came before.
    Repeated,
    /// An earlier one is missing.
    Gap,
    /// It is damaged, of another configuration or protocol, or of too many incarnations.
    Refused,
}

/// Why the games of a chunk that is the next one are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedGames {
    /// Their weights are too old.
    Stale,
    /// The rules do not give them.
    Games,
}

/// An entry of the stream that was read.
#[derive(Debug)]
pub(super) struct StreamEntry {
    /// The stream's generation.
    pub generation: u64,
    /// Its place there.
    pub id: StreamId,
    /// Its bytes.
    pub bytes: usize,
    /// When it came to the server, by this process's clock.
    pub since: Instant,
    /// What became of it.
    pub outcome: ChunkOutcome,
}

/// The end of the thread that reads.
pub(super) struct EntrySender {
    sender: SyncSender<Result<StreamEntry>>,
    waiting: Arc<AtomicU64>,
}

/// The run's end.
pub(super) struct EntryReceiver {
    receiver: Receiver<Result<StreamEntry>>,
    waiting: Arc<AtomicU64>,
}

/// Both ends.
pub(super) fn channel() -> (EntrySender, EntryReceiver) {
    let (sender, receiver) = sync_channel(MOST_CHUNKS);
    let waiting = Arc::new(AtomicU64::new(0));
    (EntrySender { sender, waiting: waiting.clone() }, EntryReceiver { receiver, waiting })
}

impl EntrySender {
    /// Queues an entry, or gives it back where there is no room for it. It is dropped where the run is over.
    pub(super) fn try_send(&self, entry: Result<StreamEntry>) -> Option<Result<StreamEntry>> {
        let bytes = bytes_of(&entry);
        // Only this end adds, so what waits can only have become less since.
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting > 0 && waiting + bytes > MOST_BYTES {
            return Some(entry);
        }
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        match self.sender.try_send(entry) {
            Err(TrySendError::Full(entry)) => {
                self.waiting.fetch_sub(bytes, Ordering::Relaxed);
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
        self.waiting.fetch_sub(bytes_of(&entry), Ordering::Relaxed);
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
    size_of::<FinishedGame>() + 2 * game.actions.len() + game.samples.iter().map(sample_bytes).sum::<usize>()
}

fn sample_bytes(sample: &Sample) -> usize {
    let Sample { state, player: _, actions, policy, values } = sample;
    size_of::<Sample>()
        + 4 * LIST
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
        let sample = Sample {
            state: vec![0; bytes],
            player: 0,
            actions: Vec::new(),
            policy: Vec::new(),
            values: Vec::new(),
        };
        let game = FinishedGame {
            slot: 0,
            game: 0,
            actions: Vec::new(),
            opening: 0,
            returns: Vec::new(),
            samples: vec![sample],
            finding: None,
        };
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
    fn bytes_and_chunks_that_wait_are_bounded_and_one_chunk_of_any_size_passes() {
        let (sender, receiver) = channel();
        let most = MOST_BYTES as usize;
        let half = most / 2;
        assert!(sender.try_send(entry(2 * most)).is_none(), "nothing waits");
        assert!(sender.try_send(entry(1)).is_some(), "too many bytes wait");
        receiver.receive(Duration::ZERO).expect("waits").expect("a chunk");
        assert!(matches!(receiver.receive(Duration::ZERO), Err(RecvTimeoutError::Timeout)));
        assert!(sender.try_send(entry(half - 1000)).is_none(), "half");
        assert!(sender.try_send(entry(half - 1000)).is_none(), "both halves");
        assert!(sender.try_send(entry(half)).is_some(), "a third half");
        (0..2).for_each(|_| drop(receiver.receive(Duration::from_millis(1)).expect("waits")));
        for chunk in 0..MOST_CHUNKS {
            assert!(sender.try_send(entry(1)).is_none(), "chunk {chunk}");
        }
        assert!(sender.try_send(entry(1)).is_some(), "too many chunks wait");
        (0..MOST_CHUNKS).for_each(|_| drop(receiver.receive(Duration::ZERO).expect("waits")));
        assert_eq!(receiver.waiting.load(Ordering::Relaxed), 0);
        drop(receiver);
        assert!(sender.try_send(entry(1)).is_none(), "nobody takes it");
    }
}
