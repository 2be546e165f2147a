//! New tables: from a game, a network, another table, a stored game or a file.

use super::action_list;
use super::catalogue::EngineParts;
use super::refusal::{Refusal, Served};
use super::seat::{EngineSeat, Seat, SeatRequest, Strength};
use super::site::{Site, random_seed, secret};
use super::table::Table;
use super::tables::Seated;
use crate::backend::AnyGame;
use crate::batch::{Playthrough, play_list};
use crate::config::Algorithm;
use crate::game::set_up::PlacedPieces;
use crate::protocol::dialogue::Ponder;
use crate::records;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Bytes of a seat's key.
const KEY_BYTES: usize = 16;
/// Bytes of a table's identifier.
const ID_BYTES: usize = 6;

/// A request for a table.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewTable {
    game: Option<String>,
    options: Map<String, Value>,
    network: Option<String>,
    from: Option<Branch>,
    stored: Option<Stored>,
    record: Option<String>,
    seats: Option<Vec<SeatRequest>>,
    seed: Option<u64>,
    #[serde(deserialize_with = "action_list::text")]
    actions: Option<String>,
    placed: Option<PlacedPieces>,
}

/// The first plies of another table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Branch {
    table: String,
    ply: Option<usize>,
}

/// A stored game of a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    run: String,
    epoch: u64,
    slot: u64,
    /// The game's number in the slot; the first of the file if it is not named.
    game: Option<u64>,
}

/// A position with its rules, and the seats that it comes with.
struct Origin {
    game: Arc<dyn AnyGame>,
    play: Playthrough,
    seats: Option<Vec<Seat>>,
}

impl Origin {
    fn start(game: Arc<dyn AnyGame>) -> Self {
        Self { play: Playthrough::new(game.clone()), game, seats: None }
    }

    /// The start of `game`, or the position that `placed` sets up.
    fn of(site: &Site, game: Arc<dyn AnyGame>, placed: Option<&PlacedPieces>) -> Served<Self> {
        let Some(placed) = placed else { return Ok(Self::start(game)) };
        let play = Playthrough::set_up(game.clone(), placed)?;
        // Where an option sets the position, records and networks of other positions know it as that option.
        let mut options = game.options();
        if let Some((key, text)) = game.notation(play.state())
            && options.contains_key(key)
        {
            options.insert(key.into(), text.into());
            return Ok(Self::start(site.catalogue.registry().game(game.name(), &options)?));
        }
        Ok(Self { game, play, seats: None })
    }

    /// The position of `play`, whose rules are those of the registry's game with its options.
    fn at(site: &Site, play: Playthrough) -> Served<Self> {
        let game = site.catalogue.registry().game(play.game().name(), &play.game().options())?;
        Ok(Self { game, play, seats: None })
    }
}

/// Makes a table.
///
/// # Errors
/// 400 for a game, options, seats or actions that are not valid, 403 for a branch that would show hidden hands, 404 for an unknown
/// network, table, run or game, 503 if all tables are in use.
pub fn create(site: &Site, request: NewTable) -> Served<Arc<Seated>> {
    let Origin { game, mut play, seats } = origin(site, &request)?;
    if let Some(list) = &request.actions {
        play_list(&mut play, list, &mut |_, _, _| Ok(()))?;
    }
    let seats = match (&request.seats, seats) {
        (Some(wanted), _) => make_seats(site, &game, wanted)?,
        (None, Some(seats)) => seats,
        (None, None) => make_seats(site, &game, &[])?,
    };
    let seed = request.seed.map_or_else(random_seed, Ok)?;
    let (seated, left) = site.tables.add(secret(ID_BYTES)?, Table::new(game, play, seats, seed))?;
    left.iter().for_each(|left| site.engines.forget(&left.id));
    Ok(seated)
}

/// The position from which the table starts.
fn origin(site: &Site, request: &NewTable) -> Served<Origin> {
    let registry = site.catalogue.registry();
    if request.game.is_none() && request.network.is_none() {
        if request.placed.is_some() {
            return Err(Refusal::bad(
                "placed: pieces are placed on the board of a game or network, which the request names",
            ));
        }
        if !request.options.is_empty() {
            return Err(Refusal::bad(
                "options: they are those of a game or network, which the request names; from, stored and record bring their own",
            ));
        }
    }
    match request {
        NewTable { from: Some(branch), game: None, network: None, stored: None, record: None, .. } => {
            branch_of(site, branch)
        }
        NewTable { stored: Some(stored), game: None, network: None, from: None, record: None, .. } => {
            let play = site.catalogue.run(&stored.run)?.stored(stored.epoch, stored.slot, stored.game)?;
            Origin::at(site, play)
        }
        NewTable { record: Some(text), game: None, network: None, from: None, stored: None, .. } => {
            Origin::at(site, records::read(text, registry)?)
        }
        NewTable { network: Some(id), game: None, from: None, stored: None, record: None, .. } => {
            let network = site.catalogue.network(id)?;
            let name = network.game.as_deref().unwrap_or(registry.default_name());
            let mut options =
                network.options.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
            options.extend(request.options.clone());
            Origin::of(site, site.catalogue.game(name, &options)?, request.placed.as_ref())
        }
        NewTable { game: Some(name), network: None, from: None, stored: None, record: None, .. } => {
            Origin::of(site, site.catalogue.game(name, &request.options)?, request.placed.as_ref())
        }
        _ => Err(Refusal::bad(
            "a new table needs exactly one of game, network, from, stored, record; a network names its game, and options of the game may stand beside either",
        )),
    }
}

/// A copy of another table's first plies with its seats, whose people get new keys.
fn branch_of(site: &Site, branch: &Branch) -> Served<Origin> {
    let seated = site.tables.get(&branch.table)?;
    let table = seated.lock();
    if table.has_secrets() {
        return Err(Refusal::forbidden("a game with hidden hands has branches when it is over"));
    }
    let played = table.playthrough().actions().len();
    let plies = branch.ply.unwrap_or(played);
    if plies > played {
        return Err(Refusal::bad(format!("ply: got {plies}, expected a whole number from 0 to {played}")));
    }
    let renewed = |seat: &Seat| match seat {
        Seat::Human { .. } => Ok(Seat::Human { key: secret(KEY_BYTES)? }),
        Seat::Engine(engine) => Ok(Seat::Engine(engine.clone())),
    };
    let seats = table.seats().iter().map(renewed).collect::<Served<_>>()?;
    Ok(Origin { game: table.game().clone(), play: table.playthrough().after(plies), seats: Some(seats) })
}

/// The seats of `game`, people in those that `wanted` does not have. `[P]`
///
/// # Errors
/// 400 for too many seats, a network that does not fit the game, a strength out of range, and pondering with hidden information or by the
/// algorithm afterstate; 404 for an unknown network.
pub fn make_seats(site: &Site, game: &Arc<dyn AnyGame>, wanted: &[SeatRequest]) -> Served<Vec<Seat>> {
    let players = game.sizes().num_players;
    if wanted.len() > players {
        return Err(Refusal::bad(format!("seats: got {}, expected at most {players}", wanted.len())));
    }
    let seat = |wanted: Option<&SeatRequest>| match wanted {
        None | Some(SeatRequest::Human) => Ok(Seat::Human { key: secret(KEY_BYTES)? }),
        Some(SeatRequest::Engine { network, simulations, seconds, ponder }) => {
            let EngineParts { label, settings, .. } = site.catalogue.parts(network, game.as_ref())?;
            let strength = Strength::of_engine(*simulations, *seconds)?;
            let why = match settings.params.algorithm {
                _ if game.sizes().hidden_information => Some("with hidden information"),
                Algorithm::Afterstate => Some("by the algorithm afterstate"),
                Algorithm::Puct | Algorithm::Gumbel => None,
            };
            if let Some(why) = why.filter(|_| *ponder) {
                let what = format!(
                    "ponder: {why} nothing of a search serves the next move, so that there is nothing to think of"
                );
                return Err(Refusal::bad(what));
            }
            let ponder = if *ponder { Ponder::Always } else { Ponder::Never };
            Ok(Seat::Engine(EngineSeat { network: network.clone(), label, strength, ponder }))
        }
    };
    (0..players).map(|player| seat(wanted.get(player))).collect()
}
