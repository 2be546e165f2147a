//! The clique game: two players claim the edges of K_n in turn, and cliques of k vertices decide.
//!
//! - `symmetric`: the first to own a k-clique wins, a full board without one is a draw;
//! - `asymmetric`: player 0 wins with a k-clique, player 1 when the board is full without one (player 1's own cliques
//!   count for nothing);
//! - `avoid_clique`: the player who completes an own k-clique loses. A full board without one is a draw: a colouring of K_n with two
//!   colours and no k-clique in one colour, a witness of R(k, k) > n, which [`Clique::colouring`] returns;
//! - `ramsey`: both players look for such a colouring. A k-clique of one owner ends the game; the return of both is the claimed
//!   share of the edges minus 1, so that longer games are better and a failure is at most 0. A full board without a clique is +1.
//!
//! Actions are the edges (i, j), i < j, in lexicographic order: 0-1, 0-2, .., 0-(n-1), 1-2, ... The n! symmetries are the
//! permutations of the vertices, numbered by their rank in lexicographic order (Lehmer code), the identity being 0.
//!
//! Each player's edges are a bit set in action order, so the neighbours of i above i are adjacent bits. A new edge is tested for
//! cliques among the common neighbours of its ends only.

mod edges;
mod near;
#[cfg(test)]
mod tests;

use super::view::{Board, Colour, Graph, GraphEdge, Piece, Shape, Spot, View, Viewer};
use super::{ExactSolver, Game, History, ObsShape, Sizes, Turn};
use crate::config::keys::{names, section};
use crate::device_struct::device_struct;
use crate::error::{Error, Result};
use bytemuck::{Pod, Zeroable};
use edges::{edge_ends, edge_number};

pub use edges::{EdgeSet, MAX_VERTICES};

/// Planes of an observation, without those of cliques.
const CHANNELS: usize = 4;
/// Planes of the free edges that are missing in cliques, two for each player.
const CLIQUE_PLANES: usize = 4;

names! {
    /// The effect of a clique on the result.
    CliqueRule {
        /// The first player with a clique wins.
        Symmetric = "symmetric",
        /// Player 0 wins with a clique, player 1 with a full board without one.
        Asymmetric = "asymmetric",
        /// The player who completes a clique loses.
        AvoidClique = "avoid_clique",
        /// A clique of one owner ends the game with an equal return for both, larger for later cliques; both win a full board without one.
        Ramsey = "ramsey",
    }

    /// What an observation has.
    Sight {
        /// The edges of each player.
        Edges = "edges",
        /// Also the free edges that complete a clique of k vertices for either player, and how many cliques miss a second edge.
        Cliques = "cliques",
    }
}

section! {
    /// The settings of the clique game.
    Clique {
        /// Vertices.
        n: usize [3..=MAX_VERTICES] = 6,
        /// Vertices of a clique; at most n.
        k: usize [3..=MAX_VERTICES] = 3,
        /// The effect of a clique on the result: its owner wins (symmetric), only player 0 can win by one (asymmetric), its owner loses
        /// (avoid_clique), or it ends the game for both (ramsey).
        mode: CliqueRule = CliqueRule::Symmetric,
        /// What the network observes: the edges of each player, or also the free ones that complete a clique, and how many cliques lack each
        /// free one and one other.
        network_sees: Sight = Sight::Edges,
    }
}

device_struct! {
    /// One position.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// The edges of each player. `[P]`
        pub edges: [EdgeSet; 2],
        /// Edges claimed.
        pub plies: u32,
        /// 0 while the game is in progress, 1 or 2 for the winner's number plus one, 3 for a full board without a clique that would
        /// have counted (a draw, or the success of both), 4 for the failure of both.
        pub outcome: u32,
    }
}

impl Clique {
    /// E: the edges of K_n.
    pub fn num_edges(&self) -> usize {
        self.n * (self.n - 1) / 2
    }

    /// The result once the mover has claimed `edge`, as in [`State::outcome`].
    fn outcome(&self, s: &State, mover: u32, edge: usize) -> u32 {
        let full = s.plies as usize == self.num_edges();
        let counts = self.mode != CliqueRule::Asymmetric || mover == 0;
        let made_clique = counts && s.edges[mover as usize].has_clique_with(self.n, self.k, edge);
        match self.mode {
            CliqueRule::AvoidClique if made_clique => 2 - mover,
            CliqueRule::Ramsey if made_clique => 4,
            _ if made_clique => mover + 1,
            CliqueRule::Asymmetric if full => 2,
            _ if full => 3,
            _ => 0,
        }
    }

    /// The edges of the clique that ended the game; none if there is no such clique.
    fn clique_edges(&self, s: &State) -> impl Iterator<Item = usize> {
        let players = if self.mode == CliqueRule::Asymmetric { 1 } else { 2 };
        let vertices = (0..players).find_map(|player| s.edges[player].clique(self.n, self.k)).unwrap_or(0);
        (0..self.num_edges()).filter(move |&edge| {
            let (i, j) = edge_ends(self.n, edge);
            vertices >> i & vertices >> j & 1 == 1
        })
    }

    /// The edges of `player` as graph6 text (B. McKay's format), without a line end.
    pub fn to_graph6(&self, s: &State, player: u8) -> String {
        let owned = s.edges[usize::from(player)];
        let bits: Vec<bool> = (1..self.n)
            .flat_map(|j| (0..j).map(move |i| owned.contains(edge_number(self.n, i, j))))
            .collect();
        let sextets = bits.chunks(6).map(|chunk| {
            chunk.iter().enumerate().fold(63, |byte, (index, &bit)| byte + (u8::from(bit) << (5 - index)))
        });
        std::iter::once(63 + self.n as u8).chain(sextets).map(char::from).collect()
    }

    /// The colouring that a full board is: `n`, `k`, each player's graph as graph6 and as a list of edges. None while
    /// edges are free or if a player owns a k-clique.
    pub fn colouring(&self, s: &State) -> Option<serde_json::Value> {
        let full = s.plies as usize == self.num_edges();
        if !full || s.edges.iter().any(|owned| owned.has_clique(self.n, self.k)) {
            return None;
        }
        let edges = |player: usize| -> Vec<(usize, usize)> {
            s.edges[player].iter().map(|edge| edge_ends(self.n, edge)).collect()
        };
        Some(serde_json::json!({
            "n": self.n,
            "k": self.k,
            "graph6": [self.to_graph6(s, 0), self.to_graph6(s, 1)],
            "edges": [edges(0), edges(1)],
        }))
    }

    /// The image of each vertex under permutation number `rank`; entries from n on are not used.
    fn permutation(&self, rank: u64) -> [usize; MAX_VERTICES] {
        let mut free: [usize; MAX_VERTICES] = std::array::from_fn(|v| v);
        let mut image = [0; MAX_VERTICES];
        let mut weight: u64 = (1..self.n as u64).product();
        let mut rank = rank;
        for (left, image) in (1..=self.n).rev().zip(&mut image) {
            let digit = (rank / weight) as usize;
            rank %= weight;
            weight /= (left - 1).max(1) as u64;
            *image = free[digit];
            free.copy_within(digit + 1..left, digit);
        }
        image
    }

    fn moved(&self, image: &[usize; MAX_VERTICES], edge: usize) -> usize {
        let (i, j) = edge_ends(self.n, edge);
        let (a, b) = (image[i], image[j]);
        edge_number(self.n, a.min(b), a.max(b))
    }

    /// Checks the settings as a whole.
    fn check(&self) -> Result<()> {
        if !(3..=self.n).contains(&self.k) {
            return Err(Error::config(
                "game.k",
                self.k,
                format!("a whole number from 3 to {} (at most n)", self.n),
            ));
        }
        Ok(())
    }
}

impl Game for Clique {
    type State = State;
    const NAME: &'static str = "clique";
    const CONFIGS: &'static [super::NamedText] = super::configs!("clique", "clique_14", "clique_ramsey");
    const CUDA_SOURCE: Option<super::CudaSource> = super::embedded_cuda_source!("clique");
    const VARIANTS: &'static [&'static str] = &[
        "n = 5\nk = 3\nmode = 'asymmetric'",
        "n = 7\nk = 4\nmode = 'avoid_clique'",
        "n = 6\nk = 4\nmode = 'ramsey'",
        "n = 17\nk = 4\nmode = 'avoid_clique'",
        "n = 3\nk = 3",
        "n = 7\nk = 4\nmode = 'asymmetric'\nnetwork_sees = 'cliques'",
    ];

    const SIZE_OPTION: Option<&'static str> = Some("n");
    const SIGHT_OPTIONS: &'static [&'static str] = &["network_sees"];

    super::options_by_section!(Self::check);

    fn aim(&self, player: u8) -> String {
        let mark = ["X", "O"][usize::from(player)];
        let clique = format!("every edge between {} of the {} vertices", self.k, self.n);
        match self.mode {
            CliqueRule::Symmetric => format!("{mark} is the first to own {clique}"),
            CliqueRule::Asymmetric if player == 0 => format!("X comes to own {clique}"),
            CliqueRule::Asymmetric => format!("O prevents that X owns {clique}"),
            CliqueRule::AvoidClique => format!("{mark} makes the other the first to own {clique}"),
            CliqueRule::Ramsey => {
                format!("{mark} keeps both players from owning {clique}, until all edges are taken")
            }
        }
    }

    fn sizes(&self) -> Sizes {
        let edges = self.num_edges();
        let cliques = if self.network_sees == Sight::Cliques { CLIQUE_PLANES } else { 0 };
        Sizes {
            num_actions: edges,
            max_legal: edges,
            obs: ObsShape { channels: CHANNELS + cliques, height: edges, width: 1 },
            max_plies: edges,
            num_symmetries: (1..=self.n as u64).product(),
            zero_sum: self.mode != CliqueRule::Ramsey,
            cooperative: self.mode == CliqueRule::Ramsey,
            ..Sizes::default()
        }
    }

    fn init(&self) -> State {
        State { edges: [EdgeSet::default(); 2], plies: 0, outcome: 0 }
    }

    fn is_valid(&self, s: &State) -> bool {
        s.edges.iter().all(|edges| edges.iter().all(|edge| edge < self.num_edges()))
    }

    #[inline]
    fn turn(&self, s: &State) -> Turn {
        if s.outcome == 0 { Turn::Player((s.plies & 1) as u8) } else { Turn::Over }
    }

    #[inline(always)]
    fn legal(&self, s: &State, _history: History<'_>, out: &mut [u16]) -> usize {
        let mut n = 0;
        for edge in s.edges[0].union(s.edges[1]).complement(self.num_edges()).iter() {
            out[n] = edge as u16;
            n += 1;
        }
        n
    }

    #[inline]
    fn step(&self, s: &mut State, action: u16, _history: History<'_>) {
        let mover = s.plies & 1;
        s.edges[mover as usize].insert(usize::from(action));
        s.plies += 1;
        s.outcome = self.outcome(s, mover, usize::from(action));
    }

    /// Planes with an element for each edge, in action order: own, the other player's, free, whether `player` is player 0 (who wins
    /// by a clique in asymmetric play); with `network_sees = "cliques"` then the free edges that complete an own clique of k vertices, for each of
    /// them the number of own cliques that miss it and one other free edge, divided by 8 and at most 1, and the same for the other player.
    /// `[4 or 8, E, 1]`
    fn observe(&self, s: &State, player: u8, out: &mut [f32]) {
        let edges = self.num_edges();
        let (own, other) = (s.edges[usize::from(player)], s.edges[usize::from(1 - player)]);
        let free = own.union(other).complement(edges);
        let (planes, cliques) = out.split_at_mut(CHANNELS * edges);
        for (set, plane) in [own, other, free].into_iter().zip(planes.chunks_exact_mut(edges)) {
            set.write_plane(plane);
        }
        planes[3 * edges..].fill(if player == 0 { 1.0 } else { 0.0 });
        if self.network_sees == Sight::Cliques {
            near::write([own, other], free, self.n, self.k, cliques);
        }
    }

    fn returns(&self, s: &State, out: &mut [f32]) {
        if self.mode == CliqueRule::Ramsey && s.outcome != 0 {
            let lasted = s.plies as f32 / self.num_edges() as f32 - 1.0;
            out[..2].fill(if s.outcome == 3 { 1.0 } else { lasted });
            return;
        }
        let value = match s.outcome {
            1 => 1.0,
            2 => -1.0,
            _ => 0.0,
        };
        out[0] = value;
        out[1] = -value;
    }

    fn transform(&self, s: &State, symmetry: u64) -> State {
        if symmetry == 0 {
            return *s;
        }
        let image = self.permutation(symmetry);
        let edges = s.edges.map(|owned| {
            let mut out = EdgeSet::default();
            owned.iter().for_each(|edge| out.insert(self.moved(&image, edge)));
            out
        });
        State { edges, ..*s }
    }

    fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        if symmetry == 0 {
            return action;
        }
        self.moved(&self.permutation(symmetry), usize::from(action)) as u16
    }

    /// Exhaustive search for triangles on up to six vertices, where one player wins what the other loses.
    fn exact_solver(&self) -> Option<ExactSolver> {
        let is_small = self.n <= 6 && self.k == 3;
        (is_small && self.mode != CliqueRule::Ramsey).then_some(ExactSolver::Exhaustive)
    }

    fn solved_positions(&self) -> Option<&'static str> {
        (Self { network_sees: Sight::Edges, ..self.clone() } == Self::default())
            .then_some(include_str!("../../assets/positions/clique.jsonl"))
    }

    fn finding(&self, s: &State) -> Option<serde_json::Value> {
        matches!(self.mode, CliqueRule::AvoidClique | CliqueRule::Ramsey).then(|| self.colouring(s)).flatten()
    }

    /// The upper triangle of the adjacency matrix: `X` player 0, `O` player 1.
    fn view(&self, s: &State, _viewer: Viewer) -> View {
        let edge = |number: usize| {
            let (i, j) = edge_ends(self.n, number);
            let piece = Piece::of(s.edges[0].contains(number), s.edges[1].contains(number));
            GraphEdge { ends: [i as u16, j as u16], piece }
        };
        let graph = Graph {
            vertices: self.n as u16,
            pieces: Piece::pair([Shape::Disc; 2], ["X", "O"]),
            edges: (0..self.num_edges()).map(edge).collect(),
        };
        let mut view = View::new(Board::Graph(graph), &[Colour::Blue, Colour::Red]);
        view.line = self.clique_edges(s).map(|edge| self.spot(s, edge as u16)).collect();
        view
    }

    fn spot(&self, _state: &State, action: u16) -> Spot {
        let (i, j) = edge_ends(self.n, usize::from(action));
        Spot::Edge(i as u16, j as u16)
    }

    fn action_name(&self, _state: &State, action: u16) -> String {
        let (i, j) = edge_ends(self.n, usize::from(action));
        format!("{i}-{j}")
    }
}
