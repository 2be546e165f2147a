//! Positions that people set up: every position of a game in progress is given again by its pieces, and what cannot come about is refused.

use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::batch::Playthrough;
use vecaz::game::Turn;
use vecaz::game::set_up::PlacedPieces;
use vecaz::game::view::{Board, Spot, Viewer};
use vecaz::registry::{Registry, any_game};
use vecaz::rng::{Key, Purpose};

fn game(name: &str, options: &str) -> Arc<dyn AnyGame> {
    any_game(name, &options.parse().expect("TOML")).expect("registered")
}

/// The pieces and the player to move of a position in progress.
fn pieces(play: &Playthrough) -> Option<PlacedPieces> {
    let Turn::Player(player) = play.turn() else { return None };
    PlacedPieces::of(&play.view(Viewer::All), player)
}

/// The pieces on the board, also after the end.
fn cells(play: &Playthrough) -> String {
    PlacedPieces::of(&play.view(Viewer::All), 0).expect("a grid").cells
}

/// What is seen of a position, and can be done in it.
fn facts(play: &Playthrough) -> (Turn, Option<PlacedPieces>, Vec<u16>) {
    (play.turn(), pieces(play), play.legal())
}

/// The legal actions of chess but castling and captures en passant, which depend on earlier moves.
fn derived_from_pieces(play: &Playthrough) -> Vec<u16> {
    const PAWN: u8 = 0;
    const KING: u8 = 5;
    let Board::Grid(grid) = play.view(Viewer::All).board else { panic!("a grid") };
    let is_derived = |&action: &u16| {
        let Spot::Move(from, to) = play.game().spot(play.state(), action) else { panic!("a move") };
        let piece = grid.cells[usize::from(from)].map(|piece| piece % 6);
        match (piece, (from % 8).abs_diff(to % 8)) {
            (Some(KING), files) => files < 2,
            (Some(PAWN), 1) => grid.cells[usize::from(to)].is_some(),
            _ => true,
        }
    };
    play.legal().into_iter().filter(is_derived).collect()
}

#[test]
fn pieces_give_the_positions_of_random_games_again() {
    for (name, options, plies) in [
        ("tic_tac_toe", "", 9),
        ("connect_four", "", 42),
        ("connect_four", "rows = 5\ncolumns = 6\nconnect = 3", 30),
        ("gomoku", "size = 7", 49),
        ("gomoku", "size = 9\nrule = 'exact'", 60),
        ("hex", "size = 5", 25),
        ("hex", "size = 4\nswap = true", 17),
        ("othello", "", 60),
        ("othello", "size = 6", 34),
        ("go", "size = 5", 50),
        ("go", "size = 13", 300),
        ("chess", "", 80),
    ] {
        let game = game(name, options);
        let mut compared = 0;
        for seed in 0..20 {
            let mut play = Playthrough::new(game.clone());
            while play.actions().len() < plies
                && let Some(placed) = pieces(&play)
            {
                let at = format!("{name} {options} {:?}", play.actions());
                let mut again =
                    Playthrough::set_up(game.clone(), &placed).unwrap_or_else(|e| panic!("{e}: {at}"));
                let (turn, shown, legal) = facts(&play);
                assert_eq!((again.turn(), pieces(&again)), (turn, shown), "{at}");
                match name {
                    // Superko bars points by what was before, castling and en passant too.
                    "go" => assert!(legal.iter().all(|action| again.legal().contains(action)), "{at}"),
                    "chess" => assert_eq!(derived_from_pieces(&again), derived_from_pieces(&play), "{at}"),
                    _ => assert_eq!(again.legal(), legal, "{at}"),
                }
                assert_eq!(again.placed().is_none(), again.start() == game.init(), "{at}");
                // Placing the pieces that the placed ones show gives the same bytes.
                let shown = pieces(&again).expect("a position in progress");
                let twice = Playthrough::set_up(game.clone(), &shown).expect("the same");
                assert_eq!(again.state(), twice.state());
                // The game goes on as from the position that was played.
                let mut rng = Key::new(seed, Purpose::Evaluation).with(play.actions().len() as u64).stream();
                let action = legal[rng.below(legal.len())];
                play.step(action).expect("legal");
                if name != "chess" || again.legal().contains(&action) {
                    again.step(action).unwrap_or_else(|e| panic!("{e}: {at}"));
                    assert_eq!(cells(&again), cells(&play), "{at} {action}");
                    assert_eq!(
                        again.after(0).state(),
                        twice.state(),
                        "taking all back leads to where it began"
                    );
                }
                compared += 1;
            }
        }
        assert!(compared > 60, "{name}: {compared}");
    }
}

#[test]
fn what_cannot_come_about_is_refused_in_a_sentence() {
    let empty = |count: usize| ".".repeat(count);
    let connect_four = |rows: &str| empty(42 - rows.len()) + rows;
    for (name, options, cells, player, part) in [
        ("connect_four", "", connect_four("0......"), 0, "with 1 and 0 on the board player 1 is to move"),
        ("connect_four", "", connect_four("00....."), 1, "player 0 has 2 and player 1 has 0"),
        ("connect_four", "", format!("0{}", empty(41)), 1, "column 0 has an empty cell below it"),
        ("connect_four", "", connect_four("111....0000..."), 1, "X has 4 in a row"),
        ("connect_four", "", empty(41), 0, "41 cells, and the board has 42"),
        ("connect_four", "", empty(41) + "2", 0, "piece 2, expected 0 to 1"),
        ("connect_four", "", empty(42), 2, "player 2 is to move"),
        ("connect_four", "", empty(41) + "?", 0, "got '?'"),
        ("gomoku", "size = 5", "000001111.".to_string() + &empty(15), 1, "X has five in a row"),
        ("gomoku", "size = 5\nopening = 'swap2'", empty(25), 0, "swap2"),
        ("gomoku", "size = 5", "0011011001001101100100110".into(), 1, "the board is full"),
        ("hex", "size = 3", "0.10.10.1".into(), 0, "X has connected"),
        ("hex", "size = 3", "0.10.....".into(), 0, "with 2 and 1 on the board player 1 is to move"),
        ("hex", "size = 3", ".1.......".into(), 0, "player 0 has 0 and player 1 has 1"),
        ("othello", "size = 6", empty(36), 0, "the four cells in the middle"),
        ("othello", "size = 6", "..............00....00..............".into(), 0, "neither player can move"),
        ("go", "size = 5", "01...1...................".into(), 0, "A5 have no liberty"),
        ("go", "size = 5", "0".repeat(25), 1, "no liberty"),
        ("go", "size = 5\nmax_plies = 1", empty(25), 1, "counts as the first ply of 1 (max_plies)"),
        ("tic_tac_toe", "", "00011....".into(), 1, "the game is over"),
        ("chess", "", empty(64), 0, "king"),
        ("chess", "", format!("b{}5{}", empty(7), empty(55)), 0, "got"),
        ("backgammon", "", empty(24), 0, "setting up a position of backgammon"),
        ("blob", "", String::new(), 0, "setting up a position of blob"),
        ("clique", "", String::new(), 0, "setting up a position of clique"),
    ] {
        let placed = PlacedPieces { cells, player };
        let error = Playthrough::set_up(game(name, options), &placed)
            .err()
            .unwrap_or_else(|| panic!("{name}: {placed:?}"));
        let error = error.to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{name}: {error}, expected {part}");
    }
}

/// With the swap rule the second player may have taken the first stone.
#[test]
fn a_swapped_position_of_hex_is_set_up() {
    let hex = game("hex", "size = 4\nswap = true");
    let at = |cells: &str, player| {
        let placed = PlacedPieces { cells: format!("{cells}{}", ".".repeat(16 - cells.len())), player };
        Playthrough::set_up(hex.clone(), &placed).map(|play| play.legal())
    };
    assert_eq!(at("", 0).expect("the start").len(), 16);
    assert_eq!(at("0", 1).expect("a first stone").len(), 16, "15 cells and the swap");
    assert_eq!(at("1", 0).expect("a swapped one").len(), 15);
    assert_eq!(at("10", 1).expect("after it").len(), 14);
    assert_eq!(at("01", 0).expect("without a swap").len(), 14);
    at("11", 0).expect_err("two more");
}

/// Kings and rooks at home may castle; the FEN of the position says so.
#[test]
fn chess_pieces_are_those_of_a_fen() {
    let chess = game("chess", "");
    let cells = "9...b..9".to_string() + &".".repeat(48) + "3...5..3";
    let placed = PlacedPieces { cells, player: 1 };
    let play = Playthrough::set_up(chess, &placed).expect("a position");
    let (name, fen) = play.game().notation(play.state()).expect("a notation");
    assert_eq!((name, fen.as_str()), ("fen", "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1"));
}

/// A game either lets its start be set up, or says in a sentence that nothing can be.
#[test]
fn every_game_sets_up_its_start_or_says_that_it_cannot() {
    let registry = Registry::built_in();
    let mut can = Vec::new();
    for name in registry.names() {
        let start = Playthrough::new(registry.game(name, &Default::default()).expect("registered"));
        let placed = pieces(&start).unwrap_or(PlacedPieces { cells: String::new(), player: 0 });
        match Playthrough::set_up(start.game().clone(), &placed) {
            Ok(play) => {
                assert_eq!((play.state(), play.placed()), (start.state(), None), "{name}");
                can.push(name);
            }
            Err(error) => {
                assert!(error.to_string().contains("reached by its moves alone"), "{name}: {error}")
            }
        }
    }
    assert_eq!(can, ["tic_tac_toe", "connect_four", "othello", "hex", "gomoku", "go", "chess"]);
}
