//! The polls of attached game slots: how the counts and decisions of some passes reach the host while the device makes the next
//! passes.
//!
//! The last kernel of a poll writes its header, which is copied to page-locked memory in the order of the launches. The host waits
//! for that copy alone, then copies as many decisions as the header says, concurrently with the launches of the next poll. So that nothing is
//! overwritten on the way, two polls in turn have a header on the host and room for decisions on the device each.

use super::layout::Totals;
use crate::device::{Device, Pinned};
use crate::device_struct::device_struct;
use crate::error::{Error, Result};
use bytemuck::{Pod, Zeroable};

/// Maximum number of polls that have ended on the device and were not collected.
const MAX_POLLS_IN_FLIGHT: u64 = 2;

device_struct! {
    /// Results of the passes of one poll.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct PollHeader {
        /// Sums over all rows.
        pub totals: Totals,
        /// Decisions of the poll.
        pub num_decisions: u32,
        /// Not 0 if an output of the network was NaN or infinite.
        pub not_finite: u32,
    }
}

/// Results of the launched passes of a poll.
#[derive(Clone, Copy, Debug)]
pub struct PollCounts {
    /// How many they were; 0 where the caller drove each pass.
    pub passes: u32,
    /// Sums over all rows.
    pub totals: Totals,
    /// Not 0 if an output of the network was NaN or infinite.
    pub not_finite: u32,
}

/// A poll that has ended and was not collected.
struct EndedPoll<D: Device> {
    /// The copy of its header.
    header: D::Pinned,
    /// Its launched passes.
    passes: u32,
    /// Before its first launch and after its last.
    span: Option<(D::Timestamp, D::Timestamp)>,
}

/// The polls since game slots were attached.
pub struct Polls<D: Device> {
    /// Written by the last kernel of each poll.
    pub header: D::Buffer,
    /// Poll i is entry i % 2.
    in_flight: [EndedPoll<D>; MAX_POLLS_IN_FLIGHT as usize],
    /// The decisions of the poll that was collected last, and how many bytes they are.
    decisions: (D::Pinned, usize),
    /// Bytes that `decisions` has room for.
    capacity: usize,
    /// Passes launched since the last poll ended, and the point before the first of them.
    launched: u32,
    began: Option<D::Timestamp>,
    /// Seconds that the device took for the launched passes of the poll that was collected last; 0 where there were none.
    pub seconds: f64,
    ended: u64,
    collected: u64,
}

impl<D: Device> Polls<D> {
    /// No poll so far.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new(device: &D) -> Result<Self> {
        /// Decisions of a small batch; a poll that has more makes room for them.
        const INITIAL: usize = 1 << 16;
        let poll = || -> Result<_> {
            Ok(EndedPoll { header: device.pinned(size_of::<PollHeader>())?, passes: 0, span: None })
        };
        Ok(Self {
            header: device.alloc(size_of::<PollHeader>())?,
            in_flight: [poll()?, poll()?],
            decisions: (device.pinned(INITIAL)?, 0),
            capacity: INITIAL,
            launched: 0,
            began: None,
            seconds: 0.0,
            ended: 0,
            collected: 0,
        })
    }

    /// Counts `passes` launched passes.
    pub fn add_passes(&mut self, passes: u32) {
        self.launched += passes;
    }

    /// Refuses the passes of a third poll before the first of the three is collected: they would overwrite its decisions.
    ///
    /// # Errors
    /// [`Error::Mismatch`].
    pub fn check_room(&self) -> Result<()> {
        let found = self.ended - self.collected;
        if found < MAX_POLLS_IN_FLIGHT {
            return Ok(());
        }
        Err(polls_in_flight(found, format!("fewer than {MAX_POLLS_IN_FLIGHT} before passes of another one")))
    }

    /// Notes that launches of a poll follow.
    ///
    /// # Errors
    /// As [`Self::check_room`], and those of the device.
    pub fn begin(&mut self, device: &D) -> Result<()> {
        self.check_room()?;
        if self.began.is_none() {
            self.began = Some(device.timestamp()?);
        }
        Ok(())
    }

    /// Starts the copy of the header, which a launched kernel writes.
    ///
    /// # Errors
    /// Those of the device.
    pub fn end(&mut self, device: &D) -> Result<()> {
        let poll = &mut self.in_flight[(self.ended % MAX_POLLS_IN_FLIGHT) as usize];
        poll.span = match self.began.take() {
            Some(began) => Some((began, device.timestamp()?)),
            None => None,
        };
        device.start_download(&self.header, &mut poll.header, size_of::<PollHeader>())?;
        poll.passes = std::mem::take(&mut self.launched);
        self.ended += 1;
        Ok(())
    }

    /// Waits for the oldest poll that has ended, and for its decisions, which lie in `decisions`: `poll_bytes` bytes for each of
    /// two polls, `size` bytes for a decision.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where none has ended, and those of the device, with the kernels of which one failed.
    pub fn collect(
        &mut self,
        device: &D,
        decisions: &D::Buffer,
        poll_bytes: usize,
        size: usize,
    ) -> Result<PollCounts> {
        if self.ended == self.collected {
            return Err(polls_in_flight(0, "at least 1 to be collected".into()));
        }
        let turn = (self.collected % MAX_POLLS_IN_FLIGHT) as usize;
        let EndedPoll { header, passes, span } = &self.in_flight[turn];
        let named = |error: Error| device.synchronise().err().unwrap_or(error);
        let header: PollHeader =
            bytemuck::pod_read_unaligned(&header.bytes().map_err(named)?[..size_of::<PollHeader>()]);
        let bytes = header.num_decisions as usize * size;
        if bytes > self.capacity {
            self.capacity = bytes.next_power_of_two();
            self.decisions = (device.pinned(self.capacity)?, 0);
        }
        let (copied, len) = &mut self.decisions;
        if bytes > 0 {
            device.start_concurrent_download(decisions, turn * poll_bytes, copied, bytes)?;
            copied.bytes().map_err(named)?;
        }
        *len = bytes;
        self.collected += 1;
        self.seconds =
            span.as_ref().map_or(Ok(0.0), |(began, ended)| device.seconds_between(began, ended))?;
        Ok(PollCounts { passes: *passes, totals: header.totals, not_finite: header.not_finite })
    }

    /// The bytes of the decisions of the poll that was collected last.
    ///
    /// # Errors
    /// Those of the device.
    pub fn decisions(&self) -> Result<&[u8]> {
        let (copied, len) = &self.decisions;
        Ok(&copied.bytes()?[..*len])
    }
}

fn polls_in_flight(found: u64, expected: String) -> Error {
    Error::mismatch("polls that have ended and were not collected", found, expected)
}
