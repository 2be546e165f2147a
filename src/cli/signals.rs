//! Signals that end the program: SIGINT (Ctrl-C), SIGTERM and SIGHUP. One that was ignored when the program started stays
//! ignored (SIGHUP under `nohup`).
//!
//! The first signal either ends the process at once, or requests the command to stop. A command that does not stop within a second is
//! ended, but not while a checkpoint is being written; all other files are complete at any time. A worker has no such time limit, since
//! its unsent games exist nowhere else, nor has `vecaz tune`, which ends with a measurement. A second signal ends the process at once. The exit code is 128 plus the signal's number.

use crate::error::{Error, Result};
use crate::stop::Stop;

/// Action on the first signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// Ends the process.
    Exit,
    /// Requests the command to stop, and ends the process after a second.
    Stop,
    /// Requests the command to stop, without a time limit.
    Finish,
}

/// Handles the signals from now on. The first one requests the returned [`Stop`].
///
/// # Errors
/// [`Error::Unsupported`] if the handlers cannot be installed.
pub fn listen(on_signal: OnSignal) -> Result<Stop> {
    let stop = Stop::default();
    platform::listen(on_signal, stop.clone())
        .map_err(|e| Error::unsupported("installing handlers of signals", e.to_string()))?;
    Ok(stop)
}

#[cfg(unix)]
mod platform {
    use super::OnSignal;
    use crate::stop::Stop;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level;
    use std::io::{Result, Write};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Maximum time for a command to stop after the first signal, or after a completed write.
    const GRACE: Duration = Duration::from_millis(800);
    /// Polling interval for a second signal.
    const POLL_INTERVAL: Duration = Duration::from_millis(20);

    pub(super) fn listen(on_signal: OnSignal, stop: Stop) -> Result<()> {
        let handled = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
        let mut signals = Signals::new(handled)?;
        thread::Builder::new().name("signals".into()).spawn(move || {
            let Some(first) = signals.forever().next() else { return };
            if on_signal == OnSignal::Stop {
                stop.request(first);
                wait(&mut signals, GRACE, || true);
                if stop.is_writing() {
                    let note = "finishing the checkpoint; a second signal ends the run at once";
                    let _ = writeln!(std::io::stderr(), "{note}"); // stderr may be closed
                    wait(&mut signals, Duration::MAX, || stop.is_writing());
                    wait(&mut signals, GRACE, || true);
                }
            }
            if on_signal == OnSignal::Finish {
                stop.request(first);
                wait(&mut signals, Duration::MAX, || true);
            }
            low_level::exit(128 + first);
        })?;
        Ok(())
    }

    /// Waits for `time` or until `keep_waiting` returns false. A signal ends the process.
    fn wait(signals: &mut Signals, time: Duration, keep_waiting: impl Fn() -> bool) {
        let start = Instant::now();
        while start.elapsed() < time && keep_waiting() {
            if let Some(second) = signals.pending().next() {
                low_level::exit(128 + second);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// True if the process was started with this signal ignored. Known on Linux only.
    fn is_ignored(signal: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        ignored_mask(&status) & (1 << (signal - 1)) != 0
    }

    /// The ignored signals of `/proc/self/status`: bit n-1 is signal n.
    fn ignored_mask(status: &str) -> u64 {
        let hex = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        hex.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_mask_of_ignored_signals_is_read() {
            let status = "Name:\tvecaz\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\tff\n";
            let mask = ignored_mask(status);
            assert_eq!(mask, 1 | 1 << 12, "SIGHUP and SIGPIPE");
            assert_eq!(ignored_mask("Name:\tvecaz\n"), 0);
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use super::OnSignal;
    use crate::stop::Stop;

    /// The number of SIGINT, used for every request of the console.
    const SIGINT: i32 = 2;

    pub(super) fn listen(on_signal: OnSignal, stop: Stop) -> Result<(), ctrlc::Error> {
        ctrlc::set_handler(move || {
            if on_signal == OnSignal::Exit || !stop.request(SIGINT) {
                std::process::exit(128 + SIGINT);
            }
        })
    }
}
