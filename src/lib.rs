//! vecaz: a fully vectorised AlphaZero engine. N games and N search trees are fixed-shape arrays; one simulation is one
//! lockstep pass over every game: select a leaf in each tree, evaluate all leaves in one network forward, expand, back up.
//!
//! Letters in shape comments, everywhere: N games · D determinisations of one game · B = N·D rows · L leaves a row
//! selects per pass · M leaves that need the network in one pass · T nodes in a row's tree · E edges of a node (the most
//! legal actions) · A actions of the policy head · C chance outcomes · P players · F numbers in an observation.
//! Arrays are row-major, batch first.

#![warn(missing_docs)]

pub mod error; // one error type; variants carry facts
pub mod files; // files that are whole or absent
pub mod config; // what was typed -> a checked, resolved configuration
pub mod math; // exp, ln, pow: the same bits on every backend
pub mod lanes; // eight numbers side by side
pub mod rng; // counter-based random numbers
pub mod game; // trait Game, the registry, the rules
pub mod batch; // one game -> N games
pub mod tree; // the arrays of B trees
pub mod search; // select, expand, backup on one row; simulate on all
pub mod backend; // where the arrays live
pub mod net; // observations -> logits, values
pub mod searcher; // positions -> search results
pub mod act; // root summary -> action
pub mod root_cache; // one deep tree per set of weights
pub mod selfplay; // the stream of passes over N games
pub mod replay; // ring buffer of samples
pub mod train; // loss and optimiser step
pub mod weights; // safetensors: save, load, export
pub mod eval; // exact solvers, matches, Elo
pub mod run; // self-play -> replay -> train -> evaluate -> checkpoint
pub mod scaling; // how fast self-play is, and where the time goes
pub mod report; // what people see: progress, metrics, plots
pub mod cli; // the subcommands; `main.rs` calls it

pub use error::{Error, Result};
