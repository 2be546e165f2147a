//! The polls of self-play on a device: started ahead, finished one by one.

use crate::backend::decisions::DecisionBlock;
use crate::backend::device_selfplay::{Copied, PassDriver};
use crate::backend::{Backend, DevicePasses, RootCache};
use crate::error::{Error, Result};
use crate::net::Network;
use crate::pass::{launch_passes, simulate_many};
use crate::play::{PlayPlan, SlotStart};
use crate::searcher::Searcher;
use std::collections::VecDeque;
use std::time::Instant;

/// What ended a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollEnd {
    /// All its passes were made.
    Passes,
    /// The time until which passes begin. How many were made depends on the machine.
    Time,
}

/// The side that makes the passes of a poll that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollPasses {
    /// The device, while the caller continues: the next poll can be started before this one is finished.
    InFlight,
    /// The caller, which has made all of them.
    Made,
}

/// The polls of one searcher's game slots.
pub(super) struct PollQueue {
    /// Those that were started and not finished, the oldest first: the passes that the device makes by itself.
    in_flight: VecDeque<u32>,
    /// Since when the device has been at work on the oldest of them.
    since: Instant,
}

impl PollQueue {
    /// No poll started.
    pub fn new() -> Self {
        Self { in_flight: VecDeque::new(), since: Instant::now() }
    }

    /// Attaches the game slots of self-play to the device of the rows, where they are on one ([`DevicePasses::attach_selfplay`]). Polls
    /// that were started and not finished are discarded.
    ///
    /// # Errors
    /// Those of the device.
    pub fn attach(
        &mut self,
        searcher: &mut Searcher,
        plan: &PlayPlan,
        slots: &[SlotStart<'_>],
        starts: &RootCache,
    ) -> Result<PassDriver> {
        self.in_flight.clear();
        match searcher.backend.device() {
            Some(device) => {
                Ok(PassDriver::Backend { max_passes: device.attach_selfplay(plan, slots, starts)? })
            }
            None => Ok(PassDriver::Caller),
        }
    }

    /// How many polls were started and not finished.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Starts a poll of `passes` passes in the attached game slots, with an evaluator that several searchers share.
    ///
    /// # Errors
    /// Those of the network and of the device.
    pub fn start(
        &mut self,
        searcher: &mut Searcher,
        network: &mut dyn Network,
        passes: u32,
    ) -> Result<PollPasses> {
        searcher.stop.check()?;
        let before = copied(searcher)?;
        if self.in_flight.is_empty() {
            self.since = Instant::now();
        }
        let Searcher { backend, buffers, metrics, .. } = searcher;
        let (launched, made) = if launch_passes(backend.as_mut(), network, buffers, passes)? {
            (passes, PollPasses::InFlight)
        } else {
            simulate_many(backend.as_mut(), network, buffers, metrics, passes)?;
            (0, PollPasses::Made)
        };
        device_of(backend.as_mut())?.end_poll()?;
        self.in_flight.push_back(launched);
        count_copied(searcher, before)?;
        Ok(made)
    }

    /// Waits for the oldest poll that was started, and returns its decisions, one block a device.
    ///
    /// # Errors
    /// Those of the network and of the device.
    pub fn finish<'s>(&mut self, searcher: &'s mut Searcher) -> Result<Vec<DecisionBlock<'s>>> {
        let before = copied(searcher)?;
        let device = device_of(searcher.backend.as_mut())?;
        let stats = device.collect_poll()?;
        searcher.metrics.device += device.poll_seconds()?;
        count_copied(searcher, before)?;
        let passes = self.in_flight.pop_front().unwrap_or(0);
        searcher.metrics.count(&stats, passes);
        let began = std::mem::replace(&mut self.since, Instant::now());
        if passes > 0 {
            searcher.metrics.select += (self.since - began).as_secs_f64();
        }
        let decisions = device_of(searcher.backend.as_mut())?.decisions()?;
        searcher.metrics.plies += decisions.iter().map(|block| block.len() as u64).sum::<u64>();
        Ok(decisions)
    }
}

/// Bytes copied between host and device so far.
fn copied(searcher: &mut Searcher) -> Result<Copied> {
    searcher.backend.device().map_or(Ok(Copied::default()), |device| device.copied())
}

/// Counts the bytes copied since the backend's counters stood at `before`.
fn count_copied(searcher: &mut Searcher, before: Copied) -> Result<()> {
    let Copied { inside, total } = copied(searcher)?;
    searcher.metrics.copied.inside += inside - before.inside;
    searcher.metrics.copied.total += total - before.total;
    Ok(())
}

/// The device of a backend whose polls are started and finished.
fn device_of(backend: &mut dyn Backend) -> Result<&mut dyn DevicePasses> {
    backend.device().ok_or_else(|| {
        Error::mismatch("backend of polled game slots", "the CPU's", "one that makes passes by itself")
    })
}
