//! `vecaz serve` by its HTTP interface: the program on a free port, and a client of a few lines.

#[path = "serve/analysis.rs"]
mod analysis;
#[path = "serve/client.rs"]
mod client;
#[path = "serve/doors.rs"]
mod doors;
#[path = "serve/games.rs"]
mod games;
#[path = "serve/hidden.rs"]
mod hidden;
#[path = "serve/malformed.rs"]
mod malformed;
#[path = "serve/runs.rs"]
mod runs;
#[path = "serve/set_up.rs"]
mod set_up;
#[path = "serve/tables.rs"]
mod tables;
#[cfg(unix)]
#[path = "support/signals.rs"]
mod signals;
