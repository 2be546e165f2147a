//! Processes of which a poll was refused, and how they get to know it: they end, and another worker plays their part.

use super::super::Incarnation;
use super::super::published::Keys;
use super::super::server::{Connection, Failure, bytes_of};
use redis::{cmd, pipe};

/// A process of which a poll was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct RefusedProcess {
    /// The process.
    pub incarnation: u64,
    /// The part whose poll it was.
    pub part: usize,
    /// The version of the weights.
    pub version: u64,
}

impl RefusedProcess {
    /// Publishes that it is refused and removes its lease, both or neither. A lease of another process stays.
    fn publish(&self, link: &mut Connection, keys: &Keys) -> Result<(), Failure> {
        let (field, lease) = (Incarnation(self.incarnation).field(), keys.lease(self.version, self.part));
        let holder = bytes_of(link.command(cmd("GET").arg(&lease))?);
        let mut all = pipe();
        all.atomic().cmd("HSET").arg(&keys.refused).arg(&field).arg(1);
        if holder.as_deref() == Some(field.as_bytes()) {
            all.cmd("DEL").arg(&lease);
        }
        link.pipeline(&all).map(drop)
    }
}

/// The refused processes of an epoch. They are kept once they are published too: a server that has lost its data gets them again.
#[derive(Debug, Default)]
pub(in super::super) struct Refusals {
    all: Vec<RefusedProcess>,
    /// How many of them the server has.
    published: usize,
}

impl Refusals {
    /// Adds processes that were refused since. True if the polls of the epoch of `version` are to be read again, among which may be those
    /// that others have sent of the same part; polls of an earlier epoch are not wanted any more.
    pub(in super::super) fn add(&mut self, new: Vec<RefusedProcess>, version: u64) -> bool {
        let are_wanted = new.iter().any(|refused| refused.version >= version);
        self.all.extend(new);
        are_wanted
    }

    /// Publishes those that are not published; after a failure the rest is published by the next call.
    pub(in super::super) fn publish(&mut self, link: &mut Connection, keys: &Keys) -> Result<(), Failure> {
        while let Some(refused) = self.all.get(self.published) {
            refused.publish(link, keys)?;
            self.published += 1;
        }
        Ok(())
    }

    /// The epoch of `version` is published, perhaps again: those of earlier ones are forgotten once they are published, those of this one are
    /// published again.
    pub(in super::super) fn begin(&mut self, version: u64) {
        let published = std::mem::take(&mut self.published);
        let known = self.all.drain(..published).filter(|refused| refused.version >= version);
        let known: Vec<RefusedProcess> = known.collect();
        self.all.splice(..0, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_processes_are_kept_until_they_are_published_and_their_epoch_is_over() {
        let refused = |incarnation, version| RefusedProcess { incarnation, part: 0, version };
        let mut refusals = Refusals::default();
        assert!(refusals.add(vec![refused(1, 4), refused(2, 4)], 4), "other polls of the part are wanted");
        refusals.begin(4);
        assert_eq!(refusals.all, [refused(1, 4), refused(2, 4)], "nothing is published yet");
        refusals.published = 1;
        assert!(!refusals.add(vec![refused(3, 4)], 5), "the epoch has ended meanwhile");
        assert!(!refusals.add(Vec::new(), 5));
        refusals.begin(5);
        assert_eq!(refusals.all, [refused(2, 4), refused(3, 4)], "the first one knows it");
        assert!(refusals.add(vec![refused(4, 6)], 5), "the next epoch has begun, and is not published yet");
        refusals.published = 3;
        refusals.begin(6);
        assert_eq!((&refusals.all[..], refusals.published), (&[refused(4, 6)][..], 0), "published again");
    }
}
