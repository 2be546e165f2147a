//! The kernels' sources, compiled as host C++, against Rust: functions, games, batches and whole searches, equal to the bit.

mod host_compiler;
mod host_device;

mod games;
mod net;
mod run;
mod search;
mod train;
#[path = "../support/selection.rs"]
mod selection;
#[path = "../support/typed_games.rs"]
mod typed_games;
