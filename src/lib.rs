//! vecaz: a fully vectorised AlphaZero engine. N games and N search trees are fixed-shape arrays; one simulation is one
//! lockstep pass over every game: select a leaf in each tree, evaluate all leaves in one network forward, expand, back up.
//!
//! Letters in shape comments, everywhere: N games · D determinisations of one game · B = N·D rows · L leaves a row
//! selects per pass · M leaves that need the network in one pass · T nodes in a row's tree · E edges of a node (the
//! maximum number of legal actions or chance outcomes) · A actions of the policy head · C chance outcomes · P players · F numbers in an observation.
//! Arrays are row-major, batch first.
//!
//! # Three ways to use it from Rust
//!
//! **A player in your program** is an [`engine::Engine`]: a position, a limit in simulations, time or a stop, and moves with visits, values
//! and expected lines. `examples/embed_player.rs` plays against you.
//!
//! ```rust,no_run
//! use std::{path::Path, time::Duration};
//! use vecaz::{engine::{Engine, Limit}, registry::Registry};
//!
//! let mut engine = Engine::open(Path::new("runs/connect_four-1"), &Registry::built_in())?;
//! let found = engine.analyse(&Limit::time(Duration::from_secs(1)))?;
//! println!("{} after {} simulations", found.best().name, found.visits);
//! # Ok::<(), vecaz::Error>(())
//! ```
//!
//! **Your game** implements [`game::Game`], keeps the laws that [`contract::check`] checks, and gets the whole program from
//! [`cli::program_with`]: training, matches, boards in terminal and browser, workers on other machines. `examples/own_game.rs` is all of a
//! small one; `vecaz new NAME` writes a project to begin with.
//!
//! **A batch of games or positions** goes through [`batch::GameBatch`] and [`searcher::Searchers`]. Sixteen games of Hex, searched in 16
//! rows by 2 threads and stepped together:
//!
//! ```rust
#![doc = include_str!("../examples/drive_batch.rs")]
//! ```
//!
//! # What stays
//!
//! [`engine`], [`game`], [`contract`], [`config`], [`registry`] and [`cli::program_with`] follow semantic versioning. The other modules on this
//! page are for programs that drive batches of their own, and may change with any minor version. Modules that are not on it are parts of the
//! program; the map of all is docs/architecture.md.

#![warn(missing_docs)]

// From the ground up: a module uses only modules above it in this list (`tests/floors.rs`).
#[doc(hidden)]
pub mod words; // numbers with their nouns
pub mod error; // one error type; variants carry facts
pub mod stop; // requests to end work early: a signal, a time limit
mod threads; // scoped threads that may not start
#[doc(hidden)]
pub mod machine; // how many threads suit this machine, and its name
#[doc(hidden)]
pub mod files; // files that are whole or absent
#[cfg(feature = "http")]
mod http_server; // an HTTP server in a thread of its own
#[doc(hidden)]
pub mod isa; // instruction sets: which the machine has, code compiled for each
mod device_struct; // structs, enums and constants that kernels share with Rust, defined once
#[doc(hidden)]
pub mod math; // exp, ln, tanh, powers: the same bits on every backend
#[doc(hidden)]
pub mod simd; // vector registers of each instruction set
pub mod rng; // counter-based random numbers
pub mod config; // what was typed -> a checked, resolved configuration
#[doc(hidden)]
pub mod device; // GPUs: driver, compiled programs, sums over several
pub mod game; // trait Game, the rules
pub mod view; // a position's look -> text
pub mod batch; // one game -> N games
pub mod contract; // the laws that any game must keep
#[doc(hidden)]
pub mod tree; // the arrays of B trees
pub mod search; // select, expand, backup on one row
pub mod model; // one description of a network: a list of layers
pub mod net; // what executes it: observations -> logits, values
#[doc(hidden)]
pub mod play; // self-play's rules on one game slot: plan, slot, sample, record, act
#[doc(hidden)]
pub mod replay; // ring buffer of samples
#[doc(hidden)]
pub mod train; // loss and optimiser step
pub mod backend; // where the arrays live
pub mod registry; // the games of a program, by name
pub mod records; // games as text files: JSON, SGF, PGN, FEN, matches of backgammon
#[doc(hidden)]
pub mod pass; // one lockstep pass: select, evaluate, expand, backup on all rows
pub mod searcher; // positions -> search results
#[doc(hidden)]
pub mod root_cache; // trees of the positions in which many games begin
pub mod selfplay; // the stream of passes over N games
pub mod engine; // one position for any caller: tree kept, clock, stop, pondering
pub mod weights; // network files: save, load, export, import
pub mod eval; // exact solvers, matches, Elo
#[doc(hidden)]
pub mod report; // what people see: tables, progress, metrics, report.html
#[doc(hidden)]
pub mod run; // self-play -> replay -> train -> evaluate -> checkpoint
pub mod source; // networks from files, with game and configuration; engines of them
#[doc(hidden)]
pub mod protocol; // GTP, UCI, Gomocup, NBoard, JSON lines: dialogues with programs of players
#[cfg(feature = "cluster")]
#[doc(hidden)]
pub mod cluster; // many machines: workers play, one learner trains
#[doc(hidden)]
pub mod scaling; // how fast self-play is, and where the time goes
#[cfg(feature = "http")]
#[doc(hidden)]
pub mod serve; // a page in the browser: play, analyse, review, watch
pub mod cli; // the subcommands; `main.rs` calls it

pub use error::{Error, Result};
