//! Metrics in the text format of Prometheus, version 0.0.4.

use super::metrics::EpochRecord;
use super::workers::WorkerCounts;
use std::fmt::Write;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that only grows, from 0 at the start of the process or the run.
    Counter,
    /// A value that rises and falls.
    Gauge,
}

/// Metrics in the text format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsText(pub(super) String);

impl MetricsText {
    /// Adds a metric with one value.
    pub fn add(&mut self, kind: MetricKind, name: &str, help: &str, value: f64) {
        self.add_labelled(kind, name, help, &[("", "", value)]);
    }

    /// Adds a metric with labelled `values`: the label's name, the label's value, and the value.
    pub fn add_labelled(&mut self, kind: MetricKind, name: &str, help: &str, values: &[(&str, &str, f64)]) {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (label, of, value) in values {
            let escaped = of.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = match *label {
                "" => writeln!(self.0, "{name} {value}"),
                label => writeln!(self.0, "{name}{{{label}=\"{escaped}\"}} {value}"),
            };
        }
    }

    /// The metrics of a run: sums over all epochs, and gauges of the last one.
    pub fn of_run(records: &[EpochRecord]) -> Self {
        let mut text = Self::default();
        let Some(last) = records.last() else { return text };
        text.add_totals(records, last);
        text.add_last_epoch(last);
        if let Some(workers) = &last.workers {
            let counts: Vec<&WorkerCounts> =
                records.iter().filter_map(|record| record.workers.as_ref()).collect();
            text.add_worker_chunks(&counts);
            text.add_worker_gauges(last, workers);
        }
        text
    }

    /// Sums over all epochs.
    fn add_totals(&mut self, records: &[EpochRecord], last: &EpochRecord) {
        let total = |count: fn(&EpochRecord) -> u64| records.iter().map(count).sum::<u64>() as f64;
        for (name, help, value) in [
            ("vecaz_epochs_total", "Finished epochs.", last.epoch as f64),
            ("vecaz_seconds_total", "Working seconds of the run.", last.seconds),
            ("vecaz_games_total", "Games finished.", total(|record| record.games)),
            (
                "vecaz_positions_total",
                "Plies of these games, random openings and dealt outcomes among them.",
                total(|record| record.positions),
            ),
            ("vecaz_samples_total", "Samples of these games.", total(|record| record.samples)),
            (
                "vecaz_simulations_total",
                "Simulations of the process's own play.",
                total(|record| record.simulations),
            ),
            ("vecaz_updates_total", "Optimiser steps.", last.updates as f64),
        ] {
            self.add(MetricKind::Counter, name, help, value);
        }
    }

    /// Times, replay buffer, losses and strength of the last epoch.
    fn add_last_epoch(&mut self, last: &EpochRecord) {
        for (name, help, value) in [
            ("vecaz_selfplay_seconds", "Seconds of self-play in the last epoch.", last.selfplay_seconds),
            ("vecaz_training_seconds", "Seconds of updates in the last epoch.", last.train_seconds),
            ("vecaz_replay_fill", "The share of the replay buffer that is filled.", last.replay_fill),
        ] {
            self.add(MetricKind::Gauge, name, help, value);
        }
        if let Some(losses) = &last.losses {
            let heads = losses.heads.iter().map(|(name, &loss)| ("loss", name.as_str(), loss));
            let policy = losses.of_policy().map(|[entropy, _]| ("loss", "policy", entropy));
            let value = std::iter::once(("loss", "value", losses.value));
            let losses: Vec<_> = policy.into_iter().chain(value).chain(heads).collect();
            self.add_labelled(MetricKind::Gauge, "vecaz_loss", "Mean losses of the last epoch.", &losses);
        }
        if let Some(error) = last.strength.and_then(|strength| strength.search_outcome_error) {
            let help = "The share of solved positions that search loses.";
            self.add(MetricKind::Gauge, "vecaz_search_outcome_error", help, error);
        }
        if let Some(score) = last.strength.and_then(|strength| strength.match_score) {
            self.add(MetricKind::Gauge, "vecaz_match_score", "The score of the last match.", score);
        }
    }

    /// Sums over the `counts` of all epochs with workers.
    fn add_worker_chunks(&mut self, counts: &[&WorkerCounts]) {
        let total =
            |count: fn(&WorkerCounts) -> u64| counts.iter().map(|counts| count(counts)).sum::<u64>() as f64;
        let chunks = [
            ("result", "taken", total(|workers| workers.chunks)),
            ("result", "stale", total(|workers| workers.stale)),
            ("result", "repeated", total(|workers| workers.repeated)),
            ("result", "gap", total(|workers| workers.gaps)),
            ("result", "refused", total(|workers| workers.refused)),
        ];
        let help = "Chunks that were read, by the result of reading.";
        self.add_labelled(MetricKind::Counter, "vecaz_worker_chunks_total", help, &chunks);
        for (name, help, value) in [
            ("vecaz_worker_bytes_total", "Bytes of chunks that were read.", total(|workers| workers.bytes)),
            (
                "vecaz_published_bytes_total",
                "Bytes that were published for workers.",
                total(|workers| workers.bytes_out),
            ),
            (
                "vecaz_evaluated_tasks_total",
                "Tasks of evaluations that workers measured.",
                total(|workers| workers.evaluated),
            ),
        ] {
            self.add(MetricKind::Counter, name, help, value);
        }
    }

    /// The learner's waiting time, and the workers and their queue in the last epoch.
    fn add_worker_gauges(&mut self, last: &EpochRecord, workers: &WorkerCounts) {
        let waiting = last.selfplay_seconds - last.overlapped_seconds;
        let all = waiting + last.train_seconds;
        let wait_share = if all > 0.0 { (waiting / all).clamp(0.0, 1.0) } else { 0.0 };
        for (name, help, value) in [
            (
                "vecaz_learner_wait_share",
                "The share without training of the last epoch's time, evaluation excluded. A learner that does not play waits for games then.",
                wait_share,
            ),
            ("vecaz_workers", "Workers whose chunks were taken in the last epoch.", workers.active as f64),
            (
                "vecaz_queue_seconds",
                "Mean seconds that a chunk of the last epoch waited.",
                workers.queue_seconds,
            ),
            ("vecaz_queue_bytes", "Mean bytes that waited in the last epoch.", workers.queue_bytes),
            (
                "vecaz_weights_staleness_versions",
                "Mean number of versions between the weights of a chunk of the last epoch and the newest.",
                workers.lag,
            ),
        ] {
            self.add(MetricKind::Gauge, name, help, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learner_waits_while_it_neither_trains_nor_evaluates() {
        for (selfplay, train, overlapped, share) in
            [(3.0, 1.0, 0.0, "0.75"), (4.0, 3.0, 3.0, "0.25"), (0.0, 0.0, 0.0, "0")]
        {
            let record = EpochRecord {
                selfplay_seconds: selfplay,
                train_seconds: train,
                overlapped_seconds: overlapped,
                eval_seconds: 9.0,
                workers: Some(Default::default()),
                ..EpochRecord::default()
            };
            let MetricsText(text) = MetricsText::of_run(&[record]);
            assert!(text.contains(&format!("\nvecaz_learner_wait_share {share}\n")), "{share}: {text}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        let mut text = MetricsText::default();
        text.add_labelled(MetricKind::Gauge, "vecaz_x", "What.", &[("name", "a\"b\\c\nd", 0.25)]);
        assert_eq!(
            text.0,
            "# HELP vecaz_x What.\n# TYPE vecaz_x gauge\nvecaz_x{name=\"a\\\"b\\\\c\\nd\"} 0.25\n"
        );
    }
}
