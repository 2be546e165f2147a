//! Trees apart from any backend.

use crate::tree::Tree;

/// One tree with its states.
pub struct Snapshot {
    /// The tree, of one row.
    pub tree: Tree,
    /// `[nodes in use, state bytes]`
    pub states: Vec<u8>,
    /// Keys of the positions before the root.
    pub history: Vec<u64>,
}

/// The trees that new games start from, each with the bytes of its root's state.
pub type RootCache = Vec<(Vec<u8>, Snapshot)>;
