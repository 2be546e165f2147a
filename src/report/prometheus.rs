//! Metrics in the text format of Prometheus, version 0.0.4, and the HTTP server that answers with them.

use super::metrics::EpochRecord;
use crate::error::{Error, Result};
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tiny_http::{Header, Response, Server};

/// The format's media type.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows, and begins at 0 with the process or the run.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Metrics as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsText(String);

impl MetricsText {
    /// Adds a metric, with one value.
    pub fn add(&mut self, kind: MetricKind, name: &str, help: &str, value: f64) {
        self.add_labelled(kind, name, help, &[("", "", value)]);
    }

    /// Adds a metric with a value for each label: its name, what it says, and the value.
    pub fn add_labelled(&mut self, kind: MetricKind, name: &str, help: &str, values: &[(&str, &str, f64)]) {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (label, says, value) in values {
            let escaped = says.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = match *label {
                "" => writeln!(self.0, "{name} {value}"),
                label => writeln!(self.0, "{name}{{{label}=\"{escaped}\"}} {value}"),
            };
        }
    }

    /// The metrics of a run: of its last epoch, and sums over all of them.
    pub fn of_run(records: &[EpochRecord]) -> Self {
        use MetricKind::{Counter, Gauge};
        let mut text = Self::default();
        let total = |count: fn(&EpochRecord) -> u64| records.iter().map(count).sum::<u64>() as f64;
        let Some(last) = records.last() else { return text };
        text.add(Counter, "vecaz_epochs_total", "Finished epochs.", last.epoch as f64);
        text.add(Counter, "vecaz_seconds_total", "Working seconds of the run.", last.seconds);
        text.add(Counter, "vecaz_games_total", "Games finished.", total(|record| record.games));
        text.add(Counter, "vecaz_positions_total", "Plies of these games.", total(|record| record.positions));
        text.add(Counter, "vecaz_samples_total", "Samples of these games.", total(|record| record.samples));
        text.add(
            Counter,
            "vecaz_simulations_total",
            "Simulations of the process's own play.",
            total(|record| record.simulations),
        );
        text.add(Counter, "vecaz_updates_total", "Optimiser steps.", last.updates as f64);
        text.add(
            Gauge,
            "vecaz_selfplay_seconds",
            "Seconds of self-play in the last epoch.",
            last.selfplay_seconds,
        );
        text.add(
            Gauge,
            "vecaz_training_seconds",
            "Seconds of updates in the last epoch.",
            last.train_seconds,
        );
        text.add(
            Gauge,
            "vecaz_replay_fill",
            "The share of the replay buffer that is filled.",
            last.replay_fill,
        );
        if let Some(losses) = &last.losses {
            let losses = [("loss", "policy", losses.policy), ("loss", "value", losses.value)];
            text.add_labelled(Gauge, "vecaz_loss", "Mean losses of the last epoch.", &losses);
        }
        if let Some(error) = last.strength.and_then(|strength| strength.search_outcome_error) {
            text.add(
                Gauge,
                "vecaz_search_outcome_error",
                "The share of solved positions that search loses.",
                error,
            );
        }
        if let Some(score) = last.strength.and_then(|strength| strength.match_score) {
            text.add(Gauge, "vecaz_match_score", "The score of the last match.", score);
        }
        if let Some(workers) = &last.workers {
            let of = |count: fn(&super::workers::WorkerCounts) -> u64| {
                records.iter().filter_map(|record| record.workers.as_ref()).map(count).sum::<u64>() as f64
            };
            let waiting = last.selfplay_seconds - last.overlapped_seconds;
            let all = waiting + last.train_seconds;
            text.add(
                Gauge,
                "vecaz_learner_wait_share",
                "The share of the last epoch, but for its evaluation, without training. A learner that does not play waits for games then.",
                if all > 0.0 { (waiting / all).clamp(0.0, 1.0) } else { 0.0 },
            );
            let active = workers.active as f64;
            text.add(Gauge, "vecaz_workers", "Workers whose chunks were taken in the last epoch.", active);
            let chunks = [
                ("fate", "taken", of(|workers| workers.chunks)),
                ("fate", "stale", of(|workers| workers.stale)),
                ("fate", "repeated", of(|workers| workers.repeated)),
                ("fate", "gap", of(|workers| workers.gaps)),
                ("fate", "refused", of(|workers| workers.refused)),
            ];
            text.add_labelled(Counter, "vecaz_worker_chunks_total", "Chunks by their fate.", &chunks);
            let bytes = of(|workers| workers.bytes);
            text.add(Counter, "vecaz_worker_bytes_total", "Bytes of chunks that were read.", bytes);
            let out = of(|workers| workers.bytes_out);
            text.add(Counter, "vecaz_published_bytes_total", "Bytes that were published for workers.", out);
            let parts = of(|workers| workers.evaluated);
            text.add(
                Counter,
                "vecaz_evaluated_parts_total",
                "Parts of evaluations that workers measured.",
                parts,
            );
            for (name, help, value) in [
                (
                    "vecaz_queue_seconds",
                    "Seconds that a chunk of the last epoch waited.",
                    workers.queue_seconds,
                ),
                (
                    "vecaz_queue_bytes",
                    "Bytes that waited in the last epoch, on average.",
                    workers.queue_bytes,
                ),
                ("vecaz_worker_lag", "Versions that the weights of its chunks were old.", workers.lag),
            ] {
                text.add(Gauge, name, help, value);
            }
        }
        text
    }
}

/// An HTTP server that answers every request with the newest metrics, until it is dropped.
pub struct Exporter {
    text: Arc<Mutex<String>>,
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Listens at `address`: a port, on the loopback alone, or an address with a port.
    ///
    /// # Errors
    /// [`Error::Config`] for another text, [`Error::Unsupported`] where it cannot listen there.
    pub fn serve(address: &str) -> Result<Self> {
        let at = address.parse::<SocketAddr>();
        let at =
            at.or_else(|_| address.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        let at = at.map_err(|_| {
            Error::config("--metrics", address, "a port, or an address with one such as 0.0.0.0:9464")
        })?;
        let server =
            Server::http(at).map_err(|e| Error::unsupported(format!("metrics at {at}"), e.to_string()))?;
        let (server, text) = (Arc::new(server), Arc::<Mutex<String>>::default());
        let (answering, newest) = (server.clone(), text.clone());
        let thread = thread::Builder::new().name("metrics".into()).spawn(move || {
            for request in answering.incoming_requests() {
                let text = newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let header = Header::from_bytes("Content-Type", MEDIA_TYPE);
                let response = header.into_iter().fold(Response::from_string(text), Response::with_header);
                // A client that has gone away misses its answer.
                let _ = request.respond(response);
            }
        });
        let thread = thread.map_err(|e| Error::unsupported("a thread for metrics", e.to_string()))?;
        Ok(Self { text, server, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        self.server.server_addr().to_string()
    }

    /// The metrics from now on.
    pub fn set(&self, text: MetricsText) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text.0;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write as _};
    use std::net::TcpStream;

    #[test]
    fn requests_are_answered_with_the_newest_metrics() {
        let exporter = Exporter::serve("127.0.0.1:0").expect("a free port");
        let records = [(1, 20), (2, 30)].map(|(epoch, games)| EpochRecord {
            epoch,
            games,
            seconds: 1.5,
            ..EpochRecord::default()
        });
        exporter.set(MetricsText::of_run(&records));
        let mut stream = TcpStream::connect(exporter.address()).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        for part in [
            "Content-Type: text/plain; version=0.0.4",
            "# HELP vecaz_games_total Games finished.\n# TYPE vecaz_games_total counter\nvecaz_games_total 50\n",
            "# TYPE vecaz_selfplay_seconds gauge\nvecaz_selfplay_seconds 0\n",
            "vecaz_seconds_total 1.5\n",
        ] {
            assert!(answer.contains(part), "{part}: {answer}");
        }
        drop(exporter);
    }

    #[test]
    fn a_learner_waits_where_it_neither_trains_nor_evaluates() {
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

    #[test]
    fn a_wrong_address_is_refused() {
        for address in ["x", "1.2.3.4", "99999", ""] {
            let error = Exporter::serve(address).map(drop).expect_err(address).to_string();
            assert!(error.contains("--metrics") && error.contains("0.0.0.0:9464"), "{error}");
        }
    }
}
