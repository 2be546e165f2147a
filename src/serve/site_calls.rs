//! Requests about the server: its games, networks and runs.

use super::call::{Call, Reply};
use super::catalogue::Catalogue;
use super::clusters::Cluster;
use super::options::json_options;
use super::refusal::{Refusal, Served};
use super::seat::{MAX_SIMULATIONS, SECONDS};
use super::site::Site;
use super::tables::MAX_TABLES;
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::config::KeyInfo;
use crate::game::Turn;
use crate::game::set_up::PlacedPieces;
use crate::game::view::Viewer;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// `GET /api/info`.
///
/// # Errors
/// 400 if a game cannot be made with its default options.
pub fn info(site: &Arc<Site>, _: &Call) -> Served<Reply> {
    let catalogue = &site.catalogue;
    let registry = catalogue.registry();
    let games = registry.names().into_iter().map(|name| {
        let game = registry.game(name, &toml::Table::new())?;
        Ok(game_info(catalogue, &game))
    });
    let games: Vec<Value> = games.collect::<Served<_>>()?;
    let networks = catalogue.networks();
    let first = networks.iter().find(|network| network.run.is_some());
    let default = registry.game(registry.default_name(), &toml::Table::new())?;
    let default_network =
        first.map_or_else(|| catalogue.default_network(default.as_ref()), |network| network.id.clone());
    Ok(Reply::Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "default_game": registry.default_name(),
        "default_network": default_network,
        "games": games,
        "networks": networks,
        "runs": runs_json(catalogue),
        "limits": { "simulations": MAX_SIMULATIONS, "seconds": SECONDS.end(), "tables": MAX_TABLES },
    })))
}

/// A request to look at a board on which pieces are placed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetUpRequest {
    game: String,
    #[serde(default)]
    options: Map<String, Value>,
    placed: Option<PlacedPieces>,
}

/// `POST /api/set_up`: the game's options, the view of its start with the kinds of pieces, the placed pieces or those of the start, and why the
/// game refuses them, if it does.
///
/// # Errors
/// 400 for a game whose positions cannot be set up, and wrong options.
pub fn set_up(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let request: SetUpRequest = call.json()?;
    let game = site.catalogue.game(&request.game, &request.options)?;
    let start = start_of(&game)?;
    let placed = request.placed.unwrap_or(start);
    let refusal = Playthrough::set_up(game.clone(), &placed).err().map(|error| Refusal::from(error).message);
    let options = json_options(&game.options());
    let view = Playthrough::new(game).view(Viewer::Public);
    Ok(Reply::Json(json!({ "options": options, "view": view, "placed": placed, "refusal": refusal })))
}

/// The pieces of a game's start, if the game lets pieces be placed.
fn start_of(game: &Arc<dyn AnyGame>) -> Served<PlacedPieces> {
    let start = Playthrough::new(game.clone());
    let player = if let Turn::Player(player) = start.turn() { player } else { 0 };
    let nothing = || PlacedPieces { cells: String::new(), player };
    let placed = PlacedPieces::of(&start.view(Viewer::Public), player).unwrap_or_else(nothing);
    Playthrough::set_up(game.clone(), &placed)?;
    Ok(placed)
}

fn game_info(catalogue: &Catalogue, game: &Arc<dyn AnyGame>) -> Value {
    let sizes = game.sizes();
    let option = |key: KeyInfo| {
        json!({
            "name": key.name, "meaning": key.meaning, "values": key.values,
            "default": key.default, "value": key.value,
            // Networks serve all its values.
            "span": game.span_options().contains(&key.name) || game.sight_options().contains(&key.name),
            // No rule of a game between people.
            "sight": game.sight_options().contains(&key.name),
        })
    };
    json!({
        "name": game.name(),
        "players": sizes.num_players,
        "hidden_information": sizes.hidden_information,
        "chance": sizes.num_chance > 0,
        "options": game.keys().into_iter().map(option).collect::<Vec<_>>(),
        "colours": Playthrough::new(game.clone()).view(Viewer::Public).colours,
        "aims": (0..sizes.num_players as u8).map(|player| game.aim(player)).collect::<Vec<_>>(),
        "network": catalogue.default_network(game.as_ref()),
        // Why no position can be set up, if none can.
        "no_set_up": start_of(game).err().map(|refusal| refusal.message),
    })
}

fn runs_json(catalogue: &Catalogue) -> Vec<Value> {
    let networks = catalogue.networks();
    let with_networks = |run: &super::run_folder::ServedRun| {
        let own = networks.iter().filter(|network| network.run.as_deref() == Some(&run.id));
        let mut summary = run.summary();
        summary["networks"] = own.map(|network| network.id.as_str()).collect();
        summary
    };
    catalogue.runs().iter().map(with_networks).collect()
}

/// `GET /api/runs`.
///
/// # Errors
/// None.
pub fn runs(site: &Arc<Site>, _: &Call) -> Served<Reply> {
    Ok(Reply::Json(runs_json(&site.catalogue).into()))
}

/// `GET /api/clusters`: the runs with workers on other machines.
///
/// # Errors
/// None.
pub fn clusters(site: &Arc<Site>, _: &Call) -> Served<Reply> {
    Ok(Reply::Json(site.clusters.iter().map(Cluster::value).collect()))
}

/// `GET /api/runs/RUN/metrics?after=EPOCH`.
///
/// # Errors
/// 404 for an unknown run; 400 if its file cannot be read.
pub fn metrics(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let rows = site.catalogue.run(call.part("run"))?.metrics(call.number("after")?.unwrap_or(0))?;
    Ok(Reply::Json(json!({ "rows": rows })))
}

/// `GET /api/runs/RUN/games`.
///
/// # Errors
/// 404 for an unknown run; 400 if its manifest cannot be read.
pub fn epochs(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let epochs = site.catalogue.run(call.part("run"))?.epochs_with_games()?;
    Ok(Reply::Json(epochs.iter().map(|epoch| json!({ "epoch": epoch })).collect()))
}

/// `GET /api/runs/RUN/games/EPOCH`.
///
/// # Errors
/// 404 for an unknown run or epoch; 400 if the file cannot be read.
pub fn games(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let games = site.catalogue.run(call.part("run"))?.stored_games(call.number_part("epoch")?)?;
    Ok(Reply::Json(json!(games)))
}
