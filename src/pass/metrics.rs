//! Seconds and counts of passes.

use crate::backend::device_selfplay::Copied;
use crate::search::PassStats;
use std::time::Instant;

/// Seconds of each stage of some passes, and the passes' counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassMetrics {
    /// Seconds of selection, new states and observations.
    pub select: f64,
    /// Seconds of the network's forward.
    pub forward: f64,
    /// Seconds of expansion.
    pub expand: f64,
    /// Seconds of backup.
    pub backup: f64,
    /// Seconds in which a device had passes to make, mean of several devices; 0 on the CPU.
    pub device: f64,
    /// Passes.
    pub passes: u64,
    /// Finished new simulations in all rows.
    pub simulations: u64,
    /// Positions that the network evaluated.
    pub evaluations: u64,
    /// Leaves whose evaluation came from the evaluation cache or from another leaf of the same pass.
    pub cached: u64,
    /// Sum over passes of the rows that they visited.
    pub visited_rows: u64,
    /// Sum over passes of the visited rows that had no simulations left.
    pub idle_rows: u64,
    /// Plies decided by a search.
    pub plies: u64,
    /// Sum over simulations of the leaf's depth.
    pub depth_sum: u64,
    /// Depth of the deepest leaf.
    pub depth_max: u64,
    /// Games that began with a tree of the root cache, or stood at the root of one when it was built.
    pub cached_starts: u64,
    /// Visits that these games inherited, as far as they count against a budget.
    pub inherited_visits: u64,
    /// Bytes copied between host and device, both ways.
    pub copied: Copied,
}

impl PassMetrics {
    /// The share of leaves that need an evaluation and got it without the network; None before the first of them.
    pub fn cache_hit_rate(&self) -> Option<f64> {
        let needed = self.evaluations + self.cached;
        (needed > 0).then(|| self.cached as f64 / needed as f64)
    }

    /// Counts `passes` passes that together produced `stats`.
    pub(crate) fn count(&mut self, stats: &PassStats, passes: u32) {
        self.passes += u64::from(passes);
        self.evaluations += stats.evaluations as u64;
        self.cached += stats.cached as u64;
        self.visited_rows += stats.visited as u64;
        self.idle_rows += (stats.visited - stats.rows) as u64;
        self.simulations += stats.simulations as u64;
        self.depth_sum += stats.depth_sum;
        self.depth_max = self.depth_max.max(stats.depth_max);
    }

    /// Counts a game that began, with the visits that it inherited from the root cache, if any.
    pub(crate) fn count_start(&mut self, inherited: Option<u32>) {
        self.cached_starts += u64::from(inherited.is_some());
        self.inherited_visits += u64::from(inherited.unwrap_or(0));
    }

    /// Adds the seconds and counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.select += other.select;
        self.forward += other.forward;
        self.expand += other.expand;
        self.backup += other.backup;
        self.device += other.device;
        self.passes += other.passes;
        self.simulations += other.simulations;
        self.evaluations += other.evaluations;
        self.cached += other.cached;
        self.visited_rows += other.visited_rows;
        self.idle_rows += other.idle_rows;
        self.plies += other.plies;
        self.depth_sum += other.depth_sum;
        self.depth_max = self.depth_max.max(other.depth_max);
        self.cached_starts += other.cached_starts;
        self.inherited_visits += other.inherited_visits;
        self.copied.inside += other.copied.inside;
        self.copied.total += other.copied.total;
    }
}

/// A timer whose every reading ends one stage and starts the next: one clock reading a stage, since a reading costs as much as a large
/// part of a simulation.
pub struct StageTimer(Instant);

impl StageTimer {
    /// Starts the first stage.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The seconds of the stage that ends here.
    pub(super) fn lap(&mut self) -> f64 {
        let began = std::mem::replace(&mut self.0, Instant::now());
        (self.0 - began).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_nothing_to_do_are_counted() {
        let mut metrics = PassMetrics::default();
        metrics.count(&PassStats { visited: 7, rows: 5, ..PassStats::default() }, 1);
        metrics.count(&PassStats { visited: 20, rows: 20, ..PassStats::default() }, 2);
        let mut sum = metrics;
        sum.add(&metrics);
        assert_eq!((metrics.passes, metrics.visited_rows, metrics.idle_rows), (3, 27, 2));
        assert_eq!((sum.visited_rows, sum.idle_rows), (54, 4));
    }
}
