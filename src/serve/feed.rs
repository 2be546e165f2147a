//! Events from a thread that works, to a client that may go at any time.

use super::call::{Events, Reply};
use super::refusal::{Refusal, Served};
use crate::stop::Stop;
use axum::response::sse::Event;
use futures_util::stream;
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use tokio::sync::mpsc;

/// Events that may wait for a slow client.
const WAITING: usize = 16;

/// The thread's side of a stream of events.
pub struct Feed {
    sender: mpsc::Sender<Event>,
    /// Requested when the client has gone.
    pub stop: Stop,
}

/// Requests a stop when the stream is dropped: the client closed it, or the server ends.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Feed {
    /// A stream of what `work` sends from a thread of its own. Its error becomes the last event, `failed`.
    ///
    /// # Errors
    /// 503 if the system refuses the thread.
    pub fn start(work: impl FnOnce(&Self) -> Served<()> + Send + 'static) -> Served<Reply> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let stop = Stop::default();
        let feed = Self { sender, stop: stop.clone() };
        let spawned = thread::Builder::new().name("analysis".into()).spawn(move || {
            let worked = catch_unwind(AssertUnwindSafe(|| work(&feed)));
            let worked =
                worked.unwrap_or_else(|_| Err(Refusal::busy("the search broke off; start it again")));
            if let Err(refusal) = worked {
                feed.send("failed", &json!({ "error": refusal.message }));
            }
        });
        spawned.map_err(|e| Refusal::busy(format!("no thread for this analysis: {e}")))?;
        let held = (receiver, StopOnDrop(stop));
        let events: Events = Box::pin(stream::unfold(held, |(mut receiver, on_drop)| async move {
            receiver.recv().await.map(|event| (Ok(event), (receiver, on_drop)))
        }));
        Ok(Reply::Events(events))
    }

    /// Sends an event, unless the client reads more slowly than events come.
    pub fn offer(&self, name: &str, data: &Value) {
        let _ = self.sender.try_send(event(name, data));
    }

    /// Sends an event, and waits for a slow client; one that has gone gets nothing.
    pub fn send(&self, name: &str, data: &Value) {
        let _ = self.sender.blocking_send(event(name, data));
    }
}

/// A named event with data.
pub fn event(name: &str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}
