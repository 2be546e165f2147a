//! The paths of the server.

use super::call::{Call, Reply};
use super::guard::{Guard, guarded};
use super::refusal::{Refusal, Served};
use super::site::Site;
use super::{analysis, page, review, site_calls, table_calls};
use crate::stop::Stop;
use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Maximum number of bytes of a request's body: enough for the longest record that the page sends, a million bytes, if each of them is escaped
/// by one more.
const MAX_BODY: usize = (1 << 21) + 4096;
/// Maximum number of bytes of a request's path and query.
const MAX_URI: usize = 1 << 16;

/// The time for a request's body to come.
const BODY_TIME: Duration = Duration::from_secs(10);

/// What answers a request. It may take time: it runs in a thread of its own.
type Handler = fn(&Arc<Site>, &Call) -> Served<Reply>;
/// The variable parts of a path.
type Parts = Result<Path<HashMap<String, String>>, PathRejection>;
/// A response in the making.
type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// All routes of the server.
pub fn routes(site: &Arc<Site>, guard: Guard) -> Router {
    let get = |handler: Handler| get(answering(site, handler));
    let post = |handler: Handler| post(answering(site, handler));
    let tables: MethodRouter = get(table_calls::list).merge(post(table_calls::new));
    let table = get(table_calls::show).merge(delete(answering(site, table_calls::delete)));
    Router::new()
        .route("/api/info", get(site_calls::info))
        .route("/api/clusters", get(site_calls::clusters))
        .route("/api/runs", get(site_calls::runs))
        .route("/api/runs/{run}/metrics", get(site_calls::metrics))
        .route("/api/runs/{run}/games", get(site_calls::epochs))
        .route("/api/runs/{run}/games/{epoch}", get(site_calls::games))
        .route("/api/set_up", post(site_calls::set_up))
        .route("/api/tables", tables)
        .route("/api/tables/{id}", table)
        .route("/api/tables/{id}/play", post(table_calls::play))
        .route("/api/tables/{id}/undo", post(table_calls::undo))
        .route("/api/tables/{id}/goto", post(table_calls::go_to))
        .route("/api/tables/{id}/position", post(table_calls::position))
        .route("/api/tables/{id}/seats", post(table_calls::seats))
        .route("/api/tables/{id}/pause", post(table_calls::pause))
        .route("/api/tables/{id}/hint", post(analysis::hint))
        .route("/api/tables/{id}/events", get(table_calls::events))
        .route("/api/tables/{id}/analysis", get(analysis::stream))
        .route("/api/tables/{id}/review", get(review::stream))
        .route("/api/tables/{id}/record", get(table_calls::file))
        .route("/api/tables/{id}/formats", get(table_calls::formats))
        .method_not_allowed_fallback(|| async {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this path takes another method").into_response()
        })
        .fallback(page_file)
        .layer(from_fn_with_state(Arc::new(guard), guarded))
}

/// An asynchronous handler that calls `handler` in another thread.
fn answering(
    site: &Arc<Site>,
    handler: Handler,
) -> impl Fn(Parts, Request) -> Answer + Clone + Send + Sync + 'static {
    let site = site.clone();
    move |path: Parts, request: Request| {
        let site = site.clone();
        Box::pin(async move {
            let Ok(Path(path)) = path else {
                return Refusal::unknown("there is nothing at this path").into_response();
            };
            let call = match read(path, request).await {
                Ok(call) => call,
                Err(refusal) => return refusal.into_response(),
            };
            // Dropped with this future when the client goes away.
            let _leaving = Leaving(call.stop.clone());
            match spawn_blocking(move || handler(&site, &call)).await {
                Ok(Ok(reply)) => reply.into_response(),
                Ok(Err(refusal)) => refusal.into_response(),
                Err(_) => {
                    let what = "this request failed inside the server, whose stderr says where";
                    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, what).into_response()
                }
            }
        })
    }
}

/// Requests a stop when it is dropped.
struct Leaving(Stop);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Reads a request to its end.
async fn read(path: HashMap<String, String>, request: Request) -> Served<Call> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or("");
    if query.len() > MAX_URI {
        return Err(Refusal::new(
            StatusCode::URI_TOO_LONG,
            format!("the query is longer than {MAX_URI} bytes"),
        ));
    }
    let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request's body did not come");
    let body: Bytes = timeout(BODY_TIME, to_bytes(body, MAX_BODY)).await.map_err(late)?.map_err(|_| {
        let what = format!("the request's body is broken off or longer than {MAX_BODY} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, what)
    })?;
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    Ok(Call {
        path,
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        content_type: content_type.to_string(),
        body,
        stop: Stop::default(),
    })
}

/// A file of the page.
async fn page_file(request: Request) -> Response {
    match page::find(request.uri().path()) {
        Some(file) if [Method::GET, Method::HEAD].contains(request.method()) => file.reply(request.headers()),
        Some(_) => Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "a file is only read").into_response(),
        None => Refusal::unknown("there is nothing at this path").into_response(),
    }
}
