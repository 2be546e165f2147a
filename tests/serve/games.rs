//! Every game of the registry, played to its end against engines.

use super::client::Server;
use serde_json::{Value, json};
use vecaz::batch::Playthrough;
use vecaz::registry::Registry;
use vecaz::rng::{Key, Purpose};

/// Options that make short games.
fn options(game: &str) -> Value {
    match game {
        "hex" => json!({ "size": 4 }),
        "go" => json!({ "size": 5, "max_plies": "30" }),
        "gomoku" => json!({ "size": 6 }),
        "othello" => json!({ "size": 6 }),
        "chess" => json!({ "max_plies": 60 }),
        "backgammon" => json!({ "short_game": true, "ply_limit": 200 }),
        "blob" => json!({ "players": 3, "cards": 3 }),
        _ => json!({}),
    }
}

#[test]
fn every_game_is_played_to_its_end() {
    let server = Server::start(&["--threads", "1"]);
    let info = server.get("/api/info");
    let registry = Registry::built_in();
    assert_eq!(info["games"].as_array().expect("games").len(), registry.names().len());
    for game in registry.names() {
        let of_game = info["games"].as_array().into_iter().flatten().find(|info| info["name"] == *game);
        let players = of_game.expect(game)["players"].as_u64().expect("players").min(3);
        let engine = json!({ "kind": "engine", "network": "uniform", "simulations": 3 });
        let mut seats = vec![json!({ "kind": "human" })];
        seats.resize(players as usize, engine);
        let request = json!({ "game": game, "options": options(game), "seats": seats, "seed": 7 });
        let state = play_out(&server, &request);
        check_by_the_rules(&registry, &state);
    }
}

/// Plays random actions in seat 0 to the end of the game, and returns the last state.
fn play_out(server: &Server, request: &Value) -> Value {
    let table = server.post("/api/tables", request);
    let (id, key) = (table["id"].as_str().expect("an id"), table["keys"][0].as_str().expect("a key"));
    let path = format!("/api/tables/{id}?seat=0&key={key}");
    loop {
        let state = server.wait(&path, |state| {
            assert_eq!(state["error"], Value::Null, "{state}");
            state["turn"]["kind"] == "over" || state["turn"]["player"] == 0
        });
        if state["turn"]["kind"] == "over" {
            assert!(state["result"].as_str().is_some_and(|text| !text.is_empty()), "{state}");
            return state;
        }
        let actions = state["view"]["actions"].as_array().expect("actions");
        assert!(!actions.is_empty(), "{state}");
        let ply = state["plies"].as_u64().expect("plies");
        let mut rng = Key::new(3, Purpose::Evaluation).with(ply).stream();
        let action = &actions[rng.below(actions.len())]["action"];
        let body = json!({ "action": action, "ply": ply, "seat": 0, "key": key });
        let after = server.post(&format!("/api/tables/{id}/play"), &body);
        assert_ne!(after["turn"]["kind"], "chance", "outcomes are dealt at once");
    }
}

/// The actions of the state's history, replayed by the rules, end with its result.
fn check_by_the_rules(registry: &Registry, state: &Value) {
    let name = state["game"].as_str().expect("a game");
    let options = toml::Table::try_from(&state["options"]).expect("options");
    let mut play = Playthrough::new(registry.game(name, &options).expect("valid"));
    for ply in state["history"].as_array().expect("a history") {
        let action = ply["action"].as_u64().unwrap_or_else(|| panic!("hidden after the end: {ply}")) as u16;
        assert_eq!(ply["name"], play.game().action_name(play.state(), action).as_str());
        play.step(action).expect("legal");
    }
    let returns: Vec<f32> = play.game().returns(play.state()).iter().map(|value| value + 0.0).collect();
    assert_eq!(state["returns"], json!(returns), "{name}");
    assert_eq!(state["ply"], json!(play.actions().len()));
}

#[test]
fn two_engines_play_to_the_end_by_themselves() {
    let server = Server::start(&["--threads", "1"]);
    let engine =
        |network, simulations| json!({ "kind": "engine", "network": network, "simulations": simulations });
    let seats = json!([engine("embedded", 20), engine("uniform", 5)]);
    let table = server.post("/api/tables", &json!({ "network": "embedded", "seats": seats }));
    let id = table["id"].as_str().expect("an id");
    let mut last = Value::Null;
    let mut versions = Vec::new();
    for (name, state) in server.events(&format!("/api/tables/{id}/events")) {
        assert_eq!(name, "state");
        versions.push(state["version"].as_u64().expect("a version"));
        last = state;
        if last["turn"]["kind"] == "over" {
            break;
        }
    }
    assert!(last["plies"].as_u64() >= Some(7) && last["thinking"].is_null(), "{last}");
    assert!(versions.is_sorted(), "{versions:?}");
}
