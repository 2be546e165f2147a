//! The strict order: any number of workers, starting and stopping at any time, gives the games of a run on one machine, in its order.
//!
//! The game slots are divided into partitions. At the start of an epoch the learner publishes the slots of every partition. A worker
//! that has a partition's lease plays it poll by poll and sends the plies of each poll. A slot's plies depend only on its state at the
//! start, the weights and the number of passes, so every worker sends the same polls of a partition. After a worker has stopped, another
//! one plays its partitions from the start of the epoch. The learner takes a poll when all partitions have sent it, and ends the epoch
//! after the poll that fills it, as a run on one machine does.

pub mod epoch_slots;
mod partitions;
pub mod poll;
pub mod poll_merger;
pub(super) mod refusals;
mod partition;
mod resend_buffer;
pub(super) mod worker;

use partitions::POLLS_AHEAD;
pub use partitions::partitions;
