//! Copies of one row's tree between device and host.

use super::arrays::{Arrays, DeviceTree, Which};
use super::device::Device;
use super::layout::Layout;
use super::packing::pack_snapshot;
use crate::backend::Snapshot;
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
    /// What the device says.
    pub fn new<D: Device<Buffer = B>>(device: &D, snapshot: &Snapshot) -> Result<Self> {
        let (bytes, parts) = pack_snapshot(snapshot);
        let mut buffer = device.alloc(bytes.len())?;
        device.upload(&mut buffer, 0, &bytes)?;
        let count = snapshot.tree.count(0) as u32;
        let num_history = snapshot.history.len() as u32;
        Ok(Self { bytes, tree: DeviceTree { buffer, parts, count, num_history } })
    }

    /// True where `snapshot` has the same bytes.
    pub fn is(&self, snapshot: &Snapshot) -> bool {
        self.tree.count as usize == snapshot.tree.count(0)
            && self.tree.num_history as usize == snapshot.history.len()
            && pack_snapshot(snapshot).0 == self.bytes
    }
}

/// Copies row `b` to the host.
///
/// # Errors
/// What the device says.
pub fn download<D: Device>(
    arrays: &Arrays<D>,
    layout: &Layout,
    b: usize,
    history: &[u64],
) -> Result<Snapshot> {
    let mut count = [0u8; 4];
    arrays.device.download(arrays.row_array(Which::Counts), 4 * b, &mut count)?;
    let nodes = u32::from_ne_bytes(count) as usize;
    let row_bytes = layout.row_bytes().arrays;
    let fetch = |which: Which, to: &mut [u8]| {
        arrays.device.download(arrays.row_array(which), b * row_bytes[which as usize], to)
    };
    let mut tree = Tree::new(TreeShape { rows: 1, nodes, ..layout.shape });
    let parts = [Which::Nodes, Which::Edges, Which::Actions, Which::Values];
    for (which, to) in parts.into_iter().zip(tree.row_bytes_mut(nodes)) {
        fetch(which, to)?;
    }
    let mut states = vec![0; nodes * layout.state_size];
    fetch(Which::States, &mut states)?;
    Ok(Snapshot { tree, states, history: history.to_vec() })
}
