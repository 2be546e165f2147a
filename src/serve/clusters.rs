//! Runs with workers on other machines: what a reader of their server tells, at most once a second.

use super::refusal::Refusal;
use crate::error::Result;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two readings of one server.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reads the state of a run with workers.
pub type ReadCluster = Box<dyn FnMut() -> Result<Value> + Send>;

/// A run with workers.
pub struct Cluster {
    /// Its server and name.
    address: String,
    last: Mutex<LastReading>,
}

/// How it is read, and the last reading.
struct LastReading {
    read: ReadCluster,
    at: Option<Instant>,
    value: Value,
}

impl Cluster {
    /// The run at `address`, which `read` reads.
    pub fn new(address: String, read: ReadCluster) -> Self {
        Self { address, last: Mutex::new(LastReading { read, at: None, value: Value::Null }) }
    }

    /// The state of the last second; where its server fails, the address and a sentence.
    pub fn value(&self) -> Value {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.at.is_none_or(|at| at.elapsed() >= INTERVAL) {
            let error = |error| json!({ "address": self.address, "error": Refusal::from(error).message });
            last.value = (last.read)().unwrap_or_else(error);
            last.at = Some(Instant::now());
        }
        last.value.clone()
    }
}
