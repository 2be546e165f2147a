//! What the learner of a run with workers knows of them after an epoch, and its table in the report.

use super::chart::compact;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What workers on other machines sent in an epoch. A chunk holds some games of one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerCounts {
    /// Workers whose chunks were taken.
    pub active: u64,
    /// Chunks taken.
    pub chunks: u64,
    /// Games taken, which are among those of the epoch.
    pub games: u64,
    /// Samples taken.
    pub samples: u64,
    /// Bytes of all chunks that were read.
    pub bytes: u64,
    /// Bytes that were published for workers: weights, and in strict order the slots that an epoch begins with.
    pub bytes_out: u64,
    /// Mean seconds of a chunk from its arrival at the server until it was taken.
    pub queue_seconds: f64,
    /// Bytes of chunks that waited so, as a mean over the epoch.
    pub queue_bytes: f64,
    /// Mean number of versions by which the weights of a taken chunk were behind the newest.
    pub lag: f64,
    /// Chunks refused for weights older than `cluster.max_lag` allows.
    pub stale: u64,
    /// Chunks that came again after they were taken.
    pub repeated: u64,
    /// Chunks refused because an earlier one of their worker is missing. The worker sends both again.
    pub gaps: u64,
    /// Chunks refused as damaged, of another configuration, or with games that the rules do not give.
    pub refused: u64,
    /// Parts of the evaluation that workers have measured.
    pub evaluated: u64,
    /// The workers of `active`, those with the most games first.
    pub each: Vec<WorkerShare>,
}

/// What one worker's process sent in an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerShare {
    /// The worker's name.
    pub name: String,
    /// Chunks taken.
    pub chunks: u64,
    /// Games in them.
    pub games: u64,
    /// Games a second of the epoch.
    pub games_per_second: f64,
    /// [`WorkerCounts::lag`] of its chunks.
    pub lag: f64,
}

impl WorkerCounts {
    /// The workers of the epoch as a table in HTML, after a sentence about what they sent.
    pub(super) fn html(&self, escape: fn(&str) -> String) -> String {
        let mut html = format!(
            "<h2>Workers in the last epoch</h2>\n<p>{} chunks with {} games and {} bytes taken; they waited {:.2} s on average, {} bytes of them \
             at a time, and were played with weights {:.2} versions old. {} chunks were too old, {} came again, {} came before an earlier one, {} were refused. \
             {} bytes were published. Workers measured {} parts of the evaluation.</p>\n<div class=\"wide\"><table class=\"epochs\">\n\
             <tr><th>worker<th>chunks<th>games<th>games/s<th>lag</tr>\n",
            self.chunks,
            self.games,
            compact(self.bytes as f64),
            self.queue_seconds,
            compact(self.queue_bytes),
            self.lag,
            self.stale,
            self.repeated,
            self.gaps,
            self.refused,
            compact(self.bytes_out as f64),
            self.evaluated
        );
        for WorkerShare { name, chunks, games, games_per_second, lag } in &self.each {
            let (name, rate) = (escape(name), compact(*games_per_second));
            let _ = writeln!(html, "<tr><td>{name}<td>{chunks}<td>{games}<td>{rate}<td>{lag:.2}</tr>");
        }
        html + "</table></div>\n"
    }
}
