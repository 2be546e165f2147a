//! An evaluation in tasks, which the learner and any worker measure: its data on the server, and how a task is claimed and sent.
//!
//! The learner writes the weights, then [`Offer`] and the stream of tasks in one transaction, and deletes them when it has all results.
//! Tasks are claimed by a consumer group. The task of a worker that has stopped is claimed again: by another worker after
//! `CLAIM_TIMEOUT`, or by the learner when nothing else is left. A task that is measured twice gives the same result, so the first
//! result is kept.

pub mod evaluator; // a worker's side
mod offer; // an evaluation on the server
pub mod offered; // the learner's side
mod result_chunk; // the chunk of a task's result

pub use offer::Offer;
pub use result_chunk::{limits, open, seal};
