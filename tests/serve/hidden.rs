//! Hidden hands: no reply to a player, in whatever form, has a card of another hand that is not played yet.

use super::client::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A reply with the number of plies after which it was given.
type Seen = (usize, String);

#[test]
fn no_reply_has_a_card_of_another_hand() {
    let server = Server::start(&["--threads", "1"]);
    let engine = json!({ "kind": "engine", "network": "uniform", "simulations": 4 });
    let seats = json!([{ "kind": "human" }, engine, engine]);
    let options = json!({ "players": 3, "cards": 5 });
    let request = json!({ "game": "blob", "options": options, "seats": seats });
    let mut seen: Vec<Seen> = Vec::new();
    let created = server.post("/api/tables", &request);
    let (id, key) = (created["id"].as_str().expect("an id"), created["keys"][0].as_str().expect("a key"));
    assert_eq!(created["keys"].as_array().expect("keys")[1..], [Value::Null, Value::Null]);
    note(&mut seen, &created);
    let at = format!("/api/tables/{id}");
    let claim = format!("seat=0&key={key}");
    let mut end = Value::Null;
    while end.is_null() {
        let state = server.wait(&format!("{at}?{claim}"), |state| {
            state["turn"]["kind"] == "over" || state["turn"]["player"] == 0
        });
        if state["turn"]["kind"] == "over" {
            end = state;
            break;
        }
        note(&mut seen, &state);
        look_everywhere(&server, &at, &claim, &state, &mut seen);
        let action = state["view"]["actions"][0]["action"].clone();
        let played = server.post(&format!("{at}/play"), &json!({ "action": action, "seat": 0, "key": key }));
        if played["turn"]["kind"] != "over" {
            note(&mut seen, &played);
        }
    }
    assert!(seen.len() > 40, "{}", seen.len());
    let history = end["history"].as_array().expect("a history");
    let mut checked = 0;
    for (plies, text) in &seen {
        for card in hidden_from_first(history, *plies) {
            assert!(!text.contains(&card), "{card} after {plies} plies in {text}");
            checked += 1;
        }
    }
    assert!(checked > 200, "{checked}");
}

/// Adds a reply that says itself after how many plies it was given.
fn note(seen: &mut Vec<Seen>, reply: &Value) {
    let plies = reply["plies"].as_u64().expect("plies") as usize;
    seen.push((plies, reply.to_string()));
}

/// The cards that players 1 and 2 hold after `plies` plies of `history`: those that they play later.
fn hidden_from_first(history: &[Value], plies: usize) -> Vec<String> {
    let later = history.iter().skip(plies).filter(|ply| ply["player"] == 1 || ply["player"] == 2);
    let names = later.filter_map(|ply| ply["name"].as_str());
    names.filter(|name| name.contains(['♠', '♥', '♦', '♣'])).map(str::to_string).collect()
}

/// Every request that a player, or somebody without a seat, can make in the middle of a game.
fn look_everywhere(server: &Server, at: &str, claim: &str, state: &Value, seen: &mut Vec<Seen>) {
    let plies = state["plies"].as_u64().expect("plies") as usize;
    note(seen, &server.get(at));
    for ply in 0..plies {
        for who in [claim, ""] {
            let earlier = server.get(&format!("{at}?{who}&ply={ply}"));
            seen.push((plies, earlier.to_string()));
        }
    }
    let (_, event) = server.events(&format!("{at}/events?{claim}")).next().expect("an event");
    note(seen, &event);
    let analysis = server.events(&format!("{at}/analysis?{claim}&simulations=20"));
    let last = analysis.last().expect("an event");
    assert_eq!(last.0, "done", "{}", last.1);
    seen.push((plies, last.1.to_string()));
    let key = claim.split("key=").nth(1).expect("a key");
    let hint = server.post(&format!("{at}/hint"), &json!({ "seat": 0, "key": key, "simulations": 10 }));
    seen.push((plies, hint.to_string()));
    // Others' eyes.
    for path in
        ["?seat=1".to_string(), format!("?seat=1&key={key}"), "?seat=0".into(), "?seat=0&key=0".into()]
    {
        let (status, sentence) = server.refused("GET", &format!("{at}{path}"), &Value::Null);
        assert_eq!(status, 403, "{sentence}");
        seen.push((plies, sentence));
        assert_eq!(server.call("GET", &format!("{at}/events{path}"), "").0, 403);
        let failed = server.events(&format!("{at}/analysis{path}&simulations=5")).last().expect("an event");
        assert_eq!(failed.0, "failed");
    }
    for (path, body) in [
        ("/goto", json!({ "ply": 1, "seat": 0, "key": key })),
        ("/position", json!({ "actions": "", "seat": 0, "key": key })),
        ("/seats", json!({ "seats": [], "seat": 0, "key": key })),
        ("/undo", json!({})),
        ("/pause", json!({ "paused": true })),
        ("/hint", json!({})),
        ("/play", json!({ "action": state["view"]["actions"][0]["action"] })),
        ("/play", json!({ "action": 0, "seat": 0 })),
    ] {
        let (status, sentence) = server.refused("POST", &format!("{at}{path}"), &body);
        assert_eq!(status, 403, "{path} {body}: {sentence}");
        seen.push((plies, sentence));
    }
    assert_eq!(server.refused("GET", &format!("{at}/record?{claim}"), &Value::Null).0, 403);
    let review = server.events(&format!("{at}/review?{claim}")).last().expect("an event");
    assert_eq!(review.0, "failed");
    let id = at.rsplit('/').next().expect("an id");
    let branch = json!({ "from": { "table": id, "ply": 3 } });
    assert_eq!(server.refused("POST", "/api/tables", &branch).0, 403);
    assert_eq!(state["seed"], Value::Null, "the seed gives all deals");
    seen.push((plies, server.get("/api/tables").to_string()));
}

#[test]
fn two_people_see_their_own_hands_only() {
    let server = Server::start(&["--threads", "1"]);
    let request = json!({ "game": "blob", "options": { "players": 3, "cards": 4 } });
    let created = server.post("/api/tables", &request);
    let id = created["id"].as_str().expect("an id");
    let hand = |seat: usize| {
        let key = created["keys"][seat].as_str().expect("a key");
        let state = server.get(&format!("/api/tables/{id}?seat={seat}&key={key}"));
        let seats = state["view"]["board"]["seats"].as_array().expect("seats").clone();
        for (other, shown) in seats.iter().enumerate() {
            let cards = shown["hand"].as_array().expect("a hand").len();
            assert_eq!(
                (cards, shown["hidden"].clone()),
                if other == seat { (4, json!(0)) } else { (0, json!(4)) }
            );
        }
        seats[seat]["hand"].to_string()
    };
    let hands: BTreeSet<String> = (0..3).map(hand).collect();
    assert_eq!(hands.len(), 3);
}

/// Who does not sit at the table cannot pause it, change its engines or remove it.
#[test]
fn a_table_obeys_who_sits_at_it() {
    let server = Server::start(&["--threads", "1"]);
    let engine =
        |simulations: u64| json!({ "kind": "engine", "network": "uniform", "simulations": simulations });
    let options = json!({ "players": 3, "cards": 4 });
    let made = |seats: Value| {
        server.post("/api/tables", &json!({ "game": "blob", "options": options, "seats": seats }))
    };
    let created = made(json!([{ "kind": "human" }, engine(4), engine(4)]));
    let at = format!("/api/tables/{}", created["id"].as_str().expect("an id"));
    let key = created["keys"][0].as_str().expect("a key");
    let changes = [
        ("/pause", json!({ "paused": true })),
        ("/seats", json!({ "seats": [{ "kind": "human" }, engine(5), engine(4)] })),
    ];
    let strangers =
        [json!({}), json!({ "seat": 0 }), json!({ "seat": 0, "key": "0" }), json!({ "seat": 1, "key": key })];
    for claim in &strangers {
        for (path, body) in &changes {
            let (status, sentence) = server.refused("POST", &format!("{at}{path}"), &joined(body, claim));
            assert_eq!(status, 403, "{path} {claim}: {sentence}");
        }
    }
    for query in ["".to_string(), "?seat=0".into(), "?seat=0&key=0".into(), format!("?seat=1&key={key}")] {
        assert_eq!(server.refused("DELETE", &format!("{at}{query}"), &Value::Null).0, 403, "{query}");
    }
    let own = json!({ "seat": 0, "key": key });
    for (path, body) in &changes {
        assert_eq!(server.post(&format!("{at}{path}"), &joined(body, &own))["paused"], true, "{path}");
    }
    assert_eq!(server.call("DELETE", &format!("{at}?seat=0&key={key}"), "").0, 204);
    // Nobody sits at a table of engines.
    let created = made(json!([engine(4), engine(4), engine(4)]));
    let at = format!("/api/tables/{}", created["id"].as_str().expect("an id"));
    assert_eq!(server.post(&format!("{at}/pause"), &json!({ "paused": true }))["paused"], true);
    assert_eq!(server.call("DELETE", &at, "").0, 204);
}

/// The fields of both objects.
fn joined(a: &Value, b: &Value) -> Value {
    [a, b].into_iter().flat_map(|part| part.as_object().expect("an object").clone()).collect()
}
