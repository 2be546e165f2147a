//! An HTTP server in a thread of its own. Input: an address and the routes. Knows nothing of what is served.
//!
//! One thread runs all connections; what takes time runs elsewhere, so that a search on all cores does not delay a reply by more than the
//! operating system's time slices.

use crate::error::{Error, Result};
use axum::Router;
use std::future::IntoFuture;
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// The time for open connections to end after the server was told to.
const GRACE: Duration = Duration::from_millis(200);

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
        let Self { address, listener, runtime } = self;
        let (close, closed) = oneshot::channel();
        let thread = thread::Builder::new().name("http".into()).spawn(move || {
            runtime.block_on(answer(listener, routes, closed));
            // Work in other threads may still end later; it has nobody to answer.
            runtime.shutdown_background();
        });
        let thread = thread.map_err(|e| Error::unsupported("a thread for HTTP", e.to_string()))?;
        Ok(HttpServer { address, close: Some(close), thread: Some(thread) })
    }
}

/// Answers until `closed`, then until all connections have ended or [`GRACE`] is over.
async fn answer(listener: TcpListener, routes: Router, closed: oneshot::Receiver<()>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("HTTP: {error}"),
    };
    let (end, ended) = oneshot::channel::<()>();
    let serving = axum::serve(listener, routes).with_graceful_shutdown(async {
        let _ = ended.await;
    });
    let serving = tokio::spawn(serving.into_future());
    let _ = closed.await;
    let _ = end.send(());
    let _ = tokio::time::timeout(GRACE, serving).await;
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
