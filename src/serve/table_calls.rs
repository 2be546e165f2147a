//! Requests about one table.

use super::action_list;
use super::call::{Call, Events, Reply};
use super::feed::event;
use super::new_table::{NewTable, create, make_seats};
use super::opponent::drive;
use super::refusal::{Refusal, Served};
use super::seat::{Seat, SeatRequest};
use super::site::Site;
use super::state;
use super::table::{Choice, Claim, Paused, Table};
use super::tables::Seated;
use crate::records::{Format, Players};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// A request to a table. Each kind of request reads some of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Request {
    seat: Option<u8>,
    key: Option<String>,
    action: Option<u16>,
    name: Option<String>,
    ply: Option<usize>,
    #[serde(deserialize_with = "action_list::text")]
    actions: Option<String>,
    paused: Option<bool>,
    seats: Option<Vec<SeatRequest>>,
}

impl Request {
    fn claim(&self) -> Claim<'_> {
        Claim { seat: self.seat, key: self.key.as_deref() }
    }

    /// The pause that is asked for.
    fn pause(&self) -> Option<Paused> {
        self.paused.map(|paused| if paused { Paused::Yes } else { Paused::No })
    }
}

/// What a field is for, if it is missing.
fn needed<T>(value: Option<T>, what: &str) -> Served<T> {
    value.ok_or_else(|| Refusal::bad(format!("the request needs {what}")))
}

/// `GET /api/tables`.
///
/// # Errors
/// None.
pub fn list(site: &Arc<Site>, _: &Call) -> Served<Reply> {
    let all = site.tables.all();
    Ok(Reply::Json(all.iter().map(|seated| state::summary(&seated.id, &seated.peek())).collect()))
}

/// `POST /api/tables`.
///
/// # Errors
/// Those of [`create`].
pub fn new(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let request: NewTable = call.json()?;
    let seated = create(site, request)?;
    drive(site, &seated);
    let table = seated.lock();
    // Without a seat, a game with hidden hands shows what all know; the keys open more.
    let mut reply = state::state(&seated.id, &table, Claim::default(), None)?;
    reply["keys"] = keys(&table);
    Ok(Reply::Created(reply))
}

/// The keys of the seats, null for those of engines. `[P]`
fn keys(table: &Table) -> Value {
    table.seats().iter().map(Seat::key).collect()
}

/// `GET /api/tables/ID`.
///
/// # Errors
/// Those of [`state::state`].
pub fn show(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let (claim, ply) = (call.claim()?, call.number("ply")?);
    state::state(&seated.id, &seated.lock(), claim, ply).map(Reply::Json)
}

/// `DELETE /api/tables/ID`.
///
/// # Errors
/// 404; those of [`Table::admit`].
pub fn delete(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    site.tables.get(call.part("id"))?.peek().admit(call.claim()?)?;
    site.tables.remove(call.part("id"))?;
    site.engines.forget(call.part("id"));
    Ok(Reply::Done)
}

/// Changes the table by `change`, has an engine move if one is to move, and replies with the new state.
fn changed(
    site: &Arc<Site>,
    call: &Call,
    change: impl FnOnce(&mut Table, &Request) -> Served<()>,
) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let request: Request = call.json()?;
    seated.change(|table| change(table, &request))?;
    drive(site, &seated);
    state::state(&seated.id, &seated.lock(), request.claim(), None).map(Reply::Json)
}

/// `POST /api/tables/ID/play`.
///
/// # Errors
/// Those of [`Table::play`].
pub fn play(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    changed(site, call, |table, request| {
        let choice = match (request.action, &request.name) {
            (Some(action), None) => Choice::Number(action),
            (None, Some(name)) => Choice::Name(name),
            _ => return Err(Refusal::bad("the request needs either action, a number, or name")),
        };
        table.play(request.claim(), choice, request.ply)
    })
}

/// `POST /api/tables/ID/undo`.
///
/// # Errors
/// Those of [`Table::undo`].
pub fn undo(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    changed(site, call, |table, request| table.undo(request.claim()))
}

/// `POST /api/tables/ID/goto`.
///
/// # Errors
/// Those of [`Table::go_to`].
pub fn go_to(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    changed(site, call, |table, request| {
        table.go_to(needed(request.ply, "ply")?)?;
        request.pause().into_iter().for_each(|pause| table.pause(pause));
        Ok(())
    })
}

/// `POST /api/tables/ID/position`.
///
/// # Errors
/// Those of [`Table::set_position`].
pub fn position(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    changed(site, call, |table, request| {
        table.set_position(needed(request.actions.as_deref(), "actions")?)?;
        request.pause().into_iter().for_each(|pause| table.pause(pause));
        Ok(())
    })
}

/// `POST /api/tables/ID/pause`.
///
/// # Errors
/// 400 without the field; those of [`Table::admit`].
pub fn pause(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    changed(site, call, |table, request| {
        table.admit(request.claim())?;
        table.pause(needed(request.pause(), "paused, true or false")?);
        Ok(())
    })
}

/// `POST /api/tables/ID/seats`.
///
/// # Errors
/// Those of [`make_seats`], [`Table::admit`] and [`Table::set_seats`].
pub fn seats(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let request: Request = call.json()?;
    let wanted = needed(request.seats.as_deref(), "seats")?;
    let game = seated.lock().game().clone();
    let seats = make_seats(site, &game, wanted)?;
    seated.change(|table| {
        table.admit(request.claim())?;
        table.set_seats(seats)
    })?;
    site.engines.forget(&seated.id);
    drive(site, &seated);
    let table = seated.lock();
    let mut reply = state::state(&seated.id, &table, request.claim(), None)?;
    if !table.has_secrets() {
        reply["keys"] = keys(&table);
    }
    Ok(Reply::Json(reply))
}

/// `GET /api/tables/ID/record`.
///
/// # Errors
/// 403 while something is hidden, 400 for an unknown format.
pub fn file(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let table = seated.lock();
    table.viewer(call.claim()?)?;
    if table.has_secrets() {
        return Err(Refusal::forbidden("a game with hidden hands is saved when it is over"));
    }
    let play = table.playthrough();
    let format = Format::named(call.query("format").unwrap_or("vecaz"), play.game().as_ref())?;
    let label = |seat: &Seat| seat.engine().map_or("human".to_string(), |engine| engine.label.clone());
    let players = Players { names: table.seats().iter().map(label).collect(), ..Players::default() };
    let name = format!("{}-{}.{}", play.game().name(), seated.id, format.ending());
    Ok(Reply::File(name, format.write(play, &players)?))
}

/// `GET /api/tables/ID/formats`.
///
/// # Errors
/// 404.
pub fn formats(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let all = Format::of(seated.lock().game().as_ref());
    Ok(Reply::Json(all.into_iter().map(Format::name).collect()))
}

/// `GET /api/tables/ID/events`: the state now and after every change, until the table is removed.
///
/// # Errors
/// Those of [`state::state`].
pub fn events(site: &Arc<Site>, call: &Call) -> Served<Reply> {
    let seated = site.tables.get(call.part("id"))?;
    let claim = call.claim()?;
    seated.lock().viewer(claim)?;
    let mut changes = seated.watch()?;
    changes.mark_changed();
    let (seat, key) = (claim.seat, claim.key.map(str::to_string));
    let next = move |mut changes: Option<tokio::sync::watch::Receiver<u64>>| {
        let (seated, key) = (Arc::downgrade(&seated), key.clone());
        async move {
            let receiver = changes.as_mut()?;
            let table = seated.clone();
            let gone = receiver.changed().await.is_err();
            let read = spawn_blocking(move || {
                let seated: Arc<Seated> = seated.upgrade()?;
                let table = seated.lock();
                state::state(&seated.id, &table, Claim { seat, key: key.as_deref() }, None).ok()
            });
            let state = if gone { None } else { read.await.ok().flatten() };
            match state {
                Some(state) => Some((Ok(event("state", &state)), changes)),
                None => {
                    let reason = table.upgrade().map_or("the table was removed", |table| table.end());
                    Some((Ok(event("closed", &json!({ "reason": reason }))), None))
                }
            }
        }
    };
    let events: Events = Box::pin(stream::unfold(Some(changes), next));
    Ok(Reply::Events(events))
}
