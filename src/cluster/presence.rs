//! The workers that are there, by their statuses on the server: one whose status does not change for some seconds is gone.

use super::published::Keys;
use super::server::{Connection, Failure, Server, bytes_of, list_of};
use super::status::WorkerStatus;
use redis::{Value, cmd};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time after which a worker whose status does not change is gone. It publishes one every two seconds.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// The same after its first status: in strict order weights, kernels and root cache come before the second one.
const PREPARATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two readings of the statuses, which workers publish as often.
const INTERVAL: Duration = Duration::from_secs(2);

/// The workers that are there, by process.
#[derive(Debug, Default)]
pub(super) struct Presence {
    workers: BTreeMap<Vec<u8>, LastStatus>,
    /// Time of the last reading.
    looked_at: Option<Instant>,
}

/// The last status of a process.
#[derive(Debug)]
struct LastStatus {
    name: String,
    number: u64,
    /// When it was first read.
    at: Instant,
    /// Time after which the worker is gone if its status is still this one.
    timeout: Duration,
    /// True if the worker waits for the learner or the server for more than half of the time.
    is_waiting: bool,
    /// False after [`Change::Gone`]. The status may stay on the server for long.
    is_there: bool,
}

/// A change in the workers that are there, with the worker's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A process has published its first status.
    Joined(String),
    /// A process has said that it ends.
    Left(String),
    /// A process has published no status for this time: it was killed, or has lost the server.
    Gone(String, Duration),
}

impl Presence {
    /// Reads the statuses at intervals, and logs who has joined, left or is gone. Returns the number of workers that are there.
    ///
    /// # Errors
    /// Those of the server.
    pub(super) fn look(
        &mut self,
        link: &mut Connection,
        keys: &Keys,
        server: &Server,
    ) -> Result<usize, Failure> {
        if self.looked_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return Ok(self.count());
        }
        self.looked_at = Some(Instant::now());
        let (statuses, server) = (read_statuses(link, keys)?, server.address());
        for change in self.update(&statuses, Instant::now()) {
            match change {
                Change::Joined(name) => tracing::info!("{server}: worker {name} has joined"),
                Change::Left(name) => tracing::info!("{server}: worker {name} has left"),
                Change::Gone(name, time) => tracing::warn!(
                    "{server}: worker {name} is gone: it has sent no status for {} s, so it was killed or has lost the server; the run \
                     goes on without its games in progress",
                    time.as_secs()
                ),
            }
        }
        // Readers that come later see that they are gone.
        for (process, status) in &statuses {
            if !status.has_left && !self.has(process) {
                let gone = WorkerStatus { has_left: true, ..status.clone() };
                let text = serde_json::to_vec(&gone).unwrap_or_default();
                link.command(cmd("HSET").arg(&keys.workers).arg(&process[..]).arg(text))?;
            }
        }
        Ok(self.count())
    }

    /// Takes the statuses of all processes as read at `now`, and returns the changes. A status that is missing, since the learner has
    /// removed all of them, is no change.
    pub(super) fn update(&mut self, statuses: &BTreeMap<Vec<u8>, WorkerStatus>, now: Instant) -> Vec<Change> {
        let mut changes = Vec::new();
        for (process, status) in statuses {
            let WorkerStatus { name, number, has_left, .. } = status;
            if *has_left {
                let last = self.workers.remove(process).filter(|last| last.is_there);
                changes.extend(last.map(|last| Change::Left(last.name)));
                continue;
            }
            let last = self.workers.get(process);
            if last.is_none_or(|last| last.number != *number) {
                if last.is_none_or(|last| !last.is_there) {
                    changes.push(Change::Joined(name.clone()));
                }
                let last = LastStatus {
                    name: name.clone(),
                    number: *number,
                    at: now,
                    timeout: timeout_after(status),
                    is_waiting: status.is_waiting(),
                    is_there: true,
                };
                self.workers.insert(process.clone(), last);
            }
        }
        for last in self.workers.values_mut().filter(|last| last.is_there) {
            if now.saturating_duration_since(last.at) >= last.timeout {
                last.is_there = false;
                changes.push(Change::Gone(last.name.clone(), last.timeout));
            }
        }
        self.workers.retain(|process, last| last.is_there || statuses.contains_key(process));
        changes
    }

    /// True if the process is there.
    pub(super) fn has(&self, process: &[u8]) -> bool {
        self.workers.get(process).is_some_and(|last| last.is_there)
    }

    /// Time from the first reading of a process's last status to `now`.
    pub(super) fn age(&self, process: &[u8], now: Instant) -> Duration {
        self.workers.get(process).map_or(Duration::ZERO, |last| now.saturating_duration_since(last.at))
    }

    /// Number of workers that are there.
    pub(super) fn count(&self) -> usize {
        self.workers.values().filter(|last| last.is_there).count()
    }

    /// True if there are workers, and all of them wait for the learner or the server for more than half of the time.
    pub(super) fn all_wait(&self) -> bool {
        self.count() > 0 && self.workers.values().all(|last| last.is_waiting || !last.is_there)
    }
}

/// Time after which a worker is gone if `status` is still its last one.
fn timeout_after(status: &WorkerStatus) -> Duration {
    let timeout = if status.number <= 1 { PREPARATION_TIMEOUT } else { STATUS_TIMEOUT };
    timeout.max(Duration::try_from_secs_f64(status.max_silence).unwrap_or_default())
}

/// The statuses of all processes that have published one.
pub(super) fn read_statuses(
    link: &mut Connection,
    keys: &Keys,
) -> Result<BTreeMap<Vec<u8>, WorkerStatus>, Failure> {
    let reply = match link.command(cmd("HGETALL").arg(&keys.workers))? {
        Value::Map(pairs) => pairs.into_iter().flat_map(|(field, value)| [field, value]).collect(),
        other => list_of(other).unwrap_or_default(),
    };
    let mut fields = reply.into_iter().map(bytes_of);
    let mut statuses = BTreeMap::new();
    while let (Some(field), Some(value)) = (fields.next(), fields.next()) {
        if let Some((process, status)) = field.zip(value.and_then(|bytes| WorkerStatus::read(&bytes))) {
            statuses.insert(process, status);
        }
    }
    Ok(statuses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(all: &[(&str, u64)]) -> BTreeMap<Vec<u8>, WorkerStatus> {
        let status = |(name, number): &(&str, u64)| {
            let status = WorkerStatus { name: name.to_string(), number: *number, ..WorkerStatus::default() };
            (name.as_bytes().to_vec(), status)
        };
        all.iter().map(status).collect()
    }

    #[test]
    fn a_worker_without_new_statuses_is_gone_once_and_one_that_leaves_has_left() {
        let (mut presence, start) = (Presence::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let joined = ["a", "b"].map(|name| Change::Joined(name.into()));
        assert_eq!(presence.update(&statuses(&[("a", 1), ("b", 2)]), at(0)), joined);
        assert_eq!(presence.update(&statuses(&[("a", 4), ("b", 2)]), at(8)), []);
        // The learner has removed all statuses.
        assert_eq!((presence.update(&statuses(&[]), at(9)), presence.count()), (vec![], 2));
        let gone = [Change::Gone("b".into(), STATUS_TIMEOUT)];
        assert_eq!(presence.update(&statuses(&[("a", 5), ("b", 2)]), at(10)), gone);
        assert!(presence.has(b"a") && !presence.has(b"b"));
        let mut last = statuses(&[("a", 6)]);
        last.values_mut().for_each(|status| status.has_left = true);
        assert_eq!(presence.update(&last, at(12)), [Change::Left("a".into())]);
        assert_eq!((presence.update(&last, at(14)), presence.count()), (vec![], 0), "said once");
    }

    /// The dead process's status stays on the server until the learner removes it.
    #[test]
    fn a_status_that_stays_is_not_a_new_worker() {
        let (mut presence, start) = (Presence::default(), Instant::now());
        let all = statuses(&[("a", 3)]);
        let mut changes = Vec::new();
        for seconds in (0..60).step_by(2) {
            changes.extend(presence.update(&all, start + Duration::from_secs(seconds)));
        }
        assert_eq!(changes, [Change::Joined("a".into()), Change::Gone("a".into(), STATUS_TIMEOUT)]);
    }

    /// Killed while it fetched its first weights.
    #[test]
    fn a_worker_that_is_killed_after_its_first_status_is_gone_later() {
        let (mut presence, start) = (Presence::default(), Instant::now());
        let mut at = |seconds| presence.update(&statuses(&[("a", 1)]), start + Duration::from_secs(seconds));
        assert_eq!((at(0), at(29)), (vec![Change::Joined("a".into())], vec![]));
        assert_eq!(at(30), [Change::Gone("a".into(), PREPARATION_TIMEOUT)]);
    }

    /// In strict order no status is sent during a poll.
    #[test]
    fn a_worker_of_long_polls_is_there_for_longer() {
        let (mut presence, start) = (Presence::default(), Instant::now());
        let mut all = statuses(&[("a", 2)]);
        all.values_mut().for_each(|status| status.max_silence = 80.0);
        let mut at = |seconds| presence.update(&all, start + Duration::from_secs(seconds));
        assert_eq!((at(0), at(79)), (vec![Change::Joined("a".into())], vec![]));
        assert_eq!(at(80), [Change::Gone("a".into(), Duration::from_secs(80))]);
    }

    #[test]
    fn all_wait_if_each_worker_that_is_there_waits() {
        let (mut presence, start) = (Presence::default(), Instant::now());
        let mut all = statuses(&[("a", 2), ("b", 2)]);
        let mut look = |all: &BTreeMap<Vec<u8>, WorkerStatus>| {
            presence.update(all, start);
            presence.all_wait()
        };
        assert!(!look(&BTreeMap::new()), "there is no worker");
        all.values_mut().for_each(|status| status.shares.learner = 1.0);
        assert!(look(&all));
        for (number, (game, learner), waits) in [(3, (1.0, 0.0), false), (4, (0.25, 0.75), true)] {
            let status = all.values_mut().next().expect("two");
            (status.number, status.shares.game, status.shares.learner) = (number, game, learner);
            assert_eq!(look(&all), waits, "status {number}");
        }
        // One that prepares its games does not wait.
        all.extend(statuses(&[("c", 1)]));
        assert!(!look(&all));
    }
}
