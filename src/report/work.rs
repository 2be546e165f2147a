//! Progress and ETA of a work item and of its run.

use indicatif::HumanDuration;
use std::time::{Duration, Instant};

/// The epoch of a run in progress, and when the run will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEta {
    /// The epoch, from 1.
    pub epoch: u64,
    /// Epochs of the whole run; 0 for no limit.
    pub epochs: u64,
    /// The time limit or the end estimated from the epochs so far, whichever is earlier; None if neither is known.
    pub end: Option<Instant>,
}

impl RunEta {
    /// The time left for the run, such as "12m".
    pub(super) fn left(&self, now: Instant) -> Option<String> {
        self.end.map(|end| short(end.saturating_duration_since(now)))
    }
}

/// A work item in progress.
#[derive(Clone, Debug)]
pub(super) struct WorkItem {
    /// Its name; empty without work in progress.
    pub name: &'static str,
    /// Units in total.
    pub total: u64,
    /// The name of the units.
    pub unit: &'static str,
    /// Units done.
    pub done: u64,
    /// Estimated elapsed fraction of the time; None if it is done / total.
    pub fraction: Option<f64>,
    /// A result so far, such as "score 0.620".
    pub detail: String,
    /// Its start.
    pub started: Instant,
    /// The run of the work item.
    pub run: Option<RunEta>,
}

impl WorkItem {
    /// A work item of `total` units that starts now.
    pub fn new(name: &'static str, total: u64, unit: &'static str, run: Option<RunEta>) -> Self {
        let started = Instant::now();
        Self { name, total, unit, done: 0, fraction: None, detail: String::new(), started, run }
    }

    /// The progress, such as "self-play: 340 of 20000 samples"; None without work in progress.
    pub fn reached(&self) -> Option<String> {
        let Self { name, total, unit, done, .. } = self;
        match total {
            0 => None,
            1 => Some(name.to_string()),
            _ => Some(format!("{name}: {done} of {total} {unit}")),
        }
    }

    /// The result so far and the ETA of the work item and of the run, as text that follows the progress: ", 40s left; epoch 3 of 20, run
    /// 12m left".
    pub fn eta(&self, now: Instant) -> String {
        let mut text = String::new();
        if !self.detail.is_empty() {
            text += &format!(", {}", self.detail);
        }
        if let Some(left) = self.left(now) {
            text += &format!(", {} left", short(left));
        }
        let Some(run) = self.run else { return text };
        text += &format!("; epoch {}", run.epoch);
        if run.epochs > 0 {
            text += &format!(" of {}", run.epochs);
        }
        text + &run.left(now).map(|left| format!(", run {left} left")).unwrap_or_default()
    }

    /// Progress and ETA on one line; None without work in progress.
    pub fn line(&self, now: Instant) -> Option<String> {
        self.reached().map(|reached| reached + &self.eta(now))
    }

    /// The estimated time left at the average speed so far; None before the first unit and after the last.
    fn left(&self, now: Instant) -> Option<Duration> {
        let fraction = self.fraction.unwrap_or(self.done as f64 / self.total.max(1) as f64);
        if !(fraction > 0.0 && fraction < 1.0) {
            return None;
        }
        let elapsed = now.saturating_duration_since(self.started).as_secs_f64();
        Duration::try_from_secs_f64(elapsed * (1.0 - fraction) / fraction).ok()
    }
}

/// A duration in one unit: "40s", "12m", "3h".
fn short(time: Duration) -> String {
    format!("{:#}", HumanDuration(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_fraction_done() {
        let mut work = WorkItem::new("self-play", 200, "samples", None);
        let now = work.started + Duration::from_secs(30);
        assert_eq!(work.line(now).as_deref(), Some("self-play: 0 of 200 samples"));
        work.done = 50;
        assert_eq!(work.line(now).as_deref(), Some("self-play: 50 of 200 samples, 2m left"));
        (work.fraction, work.detail) = (Some(0.75), "score 0.620".into());
        assert_eq!(work.line(now).as_deref(), Some("self-play: 50 of 200 samples, score 0.620, 10s left"));
        (work.done, work.fraction) = (200, None);
        assert_eq!(work.line(now).as_deref(), Some("self-play: 200 of 200 samples, score 0.620"));
    }

    #[test]
    fn a_line_of_a_run_ends_with_the_time_left_for_the_run() {
        let start = Instant::now();
        let eta = |epochs, seconds: Option<u64>| {
            let end = seconds.map(|seconds| start + Duration::from_secs(seconds));
            let run = Some(RunEta { epoch: 3, epochs, end });
            WorkItem::new("root cache", 1, "build", run).line(start).expect("work")
        };
        assert_eq!(eta(20, Some(720)), "root cache; epoch 3 of 20, run 12m left");
        assert_eq!(eta(0, Some(0)), "root cache; epoch 3, run 0s left");
        assert_eq!(eta(0, None), "root cache; epoch 3");
        assert_eq!(WorkItem::new("", 0, "", None).line(start), None);
    }
}
