//! The oracle of the batched search: a plain, slow search of ONE game, written from the papers.
//!
//! Nodes are a growing `Vec`; each has its own state and a `Vec` of edges, and a simulation stores its path. No array is padded
//! and no tree is kept between plies. The two engines share only [`vecaz::math`], the keys of random numbers and two rules:
//! ties go to the lowest edge, and sums have the order of [`math::sum`]. Both engines therefore give exactly equal visits.
//!
//! Sources: PUCT from AlphaZero (Silver et al. 2018), Gumbel from Danihelka et al. 2022, proofs from score-bounded search
//! (Cazenave and Saffidine 2010), any number of players as in max^n (Luckhardt and Irani 1986).

mod backend;
mod edges;
mod rules;

pub use backend::ReferenceBackend;
use edges::{CompletedQ, Edge, ProvenBounds, argmax, open_priors};
use vecaz::config::Algorithm;
use vecaz::game::{Game, History, Sizes, Turn};
use vecaz::math;
use vecaz::rng::Purpose;
use vecaz::search::backup::VIRTUAL_LOSS;
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::search::{MctsSolver, PassStats, SearchParams};
use vecaz::tree::NodeKind;

#[derive(Clone, Debug)]
struct Node<S> {
    state: S,
    kind: NodeKind,
    /// The player to move; 0 at chance and end nodes.
    player: usize,
    edges: Vec<Edge>, // [E]
    /// The node's own evaluation, or its proven value. `[P]`
    value: Vec<f32>,
    visits: i32,
    /// Sum of the values backed up through here, for `player`.
    value_sum: f32,
    /// Proven bounds of the value, for `player`.
    bounds: ProvenBounds,
}

/// The algorithm of rows without trees, which `tests/afterstate.rs` compares with a search of its own.
const NO_TREE: &str = "afterstate has no tree";

impl<S> Node<S> {
    fn is_proven(&self) -> bool {
        self.bounds.is_exact()
    }

    fn mean(&self) -> f32 {
        if self.visits > 0 { self.value_sum / self.visits as f32 } else { 0.0 }
    }

    /// The evaluation for the player to move.
    fn own_value(&self) -> f32 {
        self.value[self.player]
    }
}

/// One simulation between its selection and its backup.
#[derive(Clone, Debug)]
struct LeafPath {
    /// Nodes from the root down, each with the selected edge.
    path: Vec<(usize, usize)>,
    leaf: usize,
    /// True if the leaf needs a network evaluation.
    needs_eval: bool,
}

/// The budget, noise and progress of one ply's search.
#[derive(Clone, Debug, Default)]
struct Ply {
    key: RowKey,
    simulations: u32,
    run: u32,
    /// For each root edge: an element of a Dirichlet draw (PUCT) or a Gumbel variate; 0 without noise. `[E]`
    noise: Vec<f32>,
    /// Weight of the noise in the root's priors (PUCT).
    dirichlet_epsilon: f32,
    /// Sum of all values backed up to the root. `[P]`
    value_sum: Vec<f32>,
    done: bool,
}

/// The search of one game.
pub struct ReferenceSearch<G: Game> {
    game: G,
    sizes: Sizes,
    params: SearchParams,
    max_nodes: usize,
    nodes: Vec<Node<G::State>>, // [nodes in use]
    /// Keys of the positions before the root. `[plies]`
    history: Vec<u64>,
    ply: Ply,
    leaf_paths: Vec<LeafPath>, // [leaves of the pass]
}

impl<G: Game> ReferenceSearch<G> {
    /// A search from the start of `game` with at most `max_nodes` nodes, idle until [`Self::begin`].
    pub fn new(game: G, params: SearchParams, max_nodes: usize) -> Self {
        let sizes = game.sizes();
        let state = game.init();
        let ply = Ply { done: true, ..Ply::default() };
        let mut search = Self {
            game,
            sizes,
            params,
            max_nodes,
            nodes: Vec::new(),
            history: Vec::new(),
            ply,
            leaf_paths: Vec::new(),
        };
        search.set_root(state, &[]);
        search
    }

    /// Starts a new tree at `state`, idle until [`Self::begin`]. `history` has the keys of the positions before it.
    pub fn set_root(&mut self, state: G::State, history: &[u64]) {
        self.history = history.to_vec();
        self.nodes.clear();
        let root = self.make_node(state, &[]);
        self.nodes.push(root);
        self.deactivate();
    }

    /// Begins a ply at the root, with a new tree.
    pub fn begin(&mut self, simulations: u32, exploration: Exploration, key: RowKey) {
        let (state, history) = (self.nodes[0].state, std::mem::take(&mut self.history));
        self.set_root(state, &history);
        let num_edges = self.nodes[0].edges.len();
        let value_sum = vec![0.0; self.sizes.num_players];
        self.ply = Ply { key, simulations, value_sum, noise: vec![0.0; num_edges], ..Ply::default() };
        if exploration == Exploration::Plain {
            return;
        }
        match self.params.algorithm {
            Algorithm::Puct => {
                let fixed = self.params.dirichlet_alpha;
                let alpha = if fixed > 0.0 { fixed } else { 10.0 / num_edges as f32 };
                key.key(Purpose::RootNoise).stream().dirichlet(alpha, &mut self.ply.noise);
                self.ply.dirichlet_epsilon = self.params.dirichlet_epsilon;
            }
            Algorithm::Gumbel => {
                let mut stream = key.key(Purpose::Gumbel).stream();
                self.ply.noise.fill_with(|| stream.gumbel());
            }
            Algorithm::Afterstate => panic!("{NO_TREE}"),
        }
    }

    /// Stops the ply's search.
    fn deactivate(&mut self) {
        self.ply.done = true;
        self.leaf_paths.clear();
    }

    /// True if the ply's search has ended.
    pub fn is_done(&self) -> bool {
        self.ply.done || self.ply.run == self.ply.simulations
    }

    /// The root's state.
    pub fn root_state(&self) -> &G::State {
        &self.nodes[0].state
    }

    /// Keys of the positions before the root.
    pub fn root_history(&self) -> &[u64] {
        &self.history
    }

    /// Nodes in the tree.
    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Selects up to L leaves and adds their counts to `out`.
    pub fn select(&mut self, out: &mut PassStats) {
        self.leaf_paths.clear();
        if self.is_done() {
            return;
        }
        if self.nodes[0].kind == NodeKind::Unevaluated {
            self.leaf_paths.push(LeafPath { path: Vec::new(), leaf: 0, needs_eval: true });
        } else {
            while self.leaf_paths.len() < self.params.leaves as usize && !self.is_done() {
                let Some(leaf_path) = self.descend() else { break };
                self.apply_virtual_loss(&leaf_path);
                self.ply.run += 1;
                let depth = leaf_path.path.len() as u64;
                out.depth_sum += depth;
                out.depth_max = out.depth_max.max(depth);
                out.simulations += 1;
                self.leaf_paths.push(leaf_path);
            }
        }
        out.rows += usize::from(!self.leaf_paths.is_empty());
        out.leaves += self.leaf_paths.len();
        out.evaluations += self.num_evaluations();
    }

    /// Number of leaves of the pass that need a network evaluation.
    pub fn num_evaluations(&self) -> usize {
        self.leaf_paths.iter().filter(|leaf_path| leaf_path.needs_eval).count()
    }

    /// Writes the observations of the leaves that need an evaluation: `[num_evaluations, F]`.
    pub fn observe(&self, obs: &mut [f32]) {
        let pending = self.leaf_paths.iter().filter(|leaf_path| leaf_path.needs_eval);
        for (leaf_path, out) in pending.zip(obs.chunks_exact_mut(self.sizes.obs.len())) {
            let node = &self.nodes[leaf_path.leaf];
            self.game.observe(&node.state, node.player as u8, out);
        }
    }

    /// Sets the leaves' priors and values from `logits [num_evaluations, A]` and `values [num_evaluations, P]`, the latter in
    /// seats relative to the player to move.
    pub fn expand(&mut self, logits: &[f32], values: &[f32]) {
        let (a, p) = (self.sizes.num_actions, self.sizes.num_players);
        let pending = self.leaf_paths.iter().filter(|leaf_path| leaf_path.needs_eval);
        for (leaf_path, (logits, values)) in pending.zip(logits.chunks_exact(a).zip(values.chunks_exact(p))) {
            let node = &mut self.nodes[leaf_path.leaf];
            let mut priors: Vec<f32> =
                node.edges.iter().map(|edge| logits[usize::from(edge.action)]).collect();
            math::softmax(&mut priors);
            for (edge, prior) in node.edges.iter_mut().zip(priors) {
                edge.prior = prior;
            }
            let seated = self.game.num_seated(&node.state, p);
            node.value = vec![0.0; p];
            for player in 0..seated {
                node.value[player] = values[(player + seated - node.player) % seated];
            }
            node.kind = NodeKind::Decision;
        }
    }

    /// Backs up the values of all leaves of the pass.
    pub fn backup(&mut self) {
        for leaf_path in std::mem::take(&mut self.leaf_paths) {
            self.backup_path(&leaf_path);
            self.ply.done |= self.nodes[0].is_proven();
        }
    }

    /// Descends to a leaf, adding nodes on the way. Returns None on a collision with a pending leaf.
    fn descend(&mut self) -> Option<LeafPath> {
        let (mut at, mut path) = (0, Vec::new());
        loop {
            match self.nodes[at].kind {
                NodeKind::Unevaluated => return None,
                NodeKind::Terminal | NodeKind::Horizon => {
                    return Some(LeafPath { path, leaf: at, needs_eval: false });
                }
                NodeKind::Decision | NodeKind::Chance if self.nodes[at].is_proven() => {
                    return Some(LeafPath { path, leaf: at, needs_eval: false });
                }
                NodeKind::Decision | NodeKind::Chance => {}
            }
            let edge = self.choose(at);
            if let Some(child) = self.nodes[at].edges[edge].child {
                path.push((at, edge));
                at = child;
                continue;
            }
            if self.nodes.len() == self.max_nodes {
                return Some(LeafPath { path, leaf: at, needs_eval: false });
            }
            path.push((at, edge));
            at = self.add_child(&path);
            if self.nodes[at].kind == NodeKind::Unevaluated {
                return Some(LeafPath { path, leaf: at, needs_eval: true });
            }
        }
    }

    /// Adds the node at the end of `path` and returns its index.
    fn add_child(&mut self, path: &[(usize, usize)]) -> usize {
        let (above, last) = path.split_at(path.len() - 1);
        let (parent, edge) = last[0];
        let mut state = self.nodes[parent].state;
        let keys = self.path_keys(above);
        let action = self.nodes[parent].edges[edge].action;
        self.game.step(&mut state, action, History { played: &self.history, path: &keys });
        let mut node = self.make_node(state, path);
        if node.kind == NodeKind::Chance {
            node.value.clone_from(&self.nodes[parent].value);
        }
        let child = self.nodes.len();
        self.nodes.push(node);
        self.nodes[parent].edges[edge].child = Some(child);
        child
    }

    fn path_keys(&self, path: &[(usize, usize)]) -> Vec<u64> {
        if !self.sizes.uses_history {
            return Vec::new();
        }
        path.iter().map(|&(n, _)| self.game.history_key(&self.nodes[n].state)).collect()
    }

    /// The node of `state`, to which `path` leads.
    fn make_node(&self, state: G::State, path: &[(usize, usize)]) -> Node<G::State> {
        let mut node = Node {
            state,
            kind: NodeKind::Unevaluated,
            player: 0,
            edges: Vec::new(),
            value: vec![0.0; self.sizes.num_players],
            visits: 0,
            value_sum: 0.0,
            bounds: ProvenBounds::OPEN,
        };
        let turn = self.game.turn(&state);
        if turn == Turn::Over || (turn == Turn::Chance && self.game.is_horizon(&state)) {
            node.kind = if turn == Turn::Over { NodeKind::Terminal } else { NodeKind::Horizon };
            self.game.stage_returns(&state, &mut node.value);
            if self.params.solver == MctsSolver::On {
                node.bounds = ProvenBounds::exact(node.value[0]);
            }
            return node;
        }
        if turn == Turn::Chance && self.sizes.max_chance_run == 0 {
            node.kind = NodeKind::Chance;
            return node;
        }
        let keys = self.path_keys(path);
        let mut actions = vec![0; self.sizes.num_edges()];
        let num_edges = self.game.legal(&state, History { played: &self.history, path: &keys }, &mut actions);
        actions.truncate(num_edges);
        let mut probs = vec![0.0; num_edges];
        match turn {
            Turn::Player(player) => node.player = usize::from(player),
            Turn::Chance | Turn::Over => {
                node.kind = NodeKind::Chance;
                self.game.chance_probs(&state, &actions, &mut probs);
            }
        }
        node.edges = actions.into_iter().zip(probs).map(|(action, p)| Edge::new(action, p)).collect();
        node
    }

    /// Counts a visit of every node of `leaf_path` and, if L > 1, subtracts a virtual loss from its decision edges.
    fn apply_virtual_loss(&mut self, leaf_path: &LeafPath) {
        self.nodes[leaf_path.leaf].visits += 1;
        let loss = self.virtual_loss();
        for &(n, edge) in &leaf_path.path {
            let node = &mut self.nodes[n];
            node.visits += 1;
            node.edges[edge].visits += 1;
            if node.kind == NodeKind::Decision {
                node.edges[edge].value_sum -= loss;
            }
        }
    }

    fn virtual_loss(&self) -> f32 {
        if self.params.leaves > 1 { VIRTUAL_LOSS } else { 0.0 }
    }

    /// Backs up the value of `leaf_path`'s leaf. Every proven node on the path replaces the value by its own, and every edge
    /// takes the bounds of its child.
    fn backup_path(&mut self, leaf_path: &LeafPath) {
        let loss = self.virtual_loss();
        let leaf = &mut self.nodes[leaf_path.leaf];
        if leaf_path.path.is_empty() && leaf.visits == 0 {
            leaf.visits = 1;
        }
        let mut value = leaf.value.clone();
        leaf.value_sum += value[leaf.player];
        let mut child = leaf_path.leaf;
        for &(n, edge) in leaf_path.path.iter().rev() {
            let Node { bounds, player, .. } = self.nodes[child];
            if bounds.is_exact() {
                value.clone_from(&self.nodes[child].value);
            }
            let node = &mut self.nodes[n];
            let mover = node.player;
            if node.kind == NodeKind::Decision {
                let edge = &mut node.edges[edge];
                if bounds.is_exact() {
                    edge.value_sum = value[mover] * edge.visits as f32;
                } else {
                    edge.value_sum += loss + value[mover];
                }
                edge.bounds = if player == mover { bounds } else { bounds.opposite() };
                let was_proven = node.is_proven();
                node.bounds = ProvenBounds::of_choice(&node.edges);
                if node.is_proven() && !was_proven {
                    node.value = vec![-node.bounds.lower; 2];
                    node.value[mover] = node.bounds.lower;
                    value.clone_from(&node.value);
                }
            }
            node.value_sum += value[mover];
            child = n;
        }
        for (sum, v) in self.ply.value_sum.iter_mut().zip(value) {
            *sum += v;
        }
    }

    /// Writes the search result to `out`.
    pub fn summarise(&self, out: &mut RootSummary) {
        let root = &self.nodes[0];
        let (edges, total) = (&root.edges, root.visits.max(1) as f32);
        out.actions = edges.iter().map(|e| e.action).collect();
        out.visits = edges.iter().map(|e| e.visits).collect();
        out.new_visits.clone_from(&out.visits);
        out.prior = edges.iter().map(|e| e.prior).collect();
        out.q =
            edges.iter().map(|e| if e.is_lost() { -1.0 } else { e.mean().unwrap_or(root.mean()) }).collect();
        out.player = root.player as u8;
        out.proven = root.is_proven();
        out.value = if root.is_proven() {
            root.value.clone()
        } else {
            self.ply.value_sum.iter().map(|sum| sum / total).collect()
        };
        let weights = match self.params.algorithm {
            _ if root.is_proven() => edges.iter().map(|e| e.proven_weight(root.own_value())).collect(),
            Algorithm::Puct => {
                edges.iter().map(|e| if e.is_lost() { 0.0 } else { e.visits as f32 }).collect()
            }
            Algorithm::Gumbel => CompletedQ::of(edges, root.own_value(), &self.params).weights(edges),
            Algorithm::Afterstate => panic!("{NO_TREE}"),
        };
        let mass = math::sum(weights.iter().copied());
        let found = mass > 0.0;
        out.policy = match found {
            true => weights.iter().map(|w| w / mass).collect(),
            false if root.is_proven() => out.prior.clone(),
            false => open_priors(edges),
        };
        out.best = match self.params.algorithm {
            _ if root.is_proven() && !found => argmax(edges.iter().map(|e| Some(e.visits as f32))),
            Algorithm::Gumbel if !root.is_proven() => self.best_of_most_visited(),
            _ => argmax(out.policy.iter().copied().map(Some)),
        };
    }

    /// The final choice of sequential halving: the best score among the most visited edges.
    fn best_of_most_visited(&self) -> usize {
        let edges = &self.nodes[0].edges;
        let max = edges.iter().filter(|e| !e.is_lost()).map(|e| e.visits).max();
        let scores = self.gumbel_scores().into_iter().zip(edges);
        argmax(scores.map(|(score, edge)| if Some(edge.visits) == max { score } else { None }))
    }

    /// The root's action `first` and the most visited actions below it, at most `max_len` in all. At a proven node, only actions that
    /// reach its value count.
    pub fn variation(&self, first: u16, max_len: usize) -> Vec<u16> {
        let child = self.nodes[0].edges.iter().find(|e| e.action == first).and_then(|e| e.child);
        let (mut next, mut line) = (child, vec![first]);
        while let Some(at) = next.filter(|_| line.len() < max_len) {
            let node = &self.nodes[at];
            let holds = |e: &Edge| node.is_proven() && e.reaches(node.bounds.lower);
            let proving = node.edges.iter().any(holds);
            let offered = node.edges.iter().map(|e| (!proving || holds(e)).then_some(e.visits as f32));
            let best = argmax(offered);
            let Some(Edge { action, child: Some(child), visits: 1.., .. }) = node.edges.get(best) else {
                break;
            };
            line.push(*action);
            next = Some(*child);
        }
        line
    }
}
