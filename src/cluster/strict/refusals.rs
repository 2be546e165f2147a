//! Notifies workers whose polls were refused: they stop, and another worker plays their partition.

use super::super::Incarnation;
use super::super::published::Keys;
use super::super::server::{Connection, Failure, bytes_of};
use redis::{cmd, pipe};

/// A worker's process of which a poll was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct RefusedProcess {
    /// The process.
    pub incarnation: u64,
    /// The partition of the refused poll.
    pub partition: usize,
    /// The version of the weights.
    pub version: u64,
}

impl RefusedProcess {
    /// Publishes the refusal and removes the process's lease, both or neither. A lease of another process stays.
    fn publish(&self, link: &mut Connection, keys: &Keys) -> Result<(), Failure> {
        let (field, lease) =
            (Incarnation(self.incarnation).field(), keys.lease(self.version, self.partition));
        let holder = bytes_of(link.command(cmd("GET").arg(&lease))?);
        let mut all = pipe();
        all.atomic().cmd("HSET").arg(&keys.refused).arg(&field).arg(1);
        all.cmd("EXPIRE").arg(&keys.refused).arg(REFUSED_TTL);
        if holder.as_deref() == Some(field.as_bytes()) {
            all.cmd("DEL").arg(&lease);
        }
        link.pipeline(&all).map(drop)
    }
}

/// Seconds after which nobody who was refused can still be at work.
const REFUSED_TTL: u64 = 86_400;

/// The refused processes of an epoch. They stay in this list after their publication, since a server that has lost its data needs them
/// again.
#[derive(Debug, Default)]
pub(in super::super) struct Refusals {
    all: Vec<RefusedProcess>,
    /// How many of `all` the server has.
    published: usize,
}

impl Refusals {
    /// Adds newly refused processes. True if the polls of the epoch of `version` are to be read again, since they may contain those of
    /// another worker for the same partition. Polls of an earlier epoch are not needed any more.
    pub(in super::super) fn add(&mut self, new: Vec<RefusedProcess>, version: u64) -> bool {
        let needs_reread = new.iter().any(|refused| refused.version >= version);
        self.all.extend(new);
        needs_reread
    }

    /// Publishes the processes that are not published yet. After a failure the next call publishes the rest.
    pub(in super::super) fn publish(&mut self, link: &mut Connection, keys: &Keys) -> Result<(), Failure> {
        while let Some(refused) = self.all.get(self.published) {
            refused.publish(link, keys)?;
            self.published += 1;
        }
        Ok(())
    }

    /// Begins the epoch of `version`, perhaps for the second time, after its publication. Removes published refusals of earlier epochs
    /// and publishes those of this epoch again.
    pub(in super::super) fn begin(&mut self, version: u64) {
        let published = std::mem::take(&mut self.published);
        let current = self.all.drain(..published).filter(|refused| refused.version >= version);
        let current: Vec<RefusedProcess> = current.collect();
        self.all.splice(..0, current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_processes_are_kept_until_they_are_published_and_their_epoch_is_over() {
        let refused = |incarnation, version| RefusedProcess { incarnation, partition: 0, version };
        let mut refusals = Refusals::default();
        assert!(
            refusals.add(vec![refused(1, 4), refused(2, 4)], 4),
            "other polls of the partition are needed"
        );
        refusals.begin(4);
        assert_eq!(refusals.all, [refused(1, 4), refused(2, 4)], "nothing is published yet");
        refusals.published = 1;
        assert!(!refusals.add(vec![refused(3, 4)], 5), "the epoch has ended");
        assert!(!refusals.add(Vec::new(), 5));
        refusals.begin(5);
        assert_eq!(refusals.all, [refused(2, 4), refused(3, 4)], "the first one is notified");
        assert!(refusals.add(vec![refused(4, 6)], 5), "the next epoch has begun, and is not published yet");
        refusals.published = 3;
        refusals.begin(6);
        assert_eq!((&refusals.all[..], refusals.published), (&[refused(4, 6)][..], 0), "published again");
    }
}
