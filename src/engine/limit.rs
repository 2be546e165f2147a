//! When an analysis ends.

use crate::error::StopCause;
use crate::stop::Stop;
use std::time::{Duration, Instant};

/// When an analysis ends: at whichever of these comes first. The default has no end but a proof, full trees and its stop.
#[derive(Clone, Debug, Default)]
pub struct Limit {
    /// Visits of the position in each tree, those of earlier analyses and of the kept tree included. Passes are whole: up to L - 1 more
    /// are made.
    pub simulations: Option<u64>,
    /// Time from the start of the analysis.
    pub time: Option<Duration>,
    /// A request to stop, which any thread can make with a clone of it.
    pub stop: Stop,
}

impl Limit {
    /// A limit of simulations.
    pub fn simulations(simulations: u64) -> Self {
        Self { simulations: Some(simulations), ..Self::default() }
    }

    /// A limit of time.
    pub fn time(time: Duration) -> Self {
        Self { time: Some(time), ..Self::default() }
    }

    /// No limit but `stop`.
    pub fn stop(stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..Self::default() }
    }

    /// The same, and stopped by `stop`.
    #[must_use]
    pub fn or_stop(self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self }
    }
}

/// Why an analysis ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// It has not: this is a report of its progress.
    Running,
    /// The simulations are made.
    Simulations,
    /// The time is over.
    Time,
    /// The stop was requested.
    Stopped,
    /// The value is proven: more simulations change nothing.
    Proven,
    /// The trees have as many nodes as the memory limit allows, or as many visits as their sums of values can count.
    Memory,
}

/// The clock of one analysis.
pub(super) struct Clock<'a> {
    limit: &'a Limit,
    pub start: Instant,
    stop: Stop,
}

impl<'a> Clock<'a> {
    pub fn start(limit: &'a Limit) -> Self {
        let start = Instant::now();
        // A time that no clock can hold is no limit.
        let deadline = limit.time.and_then(|time| start.checked_add(time));
        Self { limit, start, stop: limit.stop.at(deadline) }
    }

    /// The reason to end whatever the visits are.
    pub fn end(&self) -> Option<EndCause> {
        self.stop.cause().map(|cause| match cause {
            StopCause::TimeLimit => EndCause::Time,
            _ => EndCause::Stopped,
        })
    }

    /// True if there is a reason to end whatever the visits are.
    pub fn is_over(&self) -> bool {
        self.stop.cause().is_some()
    }

    /// True if a tree with `visits` visits has as many as the limit says.
    pub fn reaches(&self, visits: u64) -> bool {
        self.limit.simulations.is_some_and(|limit| visits >= limit)
    }

    /// The visits that are still to be made in each tree, if their number alone ends the analysis.
    pub fn known_visits(&self, visits: u64) -> Option<u64> {
        match (self.limit.simulations, self.limit.time) {
            (Some(limit), None) => Some(limit.saturating_sub(visits)),
            _ => None,
        }
    }

    /// True if the time will be over in `work`.
    pub fn ends_within(&self, work: Duration) -> bool {
        self.limit.time.is_some_and(|time| self.start.elapsed() + work >= time)
    }
}
