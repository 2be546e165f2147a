use super::*;
use crate::device_struct::DeviceType;
use crate::game::check_device_header;
use crate::game::tests::{assert_refused, play};
use crate::rng::{Key, Purpose};
use crate::view::draw;

#[test]
fn generated_header_is_up_to_date() {
    let definitions = [edges::device_constants(), EdgeSet::definition(), State::definition()];
    check_device_header::<Clique>("", &definitions);
}

fn game(n: usize, k: usize, mode: CliqueRule) -> Clique {
    Clique { n, k, mode, ..Clique::default() }
}

fn result(g: &Clique, s: &State) -> Option<f32> {
    let mut out = [0.0; 2];
    g.returns(s, &mut out);
    assert_eq!(out[0], -out[1]);
    (g.turn(s) == Turn::Over).then_some(out[0])
}

/// The full board in which bit e of `colours` gives edge e to player 1.
fn full_board(g: &Clique, colours: u32) -> State {
    let mut s = State { plies: g.num_edges() as u32, ..g.init() };
    (0..g.num_edges()).for_each(|edge| s.edges[(colours >> edge & 1) as usize].insert(edge));
    s
}

#[test]
fn edges_are_numbered_lexicographically() {
    for n in 3..=MAX_VERTICES {
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        for (number, (i, j)) in pairs.enumerate() {
            assert_eq!((edge_number(n, i, j), edge_ends(n, number)), (number, (i, j)));
        }
    }
}

#[test]
fn a_triangle_means_what_the_mode_says() {
    let first_makes_it = "0-1 2-3 0-2 1-3 1-2";
    assert_eq!(
        result(&game(5, 3, CliqueRule::Symmetric), &play(&game(5, 3, CliqueRule::Symmetric), first_makes_it)),
        Some(1.0)
    );
    assert_eq!(
        result(
            &game(5, 3, CliqueRule::Asymmetric),
            &play(&game(5, 3, CliqueRule::Asymmetric), first_makes_it)
        ),
        Some(1.0)
    );
    assert_eq!(
        result(
            &game(5, 3, CliqueRule::AvoidClique),
            &play(&game(5, 3, CliqueRule::AvoidClique), first_makes_it)
        ),
        Some(-1.0)
    );
    let second_makes_it = "0-3 0-1 1-4 1-2 2-3 0-2";
    assert_eq!(
        result(
            &game(5, 3, CliqueRule::Symmetric),
            &play(&game(5, 3, CliqueRule::Symmetric), second_makes_it)
        ),
        Some(-1.0)
    );
    assert_eq!(
        result(
            &game(5, 3, CliqueRule::Asymmetric),
            &play(&game(5, 3, CliqueRule::Asymmetric), second_makes_it)
        ),
        None
    );
    assert_eq!(
        result(
            &game(5, 3, CliqueRule::AvoidClique),
            &play(&game(5, 3, CliqueRule::AvoidClique), second_makes_it)
        ),
        Some(1.0)
    );
}

#[test]
fn a_full_board_without_a_clique_is_a_draw_or_the_second_players() {
    let pentagons = "0-1 0-2 1-2 2-4 2-3 1-4 3-4 1-3 0-4 0-3";
    for (mode, value) in
        [(CliqueRule::Symmetric, 0.0), (CliqueRule::Asymmetric, -1.0), (CliqueRule::AvoidClique, 0.0)]
    {
        let g = game(5, 3, mode);
        let s = play(&g, pentagons);
        assert_eq!(result(&g, &s), Some(value), "{mode:?}");
        assert_eq!(g.finding(&s).is_some(), mode == CliqueRule::AvoidClique);
    }
}

#[test]
fn in_ramsey_the_return_is_equal_and_grows_with_the_length() {
    let g = game(5, 3, CliqueRule::Ramsey);
    let returns = |s: &State| {
        let mut out = [0.0; 2];
        g.returns(s, &mut out);
        (g.turn(s), out)
    };
    let pentagons = play(&g, "0-1 0-2 1-2 2-4 2-3 1-4 3-4 1-3 0-4");
    assert_eq!(returns(&pentagons), (Turn::Player(1), [0.0, 0.0]));
    let full = play(&g, "0-1 0-2 1-2 2-4 2-3 1-4 3-4 1-3 0-4 0-3");
    assert_eq!(returns(&full), (Turn::Over, [1.0, 1.0]));
    assert!(g.finding(&full).is_some());
    let failures = [
        ("0-1 2-3 0-2 1-3 1-2", -0.5),
        ("0-3 0-1 1-4 1-2 2-3 0-2", 0.6 - 1.0),
        ("0-1 0-2 1-2 2-4 2-3 1-4 3-4 1-3 0-3 0-4", 0.0),
    ];
    for (triangle, lasted) in failures {
        let s = play(&g, triangle);
        assert_eq!((returns(&s), g.finding(&s)), ((Turn::Over, [lasted; 2]), None), "{triangle}");
    }
    assert!(!g.sizes().zero_sum && game(5, 3, CliqueRule::AvoidClique).sizes().zero_sum);
}

#[test]
fn small_games_with_triangles_have_a_solver_but_for_ramsey() {
    let is_solved = |n, k, mode| game(n, k, mode).exact_solver().is_some();
    for mode in [CliqueRule::Symmetric, CliqueRule::Asymmetric, CliqueRule::AvoidClique] {
        assert!(is_solved(6, 3, mode) && !is_solved(7, 3, mode) && !is_solved(6, 4, mode), "{mode:?}");
    }
    assert!(!is_solved(5, 3, CliqueRule::Ramsey));
}

#[test]
fn twelve_colourings_of_five_vertices_and_none_of_six() {
    let count = |n: usize| {
        let g = game(n, 3, CliqueRule::AvoidClique);
        (0..1u32 << g.num_edges()).filter(|&colours| g.colouring(&full_board(&g, colours)).is_some()).count()
    };
    assert_eq!((count(4), count(5), count(6)), (18, 12, 0), "R(3, 3) = 6");
}

#[test]
fn the_paley_graph_of_seventeen_vertices_is_a_draw_at_k_4() {
    let g = game(17, 4, CliqueRule::AvoidClique);
    let squares = [1, 2, 4, 8, 9, 13, 15, 16];
    let (own, other): (Vec<usize>, Vec<usize>) = (0..136).partition(|&edge| {
        let (i, j) = edge_ends(17, edge);
        squares.contains(&(j - i))
    });
    let mut s = g.init();
    for (own, other) in own.iter().zip(&other) {
        g.step(&mut s, *own as u16, History::default());
        assert_eq!(result(&g, &s), None);
        g.step(&mut s, *other as u16, History::default());
    }
    assert_eq!(result(&g, &s), Some(0.0));
    let found = g.finding(&s).expect("a colouring");
    assert_eq!(found["graph6"][0], PALEY_17);
    assert_eq!((found["n"].as_u64(), found["edges"][1].as_array().map(Vec::len)), (Some(17), Some(68)));
    assert!(game(17, 3, CliqueRule::AvoidClique).colouring(&s).is_none(), "it has triangles");
}

/// By networkx 3.6.1, `to_graph6_bytes`.
const PALEY_17: &str = "PzlXWmJpZDeJEJbDgp\\EJsWk";

#[test]
fn looking_at_the_new_edge_finds_every_clique() {
    let mut rng = Key::new(5, Purpose::Evaluation).stream();
    let mut with_clique = 0;
    for n in 4..=MAX_VERTICES {
        for k in 3..=n.min(6) {
            let g = game(n, k, CliqueRule::Symmetric);
            let mut owned = EdgeSet::default();
            let mut before = false;
            while !before && owned.iter().count() < g.num_edges() {
                let free: Vec<usize> = owned.complement(g.num_edges()).iter().collect();
                let edge = free[rng.below(free.len())];
                owned.insert(edge);
                let now = owned.has_clique(n, k);
                assert_eq!(owned.has_clique_with(n, k, edge), now, "n {n} k {k} {owned:?}");
                before = now;
            }
            with_clique += usize::from(before);
        }
    }
    assert_eq!(with_clique, 53, "every complete graph has its cliques");
}

#[test]
fn permutations_are_all_different_and_map_play_to_play() {
    let g = game(5, 3, CliqueRule::Symmetric);
    let images: Vec<Vec<usize>> = (0..120).map(|rank| g.permutation(rank)[..5].to_vec()).collect();
    assert_eq!(images[0], [0, 1, 2, 3, 4]);
    assert_eq!(images[119], [4, 3, 2, 1, 0]);
    assert!(images.is_sorted_by(|a, b| a < b), "lexicographic, hence different");

    let mut rng = Key::new(6, Purpose::Evaluation).stream();
    for n in [3, 6, 12, 17] {
        let g = game(n, 3, CliqueRule::AvoidClique);
        for _ in 0..20 {
            let symmetry = rng.below(g.sizes().num_symmetries as usize) as u64;
            let mut s = g.init();
            let mut image = s;
            while g.turn(&s) != Turn::Over {
                let free: Vec<usize> =
                    s.edges[0].union(s.edges[1]).complement(g.num_edges()).iter().collect();
                let action = free[rng.below(free.len())] as u16;
                g.step(&mut s, action, History::default());
                g.step(&mut image, g.transform_action(action, symmetry), History::default());
                assert_eq!(g.transform(&s, symmetry), image);
            }
        }
    }
}

#[test]
fn observation_has_one_column_per_edge() {
    let g = game(4, 4, CliqueRule::Asymmetric);
    let s = play(&g, "0-1 2-3 1-3");
    let mut out = [f32::NAN; 24];
    g.observe(&s, 1, &mut out);
    assert_eq!(out[..6], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(out[6..12], [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(out[12..18], [0.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
    assert_eq!(out[18..], [0.0; 6]);
    g.observe(&s, 0, &mut out);
    assert_eq!((out[0], out[5], out[11], out[23]), (1.0, 0.0, 1.0, 1.0));
    assert_eq!(draw(&g, &s), "     1  2  3\n  0  X  .  .\n  1     .  X\n  2        O\n");
}

#[test]
fn wrong_sizes_are_refused_in_a_sentence() {
    assert_refused::<Clique>(&[
        ("n = 18", "config key game.n: got 18, expected a whole number from 3 to 17"),
        ("n = 5\nk = 6", "config key game.k: got 6, expected a whole number from 3 to 5 (at most n)"),
        ("k = 2", "config key game.k: got 2, expected a whole number from 3 to 17"),
        ("mode = 'misere'", "avoid_clique"),
        ("n = -1", "game.n: got -1"),
    ]);
}

/// The planes of edges that are missing in cliques, against a list of all sets of k vertices, on boards that no rule has filled.
#[test]
fn edges_missing_in_cliques_are_those_of_all_sets_of_vertices() {
    let mut seen = [0; 3];
    for (n, k) in [(3, 3), (6, 6), (8, 4), (10, 5), (14, 4), (17, 3), (17, 4)] {
        let game = Clique { n, k, network_sees: Sight::Cliques, ..Clique::default() };
        for number in 0..12 {
            let mut rng = Key::new(n as u64, Purpose::Evaluation).with(k as u64).with(number).stream();
            let mut s = game.init();
            for edge in 0..game.num_edges() {
                let owner = rng.below(3 + number as usize % 4);
                s.edges.iter_mut().skip(owner).take(1).for_each(|owned| owned.insert(edge));
            }
            let player = rng.below(2);
            let mut planes = vec![f32::NAN; game.sizes().obs.len()];
            game.observe(&s, player as u8, &mut planes);
            let planes = planes[CHANNELS * game.num_edges()..].chunks_exact(2 * game.num_edges());
            for (owner, planes) in [player, 1 - player].into_iter().zip(planes) {
                let (complete, near) = planes.split_at(game.num_edges());
                for (edge, [completed, missing_two]) in missing(&game, &s, owner).into_iter().enumerate() {
                    assert_eq!(complete[edge], completed.min(1) as f32, "{n} {k} {edge} {s:?}");
                    assert_eq!(near[edge], missing_two.min(8) as f32 / 8.0, "{n} {k} {edge} {s:?}");
                    let kinds = [completed > 0, (1..=8).contains(&missing_two), missing_two > 8];
                    seen.iter_mut().zip(kinds).for_each(|(seen, is_seen)| *seen += usize::from(is_seen));
                }
            }
        }
    }
    assert!(seen.iter().all(|&edges| edges > 10), "{seen:?}");
}

/// For each edge the sets of k vertices whose edges are the owner's but for this one, and but for this one and another; none if any is taken by
/// the other player. `[E]`
fn missing(game: &Clique, s: &State, owner: usize) -> Vec<[usize; 2]> {
    let mut counts = vec![[0; 2]; game.num_edges()];
    for set in (0u32..1 << game.n).filter(|set| set.count_ones() as usize == game.k) {
        let is_inside = |edge: &usize| {
            let (i, j) = edge_ends(game.n, *edge);
            set >> i & set >> j & 1 == 1
        };
        let is_own = |edge: &usize| s.edges[owner].contains(*edge);
        let absent: Vec<usize> =
            (0..game.num_edges()).filter(is_inside).filter(|edge| !is_own(edge)).collect();
        let is_open = absent.iter().all(|&edge| !s.edges[1 - owner].contains(edge));
        if is_open && (1..=2).contains(&absent.len()) {
            absent.iter().for_each(|&edge| counts[edge][absent.len() - 1] += 1);
        }
    }
    counts
}
