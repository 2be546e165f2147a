//! vecaz: a fully vectorised AlphaZero engine. N games and N search trees are fixed-shape arrays; one simulation is one
//! lockstep pass over every game: select a leaf in each tree, evaluate all leaves in one network forward, expand, back up.
//!
//! Letters in shape comments, everywhere: N games · D determinisations of one game · B = N·D rows · L leaves a row
//! selects per pass · M leaves that need the network in one pass · T nodes in a row's tree · E edges of a node (the most
//! legal actions or chance outcomes) · A actions of the policy head · C chance outcomes · P players · F numbers in an observation.
//! Arrays are row-major, batch first.
//!
//! Sixteen games of Hex, searched in 16 rows by 2 threads and stepped together:
//!
//! ```rust
//! use vecaz::backend::Placement;
//! use vecaz::batch::GameBatch;
//! use vecaz::config::SearchConfig;
//! use vecaz::game::{Game, hex::Hex};
//! use vecaz::net::{IoShape, UniformNet};
//! use vecaz::registry::erase;
//! use vecaz::search::{SearchParams, root::{Exploration, RowKey}};
//! use vecaz::searcher::{SearchRequest, Searchers};
//!
//! let hex = Hex { size: 7, swap: false };
//! let (rules, sizes) = (erase(hex.clone()), hex.sizes());
//! let shape = IoShape { obs_len: sizes.obs.len(), num_actions: sizes.num_actions, num_players: sizes.num_players };
//! let params = SearchParams::new(&SearchConfig { simulations: 50, ..Default::default() }, &sizes);
//! let mut searchers = Searchers::new(rules.as_ref(), &UniformNet(shape), params, Placement::default(), 16, 2)?;
//! let mut games = GameBatch::new(hex, 16);
//! for ply in 0..10 {
//!     let position = |(slot, state)| SearchRequest {
//!         state: bytemuck::bytes_of(state).to_vec(),
//!         key: RowKey { seed: 1, slot, ply, ..RowKey::default() },
//!         ..SearchRequest::default()
//!     };
//!     let positions: Vec<SearchRequest> = (0..).zip(games.states()).map(position).collect();
//!     let roots = searchers.search(&positions, 50, Exploration::Noisy)?;
//!     let actions: Vec<u16> = roots.iter().map(|root| root.actions[root.best]).collect();
//!     games.step(&actions);
//! }
//! assert_eq!(games.plies(), [10; 16]);
//! # Ok::<(), vecaz::Error>(())
//! ```

#![warn(missing_docs)]

// From the ground up: a module uses only modules above it in this list (`tests/floors.rs`).
pub mod words; // numbers with their nouns
pub mod error; // one error type; variants carry facts
pub mod stop; // requests to end work early: a signal, a time limit
mod threads; // scoped threads that may not start
pub mod files; // files that are whole or absent
#[cfg(feature = "http")]
mod http_server; // an HTTP server in a thread of its own
pub mod isa; // instruction sets: which the machine has, code compiled for each
mod device_struct; // structs, enums and constants that kernels share with Rust, defined once
pub mod math; // exp, ln, tanh, powers: the same bits on every backend
pub mod simd; // vector registers of each instruction set
pub mod rng; // counter-based random numbers
pub mod config; // what was typed -> a checked, resolved configuration
pub mod device; // GPUs: driver, compiled programs, sums over several
pub mod game; // trait Game, the registry, the rules
pub mod view; // a position's look -> text
pub mod batch; // one game -> N games
pub mod contract; // the laws that any game must keep
pub mod tree; // the arrays of B trees
pub mod search; // select, expand, backup on one row
pub mod model; // one description of a network: a list of layers
pub mod net; // what executes it: observations -> logits, values
pub mod play; // self-play's rules on one game slot: plan, slot, sample, record, act
pub mod replay; // ring buffer of samples
pub mod train; // loss and optimiser step
pub mod backend; // where the arrays live
pub mod registry; // the games of a program, by name
pub mod records; // games as text files: JSON, SGF, PGN, FEN, matches of backgammon
pub mod pass; // one lockstep pass: select, evaluate, expand, backup on all rows
pub mod searcher; // positions -> search results
pub mod root_cache; // trees of the positions in which many games begin
pub mod selfplay; // the stream of passes over N games
pub mod engine; // one position for any caller: tree kept, clock, stop, pondering
pub mod weights; // safetensors: save, load, export
pub mod eval; // exact solvers, matches, Elo
pub mod report; // what people see: tables, progress, metrics, plots, report.html
pub mod run; // self-play -> replay -> train -> evaluate -> checkpoint
pub mod source; // networks from files, with game and configuration; engines of them
pub mod protocol; // GTP, UCI, Gomocup, NBoard, JSON lines: dialogues with programs of players
#[cfg(feature = "cluster")]
pub mod cluster; // many machines: workers play, one learner trains
pub mod scaling; // how fast self-play is, and where the time goes
#[cfg(feature = "http")]
pub mod serve; // a page in the browser: play, analyse, review, watch
pub mod cli; // the subcommands; `main.rs` calls it

pub use error::{Error, Result};
