//! Searches against exact values, and the laws that every search keeps.

use vecaz::backend::Placement;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::batch::Playthrough;
use vecaz::config::{Algorithm, SearchConfig};
use vecaz::eval::solver::Solver;
use vecaz::net::{HashNet, IoShape, Network, UniformNet};
use vecaz::registry::any_game;
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RootSummary, RowKey};
use vecaz::searcher::{SearchRequest, Searcher};

fn searcher(game: &str, config: &SearchConfig, rows: usize, hash: Option<()>) -> (Searcher, Playthrough) {
    let game = any_game(game, &toml::Table::new()).expect("registered");
    let sizes = game.sizes();
    let shape = IoShape::of(&sizes);
    let network: Box<dyn Network> =
        if hash.is_some() { Box::new(HashNet(shape)) } else { Box::new(UniformNet(shape)) };
    let params = SearchParams::new(config, &sizes);
    let nodes = BackendPlan::nodes_for(params.simulations, &sizes);
    let plan = BackendPlan { rows, nodes, params, reuse: Reuse::Drop };
    (Searcher::new(game.as_ref(), network, plan, Placement::default()).expect("fits"), Playthrough::new(game))
}

fn search(game: &str, actions: &[u16], config: &SearchConfig, hash: Option<()>) -> RootSummary {
    let (mut searcher, mut play) = searcher(game, config, 3, hash);
    actions.iter().for_each(|&a| play.step(a).expect("legal"));
    let position = SearchRequest { state: play.state().to_vec(), ..SearchRequest::default() };
    let out = searcher.search(&[position], config.simulations, Exploration::Plain).expect("finite");
    out.into_iter().next().expect("one")
}

/// Every position of tic-tac-toe, the empty board too, searched to its proof with PUCT. Gumbel search passes over moves that
/// look bad for good, so it proves all positions only from ply 5 on.
#[test]
fn tic_tac_toe_is_proven_as_the_solver_says() {
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let mut solver = Solver::for_game(&game).expect("a solver");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/positions/tic_tac_toe.jsonl");
    let all = vecaz::eval::positions::read(file.as_ref(), &game).expect("positions");
    assert!(all.iter().any(|p| p.actions.is_empty()));
    for (algorithm, from_ply, at_least) in [(Algorithm::Puct, 0, 600), (Algorithm::Gumbel, 5, 300)] {
        let all: Vec<_> = all.iter().filter(|p| p.actions.len() >= from_ply).collect();
        assert!(all.len() > at_least);
        let config = SearchConfig { algorithm, simulations: 100_000, ..SearchConfig::default() };
        let (mut searcher, _) = searcher("tic_tac_toe", &config, 16, None);
        let mut at = Vec::new();
        let mut exact = Vec::new();
        for position in &all {
            let play = vecaz::eval::positions::replay(position, &game).expect("legal");
            let best = solver.scores(&play).into_iter().flatten().max().expect("moves");
            exact.push(best.signum() as f32);
            at.push(SearchRequest { state: play.state().to_vec(), ..SearchRequest::default() });
        }
        let found = searcher.search(&at, 100_000, Exploration::Plain).expect("finite");
        for ((summary, exact), position) in found.iter().zip(exact).zip(&all) {
            assert!(summary.proven, "{algorithm:?} {:?}", position.actions);
            assert_eq!(summary.value[usize::from(summary.player)], exact, "{:?}", position.actions);
            assert!(position.keeps_outcome(summary.actions[summary.best]), "{:?}", position.actions);
        }
    }
}

/// From the empty board Gumbel search, too, finds the value of a draw.
#[test]
fn tic_tac_toe_is_a_draw() {
    let config =
        SearchConfig { algorithm: Algorithm::Gumbel, simulations: 20_000, ..SearchConfig::default() };
    let summary = search("tic_tac_toe", &[], &config, None);
    assert!(summary.value[0].abs() < 0.05, "{:?}", summary.value);
    assert_eq!(summary.value[0], -summary.value[1]);
}

#[test]
fn a_win_in_one_is_taken_and_a_threat_is_met() {
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        for solver in [true, false] {
            let config = SearchConfig { algorithm, solver, simulations: 200, ..SearchConfig::default() };
            let win = search("connect_four", &[3, 0, 3, 0, 3, 0], &config, None);
            assert_eq!(win.actions[win.best], 3, "{algorithm:?} {solver} {win:?}");
            let block = search("connect_four", &[3, 0, 3, 1, 3], &config, None);
            assert_eq!(block.actions[block.best], 3, "{algorithm:?} {solver} {block:?}");
        }
    }
}

/// The same logits everywhere: 10 for the middle column.
#[derive(Clone)]
struct Middle(IoShape);

impl Network for Middle {
    fn shape(&self) -> IoShape {
        self.0
    }

    fn forward(&mut self, _obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> vecaz::Result<()> {
        values.fill(0.0);
        logits.chunks_exact_mut(7).for_each(|row| row.copy_from_slice(&[0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.0]));
        Ok(())
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

/// O has three in a row one above the ground: whoever plays in the middle column loses by the reply there, as two simulations find.
#[test]
fn no_search_plays_the_only_move_that_it_has_visited_and_refuted() {
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        let config = SearchConfig {
            algorithm,
            simulations: 2,
            max_num_considered_actions: 1,
            ..SearchConfig::default()
        };
        let (mut searcher, mut play) = searcher("connect_four", &config, 1, None);
        searcher.set_network(&Middle(searcher.network.shape())).expect("on the CPU");
        [0, 0, 1, 1, 6, 2, 6, 2].into_iter().for_each(|a| play.step(a).expect("legal"));
        let position = SearchRequest { state: play.state().to_vec(), ..SearchRequest::default() };
        let found = &searcher.search(&[position], 2, Exploration::Plain).expect("finite")[0];
        assert_eq!((found.visits[3], found.q[3], found.proven), (2, -1.0, false), "{algorithm:?} {found:?}");
        assert!(found.policy[3] == 0.0 && found.best != 3, "{algorithm:?} {found:?}");
        assert!((found.policy.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{found:?}");
    }
}

#[test]
fn visits_do_not_depend_on_the_batch_a_row_stands_in() {
    for (algorithm, leaves) in [(Algorithm::Puct, 1), (Algorithm::Gumbel, 1), (Algorithm::Puct, 4)] {
        let config = SearchConfig { algorithm, leaves, simulations: 150, ..SearchConfig::default() };
        let (mut many, play) = searcher("connect_four", &config, 5, Some(()));
        let positions: Vec<SearchRequest> = (0..7)
            .map(|column| {
                let mut play = play.clone();
                play.step(column).expect("legal");
                let key = RowKey { slot: u64::from(column), ..RowKey::default() };
                SearchRequest { state: play.state().to_vec(), history: vec![], key }
            })
            .collect();
        let together = many.search(&positions, 150, Exploration::Noisy).expect("finite");
        let (mut one, _) = searcher("connect_four", &config, 1, Some(()));
        for (position, summary) in positions.iter().zip(&together) {
            let alone = one.search(std::slice::from_ref(position), 150, Exploration::Noisy).expect("finite");
            assert_eq!(&alone[0].visits, &summary.visits);
            assert_eq!(alone[0].visits.iter().sum::<i32>(), 150);
        }
        assert_ne!(together[0].visits, together[1].visits);
    }
}
