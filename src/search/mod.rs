//! The rules of search, as functions on the tree of one row. They see trees and the numbers that a network gave, and know neither the
//! game nor where the arrays live. [`crate::pass`] applies them to all rows.
//!
//! - [`params`]: what the rules read of the configuration.
//! - [`select`]: PUCT and Gumbel on the way down.
//! - [`expand`]: priors and values into a new node.
//! - [`backup`]: values and proofs on the way up.
//! - [`root`]: noise, budgets, sequential halving, policy targets.
//! - [`reuse`]: keeping the played subtree, trimming to T nodes.
//! - [`eval_cache`]: evaluations by position.

pub mod params;
pub mod pass_stats;
pub mod select;
pub mod expand;
pub mod backup;
pub mod root;
pub mod reuse;
pub mod eval_cache;

pub use params::{MctsSolver, SearchParams};
pub use pass_stats::PassStats;
