//! Training of networks from zero, and their strategies: that of the policy head, and that of the determinised search with them.

use crate::kuhn::Kuhn;
use crate::leduc::Leduc;
use crate::tree::{GameTree, InfoState, Strategy, normalised};
use std::path::Path;
use std::sync::Arc;
use vecaz::Result;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::config::Config;
use vecaz::engine::{PositionBatch, Settings};
use vecaz::net::Network;
use vecaz::registry::Registry;
use vecaz::report::progress::{Progress, Verbosity};
use vecaz::run::Run;
use vecaz::run::factory::DefaultFactory;
use vecaz::search::SearchParams;
use vecaz::search::root::RowKey;
use vecaz::searcher::{SearchRequest, raw_policies};
use vecaz::stop::Stop;

/// Positions that are searched at once.
const POSITIONS: usize = 32;

/// The built-in games, Kuhn poker and Leduc poker.
///
/// # Errors
/// None: the names are free.
pub fn registry() -> Result<Registry> {
    Registry::built_in().with::<Kuhn>()?.with::<Leduc>()
}

/// Trains from zero until a limit of `config`; all files are in the new folder `dir`.
///
/// # Errors
/// Those of [`Run::start_on`] and [`Run::run_epochs`].
pub fn train(config: Config, dir: &Path, threads: usize) -> Result<()> {
    let mut run = Run::start_on(Box::new(DefaultFactory(registry()?)), config, dir, threads)?;
    run.run_epochs(&mut Progress::new(Verbosity::Quiet), &Stop::default())
}

/// The probabilities of the policy head over the legal actions.
///
/// # Errors
/// Those of the network.
pub fn head_strategy(
    tree: &GameTree,
    game: &Arc<dyn AnyGame>,
    network: &mut dyn Network,
) -> Result<Strategy> {
    let request = |info| SearchRequest { state: play(game, info).state().to_vec(), ..Default::default() };
    let positions: Vec<SearchRequest> = tree.info_states().iter().map(request).collect();
    let found = raw_policies(game.as_ref(), network, &positions)?;
    Ok(found.iter().map(|(policy, _)| normalised(policy)).collect())
}

/// The strategies of a search.
pub struct SearchStrategies {
    /// An action drawn from the search's policy, as in the first plies of self-play: means of the policies.
    pub drawn: Strategy,
    /// The best action, as in matches: how often each is the best.
    pub best: Strategy,
}

/// The strategies of the search of `config` without noise: means over `repeats` searches of each information state, which differ in the
/// deals that are drawn.
///
/// # Errors
/// Those of [`PositionBatch::new`] and [`PositionBatch::search`].
pub fn search_strategies(
    tree: &GameTree,
    game: &Arc<dyn AnyGame>,
    network: &dyn Network,
    config: &Config,
    repeats: u64,
) -> Result<SearchStrategies> {
    let sizes = game.sizes();
    let settings = Settings {
        params: SearchParams::new(&config.search, &sizes),
        determinisations: config.search.determinisations as usize,
        ..Settings::new(config, &sizes)
    };
    let mut batch = PositionBatch::new(game.as_ref(), network, settings, POSITIONS)?;
    let plays: Vec<Playthrough> = tree.info_states().iter().map(|info| play(game, info)).collect();
    let plays: Vec<&Playthrough> = plays.iter().collect();
    let none: Strategy = tree.info_states().iter().map(|info| vec![0.0; info.legal.len()]).collect();
    let mut sums = SearchStrategies { drawn: none.clone(), best: none };
    for seed in 0..repeats {
        let keys: Vec<RowKey> =
            (0..plays.len() as u64).map(|slot| RowKey { seed, slot, ..RowKey::default() }).collect();
        for (number, found) in batch.search(&plays, &keys)?.iter().enumerate() {
            sums.best[number][found.best] += 1.0 / repeats as f64;
            for (sum, prob) in sums.drawn[number].iter_mut().zip(normalised(&found.policy)) {
                *sum += prob / repeats as f64;
            }
        }
    }
    Ok(sums)
}

/// A position of an information state.
fn play(game: &Arc<dyn AnyGame>, info: &InfoState) -> Playthrough {
    let mut play = Playthrough::new(game.clone());
    info.actions.iter().for_each(|&action| play.step(action).expect("an action of the tree"));
    play
}
