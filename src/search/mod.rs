//! The rules of search, as functions on the tree of one row. They read trees and outputs of a network. Of the game they know only its
//! sizes, and of the arrays not where they live. [`crate::pass`] applies them to all rows.
//!
//! - [`params`]: the settings of the configuration that the rules read.
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
