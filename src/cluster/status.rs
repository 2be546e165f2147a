//! What a worker says of itself, for people: how fast it plays, and what limits it. Nothing of a run depends on it.

use crate::pass::PassMetrics;
use crate::report::prometheus::{MetricKind, MetricsText};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, Instant};

/// Time between two statuses.
const INTERVAL: Duration = Duration::from_secs(2);
/// The longest name.
const NAME_CHARS: usize = 32;

/// What may take most of a worker's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Limit {
    const ALL: [Self; 4] = [Self::Game, Self::Network, Self::Link, Self::Learner];

    /// Its name in metrics.
    const fn label(self) -> &'static str {
        match self {
            Self::Game => "game",
            Self::Network => "network",
            Self::Link => "link",
            Self::Learner => "learner",
        }
    }
}

/// The shares of a worker's time that each [`Limit`] took. Together 1, or all 0 where it has done nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeShares {
    /// That of [`Limit::Game`].
    pub game: f64,
    /// That of [`Limit::Network`].
    pub network: f64,
    /// That of [`Limit::Link`].
    pub link: f64,
    /// That of [`Limit::Learner`].
    pub learner: f64,
}

impl TimeShares {
    /// The shares of `all` seconds: the waiting ones as they are, the rest as play is divided between games and network.
    fn of([game, network, link, learner]: [f64; 4], all: f64) -> Self {
        let (play, waiting) = (game + network, link + learner);
        let (per_play, all) = match play > 0.0 {
            true => ((all - waiting).max(0.0) / play, all.max(waiting)),
            false => (0.0, waiting),
        };
        let [game, network, link, learner] = [game * per_play, network * per_play, link, learner]
            .map(|seconds| if all > 0.0 { (seconds / all).clamp(0.0, 1.0) } else { 0.0 });
        Self { game, network, link, learner }
    }

    /// The share of a limit.
    pub fn share(&self, of: Limit) -> f64 {
        match of {
            Limit::Game => self.game,
            Limit::Network => self.network,
            Limit::Link => self.link,
            Limit::Learner => self.learner,
        }
    }

    /// What took most of the time.
    pub fn largest(&self) -> Limit {
        let shares = Limit::ALL.into_iter();
        shares.max_by(|a, b| self.share(*a).total_cmp(&self.share(*b))).unwrap_or(Limit::Learner)
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
    /// What took its time.
    pub shares: TimeShares,
}

impl WorkerStatus {
    /// The status for Prometheus.
    pub fn metrics(&self) -> MetricsText {
        let mut text = MetricsText::default();
        text.add(MetricKind::Counter, "vecaz_worker_games_total", "Games finished.", self.games as f64);
        text.add(
            MetricKind::Counter,
            "vecaz_worker_samples_total",
            "Samples of these games.",
            self.samples as f64,
        );
        let version = self.version as f64;
        text.add(
            MetricKind::Gauge,
            "vecaz_worker_weights",
            "The version of the weights that it plays with.",
            version,
        );
        let shares = Limit::ALL.map(|limit| ("limit", limit.label(), self.shares.share(limit)));
        text.add_labelled(
            MetricKind::Gauge,
            "vecaz_worker_limit_share",
            "The share of its time in the last two seconds; all of them together are 1.",
            &shares,
        );
        text
    }

    /// A status that a process has published; None for other bytes. What people see of it is bounded.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let status: Self = serde_json::from_slice(bytes).ok()?;
        let is_rate = |rate: f64| (0.0..1e15).contains(&rate);
        let bounded = is_rate(status.games_per_second)
            && is_rate(status.samples_per_second)
            && Limit::ALL.iter().all(|limit| (0.0..=1.0).contains(&status.shares.share(*limit)));
        let name = status.name.chars().take(NAME_CHARS);
        let name = name.map(|c| if c.is_control() { '?' } else { c }).collect();
        bounded.then_some(Self { name, ..status })
    }
}

impl fmt::Display for WorkerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, games, games_per_second, samples_per_second, shares, .. } = self;
        let limit = shares.largest();
        write!(
            f,
            "{games} games, {games_per_second:.1} games/s, {samples_per_second:.0} samples/s with weights {version}; \
             {:.0} % of the time goes to {limit}",
            100.0 * shares.share(limit)
        )
    }
}

/// Counts what a worker does between two statuses.
pub(super) struct StatusMeter {
    name: String,
    number: u64,
    games: u64,
    samples: u64,
    since: Instant,
    /// Games and samples at `since`.
    before: (u64, u64),
    /// Seconds since then, in the order of [`Limit::ALL`]. The first two are only compared with each other, since a device's stages are
    /// counted once and those of the CPU by thread; the others are of the clock.
    seconds: [f64; 4],
}

impl StatusMeter {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_string(),
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
    pub(super) fn played(&mut self, clock: &PassMetrics) {
        self.seconds[Limit::Game as usize] += clock.select + clock.expand + clock.backup;
        self.seconds[Limit::Network as usize] += clock.forward;
    }

    /// Counts time in which all threads waited.
    pub(super) fn waited(&mut self, on: Limit, time: Duration) {
        self.seconds[on as usize] += time.as_secs_f64();
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
        self.number += 1;
        let status = WorkerStatus {
            name: self.name.clone(),
            number: self.number,
            version,
            games: self.games,
            samples: self.samples,
            games_per_second: (self.games - self.before.0) as f64 / seconds,
            samples_per_second: (self.samples - self.before.1) as f64 / seconds,
            shares: TimeShares::of(self.seconds, seconds),
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
        let mut meter = StatusMeter::new("one");
        assert_eq!(meter.due(3), None, "too early");
        meter.count(5, 70);
        meter.played(&PassMetrics { forward: 2.0, select: 0.5, backup: 0.5, ..PassMetrics::default() });
        meter.waited(Limit::Learner, INTERVAL);
        meter.since -= INTERVAL;
        let status = meter.due(3).expect("two seconds");
        assert_eq!(status.shares.largest(), Limit::Learner);
        assert!(status.to_string().ends_with(" % of the time goes to the learner"), "{status}");
        assert!(0.0 < status.games_per_second && status.games_per_second <= 2.5, "{status:?}");
        // Numbers that JSON has exactly.
        let shares = TimeShares { game: 0.25, network: 0.5, link: 0.0, learner: 0.25 };
        let sent = WorkerStatus { shares, games_per_second: 2.5, samples_per_second: 35.0, ..status };
        assert_eq!(WorkerStatus::read(&serde_json::to_vec(&sent).expect("in memory")), Some(sent));
        meter.count(1, 7);
        meter.since -= INTERVAL;
        let next = meter.due(4).expect("two seconds");
        assert_eq!((next.number, next.games, next.samples, next.shares), (2, 6, 77, TimeShares::default()));
        assert!(0.0 < next.games_per_second && next.games_per_second <= 0.5, "{next:?}");
        meter.waited(Limit::Link, Duration::from_secs(1));
        meter.since -= INTERVAL;
        let waiting = meter.due(4).expect("two seconds").shares;
        assert_eq!((waiting.link, waiting.largest()), (1.0, Limit::Link), "nothing else was done");
    }

    #[test]
    fn play_is_divided_as_its_stages_are_and_waiting_is_time_of_the_clock() {
        let shares = |seconds, all| {
            let TimeShares { game, network, link, learner } = TimeShares::of(seconds, all);
            [game, network, link, learner]
        };
        // Stages of four threads, in two seconds of which half was waited.
        assert_eq!(shares([1.0, 3.0, 0.0, 1.0], 2.0), [0.125, 0.375, 0.0, 0.5]);
        assert_eq!(shares([0.0, 0.0, 0.5, 0.5], 4.0), [0.0, 0.0, 0.5, 0.5], "nothing else was done");
        assert_eq!(shares([1.0, 0.0, 0.0, 3.0], 2.0), [0.0, 0.0, 0.0, 1.0], "clocks that do not agree");
        assert_eq!(shares([0.0; 4], 0.0), [0.0; 4]);
    }

    #[test]
    fn the_metrics_have_the_share_of_each_limit() {
        let shares = TimeShares { game: 0.25, network: 0.5, link: 0.0, learner: 0.25 };
        let mut meter = StatusMeter::new("one");
        meter.since -= INTERVAL;
        let status = WorkerStatus { shares, ..meter.due(1).expect("two seconds") };
        let text = format!("{:?}", status.metrics()).replace("\\n", "\n").replace('\\', "");
        for (limit, share) in [("game", "0.25"), ("network", "0.5"), ("link", "0"), ("learner", "0.25")] {
            let line = format!("\nvecaz_worker_limit_share{{limit=\"{limit}\"}} {share}\n");
            assert!(text.contains(&line), "{line}: {text}");
        }
    }

    #[test]
    fn foreign_statuses_are_bounded() {
        let text = r#"{"name":"a\u0007b","number":1,"version":2,"games":3,"samples":4,"games_per_second":1.5,
                       "samples_per_second":20.0,"shares":{"game":0.25,"network":0.5,"link":0.0,"learner":0.25}}"#;
        assert_eq!(WorkerStatus::read(text.as_bytes()).map(|status| status.name), Some("a?b".into()));
        for (from, to) in [("1.5", "-1"), ("20.0", "1e300"), ("0.5", "7"), ("link", "moon"), ("}", "")] {
            assert_eq!(WorkerStatus::read(text.replace(from, to).as_bytes()), None, "{to}");
        }
    }
}
