//! A request as handlers see it, and their replies.

use super::refusal::{Refusal, Served};
use super::table::Claim;
use crate::stop::Stop;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

/// The time after which a stream without events shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A request.
pub struct Call {
    /// The variable parts of the path.
    pub path: HashMap<String, String>,
    /// The query, decoded.
    pub query: Vec<(String, String)>,
    /// The media type of the body.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
    /// Requested once nobody waits for the reply.
    pub stop: Stop,
}

/// A stream of events.
pub type Events = Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>;

/// The reply to a request.
pub enum Reply {
    /// A value.
    Json(Value),
    /// Something new.
    Created(Value),
    /// Nothing more to say.
    Done,
    /// A file to save, with its name.
    File(String, String),
    /// A stream of events.
    Events(Events),
}

impl Call {
    /// The part of the path called `name`.
    pub fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// The part of the path called `name` as a number.
    ///
    /// # Errors
    /// 404.
    pub fn number_part(&self, name: &str) -> Served<u64> {
        let text = self.part(name);
        text.parse().map_err(|_| Refusal::unknown(format!("{name}: got {text:?}, expected a whole number")))
    }

    /// The value of a query, the first if there are several; None for an empty one.
    pub fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value of a query as a number.
    ///
    /// # Errors
    /// 400.
    pub fn number<T: FromStr>(&self, name: &str) -> Served<Option<T>> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| Refusal::bad(format!("{name}: got {text:?}, expected a number in range")))
        };
        self.query(name).map(parse).transpose()
    }

    /// The seat and its key in the query.
    ///
    /// # Errors
    /// 400.
    pub fn claim(&self) -> Served<Claim<'_>> {
        Ok(Claim { seat: self.number("seat")?, key: self.query("key") })
    }

    /// The body as JSON; an empty one counts as an object without fields.
    ///
    /// # Errors
    /// 415 for another media type, 400 for other text or fields.
    pub fn json<T: DeserializeOwned>(&self) -> Served<T> {
        let is_json = self
            .content_type
            .split(';')
            .next()
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
        if !is_json && !self.body.is_empty() {
            let what = format!("Content-Type: got {:?}, expected application/json", self.content_type);
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
        }
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(body).map_err(|e| Refusal::bad(format!("the request: {e}")))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        json_response(self.status, &json!({ "error": self.message }))
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        match self {
            Self::Json(value) => json_response(StatusCode::OK, &value),
            Self::Created(value) => json_response(StatusCode::CREATED, &value),
            Self::Done => StatusCode::NO_CONTENT.into_response(),
            Self::File(name, text) => {
                let mut response = Response::new(Body::from(text));
                let headers = response.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
                let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
                disposition.into_iter().for_each(|value| drop(headers.insert(CONTENT_DISPOSITION, value)));
                response
            }
            Self::Events(events) => {
                Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
            }
        }
    }
}

fn json_response(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
