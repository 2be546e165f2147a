//! The command line: one file per subcommand, with its arguments and an `execute`.
//!
//! Results go to stdout, diagnostics and errors to stderr. Exit codes: 0 success, 1 failure, 2 invalid usage, 128 plus the number
//! of the signal that ended the program. That signal is SIGPIPE if the reader of stdout has closed it. An error is one line. This
//! module may use all others; no other module uses it.

pub mod bench_scaling;
pub mod completions;
pub mod config;
pub mod engine;
pub mod eval;
pub mod export_weights;
pub mod games;
pub mod import_weights;
pub mod inspect;
pub mod new;
pub mod plan;
pub mod play;
pub mod report;
pub mod run;
#[cfg(feature = "http")]
pub mod serve;
#[cfg(not(feature = "http"))]
#[path = "no_http.rs"]
pub mod serve;
pub mod verify;
#[cfg(feature = "cluster")]
pub mod top;
#[cfg(feature = "cluster")]
pub mod work;
pub mod tune;

mod address_space;
mod color;
mod errors;
mod layers;
mod log;
mod near_path;
#[cfg(feature = "cluster")]
mod learner;
#[cfg(not(feature = "cluster"))]
mod no_cluster;
mod resumed;
mod opponents;
mod output;
mod program;
mod records;
mod signals;
mod threads;

#[cfg(not(feature = "cluster"))]
use no_cluster::learner;
#[cfg(not(feature = "cluster"))]
pub use no_cluster::{top, work};

pub use layers::{Base, ConfigArgs};
pub use output::JsonTarget;
pub use program::{Cli, Command, VerbosityArgs, main, program, program_with};
