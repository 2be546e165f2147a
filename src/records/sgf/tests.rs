use super::*;
use crate::rng::{Key, Purpose};

fn random_game(name: &str, options: &str, seed: u64) -> Playthrough {
    let registry = Registry::built_in();
    let mut play = Playthrough::new(registry.game(name, &options.parse().expect("TOML")).expect("valid"));
    while play.turn() != Turn::Over {
        let legal = play.legal();
        let mut rng = Key::new(seed, Purpose::Evaluation).with(play.actions().len() as u64).stream();
        play.step(legal[rng.below(legal.len())]).expect("legal");
    }
    play
}

#[test]
fn games_are_read_as_written() {
    for (name, options) in [("go", "size = 7"), ("othello", ""), ("gomoku", ""), ("hex", "size = 5")] {
        for seed in 0..5 {
            let play = random_game(name, options, seed);
            let text =
                write(&play, &Players { names: vec!["a [b\\]".into(), "c".into()], ..Players::default() })
                    .expect("a record");
            let again = read(&text, &Registry::built_in()).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert_eq!(again.actions(), play.actions(), "{text}");
            assert_eq!(again.state(), play.state());
        }
    }
}

/// A game of Go may end by its option `max_plies`, also one that was set up with white to move.
#[test]
fn games_that_were_cut_off_are_over_when_they_are_read() {
    let registry = Registry::built_in();
    let placed = "0.1......................";
    for (limit, cells, player) in [(4, None, 0), (60, None, 0), (5, Some(placed), 1)] {
        let options = format!("size = 5\nmax_plies = {limit}").parse().expect("TOML");
        let game = registry.game("go", &options).expect("valid");
        let mut play = match cells {
            None => Playthrough::new(game),
            Some(cells) => {
                let placed = PlacedPieces { cells: cells.into(), player };
                Playthrough::set_up(game, &placed).unwrap_or_else(|e| panic!("{e}"))
            }
        };
        ["C3", "D4", "E5", "A1"].iter().for_each(|name| play.step_text(name).expect("legal"));
        assert_eq!(play.turn() == Turn::Over, limit < 60);
        let text = write(&play, &Players::default()).expect("a record");
        let again = read(&text, &registry).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!((again.actions(), again.state()), (play.actions(), play.state()), "{text}");
        assert_eq!(again.turn(), play.turn(), "{text}");
        assert_eq!(write(&again, &Players::default()).expect("a record"), text);
    }
    let usual = registry.game("go", &toml::toml! { size = 5 }).expect("valid");
    assert!(!write(&Playthrough::new(usual), &Players::default()).expect("a record").contains(MAX_PLIES));
}

/// The second player may swap in a game that is read again, also where nobody has.
#[test]
fn hex_keeps_its_option_swap() {
    let registry = Registry::built_in();
    for (options, moves) in [("size = 4", 1), ("size = 4\nswap = true", 1), ("size = 4\nswap = true", 2)] {
        let mut play =
            Playthrough::new(registry.game("hex", &options.parse().expect("TOML")).expect("valid"));
        ["a1", "b2"][..moves].iter().for_each(|name| play.step_text(name).expect("legal"));
        let text = write(&play, &Players::default()).expect("a record");
        assert_eq!(text.contains(SWAP), options.contains("swap"), "{text}");
        let again = read(&text, &registry).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!((again.game().options(), again.legal()), (play.game().options(), play.legal()), "{text}");
    }
}

#[test]
fn results_have_no_more_than_two_decimals() {
    assert_eq!(result(&[-1.0, 1.0], &[12.0, 12.1]), "W+0.1");
    assert_eq!(result(&[1.0, -1.0], &[83.0, 5.5]), "B+77.5");
    assert_eq!(result(&[1.0, -1.0], &[1.0, -1.0]), "B+");
}

#[test]
fn positions_that_were_set_up_are_read_as_written() {
    for (name, options, cells, player) in [
        ("go", "size = 5", "0.1......................", 1),
        ("go", "size = 5", ".....0....0....0.........", 1),
        ("go", "size = 5", ".........................", 1),
        ("gomoku", "size = 5", "01.10....................", 0),
        ("hex", "size = 4", "0..1............", 0),
        ("hex", "size = 4\nswap = true", "10..............", 1),
        ("hex", "size = 4\nswap = true", "011.............", 0),
        ("othello", "size = 6", "..............01....10..0...........", 1),
    ] {
        let registry = Registry::built_in();
        let game = registry.game(name, &options.parse().expect("TOML")).expect("valid");
        let placed = PlacedPieces { cells: cells.into(), player };
        let mut play = Playthrough::set_up(game, &placed).unwrap_or_else(|e| panic!("{e}"));
        play.step(play.legal()[0]).expect("legal");
        let text = write(&play, &Players::default()).expect("a record");
        assert_eq!(text.contains("AB["), cells.contains('0'), "{text}");
        let again = read(&text, &registry).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!((again.actions(), again.state()), (play.actions(), play.state()), "{text}");
    }
}

#[test]
fn positions_are_read_as_other_programs_set_them_up() {
    let read = |text: &str| read(text, &Registry::built_in()).unwrap_or_else(|e| panic!("{e}: {text}"));
    // A handicap game: without PL white's first move tells who is to move, and without a move white is.
    let play = read("(;SZ[9]HA[2]AB[cg][gc];W[ee])");
    assert_eq!((play.names(), play.turn()), (vec!["E5".to_string()], Turn::Player(0)));
    for (text, player) in
        [("(;SZ[9]HA[2]AB[cg][gc])", 1), ("(;SZ[9]HA[0]AB[cg][gc])", 0), ("(;SZ[9]HA[2]PL[B]AB[cg][gc])", 0)]
    {
        assert_eq!(read(text).turn(), Turn::Player(player), "{text}");
    }
    // A rectangle, and points that are empty.
    let play = read("(;SZ[5]AB[aa:bc]AW[ee]AE[cc])");
    assert_eq!(play.placed().expect("a position").cells, "00...00...00............1");
}

/// Many values are refused at the first that comes again, not compared one by one.
#[test]
fn many_stones_are_refused_at_once() {
    for values in ["[ss]".repeat(250_000), "[aa:ss]".repeat(100_000), "[]".repeat(500_000)] {
        assert!(read(&format!("(;AB{values})"), &Registry::built_in()).is_err());
    }
}

#[test]
fn go_is_read_as_other_programs_write_it() {
    // By GNU Go 3.8, with its line breaks and comments.
    let text = "(;GM[1]FF[4]CA[UTF-8]AP[GNU Go:3.8]SZ[9]KM[5.5]PB[a]PW[b]\nRE[B+2.5]\n;B[ee];W[cc]C[\\[x\\]]\n;B[];W[tt])";
    let play = read(text, &Registry::built_in()).expect("a game");
    assert_eq!(play.names(), ["E5", "C7", "pass", "pass"]);
    assert_eq!((play.turn(), play.game().options()["komi"].as_float()), (Turn::Over, Some(5.5)));
    let swapped = read("(;GM[11]SZ[5];B[a2];W[swap-pieces];B[c3])", &Registry::built_in()).expect("a game");
    assert_eq!(swapped.names(), ["a2", "swap", "c3"]);
    assert_eq!(read("(;B[pd])", &Registry::built_in()).expect("19 lines").names(), ["Q16"]);
}

/// The words of a move of Hex, in any letters: <https://www.red-bean.com/sgf/hex.html>
#[test]
fn words_of_hex_are_read() {
    let names = |moves: &str| {
        let text = format!("(;GM[11]SZ[5]{moves})");
        read(&text, &Registry::built_in()).unwrap_or_else(|e| panic!("{e}: {text}")).names()
    };
    assert_eq!(names(";B[a2];W[SWAP-PIECES];B[c3]"), ["a2", "swap", "c3"]);
    for end in ["resign", "Forfeit"] {
        assert_eq!(names(&format!(";B[a2];W[b2];B[{end}]")), ["a2", "b2"]);
    }
    assert_eq!(names(";B[a2];B[resign];W[zz]"), ["a2"], "nothing follows");
}

/// Who does not agree on the end plays on, and some servers write a third pass.
#[test]
fn play_goes_on_after_two_passes() {
    let names = |moves: &str| {
        let text = format!("(;SZ[5]{moves})");
        read(&text, &Registry::built_in()).unwrap_or_else(|e| panic!("{e}: {text}")).names()
    };
    let over = ["E5", "pass", "pass"];
    for further in ["", ";W[]", ";B[tt]", ";W[];B[];W[]"] {
        assert_eq!(names(&format!(";B[ea];W[];B[]{further}")), over, "{further}");
    }
    assert_eq!(names(";B[ea];W[];B[];W[aa];B[ab]"), ["E5", "A5", "A4"]);
    assert_eq!(names(";B[ea];W[];B[];B[aa];W[];B[]"), ["E5", "pass", "A5", "pass", "pass"]);
    assert_eq!(names(";B[ea];W[];B[];W[];B[aa]"), ["E5", "pass", "A5"]);
}

/// Also if white moves first, which counts as a ply, and in a file of another program, which has no limit of plies.
#[test]
fn a_game_of_go_that_is_longer_than_usual_is_read() {
    let options = "size = 5\nmax_plies = 160".parse().expect("TOML");
    let game = Registry::built_in().game("go", &options).expect("registered");
    for player in [0, 1] {
        let placed = PlacedPieces { cells: ".".repeat(25), player };
        let mut play = Playthrough::set_up(game.clone(), &placed).expect("a position");
        // Whoever passes only where nothing else is legal fills their own eyes, is captured, and begins anew.
        let mut rng = Key::new(5, Purpose::Evaluation).stream();
        while play.turn() != Turn::Over {
            let legal: Vec<u16> = play.legal().into_iter().filter(|&action| action != 25).collect();
            play.step(if legal.is_empty() { 25 } else { legal[rng.below(legal.len())] }).expect("legal");
        }
        assert!(play.actions().len() > 50, "{}", play.actions().len());
        let text = write(&play, &Players::default()).expect("written");
        for text in [text.replace("VZPLIES[160]", ""), text] {
            let again = read(&text, &Registry::built_in()).unwrap_or_else(|e| panic!("{e}: {text}"));
            assert_eq!((again.actions(), again.turn()), (play.actions(), Turn::Over), "{text}");
        }
    }
}

#[test]
fn plies_of_go_are_counted_with_those_that_a_file_leaves_out() {
    for (moves, plies) in [("", 0), (";B[aa];W[bb]", 2), (";W[aa];B[bb]", 3), (";B[aa];B[bb];W[cc]", 4)] {
        assert_eq!(num_plies(&main_line(&format!("(;SZ[5]{moves})")).expect("a tree")), plies, "{moves}");
    }
}

#[test]
fn wrong_records_are_refused() {
    for (text, part) in [
        ("(;GM[3])", "GM is 3"),
        ("(;AB[zz])", "no point"),
        ("(;AB[bb:aa])", "no point"),
        ("(;SZ[9]AB[])", "no point"),
        ("(;SZ[9]AB[aa]AW[aa])", "given before"),
        ("(;SZ[9]AB[aa:cc][bb])", "given before"),
        ("(;SZ[9];AB[aa])", "within the game"),
        ("(;SZ[9]AB[aa];AE[aa])", "1 point (AB, AW, AE) within the game"),
        ("(;SZ[5]AB[ba][ab]AW[aa])", "have no liberty"),
        ("(;SZ[x])", "SZ"),
        ("(;SZ[99])", "size"),
        ("(;VZPLIES[x])", "VZPLIES"),
        ("(;VZPLIES[-1])", "max_plies"),
        ("(;SZ[5]PL[W]VZPLIES[1])", "counts as the first ply"),
        ("(;GM[11]VZSWAP[x])", "VZSWAP is \"x\", expected true or false"),
        ("(;SZ[5]VZPLIES[1];B[aa];W[bb])", "not to move"),
        ("(;GM[11];W[swap])", "not to move"),
        ("(;GM[11];B[a2];W[Swap-Sides])", "Swap-Sides exchanges the colours"),
        ("(;W[aa])", "not to move"),
        ("(;SZ[9];B[zz])", "zz"),
        ("(;SZ[9];B[aa];W[aa])", "not legal"),
    ] {
        let error = read(text, &Registry::built_in()).err().unwrap_or_else(|| panic!("{text}")).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
