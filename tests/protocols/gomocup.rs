//! The protocol of Gomocup, for Gomoku.

use super::{Client, parts, talk};
use vecaz::protocol::choice::ProtocolName::Gomocup;
use vecaz::protocol::dialogue::Ponder;

fn say(options: &str, script: &str) -> Vec<String> {
    talk(Gomocup, parts("gomoku", options), script).lines().map(str::to_string).collect()
}

fn is_point(line: &str, size: u32) -> bool {
    let number = |text: &str| text.parse::<u32>().is_ok_and(|number| number < size);
    line.split_once(',').is_some_and(|(x, y)| number(x) && number(y))
}

#[test]
fn a_dialogue_about_a_game() {
    let lines = say(
        "size = 15",
        "ABOUT\r\nBEGIN\r\nSTART 20\r\nSTART 15\r\nRECTSTART 15,12\r\nINFO timeout_turn 0\r\nINFO rule 0\r\nINFO folder /tmp\r\n\
         BEGIN\r\nBEGIN\r\nTURN 15,3\r\nTURN 0,14\r\nTURN 0,14\r\nTAKEBACK 3,3\r\nFLY 1\r\n\r\nRESTART\r\nTURN 7,7\r\nDONE\r\nEND\r\nTURN 1,1\r\n",
    );
    assert!(lines[0].starts_with("name=\"vecaz\", version=\""), "{lines:?}");
    assert_eq!(lines[1], "ERROR START must come first");
    assert_eq!(lines[2], "ERROR unsupported size 20, the network's board has the size 15");
    assert_eq!(lines[3], "OK");
    assert_eq!(lines[4], "ERROR rectangular boards are not supported");
    assert!(is_point(&lines[5], 15), "{lines:?}");
    assert_eq!(lines[6], "ERROR BEGIN needs an empty board");
    assert_eq!(lines[7], "ERROR 15,3 is not a free cell");
    assert!(is_point(&lines[8], 15), "{lines:?}");
    assert_eq!(lines[9], "ERROR 0,14 is not a free cell");
    assert!(lines[10].starts_with("ERROR 3,3 is not the last move") || lines[10] == "OK", "{lines:?}");
    assert_eq!(lines[11..13], ["UNKNOWN command FLY", "OK"]);
    assert!(is_point(&lines[13], 15), "{lines:?}");
    assert_eq!(lines[14..], ["ERROR DONE without BOARD"]);
}

/// Four in a row of the engine, given in any order: the only move that wins at once, column and row the right way round.
#[test]
fn a_board_is_set_in_any_order() {
    let own = ["3,7,1", "6,7,1", "4,7,1", "5,7,1"];
    let other = ["2,7,2", "0,0,2", "0,2,2", "0,4,2"];
    let board = [&other[..], &own[..]].concat().join("\n");
    let mut parts = parts("gomoku", "size = 15");
    parts.pace.simulations = Some(3000);
    let text = talk(Gomocup, parts, &format!("START 15\nBOARD\n{board}\nDONE\n"));
    assert_eq!(text.lines().collect::<Vec<_>>(), ["OK", "7,7"]);
    for (board, part) in [
        ("1,1,1", "ERROR 1 own stones and 0 of the opponent"),
        ("1,1,2\n2,2,2", "ERROR 0 own stones and 2 of the opponent"),
        ("1,1,2\n1,1,1", "ERROR a cell has two stones"),
        ("15,1,2\n1,1,1\n2,2,2", "ERROR 15,1,2 is not x,y,1 or x,y,2"),
        ("1,1,3\n", "ERROR 1,1,3 is not"),
    ] {
        let lines = say("size = 15", &format!("START 15\nBOARD\n{board}\nDONE\nABOUT\n"));
        assert!(lines[1].starts_with(part), "{board}: {lines:?}");
        assert!(lines.last().is_some_and(|line| line.starts_with("name=")), "{lines:?}");
    }
}

/// A line that was refused may have been a stone: no move is found for a board without it.
#[test]
fn a_board_with_a_wrong_line_is_not_set() {
    let lines = say("size = 15", "START 15\nBOARD\n1,1,1\n2,2,2\n15,1,2\nDONE\nBOARD\n1,1,2\nDONE\n");
    let refused =
        ["ERROR 15,1,2 is not x,y,1 or x,y,2", "ERROR the board is not set: 1 line of it had no stone"];
    assert_eq!(lines[1..3], refused);
    assert!(lines.len() == 4 && is_point(&lines[3], 15), "{lines:?}");
}

#[test]
fn facts_of_the_manager_are_taken_over() {
    let lines = say(
        "size = 15",
        "START 15\nINFO rule 1\nINFO rule 4\nINFO max_memory 83886080\nINFO time_left 5000\nINFO timeout_match 0\n\
         INFO timeout_turn 50\nINFO evaluate 1,1\nINFO\nINFO timeout_turn x\nTURN 7,7\nTAKEBACK 7,7\n",
    );
    let refused = "MESSAGE rule 4 is not known, expected 0 (freestyle) or 1 (exactly five), 2 more in a continuous game";
    assert_eq!(lines[..2], ["OK", refused]);
    assert!(is_point(&lines[2], 15), "{lines:?}");
    assert_eq!(lines[3], "ERROR 7,7 is not the last move");
    // A row of six wins by one rule and not by the other.
    let row = "0,0,1\n1,0,1\n2,0,1\n4,0,1\n5,0,1\n3,0,1\n0,2,2\n1,2,2\n2,2,2\n3,2,2\n5,5,2\n6,6,2";
    let of_rule = |rule: &str| say("size = 15", &format!("START 15\nINFO rule {rule}\nBOARD\n{row}\nDONE\n"));
    assert!(of_rule("0")[1].starts_with("ERROR"), "{:?}", of_rule("0"));
    assert!(is_point(&of_rule("1")[1], 15), "{:?}", of_rule("1"));
    assert!(of_rule("2")[1].starts_with("ERROR"), "a continuous game: {:?}", of_rule("2"));
    assert!(is_point(&of_rule("3")[1], 15), "{:?}", of_rule("3"));
}

/// c-gomoku-cli: an opening by `BOARD`, then moves, the clock before each, and a second game by another `START` without a clock.
#[test]
fn a_dialogue_with_c_gomoku_cli() {
    let mut client = Client::start(Gomocup, parts("gomoku", "size = 15"));
    let facts = "INFO timeout_turn 120\nINFO timeout_match 10000\nINFO max_depth 9\nINFO max_node 1000\n\
                 INFO max_memory 367001600\nINFO thread_num 1";
    client.send("ABOUT");
    assert!(client.line().starts_with("name=\"vecaz\", version=\""));
    client.send("START 15");
    assert_eq!(client.line(), "OK");
    for line in ["INFO rule 0", facts, "INFO time_left 10000", "BOARD", "7,7,2", "8,8,1", "6,8,2", "DONE"] {
        client.send(line);
    }
    let mut taken = ["7,7", "8,8", "6,8"].map(str::to_string).to_vec();
    for left in [9800, 9600, 1] {
        let reply = client.line();
        assert!(is_point(&reply, 15) && !taken.contains(&reply), "{reply}");
        taken.push(reply);
        let free =
            (0..15).map(|row| format!("0,{row}")).find(|point| !taken.contains(point)).expect("a free cell");
        client.send(&format!("INFO time_left {left}"));
        client.send(&format!("TURN {free}"));
        taken.push(free);
    }
    assert!(is_point(&client.line(), 15));
    client.send("START 15");
    assert_eq!(client.line(), "OK");
    for line in ["INFO rule 1", "INFO timeout_match 0", "INFO time_left 2147483647", "BEGIN"] {
        client.send(line);
    }
    assert!(is_point(&client.line(), 15));
    client.send("END");
    client.end();
}

#[test]
fn both_sides_by_the_engine_end_a_game() {
    let mut parts = parts("gomoku", "size = 7");
    parts.pace.ponder = Ponder::Always;
    let mut client = Client::start(Gomocup, parts);
    client.send("START 7");
    assert_eq!(client.line(), "OK");
    client.send("BEGIN");
    let mut free: Vec<String> = (0..49).map(|cell| format!("{},{}", cell % 7, cell / 7)).collect();
    loop {
        let reply = client.line();
        // The engine's own move may end the game too: then every cell is refused.
        if reply == "ERROR the game is over" || reply.ends_with("is not a free cell") {
            break;
        }
        assert!(free.contains(&reply), "{reply}");
        free.retain(|point| *point != reply);
        match free.pop() {
            Some(point) => client.send(&format!("TURN {point}")),
            None => break,
        }
    }
    client.send("END");
    client.end();
}
