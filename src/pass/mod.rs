//! One lockstep pass over all rows: select -> evaluate -> expand -> backup.
//!
//! A pass takes every row that has simulations left through up to L of them. A [`crate::backend::Backend`] holds the states and trees and does the work
//! on each row by the rules of [`crate::search`]; a [`crate::net::Network`] evaluates the leaves. A pass is either staged, with the host calling
//! one stage after the other, or made by the backend itself, where the network is resident on the device of the rows or has one output
//! for all leaves.

mod buffers;
mod metrics;
mod passes;

pub use buffers::PassBuffers;
pub use metrics::{PassMetrics, StageTimer};
pub use passes::{begin_pass, end_pass, launch_passes, simulate_many, simulate_within};
