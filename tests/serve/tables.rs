//! Tables: taking back, going to a ply, seats, records, and wrong requests.

use super::client::Server;
use serde_json::{Value, json};
use std::path::Path;
use vecaz::backend::AnyGame;
use vecaz::config::{Arch, NetConfig};
use vecaz::net::NetSpec;
use vecaz::registry::any_game;
use vecaz::weights::NetFile;

fn path(table: &Value) -> String {
    format!("/api/tables/{}", table["id"].as_str().expect("an id"))
}

/// Saves a network with the weights of `seed`.
fn save_network(file: &Path, game: &dyn AnyGame, config: &NetConfig, seed: u64) {
    let net = NetSpec::new(config, &game.sizes());
    let weights = net.model().expect("a network").initial_weights(seed);
    NetFile::new(game, &net, weights, 1).and_then(|made| made.save(file)).expect("saved");
}

#[test]
fn moves_are_taken_back_and_other_lines_tried() {
    let server = Server::start(&["--threads", "1"]);
    let engine = json!({ "kind": "engine", "network": "embedded", "simulations": 10 });
    let seats = json!([{ "kind": "human" }, engine]);
    let table = server.post("/api/tables", &json!({ "game": "connect_four", "seats": seats }));
    let at = path(&table);
    let is_mine = |state: &Value| state["turn"]["player"] == 0 && state["thinking"].is_null();
    server.post(&format!("{at}/play"), &json!({ "name": "3" }));
    let state = server.wait(&at, is_mine);
    assert_eq!((&state["plies"], &state["viewer"]), (&json!(2), &json!(0)));
    assert!(state["searched"].is_object(), "{state}");
    // Late or double requests are refused.
    let (status, sentence) = server.refused("POST", &format!("{at}/play"), &json!({ "action": 3, "ply": 0 }));
    assert!(status == 409 && sentence.contains("at ply 2"), "{sentence}");
    let (status, sentence) = server.refused("POST", &format!("{at}/play"), &json!({ "action": 9 }));
    assert!(status == 400 && sentence.contains("action 9 is not legal here"), "{sentence}");
    let (status, _) = server.refused("POST", &format!("{at}/play"), &json!({ "action": 3, "seat": 1 }));
    assert_eq!(status, 409);
    let back = server.post(&format!("{at}/undo"), &json!({}));
    assert_eq!((&back["plies"], &back["history"], &back["searched"]), (&json!(0), &json!([]), &Value::Null));
    assert_eq!(server.refused("POST", &format!("{at}/undo"), &json!({})).0, 409);
    let set = server.post(&format!("{at}/position"), &json!({ "actions": "3 3, 2", "paused": true }));
    assert_eq!((&set["plies"], &set["paused"], &set["thinking"]), (&json!(3), &json!(true), &Value::Null));
    let (status, _) = server.refused("POST", &format!("{at}/play"), &json!({ "action": 3 }));
    assert_eq!(status, 409, "an engine is to move");
    let earlier = server.get(&format!("{at}?ply=1"));
    assert_eq!(
        (&earlier["ply"], &earlier["plies"], &earlier["turn"]["player"]),
        (&json!(1), &json!(3), &json!(1))
    );
    server.post(&format!("{at}/pause"), &json!({ "paused": false }));
    let state = server.wait(&at, is_mine);
    assert_eq!(state["plies"], json!(4));
    let gone = server.post(&format!("{at}/goto"), &json!({ "ply": 2 }));
    assert_eq!((&gone["plies"], &gone["turn"]["player"]), (&json!(2), &json!(0)));
    let branch = json!({ "from": { "table": table["id"], "ply": 1 }, "seats": [] });
    let branch = server.post("/api/tables", &branch);
    assert_eq!((&branch["plies"], &branch["players"][1]["kind"]), (&json!(1), &json!("human")));
    assert_eq!(server.get("/api/tables").as_array().map(Vec::len), Some(2));
    assert_eq!(server.call("DELETE", &at, "").0, 204);
    assert_eq!(server.refused("GET", &at, &Value::Null).0, 404);
}

/// The network is so large that no machine fills the trees, and plays, before the engine is seen thinking.
#[test]
fn a_thinking_engine_is_stopped_by_taking_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("large.safetensors");
    let game = any_game("hex", &toml::Table::new()).expect("registered");
    save_network(&file, game.as_ref(), &NetConfig { blocks: 6, channels: 64, ..NetConfig::default() }, 1);
    let server = Server::start(&[&file.display().to_string(), "--threads", "1"]);
    let seats = json!([{ "kind": "human" }, { "kind": "engine", "network": "n0", "seconds": 500.0 }]);
    let at = path(&server.post("/api/tables", &json!({ "game": "hex", "seats": seats })));
    server.post(&format!("{at}/play"), &json!({ "action": 5 }));
    let mut events = server.events(&format!("{at}/events"));
    let is_seen = |state: &Value| state["thinking"]["simulations"].as_u64() > Some(0);
    let (_, state) = events.find(|(_, state)| is_seen(state) || state["plies"] == 2).expect("a state");
    assert_eq!(state["thinking"]["player"], json!(1));
    let back = server.post(&format!("{at}/undo"), &json!({}));
    assert_eq!((&back["plies"], &back["thinking"]), (&json!(0), &Value::Null));
    let next = events.find(|(_, state)| state["plies"] == 0).expect("a state");
    assert_eq!(next.1["thinking"], Value::Null);
    server.call("DELETE", &at, "");
    assert_eq!(events.last().expect("an event").0, "closed");
}

#[test]
fn a_game_is_saved_and_read_back() {
    let server = Server::start(&["--threads", "1"]);
    let request = json!({ "game": "backgammon", "options": { "short_game": "true" }, "seed": 11 });
    let at = path(&server.post("/api/tables", &request));
    for _ in 0..6 {
        let state = server.get(&at);
        server.post(&format!("{at}/play"), &json!({ "action": state["view"]["actions"][0]["action"] }));
    }
    let saved = server.send("GET", &format!("{at}/record"), "", "").1;
    let again = server.post("/api/tables", &json!({ "record": saved }));
    let state = server.get(&at);
    for field in ["game", "options", "history", "turn", "plies"] {
        assert_eq!(again[field], state[field], "{field}");
    }
    assert_eq!(server.get(&format!("{at}/formats")), json!(["vecaz"]));
    assert_eq!(server.refused("GET", &format!("{at}/record?format=doc"), &Value::Null).0, 400);
    assert_eq!(server.refused("POST", "/api/tables", &json!({ "record": "{}" })).0, 400);
}

/// The longest file that the page sends, nearly all of which JSON escapes.
#[test]
fn a_record_of_a_million_bytes_is_read() {
    let server = Server::start(&["--threads", "1"]);
    let record = format!("(;GM[1]SZ[9]C[{}];B[ee])", "\"\n".repeat(499_980));
    assert!((999_900..=1_000_000).contains(&record.len()), "{}", record.len());
    assert_eq!(server.post("/api/tables", &json!({ "record": record }))["plies"], 1);
}

/// What networks observe is no rule: a network that was trained to see features analyses, reviews and plays a table whose game has the default.
#[test]
fn a_record_is_opened_by_networks_that_see_other_things() {
    let folder = tempfile::tempdir().expect("a folder");
    let [backgammon, four] = ["backgammon", "connect_four"].map(|game| {
        let run = folder.path().join(game).display().to_string();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vecaz"));
        command.args(["run", "--quiet", "--game", game, "--epochs", "1", "--games", "4", "--out", &run]);
        for set in
            ["net.channels=8", "selfplay.samples_per_epoch=50", "train.min_samples=100000", "eval.every=0"]
        {
            command.args(["--set", set]);
        }
        assert!(command.status().expect("runs").success());
        run
    });
    let server = Server::start(&[&backgammon, &four, "--threads", "1"]);
    let info = server.get("/api/info");
    let games = info["games"].as_array().expect("games");
    let of_four = games.iter().find(|game| game["name"] == "connect_four").expect("a game");
    let networks = info["networks"].as_array().expect("networks");
    let own = networks.iter().find(|network| network["id"] == of_four["network"]).expect("a network");
    assert!(own["run"].is_string() && own["options"]["network_sees"] == "threats", "{own}");
    let network = &info["default_network"];
    let text = " 0 point match\n\n Game 1\n a : 0                          b : 0\n  1) 31: 8/5 6/5                  42: 8/4 6/4\n";
    let state = server.post("/api/tables", &json!({ "record": text }));
    // The seven plies of the record, and the next roll, which the server deals.
    assert_eq!((&state["plies"], &state["options"]["network_sees"]), (&json!(8), &json!("points")));
    let at = path(&state);
    let hint = server.post(&format!("{at}/hint"), &json!({ "simulations": 1 }));
    assert!(hint["moves"][0]["value"].is_f64(), "{hint}");
    let (last, found) = server.events(&format!("{at}/review?simulations=1")).last().expect("an event");
    assert_eq!(last, "done", "{found}");
    let engine = json!({ "kind": "engine", "network": network, "simulations": 1 });
    let played = path(&server.post("/api/tables", &json!({ "record": text, "seats": [engine, engine] })));
    let mut events = server.events(&format!("{played}/events"));
    assert!(events.any(|(_, state)| state["searched"].is_object()), "no engine has moved");
    // Other rules stay those of the record.
    let other = json!({ "game": "backgammon", "options": { "short_game": "true" }, "seed": 11 });
    let saved =
        server.send("GET", &format!("{}/record", path(&server.post("/api/tables", &other))), "", "").1;
    let again = server.post("/api/tables", &json!({ "record": saved }));
    assert_eq!(again["options"]["short_game"], json!(true));
}

/// The served network is one of four in a row; a game of five in a row stays one, though it has the same positions so far.
#[test]
fn a_record_keeps_its_rules() {
    let server = Server::start(&["--threads", "1"]);
    let record = |options: Value| {
        let file = json!({
            "format": "vecaz game", "version": 1, "game": "connect_four", "options": options, "actions": [3, 3],
        });
        server.post("/api/tables", &json!({ "record": file.to_string() }))["options"]["connect"].clone()
    };
    assert_eq!((record(json!({ "connect": 5 })), record(json!({}))), (json!(5), json!(4)));
}

/// A network of chess, made for games of 256 plies from the usual start, is the one for all other starts and lengths too.
#[test]
fn a_network_serves_other_starts_and_lengths_of_games() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("net.safetensors");
    let game = any_game("chess", &"max_plies = 256".parse().expect("TOML")).expect("registered");
    let config = NetConfig { arch: Arch::Mlp, blocks: 1, channels: 8, ..NetConfig::default() };
    save_network(&file, game.as_ref(), &config, 4);
    let server = Server::start(&[&file.display().to_string(), "--threads", "1"]);
    let info = server.get("/api/info");
    let chess = info["games"].as_array().into_iter().flatten().find(|game| game["name"] == "chess");
    let chess = chess.expect("a game");
    assert_eq!(chess["network"], "n0", "{chess}");
    assert!(
        chess["options"].as_array().is_some_and(|all| all.iter().all(|one| one["span"] == true)),
        "{chess}"
    );
    let moves = |network: Value| {
        let table = server.post("/api/tables", &json!({ "record": "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1" }));
        let request = json!({ "simulations": 4, "network": network });
        server.post(&format!("{}/hint", path(&table)), &request)["moves"].clone()
    };
    let of_table = moves(Value::Null);
    assert_eq!(of_table, moves(json!("n0")));
    assert_ne!(of_table, moves(json!("uniform")));
}

/// Without a word about the network, a table's hints are those of the network that plays there.
#[test]
fn the_network_of_a_table_is_that_of_its_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
    let config = NetConfig { arch: Arch::Mlp, blocks: 1, channels: 8, ..NetConfig::default() };
    let files = [1, 2].map(|seed| {
        let file = folder.path().join(format!("{seed}.safetensors"));
        save_network(&file, game.as_ref(), &config, seed);
        file.display().to_string()
    });
    let server = Server::start(&[&files[0], &files[1], "--threads", "1"]);
    let hint = |opponent: &str, network: Value| {
        let seats = json!([{ "kind": "human" }, { "kind": "engine", "network": opponent, "simulations": 1 }]);
        let table = server.post("/api/tables", &json!({ "game": "tic_tac_toe", "seats": seats }));
        let request = json!({ "simulations": 4, "network": network });
        server.post(&format!("{}/hint", path(&table)), &request)["moves"].clone()
    };
    assert_ne!(hint("n0", json!("n0")), hint("n0", json!("n1")));
    for (opponent, expected) in [("n0", "n0"), ("n1", "n1"), ("uniform", "n0")] {
        assert_eq!(hint(opponent, Value::Null), hint(opponent, json!(expected)), "{opponent}");
    }
}

#[test]
fn equal_seeds_deal_equal_dice() {
    let server = Server::start(&["--threads", "1"]);
    let roll = |seed: u64| {
        let state = server.post("/api/tables", &json!({ "game": "backgammon", "seed": seed }));
        state["history"]
            .as_array()
            .expect("a history")
            .iter()
            .map(|ply| ply["name"].to_string())
            .collect::<String>()
    };
    assert_eq!(roll(5), roll(5));
    assert!((0..8).any(|seed| roll(seed) != roll(5)));
}

#[test]
fn wrong_requests_are_refused_in_a_sentence() {
    let server = Server::start(&["--threads", "1"]);
    for (body, status, part) in [
        (json!({}), 400, "one of game, network"),
        (json!({ "game": "shogi" }), 400, "shogi"),
        (json!({ "game": "hex", "network": "embedded" }), 400, "one of game, network"),
        (json!({ "game": "hex", "options": { "size": 99 } }), 400, "size"),
        (json!({ "game": "hex", "options": { "sizes": 9 } }), 400, "sizes"),
        (json!({ "game": "hex", "options": { "size": null } }), 400, "size"),
        (json!({ "game": "hex", "options": { "size": "5\nswap = true" } }), 400, "size"),
        (json!({ "game": "hex", "actions": "a1 zz" }), 400, "zz"),
        (json!({ "game": "hex", "seats": [{ "kind": "robot" }] }), 400, "robot"),
        (
            json!({ "game": "hex", "seats": [{ "kind": "engine", "network": "embedded" }] }),
            400,
            "plays connect_four",
        ),
        (json!({ "game": "hex", "seats": [{ "kind": "engine", "network": "n9" }] }), 404, "n9"),
        (
            json!({ "game": "hex", "seats": [{ "kind": "engine", "network": "uniform", "simulations": 0 }] }),
            400,
            "simulations: got 0",
        ),
        (json!({ "game": "hex", "seats": [{}, {}, {}] }), 400, "kind"),
        (
            json!({ "game": "hex", "seats": [{ "kind": "human" }, { "kind": "human" }, { "kind": "human" }] }),
            400,
            "at most 2",
        ),
        (json!({ "stored": { "run": "../..", "epoch": 1, "slot": 0 } }), 404, "../.."),
        (json!({ "from": { "table": "x" } }), 404, "x"),
        (json!({ "from": { "table": "x" }, "options": { "size": 9 } }), 400, "options: "),
        (json!({ "record": "(;GM[1]SZ[9])", "options": { "komi": 0.5 } }), 400, "options: "),
        (json!({ "game": 3 }), 400, "expected a string"),
        (json!({ "games": "hex" }), 400, "games"),
    ] {
        let (found, sentence) = server.refused("POST", "/api/tables", &body);
        assert!(found == status && sentence.contains(part), "{body}: {found} {sentence}");
    }
    let (status, body) = server.send("POST", "/api/tables", "", "{");
    assert!(status == 400 && body.contains("the request: "), "{body}");
}

#[test]
fn the_oldest_idle_table_goes() {
    let server = Server::start(&["--threads", "1"]);
    let tables: Vec<String> =
        (0..64).map(|_| path(&server.post("/api/tables", &json!({ "game": "tic_tac_toe" })))).collect();
    let mut events = server.events(&format!("{}/events", tables[0]));
    events.next().expect("a state");
    server.post("/api/tables", &json!({ "game": "tic_tac_toe" }));
    server.get(&tables[0]);
    assert_eq!(server.refused("GET", &tables[1], &Value::Null).0, 404);
    assert_eq!(server.get("/api/tables").as_array().map(Vec::len), Some(64));
}
