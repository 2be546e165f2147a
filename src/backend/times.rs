//! Where time goes on a device: by kernel, and by the parts of a pass.

use serde::{Deserialize, Serialize};

/// The name under which copies to a device are timed.
pub const COPY_IN: &str = "copy to the device";
/// The name under which copies to the host are timed.
pub const COPY_OUT: &str = "copy to the host";

/// What the launches of one kernel took, or copies one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// The kernel.
    pub kernel: String,
    /// Its launches.
    pub launches: u64,
    /// Seconds of all of them.
    pub seconds: f64,
}

impl KernelTime {
    /// The kernels of `launches`, each a name and its seconds, the longest in all first.
    pub fn of<'a>(launches: impl IntoIterator<Item = (&'a str, f64)>) -> Vec<Self> {
        Self::together(launches.into_iter().map(|(kernel, seconds)| Self {
            kernel: kernel.to_string(),
            launches: 1,
            seconds,
        }))
    }

    /// Every kernel once, the longest in all first.
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

/// Where the time of some passes went.
#[derive(Clone, Debug, PartialEq)]
pub struct PassParts {
    /// Mean seconds of a pass: of selection with observations, forward, expansion, and backup with what follows a pass.
    pub seconds: [f64; 4],
    /// The passes.
    pub passes: u32,
    /// Their kernels, the longest first.
    pub kernels: Vec<KernelTime>,
}

impl PassParts {
    /// Passes of two devices at the same time: the slower one's seconds, the kernels of both.
    pub fn beside(self, other: Self) -> Self {
        Self {
            seconds: std::array::from_fn(|i| self.seconds[i].max(other.seconds[i])),
            passes: self.passes.max(other.passes),
            kernels: KernelTime::together(self.kernels.into_iter().chain(other.kernels)),
        }
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

    #[test]
    fn devices_at_the_same_time_take_as_long_as_the_slower() {
        let parts =
            |seconds, kernel| PassParts { seconds, passes: 4, kernels: KernelTime::of([(kernel, 1.0)]) };
        let both = parts([1.0, 2.0, 3.0, 4.0], "layer").beside(parts([2.0, 1.0, 5.0, 0.5], "layer"));
        assert_eq!((both.seconds, both.passes), ([2.0, 2.0, 5.0, 4.0], 4));
        assert_eq!(both.kernels, KernelTime::of([("layer", 1.0), ("layer", 1.0)]));
    }
}
