//! What the reader thread publishes: weights, state and marks of a version, the window, the number of taken polls.

use super::{DUE_INTERVAL, Reader};
use crate::cluster::published::{OVER, PublishedRun};
use crate::cluster::received::{Received, StreamId};
use crate::cluster::run_shared::Publication;
use crate::cluster::server::{Connection, Failure, number_of};
use crate::cluster::strict::epoch_slots::{EpochSlots, FINISHED};
use crate::cluster::window::Waiting;
use crate::cluster::{Incarnation, PROTOCOL};
use crate::config::ClusterOrder;
use redis::{cmd, pipe};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time between two removals of the workers' statuses.
const STATUS_TTL: Duration = Duration::from_secs(60);

impl Reader {
    /// Publishes what the server lacks: the publication, the window or the polls.
    pub(super) fn publish_all(
        &mut self,
        link: &mut Connection,
        publication: &Publication,
    ) -> Result<(), Failure> {
        if is_due(&mut self.known.checked_at) {
            let mut lengths = pipe();
            lengths.cmd("STRLEN").arg(self.keys.weights(publication.version));
            if publication.epoch_slots.is_some() {
                lengths.cmd("HSTRLEN").arg(self.keys.slots(publication.version)).arg(FINISHED);
            }
            if link.pipeline(&lengths)?.into_iter().any(|length| number_of(length) == Some(0)) {
                self.known.published = None;
            }
        }
        if self.known.published != Some(publication.version) {
            self.publish(link, publication)?;
        }
        match self.bounds.order {
            ClusterOrder::Free => self.set_window(link),
            ClusterOrder::Strict => self.set_polls(link, publication),
        }
    }

    /// Publishes a newer publication, unless the next step begins a generation before.
    pub(super) fn publish_known(
        &mut self,
        link: &mut Connection,
        publication: &Publication,
    ) -> Result<(), Failure> {
        match self.needs_generation(link)? {
            true => Ok(()),
            false => self.publish(link, publication),
        }
    }

    /// Publishes the number of polls that are taken, and the refused processes. Reads the epoch's entries again after a refusal, since
    /// they may contain the partition's polls of another worker, and after polls that the full buffer dropped.
    fn set_polls(&mut self, link: &mut Connection, publication: &Publication) -> Result<(), Failure> {
        let version = publication.version;
        // Once for each refusal, even if the commands below fail: `refusals` keeps the processes until they are published.
        let is_refused = self.known.refusals.add(self.shared.take_refused(), version);
        if self.shared.take_reread_request(version) || is_refused {
            let Received { generation, position, .. } = publication.received;
            self.read.position =
                if generation == self.read.generation { position } else { StreamId::default() };
        }
        let polls = self.shared.polls.load(Ordering::Relaxed);
        if polls != self.known.polls {
            link.command(cmd("SET").arg(&self.keys.polls).arg(format!("{version} {polls}")))?;
            self.known.polls = polls;
        }
        self.known.refusals.publish(link, &self.keys)
    }

    /// Removes old data, so that a full server has memory again, then publishes the weights, then the state that names them together
    /// with the marks.
    pub(super) fn publish(
        &mut self,
        link: &mut Connection,
        publication: &Publication,
    ) -> Result<(), Failure> {
        let Publication { version, weights, sha256, received, record, epoch_slots } = publication;
        if received.generation == self.read.generation {
            let first = received.position.next().to_string();
            link.command(cmd("XTRIM").arg(&self.keys.games).arg("MINID").arg(first))?;
        }
        let old = self.keys.of_old_versions(*version);
        if !old.is_empty() {
            link.command(cmd("DEL").arg(old))?;
        }
        link.command(cmd("SET").arg(self.keys.weights(*version)).arg(&weights[..]))?;
        let mut bytes_out = weights.len();
        if let Some(EpochSlots { finished, partitions }) = epoch_slots {
            bytes_out += partitions.iter().map(Vec::len).sum::<usize>();
            let mut slots = cmd("HSET");
            slots.arg(self.keys.slots(*version)).arg(FINISHED).arg(*finished);
            for (partition, bytes) in partitions.iter().enumerate() {
                slots.arg(partition).arg(&bytes[..]);
            }
            link.command(&slots)?;
        }
        let window = self.window.bytes();
        let state = PublishedRun {
            protocol: PROTOCOL,
            run: self.read.run,
            generation: self.read.generation,
            digest: self.digest,
            version: *version,
            sha256: *sha256,
            window,
        };
        let mut all = pipe();
        all.atomic();
        all.cmd("HSET").arg(&self.keys.state).arg("config").arg(&self.config);
        for (name, value) in state.fields() {
            all.cmd("HSET").arg(&self.keys.state).arg(name).arg(value);
        }
        if let Some(record) = record {
            all.cmd("HSET").arg(&self.keys.state).arg("record").arg(&record[..]);
        }
        all.cmd("HSET").arg(&self.keys.state).arg(OVER.0).arg("0");
        all.cmd("DEL").arg(&self.keys.marks).arg(&self.keys.resend);
        if self.known.cleared_at.is_none_or(|at| at.elapsed() >= STATUS_TTL) {
            // Active workers publish theirs again within two seconds.
            all.cmd("DEL").arg(&self.keys.workers);
            self.known.cleared_at = Some(Instant::now());
        }
        for (incarnation, mark) in &received.marks {
            all.cmd("HSET").arg(&self.keys.marks).arg(Incarnation(*incarnation).field()).arg(*mark);
        }
        link.pipeline(&all)?;
        self.known.is_begun = false;
        self.window.end_epoch();
        self.known.refusals.begin(*version);
        // The number of taken polls is published again.
        (self.known.window, self.known.published, self.known.polls) = (window, Some(*version), u64::MAX);
        self.shared.bytes_out.fetch_add(bytes_out as u64, Ordering::Relaxed);
        self.shared.is_published.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Publishes another window after a change in the number of active workers or in the speed of the learner.
    fn set_window(&mut self, link: &mut Connection) -> Result<(), Failure> {
        if !is_due(&mut self.known.window_at) {
            return Ok(());
        }
        let has_waited = self.shared.has_waited.swap(false, Ordering::Relaxed);
        let was_empty = std::mem::take(&mut self.known.was_empty);
        let waiting = if has_waited && was_empty { Waiting::AtEmptyQueue } else { Waiting::No };
        self.window.adapt(waiting, self.shared.staleness.swap(0, Ordering::Relaxed));
        let window = self.window.bytes();
        if window != self.known.window {
            link.command(cmd("HSET").arg(&self.keys.state).arg("window").arg(window))?;
            self.known.window = window;
        }
        Ok(())
    }
}

/// True at most once a second; `last` is the time of the last true result.
fn is_due(last: &mut Option<Instant>) -> bool {
    let due = last.is_none_or(|at| at.elapsed() >= DUE_INTERVAL);
    if due {
        *last = Some(Instant::now());
    }
    due
}
