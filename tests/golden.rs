//! Golden trees, small enough to read: tic-tac-toe, a uniform network, every node with its visits, mean value for the player
//! to move there, and the proven values.

mod support;

use std::fmt::Write;
use support::{plan, search};
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::config::{Algorithm, SearchConfig};
use vecaz::isa::Isa;
use vecaz::net::{IoShape, UniformNet};
use vecaz::registry::any_game;
use vecaz::search::root::Exploration;
use vecaz::searcher::SearchRequest;
use vecaz::tree::{NO_NODE, NodeKind, ROOT, RowMut};

/// The tree below node `n`, one line a node.
fn draw(
    game: &dyn AnyGame,
    states: &[u8],
    row: &RowMut<'_>,
    n: i32,
    name: &str,
    indent: usize,
    out: &mut String,
) {
    let node = &row.nodes[n as usize];
    let mover = if node.kind() == NodeKind::Terminal { "over" } else { ["X", "O"][usize::from(node.player)] };
    let proven = if node.is_proven() { format!(", proven {}", row.value(n)[0]) } else { String::new() };
    let mean = node.mean();
    writeln!(out, "{:indent$}{name}: {} visits, {mover} {mean:.3}{proven}", "", node.visits).expect("text");
    let edges = row.edges(n);
    let size = game.state_size();
    for edge in 0..usize::from(node.num_edges) {
        if edges.child[edge] != NO_NODE {
            let state = &states[n as usize * size..][..size];
            let name = game.action_name(state, row.actions(n)[edge]);
            draw(game, states, row, edges.child[edge], &name, indent + 2, out);
        }
    }
}

fn tree(actions: &[u16], config: &SearchConfig) -> String {
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let mut play = Playthrough::new(game.clone());
    actions.iter().for_each(|&a| play.step(a).expect("legal"));
    let sizes = game.sizes();
    let mut backend = game.cpu_backend(plan(config, &sizes, 3), Isa::detect()).expect("detected");
    let mut network = UniformNet(IoShape::of(&sizes));
    let positions = [SearchRequest { state: play.state().to_vec(), ..SearchRequest::default() }];
    search(backend.as_mut(), &mut network, &positions, config.simulations, Exploration::Plain);
    let mut snapshot = backend.snapshot(0, usize::MAX).expect("on the CPU");
    let mut out = String::new();
    draw(game.as_ref(), &snapshot.states, &snapshot.tree.row_mut(0), ROOT, "root", 0, &mut out);
    out
}

/// Checked by hand. X has a1 b1, O has b2 a2, X to move; c1 wins at once, c2 stops O. With values and first-play urgency 0
/// and five equal priors of 0.2, PUCT takes never visited edges in order: c1 is the first, and its win proves the root.
#[test]
fn a_win_in_one_ends_the_search() {
    let config = SearchConfig {
        algorithm: Algorithm::Puct,
        simulations: 12,
        fpu_reduction: 0.0,
        ..SearchConfig::default()
    };
    insta::assert_snapshot!(tree(&[0, 4, 1, 3], &config), @r"
    root: 2 visits, X 0.500, proven 1
      c1: 1 visits, over 1.000, proven 1
    ");
}

/// Checked by hand. X has a1 b3 c3, O has b2 b1, O to move and only a3 stops X. All values are 0, those of edges without visits too,
/// and all priors 1/4, so that the least visited edge is next and the lowest of them first: three rounds over the four moves, and
/// below each of them the same in small. Twelve simulations do not come to X's win at a3, the last of three.
#[test]
fn puct_with_twelve_simulations() {
    let config = SearchConfig {
        algorithm: Algorithm::Puct,
        simulations: 12,
        fpu_reduction: 0.0,
        solver: false,
        ..SearchConfig::default()
    };
    insta::assert_snapshot!(tree(&[0, 4, 8, 1, 7], &config), @r"
    root: 13 visits, O 0.000
      c1: 3 visits, X 0.000
        a2: 1 visits, O 0.000
        c2: 1 visits, O 0.000
      a2: 3 visits, X 0.000
        c1: 1 visits, O 0.000
        c2: 1 visits, O 0.000
      c2: 3 visits, X 0.000
        c1: 1 visits, O 0.000
        a2: 1 visits, O 0.000
      a3: 3 visits, X 0.000
        c1: 1 visits, O 0.000
        a2: 1 visits, O 0.000
    ");
}

/// Checked by hand, the same position. Four considered moves of sixteen simulations give two rounds: two sweeps over all four
/// (simulations 1 to 8), then sweeps over the better two. Scores stay equal, so c1 and a2 remain: 9 and 10 try c2 below
/// them, 11 and 12 find X's win at a3 and refute both. No action then has the four visits that the schedule demands, the
/// best of all is taken, the lower first: 13 and 14 lead c2 to the same end, 15 and 16 are left for a3. Three simulations
/// brought O -1, so the root's mean is -3/17.
#[test]
fn gumbel_with_sixteen_simulations() {
    let config = SearchConfig { simulations: 16, ..SearchConfig::default() };
    insta::assert_snapshot!(tree(&[0, 4, 8, 1, 7], &config), @r"
    root: 17 visits, O -0.176
      c1: 4 visits, X 0.250, proven 1
        a2: 1 visits, O 0.000
        c2: 1 visits, O 0.000
        a3: 1 visits, over 1.000, proven 1
      a2: 4 visits, X 0.250, proven 1
        c1: 1 visits, O 0.000
        c2: 1 visits, O 0.000
        a3: 1 visits, over 1.000, proven 1
      c2: 4 visits, X 0.250, proven 1
        c1: 1 visits, O 0.000
        a2: 1 visits, O 0.000
        a3: 1 visits, over 1.000, proven 1
      a3: 4 visits, X 0.000
        c1: 1 visits, O 0.000
        a2: 1 visits, O 0.000
        c2: 1 visits, O 0.000
    ");
}
