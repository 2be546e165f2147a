//! Seconds by kernel and by copy on a device.

use serde::{Deserialize, Serialize};

/// The name under which copies to a device are timed.
pub const COPY_IN: &str = "copy to the device";
/// The name under which copies to the host are timed.
pub const COPY_OUT: &str = "copy to the host";

/// The launches of one kernel, or the copies in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// The kernel's name.
    pub kernel: String,
    /// Its launches.
    pub launches: u64,
    /// Seconds of all launches.
    pub seconds: f64,
}

impl KernelTime {
    /// Sums `launches`, each a kernel's name and its seconds, by kernel, longest first.
    pub fn of<'a>(launches: impl IntoIterator<Item = (&'a str, f64)>) -> Vec<Self> {
        Self::together(launches.into_iter().map(|(kernel, seconds)| Self {
            kernel: kernel.to_string(),
            launches: 1,
            seconds,
        }))
    }

    /// Sums `times` by kernel, longest first.
    pub fn together(times: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut kernels: Vec<Self> = Vec::new();
        for time in times {
            match kernels.iter_mut().find(|known| known.kernel == time.kernel) {
                Some(known) => {
                    known.launches += time.launches;
                    known.seconds += time.seconds;
                }
                None => kernels.push(time),
            }
        }
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.kernel.cmp(&b.kernel)));
        kernels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_that_took_longest_in_all_comes_first() {
        let times = KernelTime::of([("select", 2.0), ("layer", 1.5), ("expand", 0.5), ("layer", 1.0)]);
        let time = |kernel: &str, launches, seconds| KernelTime { kernel: kernel.into(), launches, seconds };
        assert_eq!(times, [time("layer", 2, 2.5), time("select", 1, 2.0), time("expand", 1, 0.5)]);
        let twice = KernelTime::together(times.iter().chain(&times).cloned());
        assert_eq!(twice[0], time("layer", 4, 5.0));
    }
}
