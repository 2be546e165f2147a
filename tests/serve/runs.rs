//! Runs: their networks play, their metrics and stored games are shown.

use super::client::Server;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use vecaz::files::FileDigest;
use vecaz::run::manifest::Manifest;

/// Runs or resumes a small run of tic-tac-toe.
fn train(folder: &Path, arguments: &[&str]) {
    let settings = [
        "net.blocks=1",
        "net.channels=16",
        "search.simulations=8",
        "selfplay.games=8",
        "selfplay.samples_per_epoch=200",
        "replay.capacity=2000",
        "train.batch=32",
        "train.min_samples=100",
        "eval.share=0.0",
        "eval.simulations=8",
        "eval.positions=20",
    ];
    let mut run = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
    run.args(["run", "--quiet"]).args(arguments);
    for setting in settings {
        run.args(["--set", setting]);
    }
    assert!(run.current_dir(folder).status().expect("runs").success());
}

#[test]
fn the_network_of_a_run_in_progress_is_the_newest_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    train(path, &["--game", "tic_tac_toe", "--epochs", "1", "--out", "runs/ttt"]);
    // Two runs that have begun and have no network, one of them no manifest either.
    let config = std::fs::read(path.join("runs/ttt/config.toml")).expect("read");
    for run in ["runs/young", "runs/younger"] {
        std::fs::create_dir(path.join(run)).expect("a folder");
        std::fs::write(path.join(run).join("config.toml"), &config).expect("written");
    }
    let mut manifest = Manifest::new(&path.join("runs/young"));
    manifest.set("config.toml", FileDigest::of(&config));
    manifest.write(0).expect("written");
    let server = Server::start_in(path, &["--threads", "1"]);
    let network = |run: &str| {
        let info = server.get("/api/info");
        let networks = info["networks"].as_array().expect("networks");
        networks.iter().find(|one| one["run"] == run && one["epoch"].is_null()).cloned()
    };
    let first = network("r0").expect("of the first epoch");
    assert_eq!((network("r1"), network("r2")), (None, None));
    assert_eq!(server.get("/api/runs").as_array().map(Vec::len), Some(3));
    let priors = |of: &Value| {
        let table = server.post("/api/tables", &json!({ "network": of["id"] }));
        let hint = format!("/api/tables/{}/hint", table["id"].as_str().expect("an id"));
        let moves = server.post(&hint, &json!({ "simulations": 2 }))["moves"].clone();
        moves.as_array().expect("moves").iter().map(|one| one["prior"].clone()).collect::<Vec<_>>()
    };
    let of_first = priors(&first);
    train(path, &["--resume", "runs/ttt", "--epochs", "6"]);
    train(path, &["--resume", "runs/young", "--epochs", "1"]);
    train(path, &["--resume", "runs/younger", "--epochs", "1"]);
    let now = network("r0").expect("of a later epoch");
    assert!(now["id"] == first["id"] && now["updates"].as_u64() > first["updates"].as_u64(), "{now}");
    assert_ne!(priors(&now), of_first);
    assert_eq!(priors(&network("r1").expect("of its first epoch")).len(), 9);
    assert_eq!(priors(&network("r2").expect("of its first epoch")).len(), 9);
}

#[test]
fn a_run_is_watched_and_its_networks_play() {
    let folder = tempfile::tempdir().expect("a folder");
    train(folder.path(), &["--game", "tic_tac_toe", "--epochs", "2", "--out", "runs/ttt"]);
    // The folder `runs` is found without an argument, and what is no run in it left out.
    std::fs::create_dir(folder.path().join("runs/notes")).expect("a folder");
    let server = Server::start_in(folder.path(), &["--threads", "1"]);
    let info = server.get("/api/info");
    assert_eq!((&info["runs"][0]["name"], info["runs"].as_array().map(Vec::len)), (&json!("ttt"), Some(1)));
    assert_eq!(info["default_network"], "n0", "{info}");
    let networks = info["networks"].as_array().expect("networks");
    let of_run: Vec<&Value> = networks.iter().filter(|network| network["run"] == "r0").collect();
    assert!(of_run.len() >= 2 && of_run[1]["epoch"].is_u64(), "{networks:?}");

    let rows = server.get("/api/runs/r0/metrics")["rows"].as_array().expect("rows").clone();
    assert_eq!(rows.iter().map(|row| row["epoch"].clone()).collect::<Vec<_>>(), [json!(1), json!(2)]);
    assert_eq!(server.get("/api/runs/r0/metrics?after=1")["rows"].as_array().map(Vec::len), Some(1));
    let epochs = server.get("/api/runs/r0/games");
    assert_eq!(epochs[0]["epoch"], json!(2), "{epochs}");
    let games = server.get("/api/runs/r0/games/2");
    let game = games.as_array().and_then(|games| games.last()).expect("a game");
    let stored = json!({ "stored": { "run": "r0", "epoch": 2, "slot": game["slot"], "game": game["game"] } });
    let table = server.post("/api/tables", &stored);
    assert_eq!((&table["turn"]["kind"], &table["plies"]), (&json!("over"), &game["plies"]));
    let at = format!("/api/tables/{}", table["id"].as_str().expect("an id"));
    assert_eq!(server.get(&format!("{at}?ply=0"))["turn"]["player"], json!(0));
    for path in
        ["/api/runs/r1/games", "/api/runs/r0/games/99", "/api/runs/r0/games/..", "/api/runs/../metrics"]
    {
        assert_eq!(server.refused("GET", path, &Value::Null).0, 404, "{path}");
    }

    let seat = |network: &Value| json!({ "kind": "engine", "network": network["id"], "simulations": 4 });
    let seats = json!([seat(of_run[0]), seat(of_run[1])]);
    let table = server.post("/api/tables", &json!({ "game": "tic_tac_toe", "seats": seats }));
    let at = format!("/api/tables/{}", table["id"].as_str().expect("an id"));
    let end = server.wait(&at, |state| state["turn"]["kind"] == "over" || !state["error"].is_null());
    assert_eq!(end["error"], Value::Null);
    assert!(end["players"][1]["label"].as_str().is_some_and(|label| label.contains("epoch")), "{end}");
}
