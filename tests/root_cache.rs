//! The root cache: which starts have a tree, that each tree is what a search of that start alone builds, and that games
//! begin with it.

use std::sync::Arc;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::backend::{Placement, PlyPlan, Snapshot};
use vecaz::batch::{AnyGame, any_game};
use vecaz::config::{Config, Layers};
use vecaz::game::{History, Sizes, Turn};
use vecaz::net::{HashNet, IoShape};
use vecaz::root_cache::{self, CachePlan};
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::searcher::Searcher;
use vecaz::selfplay::{FinishedGame, SelfPlay, backend_plan};
use vecaz::stop::Stop;

const SIMULATIONS: u32 = 300;

fn setup(text: &str) -> (Config, Arc<dyn AnyGame>) {
    let config: Config = Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid");
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    (config, game)
}

fn network(sizes: &Sizes) -> HashNet {
    HashNet(IoShape {
        obs_len: sizes.obs.len(),
        num_actions: sizes.num_actions,
        num_players: sizes.num_players,
    })
}

fn cache_of(config: &Config, game: &dyn AnyGame) -> Vec<(Vec<u8>, Snapshot)> {
    let sizes = game.sizes();
    let mut config = config.clone();
    config.search.root_cache = SIMULATIONS;
    let plan = CachePlan::for_run(&config, backend_plan(&config, &sizes, 1), &sizes);
    root_cache::build(game, &network(&sizes), plan, &Stop::default()).expect("built")
}

/// Equal to the last number: positions, nodes, edges.
fn assert_same_trees(a: &mut Snapshot, b: &mut Snapshot, what: &str) {
    assert_eq!((a.tree.count(0), &a.states), (b.tree.count(0), &b.states), "{what}");
    let count = a.tree.count(0);
    let (left, right) = (a.tree.row_mut(0), b.tree.row_mut(0));
    assert_eq!(left.nodes[..count], right.nodes[..count], "{what}");
    for n in 0..count {
        let num_edges = usize::from(left.nodes[n].num_edges);
        let (x, y) = (left.edges(n as i32), right.edges(n as i32));
        assert_eq!(x.visits[..num_edges], y.visits[..num_edges], "{what}: visits of node {n}");
        assert_eq!(x.value_sum[..num_edges], y.value_sum[..num_edges], "{what}: values of node {n}");
        assert_eq!(x.prior[..num_edges], y.prior[..num_edges], "{what}: priors of node {n}");
        assert_eq!(x.child[..num_edges], y.child[..num_edges], "{what}: children of node {n}");
    }
}

#[test]
fn every_start_and_no_other_state_has_a_tree() {
    for (options, starts) in [
        // Two starters, and 15 rolls without doubles or 6 doubles.
        ("name = \"backgammon\"", 2 * 15),
        ("name = \"backgammon\"\nshort_game = true", 2 * 15),
        ("name = \"backgammon\"\nsimple_doubles = true", 2 * 6),
        ("name = \"hex\"\nsize = 5\nswap = true", 1),
        ("name = \"gomoku\"\nopening = \"swap2\"", 1),
        ("name = \"clique\"\nn = 5", 1),
        ("name = \"chess\"\nfen = \"8/8/8/8/8/4k3/4p3/4K2R w - - 0 1\"", 1),
    ] {
        let (_, game) = setup(&format!("[game]\n{options}"));
        let found = root_cache::starts(game.as_ref()).expect("few");
        assert_eq!(found.len(), starts, "{options}");
        assert!(found.iter().all(|state| matches!(game.turn(state), Turn::Player(_))), "{options}");
        if game.turn(&game.init()) != Turn::Chance {
            assert_eq!(found, [game.init()], "{options}");
        }
    }
}

#[test]
fn where_every_game_is_dealt_anew_it_is_refused() {
    let (_, game) = setup("[game]\nname = \"blob\"");
    let message = root_cache::starts(game.as_ref()).expect_err("refused").to_string();
    assert_eq!(
        message,
        "config key search.root_cache for blob: every game deals new hands, so no two games share a root; use 0"
    );
}

#[test]
fn each_tree_is_what_its_roll_alone_gives() {
    let (config, game) = setup("[game]\nname = \"backgammon\"\n[search]\nsimulations = 40\nnodes = 4000");
    let mut cache = cache_of(&config, game.as_ref());
    let sizes = game.sizes();
    let params =
        SearchParams { simulations: SIMULATIONS, leaves: 32, ..SearchParams::new(&config.search, &sizes) };
    let nodes = BackendPlan::nodes_for(SIMULATIONS, &sizes);
    let mut distinct = 0;
    for starter in [0, 1] {
        for roll in (0..21u16).filter(|roll| ![0, 6, 11, 15, 18, 20].contains(roll)) {
            let mut state = game.init();
            game.step(&mut state, starter, History::default());
            game.step(&mut state, roll, History::default());
            let number = cache.iter().position(|(root, _)| *root == state).expect("a tree for this roll");
            let tree = &mut cache[number].1;
            let plan = BackendPlan { rows: 1, nodes, params, reuse: Reuse::Drop };
            let mut alone =
                Searcher::new(game.as_ref(), Box::new(network(&sizes)), plan, Placement::default())
                    .expect("made");
            alone.backend.set_root(0, &state, &[]).expect("on the CPU");
            let key =
                RowKey { seed: config.run.seed, slot: u64::MAX, game: number as u64, ..RowKey::default() };
            alone
                .backend
                .begin(0, PlyPlan { simulations: SIMULATIONS, exploration: Exploration::Plain, key })
                .expect("on the CPU");
            while alone.pass().expect("finite") > 0 {}
            let mut whole = alone.backend.snapshot(0, usize::MAX).expect("on the CPU");
            assert_eq!(whole.tree.row_mut(0).edges(0).visits.iter().sum::<i32>(), SIMULATIONS as i32);
            assert_same_trees(tree, &mut whole, &format!("starter {starter}, roll {roll}"));
            distinct += 1;
        }
    }
    assert_eq!(distinct, cache.len());
}

const GAMES: &str = "
[game]
name = 'backgammon'
ply_limit = 100
[search]
simulations = 9
root_cache = 300
nodes = 1200
[selfplay]
games = 11
passes_per_poll = 500
opening_plies = 0
temperature_plies = 4
";

fn play(
    config: &Config,
    game: &Arc<dyn AnyGame>,
    cache: Vec<(Vec<u8>, Snapshot)>,
    threads: usize,
) -> Vec<FinishedGame> {
    let network = network(&game.sizes());
    let mut selfplay = SelfPlay::new(game, config, &network, Vec::new(), threads).expect("fits");
    selfplay.set_network(&network, cache).expect("a network");
    (0..3).flat_map(|_| selfplay.poll().expect("finite")).collect()
}

/// What the first ply of a game finds whose root is `tree`, or a root alone.
fn first_ply(
    config: &Config,
    game: &dyn AnyGame,
    played: &FinishedGame,
    tree: Option<&Snapshot>,
) -> RootSummary {
    let sizes = game.sizes();
    let network = Box::new(network(&sizes));
    let mut searcher =
        Searcher::new(game, network, backend_plan(config, &sizes, 1), Placement::of_run(config))
            .expect("made");
    match tree {
        Some(tree) => searcher.backend.set_root_tree(0, tree),
        None => searcher.backend.set_root(0, &played.samples[0].state, &[]),
    }
    .expect("on the CPU");
    let key =
        RowKey { seed: config.run.seed, slot: played.slot, game: played.game, determinisation: 0, ply: 2 };
    let plan = PlyPlan { simulations: config.search.simulations, exploration: Exploration::Noisy, key };
    searcher.backend.begin(0, plan).expect("on the CPU");
    while searcher.pass().expect("finite") > 0 {}
    let mut summary = RootSummary::default();
    searcher.backend.summarise(0, &mut summary).expect("on the CPU");
    summary
}

#[test]
fn every_game_begins_with_the_tree_of_its_opening_roll() {
    let (config, game) = setup(GAMES);
    let cache = cache_of(&config, game.as_ref());
    let games = play(&config, &game, cache_of(&config, game.as_ref()), 1);
    assert!(games.len() > 15 && games.iter().any(|g| g.game > 0), "{} games", games.len());
    let mut rolls = std::collections::BTreeSet::new();
    for played in &games {
        let first = &played.samples[0];
        let (_, tree) = cache.iter().find(|(root, _)| *root == first.state).expect("a start");
        let found = first_ply(&config, game.as_ref(), played, Some(tree));
        assert_eq!(
            (&first.actions, &first.policy),
            (&found.actions, &found.policy),
            "{:?}",
            &played.actions[..2]
        );
        let inherited = found.visits.iter().sum::<i32>() - found.new_visits.iter().sum::<i32>();
        assert_eq!(inherited, SIMULATIONS as i32, "{:?}", &played.actions[..2]);
        let without = first_ply(&config, game.as_ref(), played, None);
        assert_ne!(without.visits, found.visits);
        rolls.insert(played.actions[..2].to_vec());
    }
    assert!(rolls.len() > 8, "{rolls:?}");
    assert_eq!(play(&config, &game, cache, 3), games, "whatever the threads");
}
