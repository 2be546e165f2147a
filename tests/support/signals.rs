//! Signals of the processes that tests start.

use signal_hook::consts::{SIGHUP, SIGINT};
use std::sync::{Arc, Once};

/// Gives the processes that this one starts the default action of SIGINT and SIGHUP, also where this one was started with them ignored
/// (by `nohup`, as a background job): an ignored signal is inherited, one with a handler is not.
pub fn start_children_with_default_signals() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        for signal in [SIGINT, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) != 0) {
            signal_hook::flag::register(signal, Arc::default()).expect("a handler");
        }
    });
}
