//! Whole searches of several plies, done by the CPU engine and by kernels, and all that can be seen of them.

use crate::host_compiler::Effort;
use crate::host_device::HostDevice;
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::backend::gpu::KernelBackend;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::backend::{Backend, PlyPlan, TreeSnapshot};
use vecaz::batch::Playthrough;
use vecaz::config::SearchConfig;
use vecaz::game::{History, Turn};
use vecaz::isa::Isa;
use vecaz::net::{HashNet, IoShape, Network};
use vecaz::pass::{PassBuffers, PassMetrics, simulate_many};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::searcher::SearchRequest;
use vecaz::tree::Node;

/// How many nodes a tree has.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Enough for two plies.
    None,
    /// Enough for one ply, and so many that are kept.
    Nodes(usize),
    /// So many, whatever a ply needs.
    Full(usize),
}

/// What is searched, and how.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub settings: &'static str,
    /// Plies before the positions that are searched, one a row.
    pub plies: &'static [usize],
    pub config: SearchConfig,
    pub exploration: Exploration,
    pub limit: Limit,
    /// Plies that are searched.
    pub searches: usize,
}

impl Scenario {
    pub fn game(&self) -> Arc<dyn AnyGame> {
        any_game(self.name, &self.settings.parse().expect("TOML")).expect("registered")
    }

    pub fn plan(&self) -> BackendPlan {
        let sizes = self.game().sizes();
        let params = SearchParams::new(&self.config, &sizes);
        let ply = BackendPlan::nodes_for(params.simulations, &sizes);
        let (nodes, reuse) = match self.limit {
            Limit::None => (2 * ply, Reuse::Keep),
            Limit::Nodes(kept) => (ply + kept, Reuse::Keep),
            Limit::Full(nodes) => (nodes, Reuse::Drop),
        };
        BackendPlan { rows: self.plies.len(), nodes, params, reuse }
    }

    /// The input and output of a network for the game.
    pub fn io_shape(&self) -> IoShape {
        let sizes = self.game().sizes();
        IoShape { obs_len: sizes.obs.len(), num_actions: sizes.num_actions, num_players: sizes.num_players }
    }

    pub fn positions(&self) -> Vec<SearchRequest> {
        let game = self.game();
        self.plies.iter().zip(1..).map(|(&plies, slot)| position(&game, plies, slot)).collect()
    }
}

/// A position of `game` after about `plies` random plies, as the player to move knows it.
fn position(game: &Arc<dyn AnyGame>, plies: usize, slot: u64) -> SearchRequest {
    let attempt = |attempt: u64| {
        let mut play = Playthrough::new(game.clone());
        let mut rng = Key::new(17, Purpose::Evaluation).with(slot).with(attempt).stream();
        while play.turn() != Turn::Over && (play.actions().len() < plies || play.turn() == Turn::Chance) {
            let legal = play.legal();
            play.step(legal[rng.below(legal.len())]).expect("legal");
        }
        let Turn::Player(player) = play.turn() else { return None };
        let key = RowKey { seed: 5, slot, game: 2, determinisation: 1, ply: plies as u64 };
        let state = game.determinise(play.state(), player, &mut rng);
        Some(SearchRequest { state, history: play.history().to_vec(), key })
    };
    (0..).find_map(attempt).expect("some playthrough gets that far")
}

/// All that a caller can see of one search of one row, to the bit.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub actions: Vec<u16>,
    visits: Vec<i32>,
    new_visits: Vec<i32>,
    /// Prior, Q, policy, value.
    reals: [Vec<u32>; 4],
    best: usize,
    player: u8,
    proven: bool,
    num_nodes: usize,
    lines: Vec<Vec<u16>>,
    root: (Vec<u8>, Vec<u64>),
    /// Nodes, edges, actions, values, states.
    tree: [Vec<u8>; 5],
}

/// What passes counted.
type Counts = [u64; 6];

fn counts(metrics: &PassMetrics) -> Counts {
    let PassMetrics { passes, simulations, evaluations, idle_rows, depth_sum, depth_max, .. } = *metrics;
    [passes, simulations, evaluations, idle_rows, depth_sum, depth_max]
}

/// The arrays of a snapshot; what no edge has does not count.
pub fn tree_bytes(snapshot: &TreeSnapshot) -> [Vec<u8>; 5] {
    let [nodes, mut edges, mut actions, values] = snapshot.tree.row_bytes(0).map(<[u8]>::to_vec);
    let scalars: &[Node] = bytemuck::cast_slice(&nodes);
    let padded = snapshot.tree.shape().padded();
    let blocks = edges.chunks_exact_mut(16 * padded).zip(actions.chunks_exact_mut(2 * padded));
    for (node, (edges, actions)) in scalars.iter().zip(blocks) {
        actions[2 * usize::from(node.num_edges)..].fill(0);
        if node.num_edges == 0 {
            edges.fill(0);
        }
    }
    [nodes, edges, actions, values, snapshot.states.clone()]
}

/// Fails where two rows' facts differ, naming what does.
pub fn assert_same(found: &Facts, right: &Facts, whose: &str) {
    for (i, name) in ["nodes", "edges", "actions", "values", "states"].into_iter().enumerate() {
        let (found, right) = (&found.tree[i], &right.tree[i]);
        assert_eq!(found.len(), right.len(), "bytes of {name}, {whose}");
        let index = found.iter().zip(right).position(|(found, right)| found != right);
        assert_eq!(index, None, "the first byte of {name} that differs, {whose}");
    }
    assert_eq!(found, right, "{whose}");
}

pub fn facts(backend: &mut dyn Backend, b: usize) -> Facts {
    let mut s = RootSummary::default();
    backend.summarise(b, &mut s).expect("a device");
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    Facts {
        num_nodes: backend.num_nodes(b).expect("a device"),
        lines: backend.variations(b, &s.actions, 9).expect("a device"),
        root: root_of(backend, b),
        tree: tree_bytes(&backend.snapshot(b, usize::MAX >> 33).expect("a device")),
        reals: [bits(&s.prior), bits(&s.q), bits(&s.policy), bits(&s.value)],
        actions: s.actions,
        visits: s.visits,
        new_visits: s.new_visits,
        best: s.best,
        player: s.player,
        proven: s.proven,
    }
}

/// Passes until every row is done.
pub fn finish(backend: &mut dyn Backend, network: &mut dyn Network) -> Counts {
    let sizes = *backend.sizes();
    let mut buffers = PassBuffers::new(&sizes, backend.rows() * 32);
    let mut metrics = PassMetrics::default();
    while simulate_many(backend, network, &mut buffers, &mut metrics, 1).expect("finite") > 0 {}
    assert!((0..backend.rows()).all(|b| backend.is_done(b).expect("a device")));
    counts(&metrics)
}

/// The state at row `b`'s root, and the keys of the positions before it.
fn root_of(backend: &mut dyn Backend, b: usize) -> (Vec<u8>, Vec<u64>) {
    let state = backend.root_state(b).expect("a device").to_vec();
    (state, backend.root_history(b).expect("a device").to_vec())
}

/// Plays the searched action in row `b` and deals what follows; a game that is over, or comes to a new deal, starts over at
/// `start`.
fn go_on(backend: &mut dyn Backend, game: &Arc<dyn AnyGame>, b: usize, start: &SearchRequest, search: usize) {
    let mut summary = RootSummary::default();
    backend.summarise(b, &mut summary).expect("a device");
    let (mut state, mut history) = root_of(backend, b);
    let mut rng = Key::new(3, Purpose::Chance).with(b as u64).with(search as u64).stream();
    let mut actions = vec![summary.actions[summary.best]];
    loop {
        let key = game.sizes().uses_history.then(|| game.history_key(&state));
        game.step(&mut state, actions[actions.len() - 1], History { played: &history, path: &[] });
        history.extend(key);
        if game.turn(&state) == Turn::Over || game.sizes().hidden_information {
            return backend.set_root(b, &start.state, &start.history).expect("a device");
        }
        if game.turn(&state) != Turn::Chance {
            return backend.advance(b, &actions, &state, &history).expect("a device");
        }
        let outcomes = game.legal(&state, History { played: &history, path: &[] });
        actions.push(outcomes[rng.below(outcomes.len())]);
    }
}

/// All searches of a scenario.
pub fn play(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    scenario: &Scenario,
) -> Vec<(Counts, Vec<Facts>)> {
    let (game, positions) = (scenario.game(), scenario.positions());
    let simulations = scenario.config.simulations;
    for (b, position) in positions.iter().enumerate() {
        backend.set_root(b, &position.state, &position.history).expect("a device");
    }
    let mut found = Vec::new();
    for search in 0..scenario.searches {
        for (b, position) in positions.iter().enumerate() {
            let key = RowKey { ply: position.key.ply + search as u64, ..position.key };
            let simulations = simulations + 3 * (b as u32 % 2);
            let plan = PlyPlan { simulations, exploration: scenario.exploration, key };
            backend.begin(b, plan).expect("a device");
        }
        let counts = finish(backend, network);
        found.push((counts, (0..positions.len()).map(|b| facts(backend, b)).collect()));
        for (b, position) in positions.iter().enumerate() {
            go_on(backend, &game, b, position, search);
        }
    }
    found
}

/// The CPU engine for a scenario.
pub fn cpu(scenario: &Scenario) -> Box<dyn Backend> {
    scenario.game().cpu_backend(scenario.plan(), Isa::detect()).expect("detected")
}

/// Kernels for a scenario.
pub fn kernels(scenario: &Scenario, device: HostDevice) -> KernelBackend<HostDevice> {
    // Most programs run for two or three short scenarios.
    let device = device.with_effort(Effort::Little);
    KernelBackend::new(device, scenario.game().as_ref(), scenario.plan()).expect("compiles")
}

/// Both engines' searches, the CPU's first.
pub fn both(scenario: &Scenario, device: HostDevice) -> [Vec<(Counts, Vec<Facts>)>; 2] {
    let mut network = HashNet(scenario.io_shape());
    let right = play(cpu(scenario).as_mut(), &mut network, scenario);
    let found = play(&mut kernels(scenario, device), &mut network, scenario);
    [right, found]
}

/// Fails where kernels and Rust differ.
pub fn compare(scenario: &Scenario) {
    let [right, found] = both(scenario, HostDevice::new(scenario.plies.len() as u64));
    for (search, (right, found)) in right.iter().zip(&found).enumerate() {
        for (row, (right, found)) in right.1.iter().zip(&found.1).enumerate() {
            assert_same(found, right, &format!("search {search} row {row} of {scenario:?}"));
        }
        assert_eq!(found.0, right.0, "counts of search {search} of {scenario:?}");
    }
    assert_eq!(found.len(), scenario.searches);
}
