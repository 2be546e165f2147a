//! What a worker says of itself, for people: how fast it plays, and what limits it. Nothing of a run depends on it.

use crate::pass::PassClock;
use crate::report::prometheus::{Kind, MetricsText};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, Instant};

/// Time between two statuses.
const INTERVAL: Duration = Duration::from_secs(2);
/// The longest name.
const NAME_CHARS: usize = 32;

/// What took most of a worker's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Games and trees: selection, expansion, backup.
    Game,
    /// The network's forward.
    Network,
    /// Sending: chunks wait for the connection.
    Link,
    /// Waiting for the learner: for weights, or for a checkpoint that has the games sent.
    Learner,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Game => "games and trees",
            Self::Network => "the network",
            Self::Link => "the link",
            Self::Learner => "the learner",
        })
    }
}

/// A worker's last seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The worker's name.
    pub name: String,
    /// Its number among the statuses of its process: a worker whose number stands still is gone.
    pub number: u64,
    /// The version of the weights that it plays with.
    pub version: u64,
    /// Games finished since it began.
    pub games: u64,
    /// Samples of these games.
    pub samples: u64,
    /// Games a second.
    pub games_per_second: f64,
    /// Samples a second.
    pub samples_per_second: f64,
    /// What took most of its time.
    pub limit: Limit,
    /// The share of the time that this took.
    pub limit_share: f64,
}

impl WorkerStatus {
    /// The status for Prometheus.
    pub fn metrics(&self) -> MetricsText {
        let mut text = MetricsText::default();
        text.add(Kind::Counter, "vecaz_worker_games_total", "Games finished.", self.games as f64);
        text.add(Kind::Counter, "vecaz_worker_samples_total", "Samples of these games.", self.samples as f64);
        let version = self.version as f64;
        text.add(
            Kind::Gauge,
            "vecaz_worker_weights",
            "The version of the weights that it plays with.",
            version,
        );
        let share = |of: Limit| if of == self.limit { self.limit_share } else { 0.0 };
        let limits = [
            ("game", Limit::Game),
            ("network", Limit::Network),
            ("link", Limit::Link),
            ("learner", Limit::Learner),
        ]
        .map(|(name, limit)| ("limit", name, share(limit)));
        text.add_labelled(
            Kind::Gauge,
            "vecaz_worker_limit_share",
            "The share of the time of what takes most of it; 0 for all else.",
            &limits,
        );
        text
    }

    /// A status that a process has published; None for other bytes. What people see of it is bounded.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let status: Self = serde_json::from_slice(bytes).ok()?;
        let is_rate = |rate: f64| (0.0..1e15).contains(&rate);
        let bounded = is_rate(status.games_per_second)
            && is_rate(status.samples_per_second)
            && (0.0..=1.0).contains(&status.limit_share);
        let name = status.name.chars().take(NAME_CHARS);
        let name = name.map(|c| if c.is_control() { '?' } else { c }).collect();
        bounded.then_some(Self { name, ..status })
    }
}

impl fmt::Display for WorkerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, games, games_per_second, samples_per_second, limit, limit_share, .. } = self;
        write!(
            f,
            "{games} games, {games_per_second:.1} games/s, {samples_per_second:.0} samples/s with weights {version}; \
             {:.0} % of the time goes to {limit}",
            100.0 * limit_share
        )
    }
}

/// Counts what a worker does between two statuses.
pub(super) struct StatusMeter {
    name: String,
    threads: usize,
    number: u64,
    games: u64,
    samples: u64,
    since: Instant,
    /// Games and samples at `since`.
    before: (u64, u64),
    /// Seconds of all threads, since then.
    seconds: [f64; 4],
}

impl StatusMeter {
    pub(super) fn new(name: &str, threads: usize) -> Self {
        Self {
            name: name.to_string(),
            threads,
            number: 0,
            games: 0,
            samples: 0,
            since: Instant::now(),
            before: (0, 0),
            seconds: [0.0; 4],
        }
    }

    /// Counts finished games.
    pub(super) fn count(&mut self, games: usize, samples: usize) {
        self.games += games as u64;
        self.samples += samples as u64;
    }

    /// Counts the time of passes.
    pub(super) fn played(&mut self, clock: &PassClock) {
        self.seconds[Limit::Game as usize] += clock.select + clock.expand + clock.backup;
        self.seconds[Limit::Network as usize] += clock.forward;
    }

    /// Counts time in which all threads waited.
    pub(super) fn waited(&mut self, on: Limit, time: Duration) {
        self.seconds[on as usize] += time.as_secs_f64() * self.threads as f64;
    }

    /// Games and samples since the beginning.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.games, self.samples)
    }

    /// The status of the last seconds, if it is time for one.
    pub(super) fn due(&mut self, version: u64) -> Option<WorkerStatus> {
        if self.since.elapsed() < INTERVAL {
            return None;
        }
        let seconds = self.since.elapsed().as_secs_f64();
        let limits = [Limit::Game, Limit::Network, Limit::Link, Limit::Learner];
        let spent = |limit: &Limit| self.seconds[*limit as usize];
        let limit = limits.into_iter().max_by(|a, b| spent(a).total_cmp(&spent(b))).unwrap_or(Limit::Learner);
        let all: f64 = self.seconds.iter().sum();
        self.number += 1;
        let status = WorkerStatus {
            name: self.name.clone(),
            number: self.number,
            version,
            games: self.games,
            samples: self.samples,
            games_per_second: (self.games - self.before.0) as f64 / seconds,
            samples_per_second: (self.samples - self.before.1) as f64 / seconds,
            limit,
            limit_share: if all > 0.0 { spent(&limit) / all } else { 0.0 },
        };
        (self.since, self.before, self.seconds) = (Instant::now(), (self.games, self.samples), [0.0; 4]);
        Some(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_took_most_of_the_time() {
        let mut meter = StatusMeter::new("one", 2);
        assert_eq!(meter.due(3), None, "too early");
        meter.count(5, 70);
        meter.played(&PassClock { forward: 0.5, select: 0.25, ..PassClock::default() });
        meter.waited(Limit::Learner, Duration::from_millis(625));
        meter.since -= INTERVAL;
        let status = meter.due(3).expect("two seconds");
        assert_eq!((status.limit, status.limit_share), (Limit::Learner, 0.625));
        assert!((2.0..2.6).contains(&status.games_per_second), "{status:?}");
        assert_eq!(WorkerStatus::read(&serde_json::to_vec(&status).expect("in memory")), Some(status));
        meter.count(1, 7);
        meter.since -= INTERVAL;
        let next = meter.due(4).expect("two seconds");
        assert_eq!((next.number, next.games, next.samples, next.limit_share), (2, 6, 77, 0.0));
        assert!((0.4..0.6).contains(&next.games_per_second), "{next:?}");
    }

    #[test]
    fn foreign_statuses_are_bounded() {
        let text = r#"{"name":"a\u0007b","number":1,"version":2,"games":3,"samples":4,"games_per_second":1.5,
                       "samples_per_second":20.0,"limit":"network","limit_share":0.5}"#;
        assert_eq!(WorkerStatus::read(text.as_bytes()).map(|status| status.name), Some("a?b".into()));
        for (from, to) in [("1.5", "-1"), ("20.0", "1e300"), ("0.5", "7"), ("network", "moon"), ("}", "")] {
            assert_eq!(WorkerStatus::read(text.replace(from, to).as_bytes()), None, "{to}");
        }
    }
}
