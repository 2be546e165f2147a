//! A server of everything at an address.

use super::catalogue::Catalogue;
use super::clusters::Cluster;
use super::guard::Guard;
use super::routes::routes;
use super::site::{Site, secret};
use crate::error::{Error, Result};
use crate::http_server::{BoundPort, HttpServer};
use crate::registry::Registry;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a token.
const TOKEN_BYTES: usize = 16;

/// What is served, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folders of runs and files of networks; empty for the runs in the folder `runs`.
    pub paths: Vec<PathBuf>,
    /// The address of this machine.
    pub bind: IpAddr,
    /// The port, 0 for a free one.
    pub port: u16,
    /// Whether requests need a token.
    pub token: Token,
    /// Threads of a search.
    pub threads: usize,
}

/// Whether requests need a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// Each needs it.
    Needed,
    /// None does.
    None,
}

/// A server that answers until it is dropped.
pub struct Server {
    http: HttpServer,
    site: Arc<Site>,
    token: Option<String>,
    notes: Vec<String>,
}

impl Server {
    /// Starts a server for the games of `registry`, which also shows the workers of `clusters`.
    ///
    /// # Errors
    /// [`Error::Config`] for an address that others reach, without a token; those of the paths, and of the address.
    pub fn start(options: &Options, registry: &Registry, clusters: Vec<Cluster>) -> Result<Self> {
        if !options.bind.is_loopback() && options.token == Token::None {
            let expected = "a loopback address such as 127.0.0.1, or --token beside it, which every request from another machine needs";
            return Err(Error::config("--bind", options.bind, expected));
        }
        let (catalogue, notes) = Catalogue::open(&options.paths, registry, options.threads)?;
        let token = match options.token {
            Token::Needed => {
                Some(secret(TOKEN_BYTES).map_err(|refusal| Error::unsupported("--token", refusal.message))?)
            }
            Token::None => None,
        };
        let site = Site::new(catalogue, clusters);
        let port = BoundPort::bind(SocketAddr::new(options.bind, options.port), "vecaz serve")?;
        let guard = Guard::new(port.address(), token.clone());
        let http = port.serve(routes(&site, guard))?;
        Ok(Self { http, site, token, notes })
    }

    /// What was left out of the offer.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The address of the page, with the token if it needs one.
    pub fn url(&self) -> String {
        let mut address = self.http.address();
        if address.ip().is_unspecified() {
            // All addresses of this machine: this one is always there.
            address.set_ip(if address.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])
            });
        }
        match &self.token {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends all searches, and tells the clients.
        self.site.tables.close();
    }
}
