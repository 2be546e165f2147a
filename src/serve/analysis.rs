//! Analyses of a table's positions: streams, hints, and their JSON.

use super::call::{Call, Reply};
use super::engines::{Role, Task};
use super::feed::Feed;
use super::refusal::{Refusal, Served};
use super::seat::Strength;
use super::site::Site;
use super::table::{Claim, Table};
use super::tables::Seated;
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::engine::{Analysis, EndCause, Move};
use crate::game::Turn;
use crate::game::view::Viewer;
use crate::stop::Stop;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Milliseconds between two reports.
const INTERVAL: RangeInclusive<u64> = 50..=5000;
/// Milliseconds between two reports if the client names none.
const DEFAULT_INTERVAL: u64 = 200;
/// Moves of a report if the client names no number.
const MOVES: usize = 20;
/// The strength of a hint if the client names none.
const HINT: Strength = Strength { simulations: Some(400), seconds: Some(5.0) };

/// What to analyse.
pub struct Subject {
    table: String,
    game: Arc<dyn AnyGame>,
    play: Playthrough,
    network: String,
    /// Moves that are reported.
    moves: usize,
}

/// A request for a hint.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HintRequest {
    seat: Option<u8>,
    key: Option<String>,
    network: Option<String>,
    simulations: Option<u64>,
    seconds: Option<f64>,
    moves: Option<usize>,
}

impl Subject {
    /// The position of `table` after `ply` plies, for `claim`.
    ///
    /// # Errors
    /// 400 for more plies than there are, 403 in a game with hidden information where the seat of `claim` is not to move, 409 where no
    /// player is to move.
    fn new(
        site: &Site,
        (id, table): (&str, &Table),
        claim: Claim<'_>,
        ply: Option<usize>,
        network: Option<&str>,
    ) -> Served<Self> {
        let viewer = table.viewer(claim)?;
        let (game, present) = (table.game().clone(), table.playthrough());
        let plies = present.actions().len();
        let ply = ply.unwrap_or(plies);
        if ply > plies {
            return Err(Refusal::bad(format!("ply: got {ply}, expected a whole number from 0 to {plies}")));
        }
        let play = present.after(ply);
        match play.turn() {
            Turn::Over => {
                return Err(Refusal::conflict("the game is over here: there is no move to analyse"));
            }
            Turn::Chance => {
                return Err(Refusal::conflict("chance decides here: there is no move to analyse"));
            }
            Turn::Player(player) if table.has_secrets() && viewer != Viewer::Player(player) => {
                let what = format!("only player {player}, who is to move, may analyse what that hand knows");
                return Err(Refusal::forbidden(what));
            }
            Turn::Player(_) => {}
        }
        let network = network.map_or_else(|| site.catalogue.network_at(table), str::to_string);
        Ok(Self { table: id.to_string(), game, play, network, moves: MOVES })
    }

    /// Searches until `strength` or `stop` ends it, and gives reports to `report` at `interval`; the last one is returned.
    ///
    /// # Errors
    /// 503 if too many searches run; those of the network.
    fn search(
        &self,
        site: &Site,
        strength: Strength,
        stop: &Stop,
        interval: Duration,
        report: &mut (dyn FnMut(&Value) + Send),
    ) -> Served<Value> {
        let _slot = site.engines.search_slot()?;
        let task = Task { table: self.table.clone(), role: Role::Analysis, network: self.network.clone() };
        let mut borrowed = site.engines.take(task, &self.game, &site.catalogue)?;
        let found = borrowed.with(|engine| {
            engine.set_position(&self.play)?;
            engine.analyse_with(&strength.limit(stop), interval, &mut |found| report(&self.json(found)))
        })?;
        Ok(self.json(&found))
    }

    fn json(&self, found: &Analysis) -> Value {
        let moves: Vec<Value> =
            found.moves.iter().take(self.moves).map(|found| self.move_json(found)).collect();
        json!({
            "ply": self.play.actions().len(),
            "player": found.player,
            "end": end_name(found.end),
            "simulations": found.simulations,
            "visits": found.visits,
            "simulations_per_second": found.simulations_per_second(),
            "seconds": found.seconds,
            "value": found.value.iter().map(|&value| shown(self.game.as_ref(), value)).collect::<Vec<_>>(),
            "proven": found.proven,
            "wdl": found.outcome,
            "moves": moves,
        })
    }

    fn move_json(&self, found: &Move) -> Value {
        let mut play = self.play.clone();
        let mut line = Vec::with_capacity(found.line.len());
        for (&action, name) in found.line.iter().zip(&found.line_names) {
            line.push(
                json!({ "action": action, "name": name, "spot": self.game.spot(play.state(), action) }),
            );
            if play.step(action).is_err() {
                break;
            }
        }
        json!({
            "action": found.action,
            "name": found.name,
            "spot": self.game.spot(self.play.state(), found.action),
            "visits": found.visits,
            "prior": found.prior,
            "policy": found.policy,
            "value": found.value.map(|value| shown(self.game.as_ref(), value)),
            "line": line,
        })
    }
}

/// A value as people see it: in points, where `game` speaks of them.
pub(super) fn shown(game: &dyn AnyGame, value: f32) -> f32 {
    value * game.points_of_value().unwrap_or(1.0)
}

fn end_name(end: EndCause) -> Option<&'static str> {
    match end {
        EndCause::Running => None,
        EndCause::Simulations => Some("simulations"),
        EndCause::Time => Some("time"),
        EndCause::Stopped => Some("stopped"),
        EndCause::Proven => Some("proven"),
        EndCause::Memory => Some("memory"),
    }
}

/// Streams an analysis: `analysis` at an interval, `done` at the end, `failed` instead of both.
///
/// # Errors
/// 404 for an unknown table.
pub fn stream(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let request = StreamRequest::read(site, &seated, call);
    let site = site.clone();
    Feed::start(move |feed| {
        let StreamRequest { subject, strength, interval } = request?;
        let report = &mut |found: &Value| feed.offer("analysis", found);
        let last = subject.search(&site, strength, &feed.stop, interval, report)?;
        feed.send("done", &last);
        Ok(())
    })
}

/// A request for a stream.
struct StreamRequest {
    subject: Subject,
    strength: Strength,
    interval: Duration,
}

impl StreamRequest {
    fn read(site: &Site, seated: &Seated, call: &Call) -> Served<Self> {
        let strength = Strength::checked(call.number("simulations")?, call.number("seconds")?)?;
        let (min, max) = (*INTERVAL.start(), *INTERVAL.end());
        let interval = call.number("interval")?.unwrap_or(DEFAULT_INTERVAL).clamp(min, max);
        let (claim, ply, moves) = (call.claim()?, call.number("ply")?, call.number("moves")?);
        let table = seated.lock();
        let subject = Subject::new(site, (&seated.id, &table), claim, ply, call.query("network"))?;
        let subject = Subject { moves: moves.unwrap_or(MOVES), ..subject };
        Ok(Self { subject, strength, interval: Duration::from_millis(interval) })
    }
}

/// One analysis.
///
/// # Errors
/// Those of the request and of the search.
pub fn hint(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let request: HintRequest = call.json()?;
    let strength = Strength::checked(request.simulations, request.seconds)?;
    let strength = if strength == Strength::default() { HINT } else { strength };
    let claim = Claim { seat: request.seat, key: request.key.as_deref() };
    let table = seated.lock();
    let subject = Subject::new(site, (&seated.id, &table), claim, None, request.network.as_deref())?;
    drop(table);
    let subject = Subject { moves: request.moves.unwrap_or(MOVES), ..subject };
    subject.search(site, strength, &call.stop, Duration::MAX, &mut |_| ()).map(Reply::Json)
}
