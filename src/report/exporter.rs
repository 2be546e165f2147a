//! The HTTP server that answers with metrics for Prometheus. Only in builds with the feature `http`.

use super::prometheus::MetricsText;
use crate::error::{Error, Result};
use crate::http_server::{BoundPort, HttpServer};
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// The media type of [`MetricsText`].
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An HTTP server that answers every request with the newest metrics, until it is dropped.
pub struct Exporter {
    text: Arc<Mutex<String>>,
    server: HttpServer,
}

impl Exporter {
    /// Listens at `address`: a port on the loopback interface, or an address with a port.
    ///
    /// # Errors
    /// [`Error::Config`] for any other text, [`Error::Unsupported`] where the system refuses to listen there.
    pub fn serve(address: &str) -> Result<Self> {
        let at = address.parse::<SocketAddr>();
        let at =
            at.or_else(|_| address.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        let at = at.map_err(|_| {
            Error::config("--metrics", address, "a port, or an address with one such as 0.0.0.0:9464")
        })?;
        let text = Arc::<Mutex<String>>::default();
        let newest = text.clone();
        let answer = move || {
            let text = newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
            async { ([(CONTENT_TYPE, MEDIA_TYPE)], text) }
        };
        let server = BoundPort::bind(at, "metrics")?.serve(Router::new().fallback(answer))?;
        Ok(Self { text, server })
    }

    /// The address at which the server listens.
    pub fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// Replaces the metrics.
    pub fn set(&self, text: MetricsText) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::metrics::EpochRecord;
    use std::io::{Read, Write as _};
    use std::net::TcpStream;

    #[test]
    fn requests_are_answered_with_the_newest_metrics() {
        let exporter = Exporter::serve("127.0.0.1:0").expect("a free port");
        let records = [(1, 20), (2, 30)].map(|(epoch, games)| EpochRecord {
            epoch,
            games,
            seconds: 1.5,
            ..EpochRecord::default()
        });
        exporter.set(MetricsText::of_run(&records));
        let mut stream = TcpStream::connect(exporter.address()).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        for part in [
            "content-type: text/plain; version=0.0.4",
            "# HELP vecaz_games_total Games finished.\n# TYPE vecaz_games_total counter\nvecaz_games_total 50\n",
            "# TYPE vecaz_selfplay_seconds gauge\nvecaz_selfplay_seconds 0\n",
            "vecaz_seconds_total 1.5\n",
        ] {
            assert!(answer.contains(part), "{part}: {answer}");
        }
        drop(exporter);
    }

    #[test]
    fn a_wrong_address_is_refused() {
        for address in ["x", "1.2.3.4", "99999", ""] {
            let error = Exporter::serve(address).map(drop).expect_err(address).to_string();
            assert!(error.contains("--metrics") && error.contains("0.0.0.0:9464"), "{error}");
        }
    }
}
