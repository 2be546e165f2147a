//! Seconds of the stages of passes that a device makes by itself.

use crate::device::kernel_times::KernelTime;

/// Mean seconds of the stages of some passes, and the kernels of others.
#[derive(Clone, Debug, PartialEq)]
pub struct PassParts {
    /// Mean seconds of one pass: selection with observations, forward, expansion, and backup with the decisions after it.
    pub seconds: [f64; 4],
    /// Kernels, longest first, each timed while the device has work before it.
    pub kernels: Vec<KernelTime>,
}

impl PassParts {
    /// The passes of two devices that run at the same time: the seconds of the slower one, the kernels of both.
    #[must_use]
    pub fn in_parallel(self, other: Self) -> Self {
        Self {
            seconds: std::array::from_fn(|i| self.seconds[i].max(other.seconds[i])),
            kernels: KernelTime::together(self.kernels.into_iter().chain(other.kernels)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_at_the_same_time_take_as_long_as_the_slower() {
        let parts = |seconds, kernel| PassParts { seconds, kernels: KernelTime::of([(kernel, 1.0)]) };
        let both = parts([1.0, 2.0, 3.0, 4.0], "layer").in_parallel(parts([2.0, 1.0, 5.0, 0.5], "layer"));
        assert_eq!(both.seconds, [2.0, 2.0, 5.0, 4.0]);
        assert_eq!(both.kernels, KernelTime::of([("layer", 1.0), ("layer", 1.0)]));
    }
}
