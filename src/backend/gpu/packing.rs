//! Several arrays in one buffer, so that one copy takes them to the device.

use super::layout::TreeParts;
use crate::backend::TreeSnapshot;

/// Every part of a buffer begins at a multiple of this many bytes.
const ALIGNMENT: usize = 256;

/// Concatenates `parts`, each aligned to [`ALIGNMENT`]; returns the bytes and where each part begins.
pub fn pack<const N: usize>(parts: [&[u8]; N]) -> (Vec<u8>, [usize; N]) {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + ALIGNMENT).sum());
    let starts = parts.map(|part| {
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        let start = bytes.len();
        bytes.extend_from_slice(part);
        start
    });
    // At least one unit, since devices have no buffers of 0 bytes.
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT).max(ALIGNMENT), 0);
    (bytes, starts)
}

/// The bytes of `snapshot`, and where its parts begin in them.
pub fn pack_snapshot(snapshot: &TreeSnapshot) -> (Vec<u8>, TreeParts) {
    let [nodes, edges, actions, values] = snapshot.tree.row_bytes(0);
    let parts = [nodes, edges, actions, values, &snapshot.states, bytemuck::cast_slice(&snapshot.history)];
    let (bytes, starts) = pack(parts);
    let [nodes, edges, actions, values, states, history] = starts.map(|start| start as u64);
    let (count, num_history) = (snapshot.tree.count(0) as u32, snapshot.history.len() as u32);
    (bytes, TreeParts { nodes, edges, actions, values, states, history, count, num_history })
}
