//! The counts of workers in an epoch, as the learner of a run records them, and their table in the report.

use super::compact::compact;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Counts of the chunks that workers sent in an epoch. A chunk holds games of one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerCounts {
    /// Workers whose chunks were taken.
    pub active: u64,
    /// Chunks taken.
    pub chunks: u64,
    /// Games taken; the epoch's games include them.
    pub games: u64,
    /// Samples taken.
    pub samples: u64,
    /// Bytes of all chunks that were read.
    pub bytes: u64,
    /// Bytes that were published for workers: weights, and in strict order the game slots at the start of an epoch.
    pub bytes_out: u64,
    /// Mean seconds from a chunk's arrival at the server until it was taken.
    pub queue_seconds: f64,
    /// Mean bytes of chunks that waited to be taken, over the epoch.
    pub queue_bytes: f64,
    /// Staleness: mean number of versions between the weights of a taken chunk and the newest.
    pub lag: f64,
    /// Chunks refused for weights older than `cluster.max_lag` allows.
    pub stale: u64,
    /// Chunks that arrived again after they were taken.
    pub repeated: u64,
    /// Chunks refused because an earlier one of their worker is missing. The worker sends both again.
    pub gaps: u64,
    /// Chunks refused as damaged, for another configuration, or with games that break the rules.
    pub refused: u64,
    /// Tasks of the evaluation that workers have measured.
    pub evaluated: u64,
    /// The workers of `active`, those with the most games first.
    pub each: Vec<WorkerShare>,
}

/// Counts of the chunks that one worker's process sent in an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerShare {
    /// The worker's name.
    pub name: String,
    /// Chunks taken.
    pub chunks: u64,
    /// Games in them.
    pub games: u64,
    /// Games per second of the epoch.
    pub games_per_second: f64,
    /// [`WorkerCounts::lag`] of its chunks.
    pub lag: f64,
}

impl WorkerCounts {
    /// The workers of the epoch as a table in HTML, after a summary in words.
    pub(super) fn html(&self, escape: fn(&str) -> String) -> String {
        let mut html = format!(
            "<h2>Workers in the last epoch</h2>\n<p>{} chunks with {} games and {} bytes taken; they waited {:.2} s on average, {} bytes of them \
             at a time, and were played with weights {:.2} versions old. {} chunks were too old, {} were repeated, {} arrived before an earlier one, {} were refused. \
             {} bytes were published. Workers measured {} tasks of the evaluation.</p>\n<div class=\"wide\"><table class=\"epochs\">\n\
             <tr><th>worker<th>chunks<th>games<th>games/s<th>staleness</tr>\n",
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
