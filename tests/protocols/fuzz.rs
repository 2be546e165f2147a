//! Thousands of lines that no client should send: no panic, and an answer wherever the protocol asks for one.

use super::{parts, stream, talk_bytes};
use serde_json::Value;
use vecaz::protocol::choice::ProtocolName;
use vecaz::protocol::dialogue::Parts;
use vecaz::rng::RngStream;

/// Lines of a script: 4000, or as many as the variable VECAZ_LINES says.
fn num_lines() -> usize {
    std::env::var("VECAZ_LINES").map_or(4000, |number| number.parse().expect("a number"))
}

/// Parts of a game with one simulation a move.
fn quick(name: &str, options: &str) -> Parts {
    let mut parts = parts(name, options);
    (parts.pace.simulations, parts.pace.max_simulations) = (Some(1), Some(1));
    parts
}

fn pick<'a>(rng: &mut RngStream, from: &[&'a str]) -> &'a str {
    from[rng.below(from.len())]
}

/// Words that replace words.
const WORDS: [&str; 22] = [
    "",
    "-1",
    "0",
    "1.5",
    "1e300",
    "nan",
    "99999999999999999999",
    "b",
    "pass",
    "A1",
    "z99",
    "Ä",
    "\u{feff}",
    "\t",
    "\u{7}",
    "#",
    "\u{202e}",
    "e2e4",
    "moves",
    "value",
    "3,3",
    "()",
];

/// One of `lines` with some of its words dropped, doubled, exchanged or replaced.
fn mutated(rng: &mut RngStream, lines: &[&str]) -> Vec<u8> {
    let line = pick(rng, lines);
    let mut words: Vec<String> = line.split(' ').map(str::to_string).collect();
    for _ in 0..rng.below(3) {
        let (at, other) = (rng.below(words.len()), rng.below(words.len()));
        match rng.below(6) {
            0 if words.len() > 1 => drop(words.remove(at)),
            1 => words.insert(at, words[other].clone()),
            2 => words.swap(at, other),
            3 => words[at] = pick(rng, &WORDS).to_string(),
            4 => words[at] = words[at].to_uppercase(),
            _ => words.push(pick(rng, &WORDS).to_string()),
        }
    }
    let mut bytes = words.join(" ").into_bytes();
    match rng.below(40) {
        0 => bytes.insert(rng.below(bytes.len() + 1), 0xff),
        1 => bytes.truncate(rng.below(bytes.len() + 1)),
        2 => bytes.extend(std::iter::repeat_n(b'x', 10_000)),
        3 => bytes.push(b'\r'),
        _ => {}
    }
    bytes.retain(|&byte| byte != b'\n');
    bytes
}

/// A script of mutated `lines` without those that `is_left_out`, and its lines as text.
fn script(seed: u64, lines: &[&str], is_left_out: impl Fn(&str) -> bool) -> (Vec<u8>, Vec<String>) {
    let mut rng = stream(seed);
    let (mut bytes, mut texts) = (Vec::new(), Vec::new());
    while texts.len() < num_lines() {
        let line = mutated(&mut rng, lines);
        let text = String::from_utf8_lossy(&line).into_owned();
        if !is_left_out(&text) {
            bytes.extend(line);
            bytes.push(b'\n');
            texts.push(text);
        }
    }
    (bytes, texts)
}

#[test]
fn gtp_answers_every_command() {
    let lines = [
        "protocol_version",
        "1 name",
        "version",
        "known_command play",
        "list_commands",
        "boardsize 5",
        "clear_board",
        "komi 7.5",
        "play b C3",
        "play w D4",
        "play b pass",
        "play w pass",
        "play black swap-pieces",
        "genmove b",
        "genmove w",
        "reg_genmove b",
        "undo",
        "time_settings 300 60 25",
        "time_left b 10 3",
        "kgs-time_settings byoyomi 10 5 3",
        "kgs-genmove_cleanup w",
        "final_score",
        "final_status_list dead",
        "showboard",
        "fixed_handicap 2",
        "place_free_handicap 3",
        "set_free_handicap A1 B2",
        "lz-analyze b 1",
        "kata-analyze 1 minmoves 3 maxmoves 5",
        "lz-genmove_analyze b interval 1",
        "fly to the moon",
        "# only a comment",
    ];
    let cleaned = |text: &str| -> String {
        let text = text.split('#').next().expect("a part");
        text.chars().filter(|c| *c == '\t' || !c.is_control()).collect()
    };
    let quits = |text: &str| cleaned(text).split_whitespace().any(|word| word == "quit");
    for (seed, game, options) in
        [(1, "go", "size = 5"), (2, "hex", "size = 5\nswap = true"), (3, "gomoku", "size = 6")]
    {
        let (bytes, texts) = script(seed, &lines, quits);
        let commands = texts.iter().filter(|text| cleaned(text).split_whitespace().next().is_some()).count();
        let output = talk_bytes(ProtocolName::Gtp, quick(game, options), bytes);
        let answers = output.lines().filter(|line| line.starts_with(['=', '?'])).count();
        assert_eq!(answers, commands, "{game}");
        assert!(output.ends_with("\n\n"));
    }
}

#[test]
fn uci_answers_every_go_and_isready() {
    let lines = [
        "uci",
        "isready",
        "debug on",
        "setoption name MultiPV value 3",
        "setoption name UCI_ShowWDL value true",
        "ucinewgame",
        "position startpos",
        "position startpos moves e2e4 e7e5 g1f3",
        "position fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1 moves e1g1",
        "position fen 8/8/8/8/8/8/8/K6k w - - 0 1",
        "go",
        "go nodes 2",
        "go wtime 1000 btime 1000 winc 10 binc 10 movestogo 3",
        "go infinite",
        "go ponder wtime 100 btime 100",
        "go depth 2",
        "go mate 1",
        "go movetime 2",
        "go searchmoves e2e4 d2d4 nodes 2",
        "stop",
        "ponderhit",
        "register later",
    ];
    let commands = [
        "uci",
        "debug",
        "isready",
        "setoption",
        "register",
        "ucinewgame",
        "position",
        "go",
        "stop",
        "ponderhit",
        "quit",
    ];
    let command =
        |text: &str| text.split_whitespace().find(|word| commands.contains(word)).map(str::to_string);
    let (mut bytes, texts) = script(4, &lines, |text| command(text).as_deref() == Some("quit"));
    bytes.extend(b"stop\n");
    let output = talk_bytes(ProtocolName::Uci, quick("chess", ""), bytes);
    let count = |wanted: &str| texts.iter().filter(|text| command(text).as_deref() == Some(wanted)).count();
    let said = |start: &str| output.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(
        (said("bestmove "), said("readyok"), said("uciok")),
        (count("go"), count("isready"), count("uci"))
    );
    assert!(count("go") > num_lines() / 4);
}

#[test]
fn gomocup_answers_to_the_end() {
    let lines = [
        "START 8",
        "START 20",
        "RECTSTART 8,9",
        "RESTART",
        "BEGIN",
        "TURN 3,3",
        "TURN 4,4",
        "BOARD",
        "1,1,1",
        "2,2,2",
        "DONE",
        "INFO timeout_turn 5",
        "INFO timeout_match 1000",
        "INFO time_left 100",
        "INFO rule 1",
        "INFO rule 0",
        "TAKEBACK 3,3",
        "ABOUT",
        "SWAP2BOARD",
        "INFO evaluate 1,1",
    ];
    let ends = |text: &str| text.split_whitespace().any(|word| word.eq_ignore_ascii_case("end"));
    let (mut bytes, _) = script(5, &lines, ends);
    bytes.extend(b"RESTART\nSTART 8\nABOUT\nEND\n");
    let output = talk_bytes(ProtocolName::Gomocup, quick("gomoku", "size = 8"), bytes);
    assert!(output.trim_end().lines().next_back().is_some_and(|line| line.starts_with("name=")), "{output}");
    assert!(output.lines().count() > num_lines() / 3);
}

#[test]
fn nboard_answers_every_ping() {
    let game = "(;GM[Othello]BO[8 ---------------------------O*------*O--------------------------- *]B[F5]W[F6]B[D3/1/2];)";
    let set_game = format!("set game {game}");
    let lines = [
        "nboard 2",
        "set depth 3",
        &set_game,
        "set contempt 1",
        "move F5//1.2",
        "move F6",
        "move PA",
        "hint 2",
        "go",
        "ping 4",
        "learn",
        "analyze",
        "fly",
    ];
    let quits = |text: &str| text.split_whitespace().any(|word| word.eq_ignore_ascii_case("quit"));
    let (mut bytes, texts) = script(6, &lines, quits);
    bytes.extend(b"ping end\n");
    let output = talk_bytes(ProtocolName::NBoard, quick("othello", ""), bytes);
    let is_ping = |text: &&String| {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let text = text.trim();
        text.split_once(' ').map_or(text, |(command, _)| command).eq_ignore_ascii_case("ping")
    };
    let pings = texts.iter().filter(is_ping).count();
    assert_eq!(output.lines().filter(|line| line.starts_with("pong")).count(), pings + 1);
    assert!(output.contains("pong end\n") && pings > num_lines() / 50);
}

#[test]
fn json_answers_every_line() {
    let lines = [
        r#"{"id":"a", "moves":["C3", "D4"], "maxVisits":1}"#,
        r#"{"id":"b", "moves":[["B", "C3"], ["W", "pass"]], "analyzeTurns":[0, 2], "maxVisits":2, "includePolicy":true}"#,
        r#"{"id":"c", "moves":[5, 6], "maxTime":0.001, "priority":3, "komi":5.5, "boardXSize":5}"#,
        r#"{"id":"d", "action":"query_version"}"#,
        r#"{"id":"e", "action":"terminate", "terminateId":"c"}"#,
        r#"{"id":"f", "action":"terminate_all"}"#,
        r#"{"id":"g", "moves":[], "reportDuringSearchEvery":0.001, "maxVisits":3, "initialPlayer":"B"}"#,
        "[]",
        "{",
    ];
    let (bytes, texts) = script(7, &lines, |_| false);
    let output = talk_bytes(ProtocolName::Json, quick("go", "size = 5"), bytes);
    let replies: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let num_requests = texts.iter().filter(|text| !text.trim().is_empty()).count();
    let answered =
        replies.iter().filter(|reply| reply["isDuringSearch"] != true && reply["warning"].is_null());
    assert!(answered.count() >= num_requests);
    assert!(replies.iter().any(|reply| reply["moveInfos"].is_array()));
    let errors = replies.iter().filter_map(|reply| reply["error"].as_str());
    assert!(errors.filter(|error| error.contains('\n')).count() == 0);
}

/// A line longer than any is read in part and answered, and the next one as ever.
#[test]
fn endless_lines_do_not_fill_the_memory() {
    let mut bytes = vec![b'x'; 3 << 20];
    bytes.extend(b"\nname\n");
    let output = talk_bytes(ProtocolName::Gtp, quick("go", "size = 5"), bytes);
    assert_eq!(output, "? unknown command\n\n= vecaz\n\n");
}
