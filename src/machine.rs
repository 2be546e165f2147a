//! This machine: the number of threads that suit it, and its name. Depends on no other module.

use std::num::NonZero;

/// The number of cores that the process may use.
pub fn num_cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The number of threads if none is named: one for each core, on Apple's processors one for each performance core. All threads meet at the
/// end of every pass, so that the efficiency cores, of about a third of the speed, would delay the others.
pub fn default_threads() -> usize {
    fast_threads(num_cores(), performance_cores())
}

/// Threads for so many cores, of which so many are fast, if that is known.
fn fast_threads(cores: usize, fast: Option<usize>) -> usize {
    fast.map_or(cores, |fast| fast.clamp(1, cores))
}

/// The performance cores of an Apple processor; None for others.
#[cfg(target_os = "macos")]
fn performance_cores() -> Option<usize> {
    use sysctl::{Ctl, Sysctl};
    let count = Ctl::new("hw.perflevel0.logicalcpu").and_then(|count| count.value_string());
    count.ok()?.trim().parse().ok()
}

#[cfg(not(target_os = "macos"))]
fn performance_cores() -> Option<usize> {
    None
}

/// The machine's name in its network; None if it has none.
pub fn name() -> Option<String> {
    let name = system_name();
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_string())
}

#[cfg(unix)]
fn system_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(windows)]
fn system_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn performance_cores_count_where_they_are_known() {
        assert_eq!(fast_threads(10, Some(8)), 8);
        assert_eq!(fast_threads(10, None), 10);
        assert_eq!(fast_threads(4, Some(8)), 4, "a limit of the process");
        assert_eq!(fast_threads(4, Some(0)), 1);
        assert!((1..=num_cores()).contains(&default_threads()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_name_is_that_of_the_kernel() {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("read");
        assert_eq!(name().as_deref(), Some(kernel.trim()).filter(|name| !name.is_empty()));
    }
}
