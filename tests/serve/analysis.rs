//! Analyses, hints and reviews.

use super::client::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A table of connect four after `actions`.
fn table(server: &Server, actions: &str) -> String {
    let created = server.post("/api/tables", &json!({ "network": "embedded", "actions": actions }));
    format!("/api/tables/{}", created["id"].as_str().expect("an id"))
}

#[test]
fn an_analysis_reports_while_it_thinks_and_ends_at_its_limit() {
    let server = Server::start(&["--threads", "1"]);
    let at = table(&server, "3 3 2");
    let of_list = server.post("/api/tables", &json!({ "network": "embedded", "actions": [3, "3", 2] }));
    assert_eq!(of_list["view"], server.get(&at)["view"]);
    for wrong in [json!(3), json!([3.5]), json!([["3"]])] {
        let request = json!({ "network": "embedded", "actions": wrong });
        let (status, sentence) = server.refused("POST", "/api/tables", &request);
        assert!(
            status == 400 && sentence.contains("a text with commas, or a list of names and numbers"),
            "{sentence}"
        );
    }
    let events: Vec<(String, Value)> =
        server.events(&format!("{at}/analysis?seconds=0.6&interval=50&moves=3")).collect();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.len() > 3 && names.iter().filter(|name| **name == "done").count() == 1, "{names:?}");
    let mut before = 0;
    for (_, found) in &events {
        let simulations = found["simulations"].as_u64().expect("simulations");
        assert!(simulations >= before, "{simulations} after {before}");
        before = simulations;
        let moves = found["moves"].as_array().expect("moves");
        assert_eq!((moves.len(), &found["player"], &found["ply"]), (3, &json!(1), &json!(3)));
        for shown in moves {
            assert!(shown["prior"].is_f64() && shown["spot"]["place"].is_u64(), "{shown}");
            assert_eq!(shown["line"][0]["action"], shown["action"]);
        }
    }
    let last = &events[events.len() - 1].1;
    assert_eq!(last["end"], "time");
    // Black threatens three in a row with both ends open.
    assert!(["1", "4", "1 ", "4 "].contains(&last["moves"][0]["name"].as_str().expect("a name")), "{last}");
    // The tree is kept on the table.
    let next = server.events(&format!("{at}/analysis?simulations=1")).last().expect("an event").1;
    assert!(next["visits"].as_u64() >= last["visits"].as_u64(), "{next}");
}

#[test]
fn analyses_started_and_stopped_leave_nothing_behind() {
    let server = Server::start(&["--threads", "1"]);
    let at = table(&server, "3 3");
    let start = || {
        let mut events = server.events(&format!("{at}/analysis?interval=50"));
        let (name, found) = events.next().expect("an event");
        assert_eq!((name.as_str(), &found["end"]), ("analysis", &Value::Null));
    };
    start();
    wait_until_idle(&server);
    let before = used(&server);
    (0..50).for_each(|_| start());
    wait_until_idle(&server);
    let after = used(&server);
    assert!(after.0 <= before.0 + 2, "threads: {} before, {} after", before.0, after.0);
    assert!(after.1 <= before.1 + 2, "files: {} before, {} after", before.1, after.1);
    // All slots of searches are free again.
    let all: Vec<_> = (0..20).map(|_| server.events(&format!("{at}/analysis?interval=50"))).collect();
    for mut events in all {
        assert_eq!(events.next().expect("an event").0, "analysis");
    }
}

/// Waits until no search uses the processor.
fn wait_until_idle(server: &Server) {
    let start = Instant::now();
    loop {
        let before = ticks(server);
        std::thread::sleep(Duration::from_millis(300));
        if ticks(server) <= before + 2 {
            return;
        }
        assert!(start.elapsed() < super::client::PATIENCE, "a search goes on without a client");
    }
}

/// Processor time of the server, in ticks.
fn ticks(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.child.id())).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    [11, 12].iter().filter_map(|&at| fields.get(at)?.parse::<u64>().ok()).sum()
}

/// Threads and open files of the server; 0 where the system does not say.
fn used(server: &Server) -> (usize, usize) {
    let count = |what: &str| {
        std::fs::read_dir(format!("/proc/{}/{what}", server.child.id())).map_or(0, Iterator::count)
    };
    (count("task"), count("fd"))
}

#[test]
fn what_cannot_be_analysed_is_said() {
    let server = Server::start(&["--threads", "1"]);
    let at = table(&server, "0 1 0 1 0 1 0");
    for (query, part) in [
        ("", "game is over"),
        ("?ply=99", "ply: got 99"),
        ("?ply=3&network=none", "network \"none\""),
        ("?ply=3&simulations=0", "simulations: got 0"),
        ("?ply=3&seconds=nan", "seconds: got NaN"),
        ("?ply=x", "ply: got \"x\""),
        ("?seat=7", "seat: got 7"),
    ] {
        let events: Vec<(String, Value)> = server.events(&format!("{at}/analysis{query}")).collect();
        let [(name, data)] = events.as_slice() else { panic!("{query}: {events:?}") };
        assert!(name == "failed" && data["error"].as_str().is_some_and(|text| text.contains(part)), "{data}");
    }
    assert_eq!(server.refused("GET", "/api/tables/none/analysis", &Value::Null).0, 404);
}

#[test]
fn a_hint_sees_the_win() {
    let server = Server::start(&["--threads", "1"]);
    let at = table(&server, "0 1 0 1 0 1");
    let hint = server.post(&format!("{at}/hint"), &json!({}));
    assert_eq!((&hint["moves"][0]["action"], &hint["proven"]), (&json!(0), &json!(true)), "{hint}");
}

#[test]
fn a_review_finds_the_blunder() {
    let server = Server::start(&["--threads", "1"]);
    // Player 1 lets player 0 finish the column.
    let at = table(&server, "3 3 0 2 0 5 0 5 0");
    let events: Vec<(String, Value)> = server.events(&format!("{at}/review?simulations=150")).collect();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [vec!["ply"; 9], vec!["done"]].concat());
    for (ply, (_, found)) in events[..9].iter().enumerate() {
        assert_eq!(
            (&found["ply"], &found["done"], &found["total"]),
            (&json!(ply), &json!(ply + 1), &json!(9))
        );
        assert!(found["loss"].as_f64().is_some_and(|loss| (0.0..=2.0).contains(&loss)), "{found}");
    }
    let done = &events[9].1;
    assert_eq!(done["plies"], json!(9));
    let mistakes = done["mistakes"].as_array().expect("mistakes");
    assert!(mistakes[..2].iter().any(|mistake| mistake["ply"] == 7 && mistake["player"] == 1), "{done}");
    assert!(events[7].1["loss"].as_f64() > Some(0.5), "{}", events[7].1);
    assert_eq!(events[7].1["best"]["action"], json!(0), "{}", events[7].1);
    let other = server.events(&format!("{at}/review?simulations=0")).last().expect("an event");
    assert_eq!(other.0, "failed");
}

/// One simulation tries one move: the last one of a game that goes on, which it did not try, has no loss, and the mean has none of it.
#[test]
fn a_review_says_nothing_of_moves_that_it_did_not_search() {
    let server = Server::start(&["--threads", "1"]);
    let at = table(&server, "3 3 0");
    let events: Vec<Value> =
        server.events(&format!("{at}/review?simulations=1")).map(|(_, found)| found).collect();
    let [first, _, last, done] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(
        (&last["loss"], &last["played"]["value"], &last["done"]),
        (&Value::Null, &Value::Null, &json!(3))
    );
    assert!(first["loss"].is_f64() && last["best"]["value"].is_f64(), "{first} {last}");
    assert_eq!((&done["mean_loss"][0], &done["plies"]), (&first["loss"], &json!(3)));
}

/// A hint whose client is gone frees its search.
#[test]
fn nobody_waits_for_hints_of_clients_that_left() {
    use std::io::Write;
    let server = Server::start(&["--threads", "1"]);
    let at = table(&server, "3 3 2");
    let body = json!({ "seconds": 600 }).to_string();
    for _ in 0..40 {
        let request = format!(
            "POST {at}/hint HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        let mut client = server.connect();
        client.write_all(request.as_bytes()).expect("sent");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let start = std::time::Instant::now();
    while server.call("POST", &format!("{at}/hint"), &json!({ "simulations": 1 }).to_string()).0 != 200 {
        assert!(start.elapsed().as_secs() < 60, "the searches of clients that left go on");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
