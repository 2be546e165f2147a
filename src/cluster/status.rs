//! A worker's status for display: its speed, and what takes most of its time. No result of a run depends on it.

use crate::pass::PassMetrics;
use crate::report::prometheus::{MetricKind, MetricsText};
use crate::words::count;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, Instant};

/// Time between two statuses.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);
/// Upper bound on the seconds until a worker's next status, whatever it says.
const MAX_SILENCE: f64 = 3600.0;
/// Time for a first poll, whose duration is not known. With it comes all that precedes it: weights, kernels and root cache.
const FIRST_POLL: Duration = Duration::from_secs(60);
/// Time for a poll, relative to the longest one before.
const POLL_MARGIN: f64 = 4.0;
/// Upper bound on the characters of a name.
const MAX_NAME_CHARS: usize = 32;

/// The activity that takes most of a worker's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// Games and trees: selection, expansion, backup.
    Games,
    /// The network's forward.
    Forward,
    /// Sending: chunks wait for the connection.
    Connection,
    /// Waiting for the learner: for weights, or for a checkpoint with the games sent.
    Learner,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Games => "games and trees",
            Self::Forward => "the network",
            Self::Connection => "the connection",
            Self::Learner => "the learner",
        })
    }
}

impl Bottleneck {
    const ALL: [Self; 4] = [Self::Games, Self::Forward, Self::Connection, Self::Learner];

    /// The value of the label `limit` in metrics.
    const fn label(self) -> &'static str {
        match self {
            Self::Games => "game",
            Self::Forward => "network",
            Self::Connection => "link",
            Self::Learner => "learner",
        }
    }
}

/// The share of a worker's time for each [`Bottleneck`]. They sum to 1, or are all 0 where the worker has done nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeShares {
    /// Share of [`Bottleneck::Games`].
    pub game: f64,
    /// Share of [`Bottleneck::Forward`].
    pub network: f64,
    /// Share of [`Bottleneck::Connection`].
    pub link: f64,
    /// Share of [`Bottleneck::Learner`].
    pub learner: f64,
}

impl TimeShares {
    /// The shares of `all` seconds. Waiting times count as measured; games and network divide the rest in their proportion.
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

    /// The share of one activity.
    pub fn share(&self, of: Bottleneck) -> f64 {
        match of {
            Bottleneck::Games => self.game,
            Bottleneck::Forward => self.network,
            Bottleneck::Connection => self.link,
            Bottleneck::Learner => self.learner,
        }
    }

    /// The activity with the largest share.
    pub fn largest(&self) -> Bottleneck {
        let shares = Bottleneck::ALL.into_iter();
        shares.max_by(|a, b| self.share(*a).total_cmp(&self.share(*b))).unwrap_or(Bottleneck::Learner)
    }
}

/// The status of a worker, over its last seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The worker's name.
    pub name: String,
    /// The status's number in its process: a worker whose number does not change has stopped.
    pub number: u64,
    /// The version of the weights that the worker plays with.
    pub version: u64,
    /// Games finished since the worker began.
    pub games: u64,
    /// Samples of these games.
    pub samples: u64,
    /// Games a second.
    pub games_per_second: f64,
    /// Samples a second.
    pub samples_per_second: f64,
    /// The shares of the worker's time.
    pub shares: TimeShares,
    /// Upper bound on the seconds until the next status, for workers that send none during a poll; 0 for others.
    #[serde(default)]
    pub max_silence: f64,
    /// True in the last status of a worker that ends.
    #[serde(default)]
    pub has_left: bool,
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
            "The version of the weights that the worker plays with.",
            version,
        );
        let shares = Bottleneck::ALL.map(|of| ("limit", of.label(), self.shares.share(of)));
        text.add_labelled(
            MetricKind::Gauge,
            "vecaz_worker_time_share",
            "The share of the worker's time in the last two seconds, by what limits it; the shares sum to 1.",
            &shares,
        );
        text
    }

    /// True if the worker waits for the learner or the server for more than half of its time. False in a first status.
    pub fn is_waiting(&self) -> bool {
        let TimeShares { game, network, link, learner } = self.shares;
        link + learner > game + network
    }

    /// Reads a status that a process has published; None for invalid bytes. Name and rates are bounded, since any client may write them.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let status: Self = serde_json::from_slice(bytes).ok()?;
        let is_rate = |rate: f64| (0.0..1e15).contains(&rate);
        let bounded = is_rate(status.games_per_second)
            && is_rate(status.samples_per_second)
            && Bottleneck::ALL.iter().all(|of| (0.0..=1.0).contains(&status.shares.share(*of)));
        let name = status.name.chars().take(MAX_NAME_CHARS);
        let name = name.map(|c| if c.is_control() { '?' } else { c }).collect();
        let max_silence = status.max_silence.clamp(0.0, MAX_SILENCE);
        bounded.then_some(Self { name, max_silence, ..status })
    }
}

impl fmt::Display for WorkerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, games, games_per_second, samples_per_second, shares, .. } = self;
        let bottleneck = shares.largest();
        write!(
            f,
            "{}, {games_per_second:.1} games/s, {samples_per_second:.0} samples/s with weights {version}; \
             {:.0} % of the time goes to {bottleneck}",
            count(games, "game"),
            100.0 * shares.share(bottleneck)
        )
    }
}

/// When the statuses of a worker are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusTimes {
    /// At any time, by a thread that sends the last one again during a poll.
    Any,
    /// Between two polls.
    BetweenPolls,
}

/// Measures a worker's games and times between two statuses.
pub(super) struct StatusMeter {
    name: String,
    times: StatusTimes,
    number: u64,
    games: u64,
    samples: u64,
    since: Instant,
    /// Games and samples at `since`.
    before: (u64, u64),
    /// Seconds since `since`, in the order of [`Bottleneck::ALL`]. The first two are only compared with each other, since a device's
    /// stages are counted once and those of the CPU by thread; the other two are wall-clock times.
    seconds: [f64; 4],
    /// Time of the last call of [`StatusMeter::due`].
    turned_at: Instant,
    /// The longest time between two such calls: of a poll, or of what precedes an epoch's first one.
    longest_turn: Duration,
    /// True after the first poll.
    has_played: bool,
}

impl StatusMeter {
    pub(super) fn new(name: &str, times: StatusTimes) -> Self {
        Self {
            name: name.to_string(),
            times,
            number: 0,
            games: 0,
            samples: 0,
            since: Instant::now(),
            before: (0, 0),
            seconds: [0.0; 4],
            turned_at: Instant::now(),
            longest_turn: Duration::ZERO,
            has_played: false,
        }
    }

    /// Counts finished games.
    pub(super) fn count(&mut self, games: usize, samples: usize) {
        self.games += games as u64;
        self.samples += samples as u64;
    }

    /// Counts the time of passes.
    pub(super) fn played(&mut self, metrics: &PassMetrics) {
        self.seconds[Bottleneck::Games as usize] += metrics.select + metrics.expand + metrics.backup;
        self.seconds[Bottleneck::Forward as usize] += metrics.forward;
        self.has_played = true;
    }

    /// Counts time in which all threads waited.
    pub(super) fn waited(&mut self, on: Bottleneck, time: Duration) {
        self.seconds[on as usize] += time.as_secs_f64();
    }

    /// Games and samples since the beginning.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.games, self.samples)
    }

    /// The status of the last seconds, if it is time for one. The first is due at once, so that the learner knows of a worker that is
    /// killed before it plays. Called before every poll.
    pub(super) fn due(&mut self, version: u64) -> Option<WorkerStatus> {
        self.longest_turn = self.longest_turn.max(self.turned_at.elapsed());
        self.turned_at = Instant::now();
        (self.number == 0 || self.since.elapsed() >= INTERVAL).then(|| self.now(version))
    }

    /// The last status of a worker that ends.
    pub(super) fn last(&mut self, version: u64) -> WorkerStatus {
        WorkerStatus { has_left: true, ..self.now(version) }
    }

    /// Upper bound on the seconds until the next status.
    fn max_silence(&self) -> f64 {
        match self.times {
            StatusTimes::Any => 0.0,
            StatusTimes::BetweenPolls if self.has_played => POLL_MARGIN * self.longest_turn.as_secs_f64(),
            StatusTimes::BetweenPolls => FIRST_POLL.as_secs_f64(),
        }
    }

    fn now(&mut self, version: u64) -> WorkerStatus {
        let seconds = self.since.elapsed().as_secs_f64().max(1e-3);
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
            max_silence: self.max_silence(),
            has_left: false,
        };
        (self.since, self.before, self.seconds) = (Instant::now(), (self.games, self.samples), [0.0; 4]);
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_the_activity_with_the_largest_share() {
        let mut meter = StatusMeter::new("one", StatusTimes::Any);
        let first = meter.due(2).expect("at once");
        assert_eq!((first.number, first.games, first.games_per_second), (1, 0, 0.0));
        assert_eq!(meter.due(3), None, "too early");
        meter.count(5, 70);
        meter.played(&PassMetrics { forward: 2.0, select: 0.5, backup: 0.5, ..PassMetrics::default() });
        meter.waited(Bottleneck::Learner, INTERVAL);
        meter.since -= INTERVAL;
        let status = meter.due(3).expect("two seconds");
        assert_eq!(status.shares.largest(), Bottleneck::Learner);
        assert!(status.to_string().ends_with(" % of the time goes to the learner"), "{status}");
        assert!(0.0 < status.games_per_second && status.games_per_second <= 2.5, "{status:?}");
        // Numbers that JSON has exactly.
        let shares = TimeShares { game: 0.25, network: 0.5, link: 0.0, learner: 0.25 };
        let sent = WorkerStatus { shares, games_per_second: 2.5, samples_per_second: 35.0, ..status };
        assert_eq!(WorkerStatus::read(&serde_json::to_vec(&sent).expect("in memory")), Some(sent));
        meter.count(1, 7);
        meter.since -= INTERVAL;
        let next = meter.due(4).expect("two seconds");
        assert_eq!((next.number, next.games, next.samples, next.shares), (3, 6, 77, TimeShares::default()));
        assert!(0.0 < next.games_per_second && next.games_per_second <= 0.5, "{next:?}");
        meter.waited(Bottleneck::Connection, Duration::from_secs(1));
        meter.since -= INTERVAL;
        let waiting = meter.due(4).expect("two seconds").shares;
        assert_eq!((waiting.link, waiting.largest()), (1.0, Bottleneck::Connection), "nothing else was done");
    }

    #[test]
    fn play_is_divided_in_the_proportion_of_its_stages_and_waiting_is_wall_clock_time() {
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
    fn a_worker_that_sends_between_polls_says_how_long_the_next_one_may_take() {
        let mut meter = StatusMeter::new("one", StatusTimes::BetweenPolls);
        assert_eq!(meter.due(1).expect("at once").max_silence, FIRST_POLL.as_secs_f64());
        meter.played(&PassMetrics::default());
        meter.turned_at -= Duration::from_secs(30);
        meter.since -= INTERVAL;
        let status = meter.due(1).expect("two seconds");
        assert!((120.0..124.0).contains(&status.max_silence), "{status:?}");
        meter.since -= INTERVAL;
        assert!(meter.due(1).expect("two seconds").max_silence >= 120.0, "the longest poll counts");
    }

    #[test]
    fn the_metrics_have_the_share_of_each_activity() {
        let shares = TimeShares { game: 0.25, network: 0.5, link: 0.0, learner: 0.25 };
        let mut meter = StatusMeter::new("one", StatusTimes::Any);
        meter.since -= INTERVAL;
        let status = WorkerStatus { shares, ..meter.due(1).expect("two seconds") };
        let text = format!("{:?}", status.metrics()).replace("\\n", "\n").replace('\\', "");
        for (limit, share) in [("game", "0.25"), ("network", "0.5"), ("link", "0"), ("learner", "0.25")] {
            let line = format!("\nvecaz_worker_time_share{{limit=\"{limit}\"}} {share}\n");
            assert!(text.contains(&line), "{line}: {text}");
        }
    }

    #[test]
    fn foreign_statuses_are_bounded() {
        let text = r#"{"name":"a\u0007b","number":1,"version":2,"games":3,"samples":4,"games_per_second":1.5,
                       "samples_per_second":20.0,"shares":{"game":0.25,"network":0.5,"link":0.0,"learner":0.25}}"#;
        assert_eq!(WorkerStatus::read(text.as_bytes()).map(|status| status.name), Some("a?b".into()));
        for (given, bounded) in [("-1", 0.0), ("80.5", 80.5), ("1e300", MAX_SILENCE)] {
            let text = text.replace("\"number\"", &format!("\"max_silence\":{given},\"number\""));
            assert_eq!(WorkerStatus::read(text.as_bytes()).map(|status| status.max_silence), Some(bounded));
        }
        for (from, to) in [("1.5", "-1"), ("20.0", "1e300"), ("0.5", "7"), ("link", "moon"), ("}", "")] {
            assert_eq!(WorkerStatus::read(text.replace(from, to).as_bytes()), None, "{to}");
        }
    }
}
