//! The log on stderr.

use super::color;
use crate::error::{Error, Result};
use crate::report::progress::Verbosity;
use clap::ColorChoice;

/// Writes diagnostics to stderr, filtered by `VECAZ_LOG`, or by `verbosity` without that variable. Returns the verbosity, which
/// `VECAZ_LOG` raises from normal to verbose.
pub fn start_log(verbosity: Verbosity, color: ColorChoice) -> Result<Verbosity> {
    use tracing_subscriber::EnvFilter;
    let (filter, verbosity) = match (std::env::var("VECAZ_LOG"), verbosity) {
        (Ok(text), _) => {
            let filter = EnvFilter::try_new(&text).map_err(|e| Error::ConfigText {
                origin: format!("VECAZ_LOG={text}"),
                what: e.to_string(),
            })?;
            (filter, if verbosity == Verbosity::Quiet { verbosity } else { Verbosity::Verbose })
        }
        (Err(_), Verbosity::Quiet) => (EnvFilter::new("error"), verbosity),
        (Err(_), Verbosity::Normal) => (EnvFilter::new("warn"), verbosity),
        (Err(_), Verbosity::Verbose) => (EnvFilter::new("warn,vecaz=debug"), verbosity),
    };
    // Errors of writing to stderr are not logged: the library would write them to stderr, and panic if that fails too.
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(color::has_colors(color, &std::io::stderr()))
        .log_internal_errors(false);
    // Fails if a caller of the library has installed a subscriber, which then stays.
    let _ = subscriber.without_time().with_target(false).try_init();
    Ok(verbosity)
}
