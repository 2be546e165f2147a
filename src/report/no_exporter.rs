//! What takes the HTTP server's place in a build without the feature `http`.

use super::prometheus::MetricsText;
use crate::error::{Error, Result};

/// No build without the feature has one.
pub enum Exporter {}

impl Exporter {
    /// Refuses to serve metrics.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn serve(address: &str) -> Result<Self> {
        Err(Error::flag_without_feature("--metrics", address, "http"))
    }

    /// Replaces the metrics.
    pub fn set(&self, _: MetricsText) {
        match *self {}
    }
}
