//! The search trees of B rows as fixed-shape arrays. Knows no game.
//!
//! | array | shape | content |
//! |---|---|---|
//! | `nodes` | `[B, T]` | [`Node`]: parent, visits, player to move, proven bounds |
//! | `edges` | `[B, T, 4, Ep]` | prior, visits, value sum and child of each edge; a node's four arrays are contiguous |
//! | `actions` | `[B, T, Ep]` | the action of each edge |
//! | `values` | `[B, T, P]` | the node's own evaluation, or its proven value |
//! | `counts` | `[B]` | nodes in use |
//!
//! Ep is E rounded up to a multiple of [`LANES`]. A node's edge block starts on a cache line, so a descent reads two cache
//! lines per node where E <= 8. From `num_edges` up to the next multiple of [`LANES`], edges have value sum -inf, so no
//! selection rule picks them. An edge that is proven lost for the player to move ("refuted") is marked in the same way.
//! Edges beyond that multiple are uninitialised and never read.
//!
//! A parent's index is always below its child's.

mod row;

use crate::device_struct::{device_constants, device_enum, device_struct};
use crate::simd::LANES;
use bytemuck::allocation::zeroed_vec;
use bytemuck::{Pod, Zeroable};
use std::slice::{ChunksExactMut, IterMut};

pub use row::{NodeEdges, NodeEdgesMut, RowMut};

device_constants! {
    fn device_constants;
    /// The root's index in every row.
    pub const ROOT: i32 = 0;
    /// The absent node: child of an edge that was never taken, parent of the root.
    pub const NO_NODE: i32 = -1;
    /// The bits of [`REFUTED`], -inf.
    const REFUTED_BITS: u32 = f32::NEG_INFINITY.to_bits();
}

/// Value sum of an edge that selection must skip: padding, or proven lost.
pub const REFUTED: f32 = f32::from_bits(REFUTED_BITS);

device_enum! {
    /// The kind of a node.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NodeKind: u8 {
        /// Added in this pass; its network evaluation is pending.
        Unevaluated = 0,
        /// A player moves.
        Decision = 1,
        /// Chance draws an outcome.
        Chance = 2,
        /// The game is over.
        Terminal = 3,
        /// A new deal begins. The node is a leaf whose value is the result of the round before.
        Horizon = 4,
    }
}

device_struct! {
    /// One node's scalars.
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
    pub struct Node {
        /// Index of the parent, [`NO_NODE`] at the root.
        pub parent: i32,
        /// Simulations that passed through or ended here, those in flight included.
        pub visits: i32,
        /// Sum of the values backed up through here, for `player`.
        pub value_sum: f32,
        /// Proven lower bound of the game's value for `player`; -1 at first.
        pub lower: f32,
        /// Proven upper bound of the game's value for `player`; 1 at first. The value is proven when `lower == upper`.
        pub upper: f32,
        /// The parent's edge that leads here.
        pub parent_edge: u16,
        /// Edges in use.
        pub num_edges: u16,
        /// Edges from the row's first root to here. Subtree reuse does not renumber it, so only differences are meaningful.
        pub depth: u16,
        /// The player to move; 0 at chance and terminal nodes.
        pub player: u8,
        kind: u8 as "NodeKind",
        /// 1 if the bounds have changed since they were last propagated to the parent.
        bounds_dirty: u8,
        padding: [u8; 3],
    }
}

impl Node {
    /// A node with no evaluation, visits or edges yet.
    pub fn new(parent: i32, parent_edge: u16) -> Self {
        Self { parent, parent_edge, lower: -1.0, upper: 1.0, ..Self::zeroed() }
    }

    /// The kind of the node.
    #[inline(always)]
    pub fn kind(&self) -> NodeKind {
        match self.kind {
            1 => NodeKind::Decision,
            2 => NodeKind::Chance,
            3 => NodeKind::Terminal,
            4 => NodeKind::Horizon,
            _ => NodeKind::Unevaluated,
        }
    }

    /// Sets the kind of the node.
    #[inline(always)]
    pub fn set_kind(&mut self, kind: NodeKind) {
        self.kind = kind as u8;
    }

    /// True if the bounds meet. The tree's `values` then hold the game-theoretic value.
    #[inline(always)]
    pub fn is_proven(&self) -> bool {
        self.lower >= self.upper
    }

    /// Sets the bounds and marks them dirty.
    #[inline(always)]
    pub fn set_bounds(&mut self, lower: f32, upper: f32) {
        (self.lower, self.upper, self.bounds_dirty) = (lower, upper, 1);
    }

    /// True if the bounds have changed since they were last propagated to the parent.
    #[inline(always)]
    pub fn is_bounds_dirty(&self) -> bool {
        self.bounds_dirty != 0
    }

    /// Marks the bounds as propagated to the parent.
    #[inline(always)]
    pub fn clear_bounds_dirty(&mut self) {
        self.bounds_dirty = 0;
    }

    /// The bounds (lower, upper) from the view of `player`, in a two-player zero-sum game.
    #[inline(always)]
    pub fn bounds_for(&self, player: u8) -> (f32, f32) {
        if player == self.player { (self.lower, self.upper) } else { (-self.upper, -self.lower) }
    }

    /// Mean value backed up, for `player`; 0 before the first visit. Visits that are not backed up yet count as 0.
    #[inline(always)]
    pub fn mean(&self) -> f32 {
        if self.visits > 0 { self.value_sum / self.visits as f32 } else { 0.0 }
    }
}

/// The sizes of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeShape {
    /// B.
    pub rows: usize,
    /// T.
    pub nodes: usize,
    /// E.
    pub edges: usize,
    /// P.
    pub players: usize,
    /// True if a loss of one of two players is the gain of the other.
    pub zero_sum_pair: bool,
}

impl TreeShape {
    /// Ep: E padded.
    pub fn padded(&self) -> usize {
        self.edges.div_ceil(LANES) * LANES
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        let node = size_of::<Node>() + self.padded() * (4 * 4 + 2) + self.players * 4;
        self.nodes * node + 4
    }
}

/// One cache line of edge fields.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u32; 16]);

/// B trees.
pub struct Tree {
    shape: TreeShape,
    nodes: Vec<Node>,      // [B, T]
    edges: Vec<CacheLine>, // [B, T, 4, Ep] 32-bit words
    actions: Vec<u16>,     // [B, T, Ep]
    values: Vec<f32>,      // [B, T, P]
    counts: Vec<u32>,      // [B]
}

impl Tree {
    /// B empty trees. The memory is that of zeroed pages, which the system gives at their first use.
    pub fn new(shape: TreeShape) -> Self {
        let cells = shape.rows * shape.nodes;
        let padded = shape.padded();
        Self {
            shape,
            nodes: zeroed_vec(cells),
            edges: zeroed_vec((cells * 4 * padded).div_ceil(16)),
            actions: vec![0; cells * padded],
            values: vec![0.0; cells * shape.players],
            counts: vec![0; shape.rows],
        }
    }

    /// The sizes of the axes.
    pub fn shape(&self) -> TreeShape {
        self.shape
    }

    /// Nodes in use in row `b`.
    pub fn count(&self, b: usize) -> usize {
        self.counts[b] as usize
    }

    /// Row `b`.
    #[inline(always)]
    pub fn row_mut(&mut self, b: usize) -> RowMut<'_> {
        let (t, padded, p) = (self.shape.nodes, self.shape.padded(), self.shape.players);
        let edges: &mut [u32] = bytemuck::cast_slice_mut(&mut self.edges);
        RowMut {
            shape: self.shape,
            nodes: &mut self.nodes[b * t..(b + 1) * t],
            edges: &mut edges[b * t * 4 * padded..(b + 1) * t * 4 * padded],
            actions: &mut self.actions[b * t * padded..(b + 1) * t * padded],
            values: &mut self.values[b * t * p..(b + 1) * t * p],
            count: &mut self.counts[b],
            padded,
        }
    }

    /// All rows in order.
    pub fn rows_mut(&mut self) -> RowsMut<'_> {
        self.rows_from(0)
    }

    /// The rows from row `b` on.
    #[inline(always)]
    pub fn rows_from(&mut self, b: usize) -> RowsMut<'_> {
        let (shape, t, padded) = (self.shape, self.shape.nodes, self.shape.padded());
        let (block, first) = (4 * padded, b * t);
        let edges: &mut [u32] = bytemuck::cast_slice_mut(&mut self.edges);
        RowsMut {
            shape,
            padded,
            nodes: self.nodes[first..].chunks_exact_mut(t),
            edges: edges[first * block..].chunks_exact_mut(t * block),
            actions: self.actions[first * padded..].chunks_exact_mut(t * padded),
            values: self.values[first * shape.players..].chunks_exact_mut(t * shape.players),
            counts: self.counts[b..].iter_mut(),
        }
    }

    /// Copies all nodes of row `from_row` of `from` into row `b`. Both trees have the same E and P; the source row has at
    /// most T nodes.
    pub fn copy_row(&mut self, b: usize, from: &Tree, from_row: usize) {
        let count = from.counts[from_row] as usize;
        let (padded, p) = (self.shape.padded(), self.shape.players);
        let (to, at) = (b * self.shape.nodes, from_row * from.shape.nodes);
        self.nodes[to..to + count].copy_from_slice(&from.nodes[at..at + count]);
        let block = 4 * padded;
        let source: &[u32] = bytemuck::cast_slice(&from.edges);
        let target: &mut [u32] = bytemuck::cast_slice_mut(&mut self.edges);
        target[to * block..(to + count) * block].copy_from_slice(&source[at * block..(at + count) * block]);
        self.actions[to * padded..(to + count) * padded]
            .copy_from_slice(&from.actions[at * padded..(at + count) * padded]);
        self.values[to * p..(to + count) * p].copy_from_slice(&from.values[at * p..(at + count) * p]);
        self.counts[b] = count as u32;
    }
}

/// The rows of a [`Tree`] in order.
pub struct RowsMut<'a> {
    shape: TreeShape,
    padded: usize,
    nodes: ChunksExactMut<'a, Node>,
    edges: ChunksExactMut<'a, u32>,
    actions: ChunksExactMut<'a, u16>,
    values: ChunksExactMut<'a, f32>,
    counts: IterMut<'a, u32>,
}

impl<'a> Iterator for RowsMut<'a> {
    type Item = RowMut<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<RowMut<'a>> {
        Some(RowMut {
            shape: self.shape,
            nodes: self.nodes.next()?,
            edges: self.edges.next()?,
            actions: self.actions.next()?,
            values: self.values.next()?,
            count: self.counts.next()?,
            padded: self.padded,
        })
    }
}

/// The raw bytes of nodes, edges, actions and values, in the layout of the kernels.
impl Tree {
    /// The bytes of row `b`'s nodes in use.
    pub fn row_bytes(&self, b: usize) -> [&[u8]; 4] {
        let (at, count) = (b * self.shape.nodes, self.counts[b] as usize);
        let (padded, p) = (self.shape.padded(), self.shape.players);
        let edges: &[u32] = bytemuck::cast_slice(&self.edges);
        [
            bytemuck::cast_slice(&self.nodes[at..at + count]),
            bytemuck::cast_slice(&edges[at * 4 * padded..(at + count) * 4 * padded]),
            bytemuck::cast_slice(&self.actions[at * padded..(at + count) * padded]),
            bytemuck::cast_slice(&self.values[at * p..(at + count) * p]),
        ]
    }

    /// Sets row 0's node count to `count` and returns its bytes for writing.
    pub fn row_bytes_mut(&mut self, count: usize) -> [&mut [u8]; 4] {
        let (padded, p) = (self.shape.padded(), self.shape.players);
        self.counts[0] = count as u32;
        let edges: &mut [u32] = bytemuck::cast_slice_mut(&mut self.edges);
        [
            bytemuck::cast_slice_mut(&mut self.nodes[..count]),
            bytemuck::cast_slice_mut(&mut edges[..count * 4 * padded]),
            bytemuck::cast_slice_mut(&mut self.actions[..count * padded]),
            bytemuck::cast_slice_mut(&mut self.values[..count * p]),
        ]
    }
}
