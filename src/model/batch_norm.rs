//! The constants of BatchNorm.

use crate::device_struct::device_constants;

device_constants! {
    fn device_constants;
    /// Added to the variance in every BatchNorm, as PyTorch's default.
    pub const BN_EPS: f64 = 1e-5;
    /// Share of the new batch in BatchNorm's running statistics, as PyTorch's default.
    pub const BN_MOMENTUM: f64 = 0.1;
}
