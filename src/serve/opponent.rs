//! Engines that play at tables, each search in a thread of its own, and think on the time of people where their seat says so.

use super::engines::{Role, SearchSlot, Task};
use super::refusal::Served;
use super::site::Site;
use super::table::Searched;
use super::tables::Seated;
use crate::engine::Limit;
use crate::stop::Stop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The interval of progress reports.
const INTERVAL: Duration = Duration::from_millis(500);
/// The longest search on the time of a person.
const PONDERING_LIMIT: Duration = Duration::from_secs(600);
/// The interval at which a search looks for a free slot.
const SLOT_INTERVAL: Duration = Duration::from_millis(20);

/// Has the engine move that is to move at this table, and those after it, or think while a person does. To be called after every change of
/// a table.
pub fn drive(site: &Arc<Site>, seated: &Arc<Seated>) {
    let first = begin(seated);
    if first.is_none() && seated.lock().waiting_ponderer().is_none() {
        return;
    }
    let (site, table) = (site.clone(), seated.clone());
    let spawned = thread::Builder::new().name("engine".into()).spawn(move || {
        play_on(&site, &table, first);
        // Nobody waits for it: whatever goes wrong shows when the engine is to move.
        let _ = catch_unwind(AssertUnwindSafe(|| ponder(&site, &table)));
    });
    if let Err(error) = spawned {
        fail(seated, format!("no thread for the engine: {error}"), None);
    }
}

/// Searches the position of the person to move for the engine that comes next, whose tree then serves its reply.
fn ponder(site: &Arc<Site>, seated: &Arc<Seated>) -> Served<()> {
    let Some(_slot) = site.engines.ponder_slot() else { return Ok(()) };
    let stop = Stop::default();
    let mut table = seated.lock();
    let Some((player, engine)) = table.waiting_ponderer().map(|(player, engine)| (player, engine.clone()))
    else {
        return Ok(());
    };
    table.begin_pondering(&stop);
    let (game, play) = (table.game().clone(), table.playthrough().clone());
    drop(table);
    let _search = seated.lock_search();
    if stop.cause().is_some() {
        return Ok(());
    }
    let task = Task { table: seated.id.clone(), role: Role::Seat(player), network: engine.network };
    let mut borrowed = site.engines.take(task, &game, &site.catalogue)?;
    borrowed.with(|search| {
        search.set_position(&play)?;
        search.analyse(&Limit::time(PONDERING_LIMIT).or_stop(&stop)).map(drop)
    })
}

/// Marks the table as thinking if an engine is to move; what ends its search.
fn begin(seated: &Seated) -> Option<Stop> {
    let stop = Stop::default();
    let begun = seated.lock().waiting_engine().is_some();
    let begin = |table: &mut super::table::Table| {
        let player = table.waiting_engine().map(|(player, _)| player);
        player.iter().for_each(|&player| table.begin_thinking(player, &stop));
        Ok(player.is_some())
    };
    (begun && seated.change(begin).unwrap_or(false)).then_some(stop)
}

/// Plays until no engine is to move.
fn play_on(site: &Arc<Site>, seated: &Arc<Seated>, first: Option<Stop>) {
    let mut next = first;
    while let Some(stop) = next {
        match catch_unwind(AssertUnwindSafe(|| move_once(site, seated, &stop))) {
            Ok(Ok(())) => {}
            Ok(Err(refusal)) => fail(seated, refusal.message, Some(&stop)),
            Err(_) => fail(seated, "the search broke off".into(), Some(&stop)),
        }
        next = begin(seated);
    }
}

/// Searches and plays one move, unless the search is no longer wanted.
fn move_once(site: &Arc<Site>, seated: &Seated, stop: &Stop) -> Served<()> {
    let Some(_slot) = wait_for_slot(site, stop) else { return Ok(()) };
    let table = seated.lock();
    let Some((player, engine)) = table.thinking().filter(|_| table.awaits(stop)).and_then(|thinking| {
        let seat = &table.seats()[usize::from(thinking.player)];
        Some((thinking.player, seat.engine()?.clone()))
    }) else {
        return Ok(());
    };
    let (game, play) = (table.game().clone(), table.playthrough().clone());
    drop(table);
    let _search = seated.lock_search();
    let task = Task { table: seated.id.clone(), role: Role::Seat(player), network: engine.network };
    let mut borrowed = site.engines.take(task, &game, &site.catalogue)?;
    let found = borrowed.with(|search| {
        search.set_position(&play)?;
        search.analyse_with(&engine.strength.limit(stop), INTERVAL, &mut |so_far| {
            let changed = seated.change(|table| {
                if table.awaits(stop) {
                    table.think(so_far.simulations);
                }
                Ok(())
            });
            debug_assert!(changed.is_ok(), "a report changes nothing else");
        })
    })?;
    drop(borrowed);
    let searched = Searched { player, visits: found.visits, simulations: found.simulations };
    let action = found.best().action;
    seated.change(|table| if table.awaits(stop) { table.reply(action, searched) } else { Ok(()) })
}

/// A slot among the searches; None if the search is no longer wanted.
fn wait_for_slot(site: &Arc<Site>, stop: &Stop) -> Option<SearchSlot> {
    while stop.cause().is_none() {
        if let Ok(slot) = site.engines.search_slot() {
            return Some(slot);
        }
        thread::sleep(SLOT_INTERVAL);
    }
    None
}

/// Shows at the table why its engine does not move, if the search is still wanted.
fn fail(seated: &Seated, message: String, stop: Option<&Stop>) {
    let changed = seated.change(|table| {
        if stop.is_none_or(|stop| table.awaits(stop)) {
            table.fail(message);
        }
        Ok(())
    });
    debug_assert!(changed.is_ok(), "a failure changes nothing else");
}
