//! The root cache: in which positions games begin and how often, which of them have a tree and how deep, that each tree is what a
//! search of that position alone builds, and that games begin with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::backend::{Placement, PlyPlan, RootCache, TreeSnapshot};
use vecaz::config::{Config, Layers};
use vecaz::game::{Sizes, Turn};
use vecaz::net::{HashNet, IoShape};
use vecaz::play::FinishedGame;
use vecaz::registry::any_game;
use vecaz::root_cache::{self, CachePlan, Openings, PlannedTree};
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::searcher::Searcher;
use vecaz::selfplay::{SelfPlay, backend_plan};
use vecaz::stop::Stop;
use vecaz::tree::ROOT;

fn setup(text: &str) -> (Config, Arc<dyn AnyGame>) {
    let config: Config = Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid");
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    (config, game)
}

fn network(sizes: &Sizes) -> HashNet {
    HashNet(IoShape::of(sizes))
}

fn plan_for(config: &Config, game: &dyn AnyGame, games: f64) -> CachePlan {
    let sizes = game.sizes();
    CachePlan::for_run(config, backend_plan(config, &sizes, 1), &sizes, games).expect("a root cache")
}

fn build(game: &dyn AnyGame, plan: CachePlan) -> RootCache {
    root_cache::build(game, &network(&game.sizes()), plan, None, &Stop::default()).expect("built")
}

/// Equal to the last number: positions, nodes, edges.
fn assert_same_trees(a: &TreeSnapshot, b: &TreeSnapshot, what: &str) {
    assert_eq!((a.tree.count(0), &a.states, &a.history), (b.tree.count(0), &b.states, &b.history), "{what}");
    for (i, (x, y)) in a.tree.row_bytes(0).into_iter().zip(b.tree.row_bytes(0)).enumerate() {
        assert!(x == y, "{what}: array {i} of the tree");
    }
}

#[test]
fn every_start_of_the_game_is_found() {
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
        let found = root_cache::starts(game.as_ref(), Openings { max_plies: 0, none: 1.0 }, 1e-9);
        assert_eq!(found.len(), starts, "{options}");
        assert!(found.iter().all(|start| matches!(game.turn(&start.state), Turn::Player(_))), "{options}");
        let share: f64 = found.iter().map(|start| start.share).sum();
        assert!((share - 1.0).abs() < 1e-6, "{options}: {share}");
    }
}

/// The positions of `games` first games, with how often each occurs.
fn drawn_starts(config: &Config, game: &Arc<dyn AnyGame>) -> BTreeMap<(Vec<u8>, Vec<u64>), usize> {
    let mut found = BTreeMap::new();
    let slots = SelfPlay::new(game, config, &network(&game.sizes()), Vec::new(), 1).expect("fits");
    for slot in slots.slots() {
        *found.entry((slot.state.clone(), slot.history.clone())).or_default() += 1;
    }
    found
}

#[test]
fn games_begin_in_the_starts_as_often_as_their_shares_say() {
    const GAMES: usize = 40_000;
    for (name, selfplay, max_starts) in [
        ("name = \"connect_four\"", "opening_plies = 3\nopening_none = 0.2", 1 + 7 + 49 + 343),
        ("name = \"go\"\nsize = 5\nmax_plies = 9", "opening_plies = 2\nopening_none = 0.0", 26 + 26 * 26),
        ("name = \"backgammon\"", "opening_plies = 1\nopening_none = 0.5", usize::MAX),
    ] {
        let text = format!(
            "[game]\n{name}\n[search]\nsimulations = 1\ncache_entries = 0\n[selfplay]\nfirst_game = \"start\"\ngames = {GAMES}\n{selfplay}"
        );
        let (config, game) = setup(&text);
        let openings = Openings {
            max_plies: config.selfplay.opening_plies,
            none: f64::from(config.selfplay.opening_none),
        };
        let drawn = drawn_starts(&config, &game);
        let starts = root_cache::starts(game.as_ref(), openings, 2e-4);
        assert!(starts.len() > 8 && starts.len() <= max_starts, "{name}: {} starts", starts.len());
        assert!(starts.is_sorted_by(|a, b| a.share >= b.share), "{name}");
        for start in &starts {
            let found = drawn.get(&(start.state.clone(), start.history.clone())).copied().unwrap_or(0);
            let (games, expected) = (found as f64, start.share * GAMES as f64);
            assert!((games - expected).abs() < 6.0 * expected.sqrt(), "{name}: {games} games, {expected}");
        }
        let missed = drawn.iter().filter(|((state, history), games)| {
            **games as f64 > 3e-4 * GAMES as f64 + 20.0
                && !starts.iter().any(|start| (&start.state, &start.history) == (state, history))
        });
        assert_eq!(missed.count(), 0, "{name}");
    }
}

const OPENINGS: &str = "
[game]
name = 'connect_four'
[search]
algorithm = 'puct'
simulations = 40
[selfplay]
games = 1024
opening_plies = 4
opening_none = 0.1
";

#[test]
fn a_start_has_a_tree_as_deep_as_its_games_justify() {
    let (config, game) = setup(OPENINGS);
    let depths = |games: f64| -> Vec<u32> {
        plan_for(&config, game.as_ref(), games).trees(game.as_ref()).iter().map(|t| t.simulations).collect()
    };
    assert_eq!(depths(19.0), [] as [u32; 0], "1.9 games begin at the empty board");
    // 2 games x 40 simulations / 4.
    assert_eq!(depths(20.0), [20]);
    // 20 games at the empty board; 6.43 after each of 7 first plies; 0.92 after each of 49 second plies.
    assert_eq!(depths(200.0), [200, 64, 64, 64, 64, 64, 64, 64]);
    // 200; 64.3; 9.18; 1.31 after each third ply, but 105 positions are reached by two orders of the first player's plies.
    let many = depths(2000.0);
    assert_eq!((&many[..3], many.len()), ([1000, 642, 642].as_slice(), 1 + 7 + 49 + 105));
    for games in [20.0, 200.0, 2000.0] {
        let plan = plan_for(&config, game.as_ref(), games);
        let (mut cost, mut inherited) = (0.0, 0.0);
        for PlannedTree { start, simulations, .. } in plan.trees(game.as_ref()) {
            cost += f64::from(simulations);
            inherited += games * start.share * f64::from(simulations.min(40));
        }
        assert!(inherited > 1.9 * cost, "{games} games: {cost} simulations for {inherited}");
    }
}

#[test]
fn gumbel_trees_have_a_quarter_of_the_simulations_of_a_ply() {
    let (config, game) = setup(&OPENINGS.replace("puct", "gumbel"));
    let trees = plan_for(&config, game.as_ref(), 2000.0).trees(game.as_ref());
    assert!(trees.len() > 57);
    assert!(trees[..57].iter().all(|tree| tree.simulations == 10));
    assert!(trees[57..].iter().all(|tree| tree.simulations <= 10));
}

#[test]
fn trees_fit_a_quarter_of_the_nodes_of_all_games() {
    let (mut config, game) = setup(OPENINGS);
    // Games of 82 nodes.
    config.selfplay.games = 128;
    let nodes = |config: &Config| -> usize {
        plan_for(config, game.as_ref(), 2000.0)
            .trees(game.as_ref())
            .iter()
            .map(|t| t.simulations as usize + 1)
            .sum()
    };
    let found = nodes(&config);
    assert!(found > 128 * 82 / 4 - 643 && found <= 128 * 82 / 4, "{found}");
    config.selfplay.games = 5;
    assert_eq!(nodes(&config), 1001, "one tree always fits");
    config.search.root_cache = 60;
    config.selfplay.games = 100_000;
    let max_nodes = plan_for(&config, game.as_ref(), 2000.0).max_nodes;
    assert_eq!(max_nodes, 64 * 61);
}

#[test]
fn each_tree_is_what_its_position_alone_gives() {
    for text in [
        "[game]\nname = \"backgammon\"\n[search]\nalgorithm = 'puct'\nsimulations = 40\nnodes = 4000",
        "[game]\nname = \"go\"\nsize = 5\n[search]\nsimulations = 90\n[selfplay]\nopening_plies = 1",
        OPENINGS,
    ] {
        let (config, game) = setup(text);
        let sizes = game.sizes();
        let plan = plan_for(&config, game.as_ref(), 300.0);
        let cache = build(game.as_ref(), plan);
        let trees = plan.trees(game.as_ref());
        assert!(trees.len() >= 8 && trees.len() == cache.trees().len(), "{} trees", trees.len());
        let mut unproven = 0;
        for PlannedTree { start, simulations, leaves } in trees {
            let base = SearchParams::new(&config.search, &sizes);
            let params = SearchParams { simulations, leaves, ..base };
            let nodes = BackendPlan::nodes_for(simulations, &sizes);
            let arrays = BackendPlan { rows: 1, nodes, params, reuse: Reuse::Drop };
            let mut alone =
                Searcher::new(game.as_ref(), Box::new(network(&sizes)), arrays, Placement::default())
                    .expect("made");
            alone.backend.set_root(0, &start.state, &start.history).expect("on the CPU");
            let key = RowKey { seed: config.run.seed, slot: u64::MAX, ..RowKey::default() };
            let ply = PlyPlan { simulations, exploration: Exploration::Plain, key };
            alone.backend.begin(0, ply).expect("on the CPU");
            alone.finish().expect("finite");
            let mut whole = alone.backend.snapshot(0, plan.keep).expect("on the CPU");
            let found = cache.find(&start.state, &start.history).expect("a tree");
            assert_same_trees(&found.snapshot, &whole, &format!("{simulations} simulations"));
            let counted = config.search.inherit_cap as u32 * config.search.simulations;
            // Fewer than its simulations where it is proven.
            let visits = whole.tree.row_mut(0).used_edges(ROOT).visits.iter().sum::<i32>() as u32;
            assert_eq!(found.inherited, visits.min(counted));
            unproven += usize::from(visits == simulations);
        }
        assert!(unproven >= 8, "{unproven} trees");
    }
}

#[test]
fn a_position_with_another_history_is_another_start() {
    let (config, game) =
        setup("[game]\nname = \"go\"\nsize = 5\n[selfplay]\nopening_plies = 1\nopening_none = 0.5");
    let cache = build(game.as_ref(), plan_for(&config, game.as_ref(), 300.0));
    let (empty, other) = (game.init(), 7);
    assert!(cache.find(&empty, &[]).is_some());
    assert!(cache.find(&empty, &[other]).is_none());
    let key = game.history_key(&empty);
    let first = cache.trees().iter().find(|tree| !tree.snapshot.history.is_empty()).expect("a first ply");
    assert_eq!(first.snapshot.history, [key]);
    assert!(cache.find(first.snapshot.root_state(), &[other]).is_none());
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
first_game = 'start'
passes_per_poll = 500
opening_plies = 0
temperature_plies = 4
";

fn play(config: &Config, game: &Arc<dyn AnyGame>, cache: RootCache, threads: usize) -> Vec<FinishedGame> {
    let network = network(&game.sizes());
    let mut selfplay = SelfPlay::new(game, config, &network, Vec::new(), threads).expect("fits");
    selfplay.set_network(&network, cache).expect("a network");
    let games: Vec<FinishedGame> = (0..3).flat_map(|_| selfplay.poll().expect("finite")).collect();
    let metrics = selfplay.take_metrics();
    // Every slot has begun one game more than it has finished.
    assert_eq!(metrics.cached_starts, (games.len() + config.selfplay.games) as u64);
    // A quarter of the 9 simulations of a ply.
    assert_eq!(metrics.inherited_visits, 2 * metrics.cached_starts);
    games
}

/// The search result of the first ply of a game whose root is `tree`, or a root alone.
fn first_ply(
    config: &Config,
    game: &dyn AnyGame,
    played: &FinishedGame,
    tree: Option<&TreeSnapshot>,
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
    searcher.finish().expect("finite");
    let mut summary = RootSummary::default();
    searcher.backend.summarise(0, &mut summary).expect("on the CPU");
    summary
}

#[test]
fn every_game_begins_with_the_tree_of_its_opening_roll() {
    let (config, game) = setup(GAMES);
    let plan = plan_for(&config, game.as_ref(), 300.0);
    let cache = build(game.as_ref(), plan);
    let games = play(&config, &game, build(game.as_ref(), plan), 1);
    assert!(games.len() > 15 && games.iter().any(|g| g.game > 0), "{} games", games.len());
    let mut rolls = std::collections::BTreeSet::new();
    for played in &games {
        let first = &played.samples[0];
        let tree = &cache.find(&first.state, &[]).expect("a start").snapshot;
        let found = first_ply(&config, game.as_ref(), played, Some(tree));
        assert_eq!(
            (&first.actions, &first.policy),
            (&found.actions, &found.policy),
            "{:?}",
            &played.actions[..2]
        );
        let inherited = found.visits.iter().sum::<i32>() - found.new_visits.iter().sum::<i32>();
        assert_eq!(inherited, 2, "{:?}", &played.actions[..2]);
        let without = first_ply(&config, game.as_ref(), played, None);
        assert_ne!(without.visits, found.visits);
        rolls.insert(played.actions[..2].to_vec());
    }
    assert!(rolls.len() > 8, "{rolls:?}");
    assert_eq!(play(&config, &game, build(game.as_ref(), plan), 3), games, "whatever the threads");
}

#[test]
fn a_table_of_evaluations_changes_no_tree_and_gets_those_of_the_trees() {
    let (config, game) = setup(OPENINGS);
    let plan = plan_for(&config, game.as_ref(), 300.0);
    let network = network(&game.sizes());
    let mut selfplay = SelfPlay::new(&game, &config, &network, Vec::new(), 1).expect("fits");
    selfplay.replace_network(&network).expect("on the CPU");
    let right = build(game.as_ref(), plan);
    let found = root_cache::build(game.as_ref(), &network, plan, selfplay.evaluations(), &Stop::default())
        .expect("built");
    for (tree, right) in found.trees().iter().zip(right.trees()) {
        assert_same_trees(&tree.snapshot, &right.snapshot, "with the table");
    }
    let evaluations = |cache: RootCache, selfplay: &mut SelfPlay| {
        selfplay.begin_plies(cache).expect("on the CPU");
        let games = selfplay.poll().expect("finite");
        (games, selfplay.take_metrics().evaluations)
    };
    let (games, with) = evaluations(found, &mut selfplay);
    let mut alone = SelfPlay::new(&game, &config, &network, Vec::new(), 1).expect("fits");
    alone.replace_network(&network).expect("on the CPU");
    let (right_games, without) = evaluations(right, &mut alone);
    assert_eq!(games, right_games);
    assert!(with < without, "{with} evaluations instead of {without}");
}

/// A tree whose root is proven by a child that trimming removed would begin a game with the network's priors for the proven value's policy:
/// here a mate in one that is found late.
#[test]
fn no_tree_is_proven_by_a_child_that_it_lacks() {
    for search in [
        "algorithm = \"puct\"\nsimulations = 8",
        "algorithm = \"puct\"\nsimulations = 32\nreuse = false",
        "algorithm = \"gumbel\"\nsimulations = 200\nreuse = false",
    ] {
        let (config, game) = setup(&format!(
            "[game]\nname = \"chess\"\nfen = \"6k1/5ppp/8/8/8/8/5PPP/R2Q2K1 w - - 0 1\"\nmax_plies = 10\n[selfplay]\nfirst_game = \"start\"\ngames = 4\n\
             opening_plies = 0\n[search]\nroot_cache = 1000\n{search}"
        ));
        let plan = plan_for(&config, game.as_ref(), 1000.0);
        let network = network(&game.sizes());
        let mut selfplay = SelfPlay::new(&game, &config, &network, Vec::new(), 1).expect("fits");
        selfplay.set_network(&network, RootCache::default()).expect("a network");
        let mut played = None;
        while played.is_none() {
            played = selfplay.poll().expect("finite").into_iter().next();
        }
        let played = played.expect("a game");
        let cache = build(game.as_ref(), plan);
        assert!(cache.simulations() > 0, "{search}");
        for tree in cache.trees() {
            let found = first_ply(&config, game.as_ref(), &played, Some(&tree.snapshot));
            assert!(!found.proven || found.policy != found.prior, "{search}: {found:?}");
        }
    }
}
