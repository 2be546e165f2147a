//! The run: self-play -> replay -> train -> evaluate -> checkpoint, epoch after epoch.
//!
//! An epoch plays until it has its samples, makes the updates that are due (with `overlapped`: those that were due when it began),
//! measures strength and writes a checkpoint. A resumed run continues from the last checkpoint and gives the same bytes as an
//! uninterrupted one: results depend only on the configuration, the seed and counters, unless workers on other machines play in free
//! order. The clock has no effect except the time limit and, with `eval.share`, which epochs are measured and how (docs/determinism.md).

pub mod checkpoint;
mod ending;
mod cut;
mod epoch;
mod epoch_eta;
mod epoch_files;
mod epoch_network;
pub mod epoch_size;
pub mod evaluation;
mod files;
pub mod findings;
pub mod fixed_keys;
pub mod folder;
mod free_memory;
pub mod learner;
pub mod limits;
pub mod manifest;
mod measuring;
pub mod factory;
pub mod memory;
pub mod network;
pub mod local_selfplay;
mod pace;
mod setup;
pub mod strength;
mod training_run;
mod valued_network;
pub mod workers;

pub use files::{BEST, CONFIG, FINAL, GAMES, MANIFEST, OPPONENTS, games_name};
pub use setup::check_trained;
pub use training_run::Run;
