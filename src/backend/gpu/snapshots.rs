//! Copies of one row's tree between device and host.

use super::arrays::{DeviceTree, SearchArrays};
use super::layout::SearchLayout;
use super::packing::pack_snapshot;
use crate::backend::TreeSnapshot;
use crate::device::Device;
use crate::error::Result;
use crate::tree::{Tree, TreeShape};

/// A snapshot on the device, with the host's bytes of it to compare others with.
pub struct UploadedSnapshot<B> {
    bytes: Vec<u8>,
    /// The tree that rows are cloned from.
    pub tree: DeviceTree<B>,
}

impl<B> UploadedSnapshot<B> {
    /// Copies `snapshot` to the device.
    ///
    /// # Errors
    /// Those of the device.
    pub fn new<D: Device<Buffer = B>>(device: &D, snapshot: &TreeSnapshot) -> Result<Self> {
        let (bytes, parts) = pack_snapshot(snapshot);
        let mut buffer = device.alloc(bytes.len())?;
        device.upload(&mut buffer, 0, &bytes)?;
        Ok(Self { bytes, tree: DeviceTree { buffer, parts } })
    }

    /// True where `snapshot` has the same bytes.
    pub fn is(&self, snapshot: &TreeSnapshot) -> bool {
        self.tree.parts.count as usize == snapshot.tree.count(0)
            && self.tree.parts.num_history as usize == snapshot.history.len()
            && pack_snapshot(snapshot).0 == self.bytes
    }
}

/// Copies row `b` to the host.
///
/// # Errors
/// Those of the device.
pub fn download<D: Device>(
    arrays: &SearchArrays<D>,
    layout: &SearchLayout,
    b: usize,
    history: &[u64],
) -> Result<TreeSnapshot> {
    let SearchArrays { device, rows, .. } = arrays;
    let mut count = [0u8; 4];
    device.download(&rows.counts, 4 * b, &mut count)?;
    let nodes = u32::from_ne_bytes(count) as usize;
    let row = layout.row_bytes().arrays;
    let mut tree = Tree::new(TreeShape { rows: 1, nodes, ..layout.shape });
    let parts = [
        (&rows.nodes, row.nodes),
        (&rows.edges, row.edges),
        (&rows.actions, row.actions),
        (&rows.values, row.values),
    ];
    for ((from, bytes), to) in parts.into_iter().zip(tree.row_bytes_mut(nodes)) {
        device.download(from, b * bytes, to)?;
    }
    let mut states = vec![0; nodes * layout.state_size];
    device.download(&rows.states, b * row.states, &mut states)?;
    Ok(TreeSnapshot { tree, states, history: history.to_vec() })
}
