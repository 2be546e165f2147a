//! Where states and trees live. A [`Backend`] holds those of B rows and does the stages of a pass on all of them; [`crate::pass`] calls
//! it. Only backends have the game as a type parameter; modules above them see states as bytes.

pub mod plan;
pub mod row_budget;
pub mod snapshot;
pub mod device_selfplay;
pub mod decisions;
pub mod pass_parts;
mod interface;
mod leaf_dedup;
pub mod cpu;
pub mod gpu;
pub mod split;
pub mod make;

pub use interface::{Backend, DevicePasses, HeadsRead, PassStages, PlyPlan, TreeRows};
pub use make::{AnyGame, Placement, make};
pub use row_budget::RowBudget;
pub use snapshot::{CachedTree, RootCache, TreeSnapshot};
