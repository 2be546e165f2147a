//! The search trees of B rows as fixed-shape arrays. Knows no game.
//!
//! | array | shape | what |
//! |---|---|---|
//! | `nodes` | `[B, T]` | [`Node`]: parent, visits, who moves, proven bounds |
//! | `edges` | `[B, T, 4, Ep]` | prior, visits, value sum, child of each edge, a node's four fields side by side |
//! | `actions` | `[B, T, Ep]` | the action an edge stands for |
//! | `values` | `[B, T, P]` | the node's own evaluation, or its proven value |
//! | `counts` | `[B]` | nodes in use |
//!
//! Ep is E rounded up to a whole number of [`LANES`]. A node's edge block starts on a cache line, so a descent touches
//! two lines a node where E <= 8. Edges past `num_edges` have value sum -inf, which no selection rule ever picks; an edge
//! that is proven lost for the mover is marked in the same way ("refuted").
//!
//! A parent's index is below its child's, always.

use crate::isa::prefetch;
use crate::lanes::LANES;
use bytemuck::{Pod, Zeroable};
use std::slice::{ChunksExactMut, IterMut};

/// The root's index in every row.
pub const ROOT: i32 = 0;
/// No such node: an edge that was never taken, the root's parent.
pub const NO_NODE: i32 = -1;
/// Value sum of an edge that must not be taken: padding, or proven lost.
pub const REFUTED: f32 = f32::NEG_INFINITY;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Made in this pass; its evaluation is under way.
    New = 0,
    /// A player moves.
    Decision = 1,
    /// An outcome is dealt.
    Chance = 2,
    /// The game is over.
    Terminal = 3,
    /// A new deal begins: the standing so far is the value, nothing below.
    Horizon = 4,
}

/// One node's scalars.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Node {
    /// Index of the parent, [`NO_NODE`] at the root.
    pub parent: i32,
    /// Simulations that passed through or ended here; leaves in flight count.
    pub visits: i32,
    /// Sum of the values backed up through here, for the player who moves here.
    pub value_sum: f32,
    /// The least that the game is proven to be worth here, for `player`; -1 at first.
    pub lower: f32,
    /// The most that it can be worth, for `player`; 1 at first. Not below `lower`; proven where both are one.
    pub upper: f32,
    /// The parent's edge that leads here.
    pub parent_edge: u16,
    /// Edges in use.
    pub num_edges: u16,
    /// Edges from the first root of the row to here; only differences mean something.
    pub depth: u16,
    /// The player who moves here (0 where nobody does).
    pub player: u8,
    kind: u8,
    /// 1 where the bounds have changed since the parent was told.
    news: u8,
    padding: [u8; 3],
}

impl Node {
    /// A node with no evaluation, visits or edges yet.
    pub fn new(parent: i32, parent_edge: u16) -> Self {
        Self { parent, parent_edge, lower: -1.0, upper: 1.0, ..Self::zeroed() }
    }

    /// What the node is.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        match self.kind {
            1 => Kind::Decision,
            2 => Kind::Chance,
            3 => Kind::Terminal,
            4 => Kind::Horizon,
            _ => Kind::New,
        }
    }

    /// Says what the node is.
    #[inline(always)]
    pub fn set_kind(&mut self, kind: Kind) {
        self.kind = kind as u8;
    }

    /// True where `values` holds the game-theoretic value.
    #[inline(always)]
    pub fn is_proven(&self) -> bool {
        self.lower >= self.upper
    }

    /// Narrows the bounds; the parent has not been told yet.
    #[inline(always)]
    pub fn set_bounds(&mut self, lower: f32, upper: f32) {
        (self.lower, self.upper, self.news) = (lower, upper, 1);
    }

    /// True where the bounds have changed since the parent was told.
    #[inline(always)]
    pub fn has_news(&self) -> bool {
        self.news != 0
    }

    /// The parent knows the bounds.
    #[inline(always)]
    pub fn clear_news(&mut self) {
        self.news = 0;
    }

    /// The bounds as `player` sees them, one of two whose values sum to 0.
    #[inline(always)]
    pub fn bounds_for(&self, player: u8) -> (f32, f32) {
        if player == self.player { (self.lower, self.upper) } else { (-self.upper, -self.lower) }
    }

    /// Mean value backed up, for the player who moves here; 0 before the first.
    #[inline(always)]
    pub fn mean(&self) -> f32 {
        if self.visits > 0 { self.value_sum / self.visits as f32 } else { 0.0 }
    }
}

/// The lengths of the axes.
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

/// A cache line of edge fields.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u32; 16]);

/// B trees.
pub struct Tree {
    shape: TreeShape,
    nodes: Vec<Node>,
    edges: Vec<Line>,
    actions: Vec<u16>,
    values: Vec<f32>,
    counts: Vec<u32>,
}

/// One row of a [`Tree`].
pub struct RowMut<'a> {
    /// The lengths of the axes.
    pub shape: TreeShape,
    /// `[T]`
    pub nodes: &'a mut [Node],
    /// `[T, 4, Ep]`
    edges: &'a mut [u32],
    /// `[T, Ep]`
    actions: &'a mut [u16],
    /// `[T, P]`
    values: &'a mut [f32],
    /// Nodes in use.
    pub count: &'a mut u32,
    padded: usize,
}

/// One node's edges. All slices are `[Ep]`.
#[derive(Clone, Copy)]
pub struct Edges<'a> {
    /// Probability of each edge: the network's prior, or the chance of the outcome.
    pub prior: &'a [f32],
    /// Simulations that took the edge; leaves in flight count.
    pub visits: &'a [i32],
    /// Sum of values for the player who moves at the node; [`REFUTED`] where the edge must not be taken.
    pub value_sum: &'a [f32],
    /// Index of the child, or [`NO_NODE`].
    pub child: &'a [i32],
}

impl Edges<'_> {
    /// The same where they are a single group of lanes, with a length that the compiler knows.
    #[inline(always)]
    pub fn only_group(&self) -> Option<Self> {
        if self.prior.len() != LANES {
            return None;
        }
        Some(Self {
            prior: &self.prior[..LANES],
            visits: &self.visits[..LANES],
            value_sum: &self.value_sum[..LANES],
            child: &self.child[..LANES],
        })
    }
}

/// One node's edges, to be written. All slices are `[Ep]`.
pub struct EdgesMut<'a> {
    /// See [`Edges::prior`].
    pub prior: &'a mut [f32],
    /// See [`Edges::visits`].
    pub visits: &'a mut [i32],
    /// See [`Edges::value_sum`].
    pub value_sum: &'a mut [f32],
    /// See [`Edges::child`].
    pub child: &'a mut [i32],
}

impl Tree {
    /// B empty trees.
    pub fn new(shape: TreeShape) -> Self {
        let cells = shape.rows * shape.nodes;
        let padded = shape.padded();
        Self {
            shape,
            nodes: vec![Node::zeroed(); cells],
            edges: vec![Line::zeroed(); (cells * 4 * padded).div_ceil(16)],
            actions: vec![0; cells * padded],
            values: vec![0.0; cells * shape.players],
            counts: vec![0; shape.rows],
        }
    }

    /// The lengths of the axes.
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
        let (shape, t, padded) = (self.shape, self.shape.nodes, self.shape.padded());
        let edges: &mut [u32] = bytemuck::cast_slice_mut(&mut self.edges);
        RowsMut {
            shape,
            padded,
            nodes: self.nodes.chunks_exact_mut(t),
            edges: edges.chunks_exact_mut(t * 4 * padded),
            actions: self.actions.chunks_exact_mut(t * padded),
            values: self.values.chunks_exact_mut(t * shape.players),
            counts: self.counts.iter_mut(),
        }
    }

    /// Copies the first nodes of row `from_row` of `from` into row `b`, all of them if they fit. Both trees have the same
    /// edges and players; the source holds at most T nodes.
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

/// Bytes of nodes, edges, actions and values, as kernels have them.
impl Tree {
    /// The nodes in use of row `b`.
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

    /// The first row, to be written, which has `count` nodes from now on.
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

impl RowMut<'_> {
    /// Ep.
    #[inline(always)]
    pub fn padded(&self) -> usize {
        self.padded
    }

    /// The edges of node `n`.
    #[inline(always)]
    pub fn edges(&self, n: i32) -> Edges<'_> {
        let ep = self.padded;
        let block = &self.edges[n as usize * 4 * ep..][..4 * ep];
        let (prior, rest) = block.split_at(ep);
        let (visits, rest) = rest.split_at(ep);
        let (value_sum, child) = rest.split_at(ep);
        Edges {
            prior: bytemuck::cast_slice(prior),
            visits: bytemuck::cast_slice(visits),
            value_sum: bytemuck::cast_slice(value_sum),
            child: bytemuck::cast_slice(child),
        }
    }

    /// The edges of node `n`, to be written.
    #[inline(always)]
    pub fn edges_mut(&mut self, n: i32) -> EdgesMut<'_> {
        let ep = self.padded;
        let block = &mut self.edges[n as usize * 4 * ep..][..4 * ep];
        let (prior, rest) = block.split_at_mut(ep);
        let (visits, rest) = rest.split_at_mut(ep);
        let (value_sum, child) = rest.split_at_mut(ep);
        EdgesMut {
            prior: bytemuck::cast_slice_mut(prior),
            visits: bytemuck::cast_slice_mut(visits),
            value_sum: bytemuck::cast_slice_mut(value_sum),
            child: bytemuck::cast_slice_mut(child),
        }
    }

    /// The actions of node `n`'s edges, padding included. `[Ep]`
    #[inline(always)]
    pub fn actions(&self, n: i32) -> &[u16] {
        &self.actions[n as usize * self.padded..][..self.padded]
    }

    /// The actions of node `n`'s edges, to be written. `[Ep]`
    #[inline(always)]
    pub fn actions_mut(&mut self, n: i32) -> &mut [u16] {
        &mut self.actions[n as usize * self.padded..][..self.padded]
    }

    /// The actions of node `n` and, to be written, its priors. `[Ep]` each
    #[inline(always)]
    pub fn actions_and_priors(&mut self, n: i32) -> (&[u16], &mut [f32]) {
        let (at, ep) = (n as usize, self.padded);
        let prior = &mut self.edges[at * 4 * ep..][..ep];
        (&self.actions[at * ep..][..ep], bytemuck::cast_slice_mut(prior))
    }

    /// Asks the processor to fetch what a descent reads of node `n` first.
    #[inline(always)]
    pub fn prefetch(&self, n: i32) {
        let (at, ep) = (n as usize, self.padded);
        for line in (0..4 * ep).step_by(16).take(4) {
            prefetch(self.edges, at * 4 * ep + line);
        }
        prefetch(self.nodes, at);
        prefetch(self.values, at * self.shape.players);
    }

    /// Asks the processor to fetch what making a child of `parent` reads and writes.
    #[inline(always)]
    pub fn prefetch_child(&self, parent: i32) {
        prefetch(self.actions, parent as usize * self.padded);
        prefetch(self.actions, *self.count as usize * self.padded);
        self.prefetch(*self.count as i32);
    }

    /// What the mover at `node` is proven to get at least, and can get at most, through `edge`.
    #[inline(always)]
    pub fn edge_bounds(&self, node: i32, edge: usize) -> (f32, f32) {
        let edges = self.edges(node);
        match edges.child[edge] {
            _ if edges.value_sum[edge] == REFUTED => (-1.0, -1.0),
            NO_NODE => (-1.0, 1.0),
            child => self.nodes[child as usize].bounds_for(self.nodes[node as usize].player),
        }
    }

    /// The evaluation of node `n`. `[P]`
    #[inline(always)]
    pub fn value(&self, n: i32) -> &[f32] {
        let p = self.shape.players;
        &self.values[n as usize * p..][..p]
    }

    /// The evaluation of node `n`, to be written. `[P]`
    #[inline(always)]
    pub fn value_mut(&mut self, n: i32) -> &mut [f32] {
        let p = self.shape.players;
        &mut self.values[n as usize * p..][..p]
    }

    /// Gives node `n` the evaluation of the node `from`.
    #[inline(always)]
    pub fn inherit_value(&mut self, n: i32, from: i32) {
        let (to, from, p) = (n as usize, from as usize, self.shape.players);
        self.values.copy_within(from * p..(from + 1) * p, to * p);
    }

    /// True where no further node fits.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        *self.count as usize >= self.nodes.len()
    }

    /// Empties the row and makes its root, of no kind yet.
    pub fn plant(&mut self) -> i32 {
        *self.count = 1;
        self.nodes[0] = Node::new(NO_NODE, 0);
        ROOT
    }

    /// Makes the child of `parent` through `edge`. The row must not be full.
    #[inline(always)]
    pub fn add(&mut self, parent: i32, edge: usize) -> i32 {
        let child = *self.count as i32;
        *self.count += 1;
        let depth = self.nodes[parent as usize].depth.saturating_add(1);
        self.nodes[child as usize] = Node { depth, ..Node::new(parent, edge as u16) };
        self.edges_mut(parent).child[edge] = child;
        child
    }

    /// Gives node `n` its edges: `num_edges` open ones, never taken; actions and priors are the caller's to write.
    #[inline(always)]
    pub fn open_edges(&mut self, n: i32, num_edges: usize) {
        let node = &mut self.nodes[n as usize];
        node.num_edges = num_edges as u16;
        let edges = self.edges_mut(n);
        edges.prior.fill(0.0);
        edges.visits.fill(0);
        edges.value_sum[..num_edges].fill(0.0);
        edges.value_sum[num_edges..].fill(REFUTED);
        edges.child.fill(NO_NODE);
    }

    /// Moves node `from` with its edges, actions and values to index `to`, where `to` <= `from`.
    pub fn relocate(&mut self, from: i32, to: i32) {
        if from == to {
            return;
        }
        let (f, t, ep, p) = (from as usize, to as usize, self.padded, self.shape.players);
        self.nodes[t] = self.nodes[f];
        self.edges.copy_within(f * 4 * ep..(f + 1) * 4 * ep, t * 4 * ep);
        self.actions.copy_within(f * ep..(f + 1) * ep, t * ep);
        self.values.copy_within(f * p..(f + 1) * p, t * p);
    }
}
