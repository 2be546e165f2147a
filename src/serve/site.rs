//! Everything that a server has.

use super::catalogue::Catalogue;
use super::clusters::Cluster;
use super::engines::Engines;
use super::refusal::{Refusal, Served};
use super::tables::Tables;
use axum::http::StatusCode;
use std::fmt::Write;
use std::sync::Arc;

/// Everything that a server has.
pub struct Site {
    /// Games, networks, runs.
    pub catalogue: Catalogue,
    /// The tables.
    pub tables: Arc<Tables>,
    /// The engines of the tables.
    pub engines: Arc<Engines>,
    /// Runs with workers on other machines.
    pub clusters: Vec<Cluster>,
}

impl Site {
    /// A site without tables.
    pub fn new(catalogue: Catalogue, clusters: Vec<Cluster>) -> Arc<Self> {
        let tables = Arc::new(Tables::default());
        let engines = Arc::new(Engines::new(tables.clone()));
        Arc::new(Self { catalogue, tables, engines, clusters })
    }
}

/// `bytes` random bytes of the system as hexadecimal digits, which nobody can guess.
///
/// # Errors
/// 500 if the system has none.
pub fn secret(bytes: usize) -> Served<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random)
        .map_err(|e| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no random numbers: {e}")))?;
    Ok(random.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// A random seed that JavaScript can hold.
///
/// # Errors
/// Those of [`secret`].
pub fn random_seed() -> Served<u64> {
    let digits = secret(6)?;
    u64::from_str_radix(&digits, 16).map_err(|e| Refusal::bad(e.to_string()))
}
