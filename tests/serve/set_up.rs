//! Positions that are set up, and engines that think on the time of people.

use super::client::Server;
use serde_json::{Value, json};

fn path(table: &Value) -> String {
    format!("/api/tables/{}", table["id"].as_str().expect("an id"))
}

#[test]
fn a_position_is_set_up_played_saved_and_linked() {
    let server = Server::start(&["--threads", "1"]);
    let info = server.get("/api/info");
    let games = info["games"].as_array().expect("games");
    let why = |name: &str| &games.iter().find(|game| game["name"] == name).expect("a game")["no_set_up"];
    assert_eq!(why("hex"), &Value::Null);
    assert!(why("blob").as_str().is_some_and(|why| why.contains("reached by its moves alone")), "{info}");

    let hex = json!({ "game": "hex", "options": { "size": 4 } });
    let with = |placed: Value| {
        let mut body = hex.clone();
        body["placed"] = placed;
        body
    };
    let start = server.post("/api/set_up", &hex);
    assert_eq!(start["placed"], json!({ "cells": ".".repeat(16), "player": 0 }));
    assert_eq!((&start["refusal"], &start["view"]["board"]["style"]), (&Value::Null, &json!("hexagons")));
    let wrong = json!({ "cells": format!("00{}", ".".repeat(14)), "player": 1 });
    let refused = server.post("/api/set_up", &with(wrong.clone()));
    assert!(refused["refusal"].as_str().is_some_and(|why| why.contains("player 0 has 2")), "{refused}");
    let (status, sentence) = server.refused("POST", "/api/tables", &with(wrong));
    assert!(status == 400 && sentence.contains("player 0 has 2"), "{sentence}");
    assert_eq!(server.refused("POST", "/api/set_up", &json!({ "game": "blob" })).0, 400);
    assert_eq!(server.refused("POST", "/api/set_up", &with(json!({ "cells": 3, "player": 0 }))).0, 400);
    let alone = json!({ "record": "{}", "placed": { "cells": "", "player": 0 } });
    assert!(server.refused("POST", "/api/tables", &alone).1.contains("placed"));

    let placed = json!({ "cells": format!("0.1.{}", ".".repeat(12)), "player": 0 });
    let table = server.post("/api/tables", &with(placed.clone()));
    let at = path(&table);
    assert_eq!((&table["placed"], &table["plies"], &table["history"]), (&placed, &json!(0), &json!([])));
    assert_eq!(table["view"]["actions"].as_array().map(Vec::len), Some(14));
    server.post(&format!("{at}/play"), &json!({ "name": "b1" }));
    let played = server.get(&at);
    let earlier = server.get(&format!("{at}?ply=0"));
    assert_eq!(earlier["view"]["board"], table["view"]["board"], "the pieces are there before the first ply");
    let hint = server.post(&format!("{at}/hint"), &json!({ "simulations": 20 }));
    assert_eq!(hint["moves"].as_array().map(Vec::len), Some(13));
    for format in ["vecaz", "sgf"] {
        let saved = server.send("GET", &format!("{at}/record?format={format}"), "", "").1;
        let again = server.post("/api/tables", &json!({ "record": saved }));
        assert_eq!(
            (&again["placed"], &again["view"]["board"]),
            (&placed, &played["view"]["board"]),
            "{format}"
        );
    }
    let branch = server.post("/api/tables", &json!({ "from": { "table": table["id"], "ply": 0 } }));
    assert_eq!((&branch["placed"], &branch["plies"]), (&placed, &json!(0)));
    let set = server.post(&format!("{at}/position"), &json!({ "actions": ["b1", "d4"] }));
    assert_eq!(
        (&set["placed"], &set["plies"]),
        (&placed, &json!(2)),
        "moves are from the position that was set up"
    );
    server.post(&format!("{at}/undo"), &json!({}));
    server.post(&format!("{at}/goto"), &json!({ "ply": 0 }));
    assert_eq!(server.get(&at)["view"]["board"], table["view"]["board"]);
}

/// A game whose option is its first position begins there by that option, so that all that knows the option knows the position.
#[test]
fn chess_is_set_up_by_its_fen() {
    let server = Server::start(&["--threads", "1"]);
    let cells = format!("{}b{}5{}3", ".".repeat(4), ".".repeat(55), ".".repeat(2));
    let placed = json!({ "cells": cells, "player": 0 });
    let table = server.post("/api/tables", &json!({ "game": "chess", "placed": placed }));
    assert_eq!(table["options"]["fen"], "4k3/8/8/8/8/8/8/4K2R w K - 0 1");
    assert_eq!(table["placed"], Value::Null);
    let at = path(&table);
    server.post(&format!("{at}/play"), &json!({ "name": "e1g1" }));
    let saved = server.send("GET", &format!("{at}/record?format=pgn"), "", "").1;
    assert!(saved.contains("4k3/8/8/8/8/8/8/4K2R w K - 0 1") && saved.contains("O-O"), "{saved}");
}

/// Visits and simulations of an engine's reply of 40 visits, to a person who moves after a pause.
fn reply_after(server: &Server, ponder: bool, pause_ms: u64) -> (u64, u64) {
    let engine = json!({ "kind": "engine", "network": "uniform", "simulations": 40, "ponder": ponder });
    let request = json!({ "game": "hex", "options": { "size": 4 }, "seats": [{ "kind": "human" }, engine] });
    let table = server.post("/api/tables", &request);
    assert_eq!(table["players"][1]["ponder"], json!(ponder));
    let at = path(&table);
    std::thread::sleep(std::time::Duration::from_millis(pause_ms));
    server.post(&format!("{at}/play"), &json!({ "action": 5 }));
    let state = server.wait(&at, |state| state["plies"] == 2);
    server.call("DELETE", &at, "");
    let number = |field: &str| state["searched"][field].as_u64().unwrap_or_else(|| panic!("{state}"));
    (number("visits"), number("simulations"))
}

/// The reply of an engine that ponders stands on the visits that it made while the person thought.
#[test]
fn an_engine_ponders_on_the_time_of_a_person() {
    let server = Server::start(&["--threads", "1"]);
    assert_eq!(reply_after(&server, false, 50), (40, 40), "without pondering all simulations are its own");
    let (visits, simulations) = reply_after(&server, true, 1500);
    assert!(visits >= 40 && simulations < 10, "{visits} visits, {simulations} of them new");
    // The search of a person who moves at once is stopped, and the engine still answers.
    let (visits, _) = reply_after(&server, true, 0);
    assert!(visits >= 40);
    let blob = json!({ "kind": "engine", "network": "uniform", "ponder": true });
    let blob = json!({ "game": "blob", "options": { "players": 3 }, "seats": [{ "kind": "human" }, blob] });
    let (status, sentence) = server.refused("POST", "/api/tables", &blob);
    assert!(status == 400 && sentence.contains("ponder: with hidden information"), "{sentence}");
}

/// Pondering stops when it is paused, taken back, or the table goes, and goes on at the next wait. A search that went on would hold one of the
/// four slots for ten minutes, and a table after them all would not ponder.
#[test]
fn pondering_ends_with_its_position() {
    let server = Server::start(&["--threads", "1"]);
    let engine = json!({ "kind": "engine", "network": "uniform", "simulations": 5, "ponder": true });
    for round in 0..12 {
        let seats = json!([{ "kind": "human" }, engine]);
        let table = server.post("/api/tables", &json!({ "game": "gomoku", "seats": seats }));
        let at = path(&table);
        for (ply, action) in [(0, 10), (2, 20)] {
            server.post(&format!("{at}/play"), &json!({ "action": action, "ply": ply }));
            server.wait(&at, |state| state["plies"] == ply + 2);
        }
        server.post(&format!("{at}/pause"), &json!({ "paused": true }));
        server.post(&format!("{at}/pause"), &json!({ "paused": false }));
        server.post(&format!("{at}/undo"), &json!({}));
        match round % 2 {
            0 => assert_eq!(server.call("DELETE", &at, "").0, 204),
            _ => assert_eq!(server.post(&format!("{at}/pause"), &json!({ "paused": true }))["paused"], true),
        }
    }
    // The last searches may still be ending.
    let ponders = || reply_after(&server, true, 1500).1 < 10;
    assert!((0..5).any(|_| ponders()), "all slots are held");
}

/// A server that is not there is told in a sentence, and the page goes on.
#[test]
fn a_cluster_that_is_not_there_is_told() {
    let server = Server::start(&["--threads", "1", "--cluster", "redis://127.0.0.1:1/nobody"]);
    let clusters = server.get("/api/clusters");
    assert_eq!(
        (&clusters[0]["address"], clusters.as_array().map(Vec::len)),
        (&json!("redis://127.0.0.1:1/nobody"), Some(1))
    );
    let error = clusters[0]["error"].as_str().unwrap_or_else(|| panic!("{clusters}"));
    assert!(error.contains("127.0.0.1:1") && !error.contains('\n'), "{error}");
    assert_eq!(Server::start(&[]).get("/api/clusters"), json!([]));
}
