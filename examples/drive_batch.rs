//! Many games at once, each move by search: 16 games of Hex in 16 rows of one search, on two threads.
//!
//!     cargo run --release --example drive_batch

use vecaz::backend::Placement;
use vecaz::batch::GameBatch;
use vecaz::config::SearchConfig;
use vecaz::game::{Game, hex::Hex};
use vecaz::net::{IoShape, UniformNet};
use vecaz::registry::erase;
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RowKey};
use vecaz::searcher::{SearchRequest, Searchers};

fn main() -> vecaz::Result<()> {
    let hex = Hex { size: 7, ..Hex::default() };
    let (rules, sizes) = (erase(hex.clone()), hex.sizes());
    // Any `Network` goes here: that of a run, or your own.
    let network = UniformNet(IoShape::of(&sizes));
    let params = SearchParams::new(&SearchConfig { simulations: 50, ..Default::default() }, &sizes);
    let mut searchers = Searchers::new(rules.as_ref(), &network, params, Placement::default(), 16, 2)?;
    let mut games = GameBatch::new(hex, 16);
    for ply in 0..10 {
        let request = |(slot, state)| SearchRequest {
            state: bytemuck::bytes_of(state).to_vec(),
            key: RowKey { seed: 1, slot, ply, ..RowKey::default() },
            ..SearchRequest::default()
        };
        let requests: Vec<SearchRequest> = (0..).zip(games.states()).map(request).collect();
        let roots = searchers.search(&requests, 50, Exploration::Noisy)?;
        games.step(&roots.iter().map(|root| root.actions[root.best]).collect::<Vec<u16>>());
    }
    println!("{} games after {} plies each", games.states().len(), games.plies()[0]);
    Ok(())
}
