//! Whole searches for the tests, on any backend.

use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::backend::{Backend, PlyPlan};
use vecaz::config::SearchConfig;
use vecaz::game::Sizes;
use vecaz::net::Network;
use vecaz::pass::{PassBuffers, PassMetrics, simulate_many};
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RootSummary};
use vecaz::searcher::SearchRequest;

/// `rows` rows for searches by `config`.
pub fn plan(config: &SearchConfig, sizes: &Sizes, rows: usize) -> BackendPlan {
    let params = SearchParams::new(config, sizes);
    let nodes = match config.nodes {
        0 => BackendPlan::nodes_for(params.simulations, sizes),
        nodes => nodes as usize,
    };
    BackendPlan { rows, nodes, params, reuse: Reuse::Drop }
}

/// Passes until every row is done.
pub fn finish(backend: &mut dyn Backend, network: &mut dyn Network) {
    let sizes = *backend.sizes();
    let mut buffers = PassBuffers::new(&sizes, backend.rows() * 32);
    let mut metrics = PassMetrics::default();
    while simulate_many(backend, network, &mut buffers, &mut metrics, 1).expect("finite") > 0 {}
}

/// Searches `positions`, one in each row, and leaves the trees where they are.
pub fn search(
    backend: &mut dyn Backend,
    network: &mut dyn Network,
    positions: &[SearchRequest],
    simulations: u32,
    exploration: Exploration,
) -> Vec<RootSummary> {
    assert!(positions.len() <= backend.rows());
    for (b, position) in positions.iter().enumerate() {
        backend.set_root(b, &position.state, &position.history).expect("a device");
        backend.begin(b, PlyPlan { simulations, exploration, key: position.key }).expect("a device");
    }
    finish(backend, network);
    let mut out = vec![RootSummary::default(); positions.len()];
    out.iter_mut().enumerate().for_each(|(b, summary)| backend.summarise(b, summary).expect("a device"));
    out
}
