//! The sizes of an edge network: the vertices of K_n and their layer.

use super::layer::{ForwardLayer, LayerSpec};
use crate::device::Limits;
use crate::error::{Error, Result};
use crate::model::Tower;

/// The vertices of K_n and their layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeGraph {
    pub vertices: usize,
    /// Channels that are multiplied around triangles.
    pub triangle_channels: usize,
    /// The message of a vertex to its edges, from the mean over them.
    pub layer: ForwardLayer,
}

impl EdgeGraph {
    /// Those of `tower` on K_n, whose layers at edges are as `edges`, for `boards` boards.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where blocks mix different numbers of channels around triangles, and as [`ForwardLayer::new`].
    pub fn new(
        tower: &Tower,
        vertices: usize,
        edges: LayerSpec,
        boards: usize,
        limits: Limits,
    ) -> Result<Self> {
        let mut mixed = tower.blocks.iter().map(|block| block.triangle_channels);
        let triangle_channels = mixed.next().unwrap_or(0);
        if mixed.any(|channels| channels != triangle_channels) {
            let why = "its blocks mix different numbers of channels around triangles";
            return Err(Error::unsupported("the network's kernels on a GPU", why));
        }
        let layer = LayerSpec { height: vertices, width: 1, ..edges };
        Ok(Self { vertices, triangle_channels, layer: ForwardLayer::new(layer, boards * vertices, limits)? })
    }
}
