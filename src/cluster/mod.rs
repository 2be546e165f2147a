//! Many machines: workers play games, one learner trains on them, Redis Streams carry the data between them.
//!
//! In: chunks of finished games from workers. Out: weights and the configuration for workers. The learner is a run
//! ([`crate::run::Run`]) whose games also come from workers. All data of a worker may be lost without harm to the run.

pub mod address;
mod bounds;
pub mod chunk;
mod digest;
mod entry_queue;
pub mod evaluation;
mod incarnation;
pub mod learner;
mod local_worker;
pub mod overview;
mod presence;
pub mod published;
mod reader;
pub mod received;
mod run_shared;
mod sender;
pub mod server;
mod stalls;
pub mod status;
pub mod strict;
mod warnings;
mod window;
pub mod worker;
mod worker_counters;
mod worker_play;

pub use digest::digest;
pub use incarnation::{Incarnation, PROTOCOL, random};
