//! Signals that end the program: SIGINT (Ctrl-C), SIGTERM and SIGHUP. One that was ignored when the program started stays
//! ignored (SIGHUP under `nohup`). On Windows Ctrl-C and Ctrl-Break of the console count as SIGINT; closing the window ends the program
//! at once.
//!
//! The first signal either ends the process at once, or requests the command to stop. A command that does not stop within a second is
//! ended, but not while a checkpoint is being written; all other files are complete at any time. A worker has no such time limit, since
//! its unsent games exist nowhere else, nor have `vecaz tune`, which ends with a measurement, and
//! `vecaz plan`, which removes its temporary folder. A second signal ends the process at once. The exit code is 128 plus the signal's number.

use crate::error::{Error, Result};
use crate::stop::Stop;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for a command to stop after the first signal, or after a completed write.
const GRACE: Duration = Duration::from_millis(800);
/// Polling interval for a second signal.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

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
    let failed = |what: String| Error::unsupported("installing handlers of signals", what);
    let stop = Stop::default();
    let (mut signals, requested) = (platform::Signals::install().map_err(failed)?, stop.clone());
    let work = move || {
        let Some(first) = signals.wait() else { return };
        let last = act(on_signal, first, &requested, || signals.pending());
        platform::exit(128 + last);
    };
    let started = thread::Builder::new().name("signals".into()).spawn(work);
    started.map_err(|e| failed(e.to_string()))?;
    Ok(stop)
}

/// Acts on the `first` signal and returns the one that ends the process: the first, or the second. `pending` returns a signal that has
/// come since.
fn act(on_signal: OnSignal, first: i32, stop: &Stop, mut pending: impl FnMut() -> Option<i32>) -> i32 {
    match on_signal {
        OnSignal::Exit => return first,
        OnSignal::Finish => {
            stop.request(first);
            return wait(&mut pending, Duration::MAX, || true).unwrap_or(first);
        }
        OnSignal::Stop => {}
    }
    stop.request(first);
    let mut second = wait(&mut pending, GRACE, || true);
    if second.is_none() && stop.is_writing() {
        let note = "finishing the checkpoint; a second signal ends the run at once";
        let _ = writeln!(std::io::stderr(), "{note}"); // stderr may be closed
        second = wait(&mut pending, Duration::MAX, || stop.is_writing())
            .or_else(|| wait(&mut pending, GRACE, || true));
    }
    second.unwrap_or(first)
}

/// Waits for `time` or until `keep_waiting` returns false, and returns the signal that ended the wait before.
fn wait(
    pending: &mut impl FnMut() -> Option<i32>,
    time: Duration,
    keep_waiting: impl Fn() -> bool,
) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < time && keep_waiting() {
        if let Some(second) = pending() {
            return Some(second);
        }
        thread::sleep(POLL_INTERVAL);
    }
    None
}

#[cfg(unix)]
mod platform {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator;
    pub(super) use signal_hook::low_level::exit;

    /// The signals that the process receives.
    pub(super) struct Signals(iterator::Signals);

    impl Signals {
        pub(super) fn install() -> Result<Self, String> {
            let handled = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
            iterator::Signals::new(handled).map(Self).map_err(|e| e.to_string())
        }

        /// The next signal.
        pub(super) fn wait(&mut self) -> Option<i32> {
            self.0.forever().next()
        }

        /// A signal that has come already.
        pub(super) fn pending(&mut self) -> Option<i32> {
            self.0.pending().next()
        }
    }

    /// True if the process was started with this signal ignored. Known on Linux alone: elsewhere the question needs unsafe code.
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

#[cfg(windows)]
mod platform {
    pub(super) use std::process::exit;
    use std::sync::mpsc::{Receiver, channel};

    /// The number of SIGINT, which every request of the console counts as.
    const SIGINT: i32 = 2;

    /// The requests of the console.
    pub(super) struct Signals(Receiver<i32>);

    impl Signals {
        pub(super) fn install() -> Result<Self, String> {
            let (send, receive) = channel();
            let request = move || {
                let _ = send.send(SIGINT); // the receiver lives as long as the process
            };
            ctrlc::set_handler(request).map_err(|e| e.to_string())?;
            Ok(Self(receive))
        }

        /// The next request.
        pub(super) fn wait(&mut self) -> Option<i32> {
            self.0.recv().ok()
        }

        /// A request that has come already.
        pub(super) fn pending(&mut self) -> Option<i32> {
            self.0.try_recv().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signal that ends the process, and whether the command was requested to stop, if `second` comes after the first, SIGTERM.
    fn ended_by(on_signal: OnSignal, second: Option<i32>) -> (i32, bool) {
        let stop = Stop::default();
        let last = act(on_signal, 15, &stop, || second);
        (last, stop.cause().is_some())
    }

    #[test]
    fn the_first_signal_stops_the_command_and_the_second_ends_it() {
        assert_eq!(ended_by(OnSignal::Exit, None), (15, false));
        assert_eq!(ended_by(OnSignal::Stop, Some(2)), (2, true));
        assert_eq!(ended_by(OnSignal::Finish, Some(2)), (2, true));
    }

    #[test]
    fn a_command_that_does_not_stop_is_ended_but_not_while_it_writes() {
        let start = Instant::now();
        assert_eq!(ended_by(OnSignal::Stop, None), (15, true));
        assert!((GRACE..3 * GRACE).contains(&start.elapsed()), "{:?}", start.elapsed());
        let stop = Stop::default();
        let guard = stop.write_guard();
        let ended = thread::scope(|scope| {
            let ended = scope.spawn(|| (act(OnSignal::Stop, 15, &stop, || None), Instant::now()));
            thread::sleep(2 * GRACE);
            drop(guard);
            let written = Instant::now();
            let (signal, at) = ended.join().expect("no panic");
            (signal, at > written)
        });
        assert_eq!(ended, (15, true));
    }
}
