//! An HTTP server in a thread of its own. Input: an address and the routes. Knows nothing of what is served.
//!
//! One thread runs all connections; what takes time runs elsewhere, so that a search on all cores does not delay a reply by more than the
//! operating system's time slices.
//!
//! Each connection is a file descriptor of the process. Their number is limited, and one on which no request comes is closed, so that
//! clients which send nothing, or only a part of a request, take neither all descriptors nor all connections.

use crate::error::{Error, Result};
use axum::Router;
use axum::serve::Listener;
use futures_util::future::select;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};

/// The time for open connections to end once the server stops.
const GRACE: Duration = Duration::from_millis(200);
/// The limits of every server: half of the descriptors that Linux allows a process by default, and a time in which any
/// network carries the headers of a request.
const LIMITS: Limits = Limits { connections: 512, header_time: Duration::from_secs(10) };

/// What clients may take of a server.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Connections at once. Further ones wait in the system's queue until one of these ends.
    connections: usize,
    /// The time for all headers of a request to come, from the start of the connection or the end of the last reply. It also ends
    /// connections that are kept alive without requests. Replies, streams of events among them, may take any time.
    header_time: Duration,
}

/// A server that answers until it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    close: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A port that was taken, and the threads that will answer there.
pub struct BoundPort {
    address: SocketAddr,
    listener: TcpListener,
    runtime: Runtime,
}

impl BoundPort {
    /// Takes the port of `at`, a free one for port 0. `what` names the service in the error.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the system refuses to listen there.
    pub fn bind(at: SocketAddr, what: &str) -> Result<Self> {
        let refused = |e: std::io::Error| Error::unsupported(format!("{what} at {at}"), e.to_string());
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(refused)?;
        Ok(Self { address, listener, runtime })
    }

    /// The address at which the server will answer.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers by `routes` from now on.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the system refuses the thread.
    pub fn serve(self, routes: Router) -> Result<HttpServer> {
        self.serve_within(LIMITS, routes)
    }

    /// The same with other limits.
    fn serve_within(self, limits: Limits, routes: Router) -> Result<HttpServer> {
        let Self { address, listener, runtime } = self;
        let (close, closed) = oneshot::channel();
        let thread = thread::Builder::new().name("http".into()).spawn(move || {
            runtime.block_on(answer(listener, limits, &routes, closed));
            // Work in other threads may still end later; it has nobody to answer.
            runtime.shutdown_background();
        });
        let thread = thread.map_err(|e| Error::unsupported("a thread for HTTP", e.to_string()))?;
        Ok(HttpServer { address, close: Some(close), thread: Some(thread) })
    }
}

/// Answers until `closed`, then until all connections have ended or [`GRACE`] is over.
async fn answer(listener: TcpListener, limits: Limits, routes: &Router, closed: oneshot::Receiver<()>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("HTTP: {error}"),
    };
    let connections = GracefulShutdown::new();
    let accepting = Box::pin(accept(listener, limits, routes, &connections));
    // Drops the listener too.
    select(accepting, closed).await;
    let _ = tokio::time::timeout(GRACE, connections.shutdown()).await;
}

/// Accepts connections without end. Each is answered by `routes` in a task of its own and belongs to `connections`.
async fn accept(
    mut listener: tokio::net::TcpListener,
    limits: Limits,
    routes: &Router,
    connections: &GracefulShutdown,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header_time);
    let free = Arc::new(Semaphore::new(limits.connections));
    // Nothing closes the semaphore.
    while let Ok(permit) = free.clone().acquire_owned().await {
        let (stream, _) = Listener::accept(&mut listener).await;
        let service = TowerToHyperService::new(routes.clone());
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // An error is the client's: it broke off, sent no HTTP, or exceeded the time.
            let _ = connection.await;
            drop(permit);
        });
    }
}

impl HttpServer {
    /// The address at which the server answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        if let Some(close) = self.close.take() {
            let _ = close.send(());
        }
        if let Some(thread) = self.thread.take() {
            // The thread has reported its panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    /// A wait that no working server needs.
    const PATIENCE: Duration = Duration::from_secs(20);
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    fn server(connections: usize, header_time: Duration) -> HttpServer {
        let port = BoundPort::bind(SocketAddr::from(([127, 0, 0, 1], 0)), "a test").expect("a free port");
        let routes = Router::new().fallback(|| async { "the reply" });
        port.serve_within(Limits { connections, header_time }, routes).expect("a thread")
    }

    fn connect(server: &HttpServer) -> TcpStream {
        let stream = TcpStream::connect(server.address()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// The whole reply to [`REQUEST`].
    fn reply(mut stream: TcpStream) -> String {
        stream.write_all(REQUEST).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply
    }

    #[test]
    fn a_connection_over_the_limit_waits_for_another_to_end() {
        let header_time = Duration::from_millis(300);
        let server = server(2, header_time);
        let start = Instant::now();
        let silent = [connect(&server), connect(&server)];
        let reply = reply(connect(&server));
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("the reply"), "{reply}");
        assert!(start.elapsed() >= header_time, "{:?}", start.elapsed());
        drop(silent);
    }

    /// The time is that of all headers together: a byte now and then does not extend it.
    #[test]
    fn headers_that_come_slowly_are_cut_off() {
        let server = server(1, Duration::from_millis(200));
        let mut slow = connect(&server);
        let start = Instant::now();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: ").expect("sent");
        while slow.write_all(b"x").is_ok() {
            assert!(start.elapsed() < PATIENCE, "the connection is still open");
            thread::sleep(Duration::from_millis(20));
        }
        assert!(reply(connect(&server)).ends_with("the reply"));
    }

    #[test]
    fn a_server_ends_with_unfinished_requests() {
        let server = server(2, PATIENCE);
        let mut half = connect(&server);
        half.write_all(&REQUEST[..20]).expect("sent");
        assert!(reply(connect(&server)).ends_with("the reply"));
        let start = Instant::now();
        drop(server);
        assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
    }
}
