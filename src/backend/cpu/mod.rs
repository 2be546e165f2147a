//! The batched backend in CPU memory: one shard of rows, for one thread. Several threads have a shard each; no row depends on its shard, so
//! results do not depend on their number.

mod afterstate; // rows without trees: decisions on whole turns
mod cpu_backend; // the backend
mod descend; // selection over all rows
mod nodes; // what needs the game: new nodes, observations, keys
mod row_data; // the rows' data other than their trees
mod rows; // expansion and backup over all rows, kept subtrees
mod replies; // the second ply of decisions on whole turns
mod states; // the states of all nodes
mod variations; // the lines of most visits

pub use afterstate::AfterstateBackend;
pub use cpu_backend::CpuBackend;
pub(in crate::backend) use variations::variations;
