//! UCI for chess.

use super::{Client, parts, talk};
use vecaz::batch::Playthrough;
use vecaz::protocol::choice::ProtocolName::Uci;
use vecaz::registry::any_game;

fn say(script: &str) -> Vec<String> {
    talk(Uci, parts("chess", ""), script).lines().map(str::to_string).collect()
}

fn best_moves(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("bestmove ")).collect()
}

/// The number after `key`.
fn number(line: &str, key: &str) -> i64 {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == key).unwrap_or_else(|| panic!("{key} in {line}"));
    words[at + 1].parse().expect("a number")
}

#[test]
fn the_engine_introduces_itself() {
    let lines = say("uci\nisready\njoho isready\nfly\n");
    assert!(lines[0].starts_with("id name vecaz ") && lines[1].starts_with("id author "), "{lines:?}");
    let at = lines.iter().position(|line| line == "uciok").expect("uciok");
    for name in ["Hash", "Threads", "MultiPV", "Ponder", "UCI_ShowWDL", "Move Overhead"] {
        let option = format!("option name {name} type ");
        assert!(lines[..at].iter().any(|line| line.starts_with(&option)), "{name}: {lines:?}");
    }
    assert_eq!(lines[at + 1..], ["readyok", "readyok"], "unknown words are passed over");
}

/// As `--sims` and `--seconds` say.
#[test]
fn a_search_by_nodes_keeps_the_limits_of_the_command_line() {
    let mut own = parts("chess", "");
    own.pace.max_simulations = Some(30);
    let lines: Vec<String> = talk(Uci, own, "go nodes 5000\n").lines().map(str::to_string).collect();
    let last = lines.iter().rfind(|line| line.starts_with("info depth ")).expect("a line");
    assert_eq!(number(last, "nodes"), 30, "{last}");
}

#[test]
fn a_search_tells_its_lines_and_a_legal_move() {
    let lines = say(
        "setoption name MultiPV value 3\nsetoption name UCI_ShowWDL value true\nposition startpos moves e2e4 e7e5\ngo nodes 60\n",
    );
    let infos: Vec<&String> = lines.iter().filter(|line| line.starts_with("info depth ")).collect();
    let last = &infos[infos.len() - 3..];
    let mut play = Playthrough::new(any_game("chess", &Default::default()).expect("chess"));
    ["e2e4", "e7e5"].iter().for_each(|name| play.step_text(name).expect("legal"));
    for (index, line) in last.iter().enumerate() {
        assert_eq!((number(line, "multipv"), number(line, "nodes")), (index as i64 + 1, 60), "{line}");
        let pv: Vec<&str> = line.split(" pv ").nth(1).expect("a line").split_whitespace().collect();
        assert_eq!(number(line, "depth"), pv.len() as i64, "{line}");
        let mut line_played = play.clone();
        pv.iter().for_each(|name| line_played.step_text(name).expect("legal"));
        let wdl: Vec<i64> = line
            .split(" wdl ")
            .nth(1)
            .expect("chances")
            .split(' ')
            .take(3)
            .map(|n| n.parse().expect("a number"))
            .collect();
        assert_eq!(wdl.iter().sum::<i64>(), 1000, "{line}");
        assert!(
            line.contains(" score cp ") && number(line, "nps") >= 0 && number(line, "time") >= 0,
            "{line}"
        );
    }
    let [best] = best_moves(&lines)[..] else { panic!("{lines:?}") };
    let words: Vec<&str> = best.split(' ').collect();
    assert!(play.find(words[0]).is_some() && (words.len() == 1 || words[1] == "ponder"), "{best}");
    assert!(last[0].contains(&format!(" pv {}", words[0])), "the best line comes first: {last:?} {best}");
}

#[test]
fn only_searchmoves_are_played() {
    let lines = say("position startpos\ngo nodes 40 searchmoves a2a3 h2h3\ngo searchmoves a9a9 nodes 5\n");
    let best = best_moves(&lines);
    assert!(best[0].starts_with("a2a3") || best[0].starts_with("h2h3"), "{best:?}");
    assert_eq!(best.len(), 2, "names that are no moves restrict nothing");
}

/// The search itself is restricted: of three lines that are asked for there are two, and all visits are theirs.
#[test]
fn searchmoves_restrict_the_search() {
    let mut client = Client::start(Uci, parts("chess", ""));
    client.send("setoption name MultiPV value 3");
    client.send("position startpos");
    let mut search = |go: &str| -> Vec<String> {
        client.send(go);
        let mut lines = Vec::new();
        loop {
            let line = client.line();
            if line.starts_with("bestmove") {
                break;
            }
            assert_eq!(number(&line, "nodes"), 60, "{go}: {line}");
            lines.push(line.split(" pv ").nth(1).expect("a line").to_string());
        }
        lines.split_off(lines.len().saturating_sub(3))
    };
    let free = search("go nodes 60");
    let restricted = search("go nodes 60 searchmoves a2a3 h2h3 e2e5");
    let mut firsts: Vec<&str> = restricted.iter().map(|line| &line[..4]).collect();
    firsts.sort_unstable();
    assert_eq!(firsts, ["a2a3", "h2h3"], "{restricted:?}");
    assert_eq!(search("go nodes 60"), free, "the next search is free again");
    assert_eq!(free.len(), 3);
}

/// Whatever a client sends as a position, `go` is answered.
#[test]
fn wrong_positions_are_refused_in_a_sentence() {
    for (position, part) in [
        ("fen 8/8/8/8/8/8/8/8 w - - 0 1", "kings"),
        ("fen x", "fields"),
        ("fen", "fields"),
        ("somewhere", "expected position startpos or position fen FEN"),
        ("startpos moves e2e5", "e2e5 is not legal"),
        ("startpos moves e2e4 652", "652 is not legal"),
        ("fen 7k/5QK1/8/8/8/8/8/8 b - - 0 1 moves h8h7", "game.fen"),
    ] {
        let lines = say(&format!("position {position}\ngo nodes 5\nposition startpos\ngo nodes 5\n"));
        assert!(lines[0].starts_with("info string ") && lines[0].contains(part), "{position}: {lines:?}");
        let best = best_moves(&lines);
        assert!(best.len() == 2 && best[0] == "(none)" && best[1].len() >= 4, "{position}: {lines:?}");
    }
    let mated = say("position startpos moves f2f3 e7e5 g2g4 d8h4\ngo movetime 10\n");
    assert_eq!(mated, ["bestmove (none)"]);
}

/// A client need not claim a draw: the engine plays on after the third repetition and after fifty moves.
#[test]
fn play_goes_on_where_a_draw_was_not_claimed() {
    let tour = "g1f3 g8f6 f3g1 f6g8 ".repeat(3);
    let lines = say(&format!(
        "position startpos moves {tour} e2e4\ngo nodes 5\nposition startpos moves {tour}\ngo nodes 5\n"
    ));
    let best = best_moves(&lines);
    assert!(best.len() == 2 && best.iter().all(|best| *best != "(none)"), "{lines:?}");
    let lines = say("position fen 6k1/8/8/8/8/8/8/K6R w - - 99 90 moves a1b1 g8f7 b1b2\ngo nodes 5\n");
    assert_ne!(best_moves(&lines), ["(none)"], "{lines:?}");
}

/// FENs that other programs write. Fields that the rules refuse are changed, each with an `info string`.
#[test]
fn fens_of_other_programs_are_read() {
    let part = "info string castling rights KQkq in the FEN, read as K";
    for (fen, expected) in [
        ("4k3/7p/8/8/8/8/P7/4K2R w KQkq - 0 1", &[part][..]),
        ("4k3/7p/8/8/8/8/P7/4K2R w K - 120 0", &["info string halfmove clock 120", "info string full move"]),
        ("4k3/7p/8/8/8/8/P7/4K2R w K - 100 9999", &["info string halfmove clock 100 in the FEN, read as 0"]),
        ("4k3/7p/8/8/8/8/P7/4K2R w K - 99 1", &[]),
    ] {
        let lines = say(&format!("position fen {fen} moves e1g1\ngo nodes 5\n"));
        let notes: Vec<&String> = lines.iter().filter(|line| line.starts_with("info string")).collect();
        assert_eq!(notes.len(), expected.len(), "{fen}: {lines:?}");
        assert!(notes.iter().zip(expected).all(|(note, start)| note.starts_with(start)), "{fen}: {lines:?}");
        assert_ne!(best_moves(&lines), ["(none)"], "{fen}: {lines:?}");
    }
}

/// A win is seen where the rules of the network's run would have drawn the game.
#[test]
fn no_limit_of_plies_is_near() {
    let position = "position fen k7/7p/1KP5/8/8/8/8/8 b - - 0 1 moves h7h6 b6a6 h6h5 a6b6 h5h4";
    for options in ["max_plies = 6", "max_plies = 5", ""] {
        let script = format!("{position}\ngo nodes 3000 searchmoves c6c7\n");
        let text = talk(Uci, parts("chess", options), &script);
        let last = text.lines().rev().find(|line| line.starts_with("info depth ")).expect("a line");
        assert!(last.contains(" score mate 2 "), "{options}: {last}");
    }
}

#[test]
fn a_mate_that_is_proven_is_told() {
    let lines = say("position fen 7k/8/5KQ1/8/8/8/8/8 w - - 0 1\ngo nodes 3000\n");
    let last = lines.iter().rev().find(|line| line.starts_with("info depth ")).expect("a line");
    assert!(last.contains(" score mate 1 "), "{last}");
    assert!(
        best_moves(&lines)[0].starts_with("g6g7") || best_moves(&lines)[0].starts_with("g6"),
        "{lines:?}"
    );
}

/// `go infinite` and `go ponder` have no answer before the client asks for it.
#[test]
fn an_answer_waits_for_stop_or_ponderhit() {
    let mut client = Client::start(Uci, parts("chess", ""));
    for (go, asks) in [
        ("go infinite", &["stop"][..]),
        ("go ponder wtime 1000 btime 1000", &["stop"]),
        ("go ponder wtime 200 btime 200", &["ponderhit"]),
        ("go ponder movetime 20", &["ponderhit"]),
        ("go ponder nodes 100", &["ponderhit"]),
        ("go infinite", &["position startpos moves e2e4"]),
    ] {
        client.send("position startpos");
        client.send(go);
        client.send("isready");
        let mut line = client.line();
        while line != "readyok" {
            assert!(line.starts_with("info "), "{go}: {line}");
            line = client.line();
        }
        std::thread::sleep(std::time::Duration::from_millis(30));
        asks.iter().for_each(|ask| client.send(ask));
        assert!(client.wait_for("bestmove").len() > 9, "{go}");
    }
    // The end is proven long before the client asks.
    client.send("position fen 7k/8/5KQ1/8/8/8/8/8 w - - 0 1");
    client.send("go infinite");
    client.wait_for("info depth");
    std::thread::sleep(std::time::Duration::from_millis(200));
    client.send("isready");
    client.wait_for("readyok");
    client.send("stop");
    assert!(client.wait_for("bestmove").starts_with("bestmove g6"));
    assert_eq!(client.end(), Vec::<String>::new());
}

/// The end of the input asks for the answers that `stop` or `ponderhit` would have asked for.
#[test]
fn the_end_of_the_input_is_a_stop() {
    for go in [
        "position startpos\ngo infinite\n",
        "position startpos\ngo ponder wtime 1000 btime 1000\n",
        "position startpos\ngo infinite\nisready\n",
        "position fen 7k/8/5KQ1/8/8/8/8/8 w - - 0 1\ngo infinite\n",
        "position nowhere\ngo infinite\n",
        "position startpos\ngo infinite\nposition startpos moves e2e4\n",
    ] {
        let lines = say(go);
        assert_eq!(best_moves(&lines).len(), 1, "{go}: {lines:?}");
    }
    let lines = say("position startpos\ngo infinite\ngo ponder\ngo nodes 5\n");
    assert_eq!(best_moves(&lines).len(), 3, "{lines:?}");
    // The end is proven long before the input ends.
    let mut client = Client::start(Uci, parts("chess", ""));
    client.send("position fen 7k/8/5KQ1/8/8/8/8/8 w - - 0 1");
    client.send("go infinite");
    client.wait_for("info depth");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(best_moves(&client.end()).len(), 1);
}

#[test]
fn depth_and_mate_end_by_themselves() {
    let lines = say("position startpos\ngo depth 2\ngo depth 100\ngo mate 2\ngo\nucinewgame\ngo depth 0\n");
    assert_eq!(best_moves(&lines).len(), 5, "{lines:?}");
}

#[test]
fn options_out_of_range_are_told_and_change_nothing() {
    let lines = say(
        "setoption name Hash value 1\nsetoption name Threads value x\nsetoption name Fly value 1\nsetoption\n\
         setoption name Hash value 128\nsetoption name Threads value 2\nsetoption name Move Overhead value 20\n\
         setoption name Ponder value true\nposition startpos\ngo nodes 30\n",
    );
    let refused = lines.iter().filter(|line| line.starts_with("info string no such option or value"));
    assert_eq!(refused.count(), 4, "{lines:?}");
    assert_eq!(best_moves(&lines).len(), 1);
}

/// The game that a client plays move by move to its end.
#[test]
fn a_whole_game_has_legal_moves_only() {
    let mut client = Client::start(Uci, parts("chess", "max_plies = 60"));
    let mut play = Playthrough::new(any_game("chess", &Default::default()).expect("chess"));
    client.send("ucinewgame");
    for _ in 0..90 {
        if play.legal().is_empty() {
            break;
        }
        client.send(&format!("position startpos moves {}", play.names().join(" ")));
        client.send("go nodes 3");
        let line = client.wait_for("bestmove");
        play.step_text(line.split(' ').nth(1).expect("a move")).expect("legal");
    }
    client.send("quit");
    client.end();
}
