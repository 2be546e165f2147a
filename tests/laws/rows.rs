//! Rows are independent of their index, of each other, and of threads.

use super::support::{plan, search};
use super::{SELECTIONS, config, selection};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use vecaz::backend::RootCache;
use vecaz::backend::cpu::CpuBackend;
use vecaz::batch::Playthrough;
use vecaz::config::{Config, Layers, SearchConfig};
use vecaz::game::backgammon::Backgammon;
use vecaz::game::connect_four::ConnectFour;
use vecaz::game::{Game, Turn};
use vecaz::net::{HashNet, IoShape, Network};
use vecaz::play::act::sum_determinisations;
use vecaz::play::{FinishedGame, GameSlot};
use vecaz::registry::any_game;
use vecaz::rng::{Key, Purpose};
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::searcher::SearchRequest;
use vecaz::selfplay::SelfPlay;

fn openings<G: Game>(game: &G, num: u64) -> Vec<SearchRequest> {
    let any = any_game(G::NAME, &game.options()).expect("registered");
    (0..num)
        .map(|slot| {
            let mut play = Playthrough::new(any.clone());
            let mut rng = Key::new(slot, Purpose::Evaluation).stream();
            while play.turn() == Turn::Chance || play.actions().len() < 5 {
                let legal = play.legal();
                play.step(legal[rng.below(legal.len())]).expect("legal");
            }
            let key = RowKey { slot, ..RowKey::default() };
            SearchRequest { state: play.state().to_vec(), history: Vec::new(), key }
        })
        .collect()
}

fn permute_rows<G: Game>(game: G, config: &SearchConfig, order: &[usize]) {
    let sizes = game.sizes();
    let plan = plan(config, &sizes, order.len());
    let mut network = HashNet(IoShape::of(&sizes));
    let mut run = |positions: &[SearchRequest]| {
        let mut backend = CpuBackend::new(game.clone(), plan);
        search(&mut backend, &mut network, positions, config.simulations, Exploration::Noisy)
    };
    let positions = openings(&game, order.len() as u64);
    let straight = run(&positions);
    let permuted: Vec<SearchRequest> = order.iter().map(|&i| positions[i].clone()).collect();
    for (summary, &i) in run(&permuted).iter().zip(order) {
        assert_eq!(summary, &straight[i]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(6) })]

    #[test]
    fn permuted_rows_give_permuted_results(
        order in Just((0..7usize).collect::<Vec<_>>()).prop_shuffle(),
        selection in selection(),
        leaves in 1u32..5,
    ) {
        let config = SearchConfig { leaves, ..config(selection, 50) };
        permute_rows(ConnectFour::from_options(&toml::Table::new()).expect("defaults"), &config, &order);
        permute_rows(Backgammon::from_options(&toml::Table::new()).expect("defaults"), &config, &order);
    }
}

#[test]
fn equal_determinisations_equal_one() {
    let game = Backgammon::from_options(&toml::Table::new()).expect("defaults");
    for selection in SELECTIONS {
        let config = config(selection, 75);
        let mut backend = CpuBackend::new(game.clone(), plan(&config, &game.sizes(), 4));
        let mut network = HashNet(IoShape::of(&game.sizes()));
        let one = openings(&game, 1).remove(0);
        let parts = search(&mut backend, &mut network, &vec![one; 4], 75, Exploration::Noisy);
        let mut sum = RootSummary::default();
        sum_determinisations(&parts, &mut sum);
        let one = &parts[0];
        assert_eq!((sum.best, sum.player, &sum.actions), (one.best, one.player, &one.actions));
        assert_eq!(sum.visits, one.visits.iter().map(|v| 4 * v).collect::<Vec<_>>());
        // Four equal numbers added and divided by four are exact.
        assert_eq!((&sum.policy, &sum.value), (&one.policy, &one.value));
    }
}

fn games(text: &str, threads: usize) -> Vec<FinishedGame> {
    let polls = play_polls(text, threads, 3, |shape| Box::new(HashNet(shape)));
    polls.into_iter().flat_map(|poll| poll.finished).collect()
}

/// The state of self-play after a poll.
#[derive(PartialEq)]
struct Poll {
    finished: Vec<FinishedGame>,
    in_progress: Vec<GameSlot>,
}

/// Self-play with the network that `make` makes.
fn play_polls(
    text: &str,
    threads: usize,
    count: usize,
    make: impl Fn(IoShape) -> Box<dyn Network>,
) -> Vec<Poll> {
    let config: Config = Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid");
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let network = make(IoShape::of(&game.sizes()));
    let mut selfplay = SelfPlay::new(&game, &config, network.as_ref(), Vec::new(), threads).expect("fits");
    selfplay.set_network(network.as_ref(), RootCache::default()).expect("a network");
    let mut poll = || {
        let finished = selfplay.poll().expect("finite");
        Poll { finished, in_progress: selfplay.slots().cloned().collect() }
    };
    (0..count).map(|_| poll()).collect()
}

/// A network with a batch multiple of `batch`, which notes the size of every batch.
struct ByBatches {
    network: HashNet,
    batch: usize,
    batches: Arc<Mutex<Vec<usize>>>,
}

impl Network for ByBatches {
    fn shape(&self) -> IoShape {
        self.network.shape()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> vecaz::Result<()> {
        self.batches.lock().expect("no panic").push(obs.len() / self.shape().obs_len);
        self.network.forward(obs, logits, values)
    }

    fn batch_multiple(&self) -> Option<usize> {
        Some(self.batch)
    }

    fn fork(&self) -> Box<dyn Network> {
        let Self { network, batch, batches } = self;
        Box::new(Self { network: network.clone(), batch: *batch, batches: batches.clone() })
    }
}

/// A pass ends as soon as its leaves fill a batch, and the next begins with the row after; games must not depend on where passes end.
#[test]
fn games_do_not_depend_on_when_the_network_is_evaluated() {
    for (game, simulations, leaves, determinisations) in [
        ("name = \"connect_four\"", 30, 1, 1),
        ("name = \"connect_four\"", 30, 3, 1),
        ("name = \"backgammon\"\nply_limit = 100", 9, 1, 1),
        ("name = \"blob\"\nplayers = 3\ncards = 3", 7, 1, 3),
    ] {
        let search =
            format!("simulations = {simulations}\nleaves = {leaves}\ndeterminisations = {determinisations}");
        let text =
            format!("[game]\n{game}\n[search]\n{search}\n[selfplay]\ngames = 21\npasses_per_poll = 15\n");
        let whole = play_polls(&text, 1, 100, |shape| Box::new(HashNet(shape)));
        let finished: usize = whole.iter().map(|poll| poll.finished.len()).sum();
        assert!(finished >= 21, "{game}: {finished} games");
        for (batch, threads) in [(1, 1), (2, 1), (5, 1), (16, 1), (3, 2)] {
            let batches = Arc::new(Mutex::new(Vec::new()));
            let make = |shape| -> Box<dyn Network> {
                Box::new(ByBatches { network: HashNet(shape), batch, batches: batches.clone() })
            };
            assert!(play_polls(&text, threads, 100, make) == whole, "{game} {search}, {batch} at once");
            let max = batches.lock().expect("no panic").iter().copied().max();
            match determinisations {
                // As many whole batches as half of the slots fill.
                1 if threads == 1 && leaves == 1 => assert_eq!(max, Some((10 / batch).max(1) * batch)),
                1 => assert!(max < Some(21 * leaves)),
                // All rows of a game pass together, at first those of all games.
                _ => assert!(max > Some(2 * 63 / 3 / threads)),
            }
        }
    }
}

#[test]
fn games_do_not_depend_on_the_number_of_threads() {
    let selfplay = "[selfplay]\ngames = 5\npasses_per_poll";
    for (game, search) in [
        ("name = \"backgammon\"\nply_limit = 100", "simulations = 9"),
        ("name = \"go\"\nsize = 5\nmax_plies = 40", "simulations = 11\nleaves = 2"),
        ("name = \"blob\"\nplayers = 3\ncards = 3", "simulations = 7\ndeterminisations = 3"),
        ("name = \"connect_four\"", "simulations = 19\nalgorithm = \"puct\""),
    ] {
        let text = format!("[game]\n{game}\n[search]\n{search}\n{selfplay} = 500");
        let one = games(&text, 1);
        assert!(one.len() >= 5 && one.iter().any(|g| g.game > 0), "{game}: {} games", one.len());
        assert!(one.iter().all(|g| !g.samples.is_empty()));
        for threads in [2, 3] {
            assert_eq!(games(&text, threads), one, "{game} {threads} threads");
        }
    }
}

/// Evaluations are shared by all games and threads, so the hits in the table depend on timing; games must not.
#[test]
fn games_do_not_depend_on_the_evaluation_cache() {
    for (game, search) in [
        ("name = \"connect_four\"", "simulations = 60\nleaves = 12"),
        ("name = \"connect_four\"", "simulations = 60\nleaves = 12\nalgorithm = \"puct\""),
        ("name = \"backgammon\"\nply_limit = 100", "simulations = 16\nleaves = 4"),
    ] {
        let text = |entries: usize| {
            let search = format!("[search]\n{search}\ncache_entries = {entries}");
            format!("[game]\n{game}\n{search}\n[selfplay]\ngames = 7\npasses_per_poll = 300\n")
        };
        let without = games(&text(0), 1);
        assert!(without.len() >= 5, "{game}: {} games", without.len());
        for threads in [1, 2] {
            assert!(games(&text(4096), threads) == without, "{game} {search} on {threads} threads");
        }
    }
}
