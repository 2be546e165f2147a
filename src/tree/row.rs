//! One row of a tree: its nodes, their edges, and prefetches of both.

use super::{NO_NODE, Node, REFUTED, ROOT, TreeShape};
use crate::isa::prefetch;
use crate::simd::LANES;
use std::ops::Range;

/// 32-bit words of a cache line.
const LINE: usize = 16;

/// One row of a [`super::Tree`].
pub struct RowMut<'a> {
    /// The sizes of the axes.
    pub shape: TreeShape,
    /// `[T]`
    pub nodes: &'a mut [Node],
    /// `[T, 4, Ep]`
    pub(super) edges: &'a mut [u32],
    /// `[T, Ep]`
    pub(super) actions: &'a mut [u16],
    /// `[T, P]`
    pub(super) values: &'a mut [f32],
    /// Nodes in use.
    pub count: &'a mut u32,
    pub(super) padded: usize,
}

/// One node's edges. All slices are `[Ep]`.
#[derive(Clone, Copy)]
pub struct NodeEdges<'a> {
    /// Probability of each edge: the network's prior, or the probability of the chance outcome.
    pub prior: &'a [f32],
    /// Simulations that took the edge, those in flight included.
    pub visits: &'a [i32],
    /// Sum of values for the player to move at the node; [`REFUTED`] for an edge that selection must skip.
    pub value_sum: &'a [f32],
    /// Index of the child, or [`NO_NODE`].
    pub child: &'a [i32],
}

impl NodeEdges<'_> {
    /// The first `count` edges.
    #[inline(always)]
    fn first(self, count: usize) -> Self {
        Self {
            prior: &self.prior[..count],
            visits: &self.visits[..count],
            value_sum: &self.value_sum[..count],
            child: &self.child[..count],
        }
    }
}

/// One node's edges, mutable. All slices are `[Ep]`.
pub struct NodeEdgesMut<'a> {
    /// See [`NodeEdges::prior`].
    pub prior: &'a mut [f32],
    /// See [`NodeEdges::visits`].
    pub visits: &'a mut [i32],
    /// See [`NodeEdges::value_sum`].
    pub value_sum: &'a mut [f32],
    /// See [`NodeEdges::child`].
    pub child: &'a mut [i32],
}

impl NodeEdgesMut<'_> {
    /// The edges in `range`.
    #[inline(always)]
    fn within(self, range: Range<usize>) -> Self {
        Self {
            prior: &mut self.prior[range.clone()],
            visits: &mut self.visits[range.clone()],
            value_sum: &mut self.value_sum[range.clone()],
            child: &mut self.child[range],
        }
    }

    /// Resets all edges to unvisited; those from `num_edges` on become [`REFUTED`] padding.
    #[inline(always)]
    fn open(self, num_edges: usize) {
        self.prior.fill(0.0);
        self.visits.fill(0);
        for (edge, sum) in self.value_sum.iter_mut().enumerate() {
            *sum = if edge < num_edges { 0.0 } else { REFUTED };
        }
        self.child.fill(NO_NODE);
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
    pub fn edges(&self, n: i32) -> NodeEdges<'_> {
        let ep = self.padded;
        let block = &self.edges[n as usize * 4 * ep..][..4 * ep];
        let (prior, rest) = block.split_at(ep);
        let (visits, rest) = rest.split_at(ep);
        let (value_sum, child) = rest.split_at(ep);
        NodeEdges {
            prior: bytemuck::cast_slice(prior),
            visits: bytemuck::cast_slice(visits),
            value_sum: bytemuck::cast_slice(value_sum),
            child: bytemuck::cast_slice(child),
        }
    }

    /// The child of `edge` of node `n`, or [`NO_NODE`].
    #[inline(always)]
    pub fn child(&self, n: i32, edge: usize) -> i32 {
        self.edges[(n as usize * 4 + 3) * self.padded + edge] as i32
    }

    /// The edges of node `n` in use, padded to a multiple of [`LANES`].
    #[inline(always)]
    pub fn used_edges(&self, n: i32) -> NodeEdges<'_> {
        self.edges(n).first(self.used(n))
    }

    /// Number of edges of node `n` in use, rounded up to a multiple of [`LANES`].
    #[inline(always)]
    fn used(&self, n: i32) -> usize {
        usize::from(self.nodes[n as usize].num_edges).next_multiple_of(LANES)
    }

    /// The edges of node `n`, mutable.
    #[inline(always)]
    pub fn edges_mut(&mut self, n: i32) -> NodeEdgesMut<'_> {
        let ep = self.padded;
        let block = &mut self.edges[n as usize * 4 * ep..][..4 * ep];
        let (prior, rest) = block.split_at_mut(ep);
        let (visits, rest) = rest.split_at_mut(ep);
        let (value_sum, child) = rest.split_at_mut(ep);
        NodeEdgesMut {
            prior: bytemuck::cast_slice_mut(prior),
            visits: bytemuck::cast_slice_mut(visits),
            value_sum: bytemuck::cast_slice_mut(value_sum),
            child: bytemuck::cast_slice_mut(child),
        }
    }

    /// Visits and value sum of `edge` of node `n`, mutable.
    #[inline(always)]
    pub fn edge_mut(&mut self, n: i32, edge: usize) -> (&mut i32, &mut f32) {
        let ep = self.padded;
        let block = &mut self.edges[n as usize * 4 * ep + ep..][..2 * ep];
        let (visits, value_sum) = block.split_at_mut(ep);
        (bytemuck::cast_mut(&mut visits[edge]), bytemuck::cast_mut(&mut value_sum[edge]))
    }

    /// The edges of node `n` if Ep is [`LANES`], as slices whose length is a compile-time constant after inlining.
    #[inline(always)]
    pub fn single_vector(&self, n: i32) -> Option<NodeEdges<'_>> {
        if self.padded != LANES {
            return None;
        }
        let block = &self.edges.as_chunks::<{ 4 * LANES }>().0[n as usize];
        let [prior, visits, value_sum, child]: &[[u32; LANES]; 4] = bytemuck::cast_ref(block);
        Some(NodeEdges {
            prior: bytemuck::cast_slice(prior),
            visits: bytemuck::cast_slice(visits),
            value_sum: bytemuck::cast_slice(value_sum),
            child: bytemuck::cast_slice(child),
        })
    }

    /// [`Self::single_vector`], mutable.
    #[inline(always)]
    fn single_vector_mut(&mut self, n: i32) -> Option<NodeEdgesMut<'_>> {
        if self.padded != LANES {
            return None;
        }
        let block = &mut self.edges.as_chunks_mut::<{ 4 * LANES }>().0[n as usize];
        let [prior, visits, value_sum, child]: &mut [[u32; LANES]; 4] = bytemuck::cast_mut(block);
        Some(NodeEdgesMut {
            prior: bytemuck::cast_slice_mut(prior),
            visits: bytemuck::cast_slice_mut(visits),
            value_sum: bytemuck::cast_slice_mut(value_sum),
            child: bytemuck::cast_slice_mut(child),
        })
    }

    /// The actions of node `n`'s edges, padding included. `[Ep]`
    #[inline(always)]
    pub fn actions(&self, n: i32) -> &[u16] {
        &self.actions[n as usize * self.padded..][..self.padded]
    }

    /// The actions of node `n`'s edges, mutable. `[Ep]`
    #[inline(always)]
    pub fn actions_mut(&mut self, n: i32) -> &mut [u16] {
        &mut self.actions[n as usize * self.padded..][..self.padded]
    }

    /// The actions of node `n` and its priors, mutable. `[Ep]` each
    #[inline(always)]
    pub fn actions_and_priors(&mut self, n: i32) -> (&[u16], &mut [f32]) {
        let (at, ep) = (n as usize, self.padded);
        let prior = &mut self.edges[at * 4 * ep..][..ep];
        (&self.actions[at * ep..][..ep], bytemuck::cast_slice_mut(prior))
    }

    /// Prefetches the data of node `n` that a descent reads: its scalars and the prior, visits and value sum of `num_edges` edges. The
    /// caller passes the parent's edge count as an estimate, since the node's own count is not in cache yet.
    #[inline(always)]
    pub fn prefetch(&self, n: i32, num_edges: usize) {
        let (at, ep) = (n as usize, self.padded);
        let block = at * 4 * ep;
        if ep == LANES {
            // The four fields fill two cache lines.
            prefetch(self.edges, block);
            prefetch(self.edges, block + LINE);
        } else {
            for edge in (0..num_edges.min(ep)).step_by(LINE) {
                prefetch(self.edges, block + edge);
                prefetch(self.edges, block + ep + edge);
                prefetch(self.edges, block + 2 * ep + edge);
            }
        }
        self.prefetch_scalars(n);
    }

    /// Prefetches the data of node `n` that its creation and expansion write: its scalars and the first cache lines of its edge block.
    #[inline(always)]
    pub fn prefetch_new(&self, n: i32) {
        let block = n as usize * 4 * self.padded;
        let lines = if self.padded == LANES { 2 } else { 4 };
        (0..lines).for_each(|line| prefetch(self.edges, block + line * LINE));
        self.prefetch_scalars(n);
    }

    #[inline(always)]
    fn prefetch_scalars(&self, n: i32) {
        prefetch(self.nodes, n as usize);
        prefetch(self.values, n as usize * self.shape.players);
    }

    /// Prefetches the data that backup reads and writes on the step from node `n` to its parent. Returns the parent.
    #[inline(always)]
    pub fn prefetch_parent(&self, n: i32) -> i32 {
        let Node { parent, parent_edge, .. } = self.nodes[n as usize];
        if parent != NO_NODE {
            let (at, ep, edge) = (parent as usize, self.padded, usize::from(parent_edge));
            prefetch(self.nodes, at);
            prefetch(self.edges, at * 4 * ep + ep + edge);
            prefetch(self.edges, at * 4 * ep + 2 * ep + edge);
        }
        parent
    }

    /// Prefetches the actions of node `n`.
    #[inline(always)]
    pub fn prefetch_actions(&self, n: i32) {
        prefetch(self.actions, n as usize * self.padded);
    }

    /// Prefetches the data that the addition of a child to `parent` reads and writes.
    #[inline(always)]
    pub fn prefetch_child(&self, parent: i32) {
        prefetch(self.actions, parent as usize * self.padded);
        prefetch(self.actions, *self.count as usize * self.padded);
        self.prefetch_new(*self.count as i32);
    }

    /// Proven bounds (lower, upper) of `edge` for the player to move at `node`.
    #[inline(always)]
    pub fn edge_bounds(&self, node: i32, edge: usize) -> (f32, f32) {
        let edges = self.edges(node);
        match edges.child[edge] {
            _ if edges.value_sum[edge] == REFUTED => (-1.0, -1.0),
            NO_NODE => (-1.0, 1.0),
            child => self.nodes[child as usize].bounds_for(self.nodes[node as usize].player),
        }
    }

    /// True where `node` is proven not to be lost and `edge` is proven to reach its value.
    pub fn edge_holds(&self, node: i32, edge: usize) -> bool {
        let scalars = &self.nodes[node as usize];
        scalars.is_proven() && scalars.lower > -1.0 && self.edge_bounds(node, edge).0 >= scalars.lower
    }

    /// Makes the root's lower bound that of its edges, as trimming may have removed the child that proves it. False if the root's value is
    /// proven and no edge holds it any more.
    pub fn restore_root_bound(&mut self) -> bool {
        let root = self.nodes[ROOT as usize];
        if root.kind() != super::NodeKind::Decision || root.lower <= -1.0 {
            return true;
        }
        let lower = |edge| self.edge_bounds(ROOT, edge).0;
        let held = (0..usize::from(root.num_edges)).map(lower).fold(-1.0, f32::max);
        if root.is_proven() {
            return held >= root.lower;
        }
        self.nodes[ROOT as usize].lower = held;
        true
    }

    /// The evaluation of node `n`. `[P]`
    #[inline(always)]
    pub fn value(&self, n: i32) -> &[f32] {
        let p = self.shape.players;
        &self.values[n as usize * p..][..p]
    }

    /// The evaluation of node `n`, mutable. `[P]`
    #[inline(always)]
    pub fn value_mut(&mut self, n: i32) -> &mut [f32] {
        let p = self.shape.players;
        &mut self.values[n as usize * p..][..p]
    }

    /// Copies the evaluation of node `from` to node `n`.
    #[inline(always)]
    pub fn inherit_value(&mut self, n: i32, from: i32) {
        let (to, from, p) = (n as usize, from as usize, self.shape.players);
        self.values.copy_within(from * p..(from + 1) * p, to * p);
    }

    /// True if all T nodes are in use.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        *self.count as usize >= self.nodes.len()
    }

    /// Resets the row to a single unevaluated root and returns its index.
    pub fn set_root(&mut self) -> i32 {
        *self.count = 1;
        self.nodes[0] = Node::new(NO_NODE, 0);
        ROOT
    }

    /// Adds the child of `edge` of `parent` and returns its index. The row must not be full.
    #[inline(always)]
    pub fn add(&mut self, parent: i32, edge: usize) -> i32 {
        let child = *self.count as i32;
        *self.count += 1;
        let depth = self.nodes[parent as usize].depth.saturating_add(1);
        self.nodes[child as usize] = Node { depth, ..Node::new(parent, edge as u16) };
        self.edges[(parent as usize * 4 + 3) * self.padded + edge] = child as u32;
        child
    }

    /// Resets node `n` to `num_edges` unvisited edges, padded with [`REFUTED`] to a multiple of [`LANES`]. The caller writes
    /// actions and priors.
    #[inline(always)]
    pub fn init_edges(&mut self, n: i32, num_edges: usize) {
        self.nodes[n as usize].num_edges = num_edges as u16;
        match self.single_vector_mut(n) {
            Some(edges) => edges.open(num_edges),
            None => {
                let used = self.used(n);
                self.edges_mut(n).within(0..used).open(num_edges);
            }
        }
    }

    /// Overwrites the uninitialised edges of all nodes with padding, so that equal trees have equal bytes.
    pub fn clear_unused_edges(&mut self) {
        for n in 0..*self.count as i32 {
            let unused = self.used(n)..self.padded;
            self.edges_mut(n).within(unused).open(0);
        }
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
