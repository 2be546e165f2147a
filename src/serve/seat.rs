//! Who plays at a table, and how strong engines are.

use super::refusal::{Refusal, Served};
use crate::engine::Limit;
use crate::protocol::dialogue::Ponder;
use crate::stop::Stop;
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Maximum number of simulations of one search.
pub const MAX_SIMULATIONS: u64 = 1_000_000;
/// Seconds of one search.
pub const SECONDS: RangeInclusive<f64> = 0.01..=600.0;
/// Simulations of an engine for which no strength is named.
const SIMULATIONS: u64 = 800;

/// A seat in a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SeatRequest {
    /// A person.
    Human,
    /// A search.
    Engine {
        /// The identifier of its network.
        network: String,
        /// Its simulations.
        simulations: Option<u64>,
        /// Its seconds.
        seconds: Option<f64>,
        /// Whether it thinks on the time of people too.
        #[serde(default)]
        ponder: bool,
    },
}

/// A seat of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Seat {
    /// A person, who proves by the key to sit here.
    Human {
        /// The key.
        key: String,
    },
    /// A search.
    Engine(EngineSeat),
}

/// A search that plays.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineSeat {
    /// The identifier of its network.
    pub network: String,
    /// The network's name for people.
    pub label: String,
    /// When a search ends.
    pub strength: Strength,
    /// Whether it thinks on the time of people too.
    pub ponder: Ponder,
}

/// When a search ends: at whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Strength {
    /// Visits of the position.
    pub simulations: Option<u64>,
    /// Seconds.
    pub seconds: Option<f64>,
}

impl Strength {
    /// The strength of an engine; 800 simulations if none is named.
    ///
    /// # Errors
    /// 400 for a number out of range.
    pub fn of_engine(simulations: Option<u64>, seconds: Option<f64>) -> Served<Self> {
        let strength = Self::checked(simulations, seconds)?;
        Ok(match strength == Self::default() {
            true => Self { simulations: Some(SIMULATIONS), seconds: None },
            false => strength,
        })
    }

    /// The same numbers, if they are in range.
    ///
    /// # Errors
    /// 400 for a number out of range.
    pub fn checked(simulations: Option<u64>, seconds: Option<f64>) -> Served<Self> {
        if let Some(got) = simulations.filter(|simulations| !(1..=MAX_SIMULATIONS).contains(simulations)) {
            return Err(Refusal::bad(format!(
                "simulations: got {got}, expected a whole number from 1 to {MAX_SIMULATIONS}"
            )));
        }
        if let Some(got) = seconds.filter(|seconds| !SECONDS.contains(seconds)) {
            let (min, max) = (SECONDS.start(), SECONDS.end());
            return Err(Refusal::bad(format!("seconds: got {got}, expected a number from {min} to {max}")));
        }
        Ok(Self { simulations, seconds })
    }

    /// The limit of one search, which `stop` ends too.
    pub fn limit(&self, stop: &Stop) -> Limit {
        let time = self.seconds.map(Duration::from_secs_f64);
        Limit { simulations: self.simulations, time, stop: stop.clone() }
    }
}

impl Seat {
    /// "human" or "engine".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Human { .. } => "human",
            Self::Engine(_) => "engine",
        }
    }

    /// The search that plays here.
    pub fn engine(&self) -> Option<&EngineSeat> {
        match self {
            Self::Engine(seat) => Some(seat),
            Self::Human { .. } => None,
        }
    }

    /// The key of the person who sits here.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Human { key } => Some(key),
            Self::Engine(_) => None,
        }
    }
}
