//! Parameters and results of the update kernels, and the loss scale of half precision.

use crate::config::{TrainConfig, TrainPrecision};
use crate::device_struct::device_struct;
use crate::error::{Error, Result};
use crate::net::gpu_train::LogitLayout;
use crate::train::optimizer::{EPS, UpdateRule};
use bytemuck::{NoUninit, Pod, Zeroable};

device_struct! {
    /// The parameters that change with every update; all other arguments of kernels are constant, so that launches can be captured.
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
    pub struct Settings {
        /// Weight of all samples.
        total_weight: f64,
        /// Norm above which the gradient is scaled down to it; 0: off.
        clip: f64,
        /// Weight of the values' loss.
        value_weight: f32,
        /// Factor of all gradients until they are applied.
        loss_scale: f32,
        /// Learning rate.
        rate: f32,
        /// AdamW's beta1.
        beta1: f32,
        /// AdamW's beta2.
        beta2: f32,
        /// Weight decay.
        decay: f32,
        /// AdamW's bias correction of the first moment.
        first_correction: f32,
        /// AdamW's bias correction of the second moment.
        second_correction: f32,
        /// AdamW's epsilon.
        epsilon: f32,
        /// Up to a multiple of 8 bytes, as CUDA pads a struct that has f64.
        padding: u32 as "",
    }
}

impl Settings {
    /// Of the update after `updates`, on samples of `total_weight` in all.
    pub fn new(config: &TrainConfig, updates: u64, total_weight: f64, loss_scale: f32) -> Self {
        let rate = crate::train::learning_rate(config, updates);
        let rule = UpdateRule::new(config, rate, 1.0, updates + 1);
        Self {
            total_weight,
            clip: config.clip_norm,
            value_weight: config.value_weight as f32,
            loss_scale,
            rate: rule.rate,
            beta1: rule.beta1,
            beta2: rule.beta2,
            decay: rule.decay,
            first_correction: rule.first_correction,
            second_correction: rule.second_correction,
            epsilon: EPS,
            padding: 0,
        }
    }
}

device_struct! {
    /// The statistics of an update.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
    pub struct UpdateReport {
        /// Weighted sum over samples.
        pub cross_entropy: f64,
        /// Weighted sum over samples.
        pub target_entropy: f64,
        /// Weighted sum over samples.
        pub squared_error: f64,
        /// The gradient's norm before clipping.
        pub norm: f64,
        /// What the gradient was multiplied by.
        pub factor: f64,
        /// 1 where a weight after the update is no finite number.
        pub bad_weight: f64,
        /// The same for the optimiser's moments.
        pub bad_moment: f64,
        /// The same for the running statistics.
        pub bad_statistic: f64,
    }

    /// The parameter block of `sample_losses`: the targets of B samples, the network's outputs for them, and where the losses and
    /// their gradients go. Addresses are those on the device.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct LossBlock {
        /// One.
        pub settings: u64 as "const Settings*",
        /// 0 for illegal actions. `[B, A]`
        pub target_policy: u64 as "const f32*",
        /// 1 for legal actions. `[B, A]`
        pub legal: u64 as "const u8*",
        /// `[B, P]`
        pub target_values: u64 as "const f32*",
        /// Weights of the samples. `[B]`
        pub weight: u64 as "const f32*",
        /// The policy layer's outputs. `[B, logit_width]`
        pub logits: u64 as "const f32*",
        /// The value layer's outputs, of which the hyperbolic tangent is taken. `[B, value_width]`
        pub values: u64 as "const f32*",
        /// Gradient of the logits. `[B, logit_width]`
        pub d_logits: u64 as "Element*",
        /// Gradient of the values. `[B, value_width]`
        pub d_values: u64 as "Element*",
        /// Cross-entropy, entropy of the target and squared error, times the sample's weight. `[B, 3]`
        pub losses: u64 as "f64*",
        /// B.
        pub rows: u32,
        /// A.
        pub actions: u32,
        /// P.
        pub players: u32,
        /// Values of a sample that the network has: the first of a row.
        pub outputs: u32,
        /// Numbers in a row of the logits.
        pub logit_width: u32,
        /// Where the logits are in a row.
        pub layout: LogitLayout,
        /// Numbers in a row of the values.
        pub value_width: u32,
    }
}

impl UpdateReport {
    /// The results of an update on several devices: sums of losses in the order of the devices, and what is equal on all.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the gradient, summed over all of them, is not the same on each.
    pub fn of_all(reports: impl Iterator<Item = Self>) -> Result<Self> {
        let join = |all: Self, one: Self| {
            if all.norm.to_bits() != one.norm.to_bits() && (all.norm.is_finite() || one.norm.is_finite()) {
                return Err(Self::devices_differ("gradients"));
            }
            Ok(Self {
                cross_entropy: all.cross_entropy + one.cross_entropy,
                target_entropy: all.target_entropy + one.target_entropy,
                squared_error: all.squared_error + one.squared_error,
                bad_weight: all.bad_weight.max(one.bad_weight),
                bad_moment: all.bad_moment.max(one.bad_moment),
                bad_statistic: all.bad_statistic.max(one.bad_statistic),
                ..all
            })
        };
        let mut reports = reports;
        let first = reports.next().unwrap_or_default();
        reports.try_fold(first, join)
    }

    /// Devices that are to hold the same bits do not.
    pub fn devices_differ(what: &str) -> Error {
        Error::unsupported(
            "training on these devices together",
            format!("their {what} differ, expected identical bits"),
        )
    }
}

/// By how much losses are scaled up, so that small gradients do not vanish in half precision (Micikevicius et al. 2018).
/// The first and the largest scale are those of NVIDIA Apex, the interval is DeepSpeed's; none is tuned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScale {
    /// The factor, a power of two.
    pub scale: f32,
    /// Updates since it changed.
    pub age: u32,
    grows: bool,
}

impl LossScale {
    const START: f32 = 65_536.0;
    const LARGEST: f32 = 16_777_216.0;
    /// Updates after which it doubles.
    const INTERVAL: u32 = 1000;

    /// Before the first update.
    pub fn new(precision: TrainPrecision) -> Self {
        let grows = precision == TrainPrecision::F16;
        Self { scale: if grows { Self::START } else { 1.0 }, age: 0, grows }
    }

    /// True where it can change.
    pub fn is_dynamic(&self) -> bool {
        self.grows
    }

    /// After an update that went well.
    pub fn succeed(&mut self) {
        self.age += 1;
        if self.grows && self.age >= Self::INTERVAL {
            self.age = 0;
            self.scale = (2.0 * self.scale).min(Self::LARGEST);
        }
    }

    /// After a gradient that is not finite: true where the update is to be made again at half the scale.
    pub fn fail(&mut self) -> bool {
        if !self.grows || self.scale <= 1.0 {
            return false;
        }
        self.scale /= 2.0;
        self.age = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_alone_scales_and_stops_at_1() {
        let mut scale = LossScale::new(TrainPrecision::F16);
        let halvings = (0..100).take_while(|_| scale.fail()).count();
        assert_eq!((halvings, scale.scale), (16, 1.0));
        (0..LossScale::INTERVAL).for_each(|_| scale.succeed());
        assert_eq!((scale.scale, scale.age), (2.0, 0));
        for precision in [TrainPrecision::F32, TrainPrecision::Bf16] {
            let mut fixed = LossScale::new(precision);
            (0..2 * LossScale::INTERVAL).for_each(|_| fixed.succeed());
            assert!(!fixed.fail() && fixed.scale == 1.0);
        }
    }
}
