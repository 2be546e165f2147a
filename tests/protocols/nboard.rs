//! NBoard, for Othello.

use super::{Client, parts, talk};
use vecaz::protocol::choice::ProtocolName::NBoard;
use vecaz::protocol::dialogue::Ponder;

const GAME: &str = "(;GM[Othello]PC[NBoard]DT[2014-02-21 20:52:27 GMT]PB[./mEdax]PW[chris]RE[?]TI[15:00]TY[8]\
                    BO[8 ---------------------------O*------*O--------------------------- *]B[F5]W[F6]B[D3]W[C5]B[E6]W[F7]B[E7]W[F4];)";

fn say(script: &str) -> Vec<String> {
    talk(NBoard, parts("othello", ""), script).lines().map(str::to_string).collect()
}

fn with_start<'a>(lines: &'a [String], start: &str) -> Vec<&'a str> {
    lines.iter().filter_map(|line| line.strip_prefix(start)).collect()
}

#[test]
fn a_dialogue_as_the_client_speaks_it() {
    let mut client = Client::start(NBoard, parts("othello", ""));
    for line in ["nboard 2", "set depth 5", &format!("set game {GAME}"), "set contempt 0", "learn", "ping 7"]
    {
        client.send(line);
    }
    assert_eq!(client.line(), "set myname vecaz");
    assert_eq!(client.line(), "set myname vecaz5");
    assert_eq!(client.line(), "learned");
    assert_eq!(client.line(), "pong 7");
    client.send("go");
    assert_eq!(client.line(), "status vecaz is thinking");
    let stats = client.wait_for("nodestats ");
    assert!(stats.starts_with("nodestats 32 "), "2^5 simulations: {stats}");
    let reply = client.line();
    let mut parts: Vec<&str> = reply.strip_prefix("=== ").expect("a move").split('/').collect();
    assert_eq!(client.line(), "status vecaz is waiting");
    assert!(
        parts.remove(0).len() == 2 && parts.iter().all(|number| number.parse::<f64>().is_ok()),
        "{reply}"
    );
    client.send(&format!("move {}", reply.trim_start_matches("=== ")));
    client.send("hint 3");
    client.wait_for("status vecaz is thinking");
    for _ in 0..3 {
        let line = client.wait_for("search ");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(
            words[1].len() >= 2 && words[1].len().is_multiple_of(2) && words[2].parse::<f64>().is_ok(),
            "{line}"
        );
        assert!(words[3] == "0" && words[4].parse::<u32>().is_ok(), "{line}");
    }
    client.wait_for("status vecaz is waiting");
    assert_eq!(client.end(), Vec::<String>::new());
}

#[test]
fn the_moves_are_those_of_the_game() {
    let lines = say(&format!(
        "set game {GAME}\nmove A1\nmove D6//1.5\nmove D6\nset game (;GM[Go];)\nset depth x\nfly\nping 1\n"
    ));
    assert_eq!(
        lines,
        [
            "status move A1 is not legal",
            "status move D6 is not legal",
            "status set game: the game is Go, not Othello",
            "status set depth x: expected a number",
            "pong 1",
        ]
    );
}

/// A game that is refused leaves no position: nothing is answered for the one before it.
#[test]
fn a_refused_game_leaves_no_position() {
    let lines = say(&format!(
        "set game {GAME}\nset game {}\ngo\nhint 2\nmove D6\nanalyze\nping 1\n",
        GAME.replace("BO[8 ", "BO[10 ")
    ));
    let none = "status the last set game was refused: there is no position";
    let refused = "status set game: the board has the size 10, expected 8";
    assert_eq!(lines, [refused, none, none, none, none, "pong 1"]);
    let lines = say(&format!("set game (;GM[Go];)\nset game {GAME}\ngo\n"));
    assert_eq!(with_start(&lines, "=== ").len(), 1, "{lines:?}");
}

/// A game begins at its own board, with the colour to move. The next one without a board begins at the start of the game.
#[test]
fn a_game_may_begin_at_any_board() {
    // The board after black's f5: white may play f4, d6 or f6.
    let board = "---------------------------O*------***--------------------------";
    let game = |moves: &str| format!("set game (;GM[Othello]BO[8 {board} O]{moves};)");
    let lines = say(&format!("{}\nmove F5\nmove D6\nmove C5\n", game("")));
    assert_eq!(lines, ["status move F5 is not legal"]);
    let lines = say(&format!("{}\nanalyze\n", game("W[D6]B[C5]")));
    assert_eq!(with_start(&lines, "analysis ").len(), 3, "{lines:?}");
    let lines = say(&format!("{}\nset game (;GM[Othello];)\nmove D6\nmove F5\n", game("")));
    assert_eq!(lines, ["status move D6 is not legal"], "the start of the game again");
}

/// A board that no game has is refused in a sentence.
#[test]
fn boards_that_cannot_come_about_are_refused() {
    let rows = |middle: &str| format!("{}{middle}{}", "-".repeat(24), "-".repeat(64 - 24 - middle.len()));
    for (board, part) in [
        (rows("---O----"), "the four cells in the middle are never empty"),
        (rows("---**------**---"), "neither player can move, so the game is over"),
        (rows("---O*------*O---") + "-", "the board has 66 marks, expected 64 cells and the colour to move"),
        (rows("---O*------x----"), "the board has 'x', expected * for black"),
    ] {
        let lines = say(&format!("set game (;GM[Othello]BO[8 {board} *];)\nping 1\n"));
        assert!(lines[0].starts_with("status set game: ") && lines[0].contains(part), "{board}: {lines:?}");
        assert_eq!(lines[1..], ["pong 1"]);
    }
}

#[test]
fn an_analysis_goes_from_the_end_to_the_start() {
    let lines = say(&format!("set game {GAME}\nanalyze\n"));
    let analysed = with_start(&lines, "analysis ");
    let numbers: Vec<&str> = analysed.iter().map(|line| line.split(' ').next().expect("a number")).collect();
    assert_eq!(numbers, ["8", "7", "6", "5", "4", "3", "2", "1", "0"]);
    assert_eq!(lines.last().map(String::as_str), Some("status"));
}

/// A ping stops a search, and its pong comes after all that the search says.
#[test]
fn a_ping_stops_the_search() {
    let mut parts = parts("othello", "");
    parts.pace.time = Some(std::time::Duration::from_secs(3600));
    parts.pace.simulations = None;
    let mut client = Client::start(NBoard, parts);
    for command in ["hint 2", "go", "analyze"] {
        client.send(command);
        client.send("ping 3");
        client.wait_for("pong 3");
    }
    assert_eq!(client.end(), Vec::<String>::new());
}

/// While the other player thinks the tree grows: the search of a reply has its visits before it begins. A ping ends nothing.
#[test]
fn pondering_serves_the_next_move() {
    let visits_of_the_reply = |ponder: Ponder| {
        let mut parts = parts("othello", "");
        parts.pace.ponder = ponder;
        let mut client = Client::start(NBoard, parts);
        client.send("set depth 5");
        client.send(
            "set game (;GM[Othello]BO[8 ---------------------------O*------*O--------------------------- *]B[F5];)",
        );
        client.send("go");
        client.wait_for("=== ");
        client.send("move F6");
        client.send("ping 2");
        client.wait_for("pong 2");
        std::thread::sleep(std::time::Duration::from_millis(400));
        client.send("move E6");
        client.send("go");
        let stats = client.wait_for("nodestats ");
        client.wait_for("=== ");
        stats.split(' ').nth(1).expect("visits").parse::<u64>().expect("a number")
    };
    assert_eq!(visits_of_the_reply(Ponder::Never), 32);
    assert!(visits_of_the_reply(Ponder::Always) > 32);
}
