//! The counter-based random number generator.
//!
//! Every random number is a pure function of its purpose. A [`Key`] is made from the run's seed, a [`Purpose`] and the
//! counters that identify the use (slot, game number, determinisation, ply, simulation, leaf, depth, in that order). A
//! [`RngStream`] numbers the draws at a key. Rows and threads share no state, so the same seed gives the same games in any batch
//! and with any number of threads, and a checkpoint stores no generator state.
//!
//! The mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood 2014, <https://doi.org/10.1145/2660193.2660195>),
//! applied once per counter. A stream is SplitMix64 with the key as its initial state.

use crate::device_struct::{device_constants, device_enum};
use crate::math;

device_constants! {
    fn device_constants;
    /// 2^64 divided by the golden ratio, odd: the increment of SplitMix64.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    /// The smallest entry of a Dirichlet vector before it is normalised.
    const MIN_GAMMA: f32 = 1e-30;
}

device_enum! {
/// The purpose of a random number. Two purposes never share a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose: u64 {
    /// Dirichlet noise at a root.
    RootNoise = 1,
    /// Gumbel noise at a root.
    Gumbel = 2,
    /// The action sampled after a search.
    Act = 3,
    /// Chance outcomes of games: dice, cards.
    Chance = 4,
    /// Chance outcomes sampled inside a search.
    SearchChance = 5,
    /// Determinisations: the hidden information assumed by a search.
    Determinise = 6,
    /// Random opening plies of a self-play game.
    Opening = 7,
    /// Initial weights of a network.
    Weights = 9,
    /// The samples of a training batch.
    Batch = 10,
    /// The symmetry applied to a sample.
    Symmetry = 11,
    /// Matches, benchmarks and tests.
    Evaluation = 12,
    /// Rollouts of Monte Carlo players without a network.
    Rollout = 13,
}
}

#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A compile-time table of N random numbers, such as Zobrist keys (Zobrist 1970). Each `seed` gives another table.
pub const fn table<const N: usize>(seed: u64) -> [u64; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = mix(mix(seed).wrapping_add(GOLDEN.wrapping_mul(i as u64 + 1)));
        i += 1;
    }
    out
}

/// The identity of a stream of random numbers; see the module's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// The key of `purpose` in the run with this `seed`.
    #[inline]
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Self(mix(seed.wrapping_add(GOLDEN))).with(purpose as u64)
    }

    /// The key extended by one counter.
    #[inline]
    #[must_use]
    pub fn with(self, counter: u64) -> Self {
        Self(mix(self.0.rotate_left(23).wrapping_add(GOLDEN).wrapping_add(mix(counter ^ GOLDEN))))
    }

    /// Number `number` of those that are a golden ratio apart from the first draw at this key, in [0, 1), a multiple of 2^-24. Each of
    /// them is uniform, and any of them in a row are spread more evenly than draws (a Kronecker sequence).
    #[inline]
    pub fn spaced(self, number: u32) -> f32 {
        let first = (self.stream().next_u64() >> 32) as u32;
        let step = (GOLDEN >> 32) as u32;
        (first.wrapping_add(step.wrapping_mul(number)) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// The stream of draws at this key.
    #[inline]
    pub fn stream(self) -> RngStream {
        RngStream { state: self.0 }
    }
}

/// The sequence of draws at one [`Key`].
#[derive(Clone, Debug)]
pub struct RngStream {
    state: u64,
}

impl RngStream {
    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A uniform number in [0, 1), a multiple of 2^-24.
    #[inline]
    pub fn uniform(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 * (1.0 / 16_777_216.0)
    }

    /// A uniform number in (0, 1], a multiple of 2^-24; its logarithm is finite.
    #[inline]
    pub fn uniform_positive(&mut self) -> f32 {
        ((self.next_u64() >> 40) + 1) as f32 * (1.0 / 16_777_216.0)
    }

    /// A uniform integer in 0..n, n > 0 (multiply and shift; the bias is below n / 2^64).
    #[inline]
    pub fn below(&mut self, n: usize) -> usize {
        debug_assert!(n > 0);
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// A standard Gumbel number, -ln(-ln(u)).
    #[inline]
    pub fn gumbel(&mut self) -> f32 {
        let u = (self.uniform() + f32::EPSILON * 0.25).min(1.0 - f32::EPSILON * 0.5);
        -math::ln(-math::ln(u))
    }

    /// A standard normal number (Marsaglia's polar method).
    pub fn normal(&mut self) -> f32 {
        loop {
            let x = 2.0 * self.uniform() - 1.0;
            let y = 2.0 * self.uniform() - 1.0;
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * (-2.0 * math::ln(s) / s).sqrt();
            }
        }
    }

    /// A Gamma(alpha, 1) number (Marsaglia and Tsang 2000), alpha > 0.
    pub fn gamma(&mut self, alpha: f32) -> f32 {
        if alpha < 1.0 {
            let boost = math::pow(self.uniform_positive(), 1.0 / alpha);
            return self.gamma(alpha + 1.0) * boost;
        }
        let d = alpha - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let t = 1.0 + c * x;
            if t <= 0.0 {
                continue;
            }
            let v = t * t * t;
            let u = self.uniform_positive();
            if math::ln(u) < 0.5 * x * x + d - d * v + d * math::ln(v) {
                return d * v;
            }
        }
    }

    /// Fills `out [n]` with one symmetric Dirichlet(alpha) draw, summing to 1.
    pub fn dirichlet(&mut self, alpha: f32, out: &mut [f32]) {
        let mut sum = 0.0;
        for x in out.iter_mut() {
            *x = self.gamma(alpha).max(MIN_GAMMA);
            sum += *x;
        }
        for x in out.iter_mut() {
            *x /= sum;
        }
    }

    /// An index drawn with probability proportional to `weights [n]` (non-negative, not all zero).
    pub fn weighted(&mut self, weights: &[f32]) -> usize {
        let total: f32 = weights.iter().sum();
        let mut x = self.uniform() * total;
        let mut last = 0;
        for (i, &w) in weights.iter().enumerate() {
            if w > 0.0 {
                last = i;
                if x < w {
                    return i;
                }
                x -= w;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_struct::{DeviceType, check_header};

    #[test]
    fn generated_header_of_random_numbers_is_up_to_date() {
        check_header("rng/layout.cuh", "rng", "", &[device_constants(), Purpose::definition()]);
    }

    #[test]
    fn table_entries_are_distinct() {
        let mut all = [table::<500>(1), table::<500>(2)].concat();
        assert_eq!(table::<3>(1), all[..3]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1000);
    }

    #[test]
    fn keys_differ_in_every_counter_and_in_their_order() {
        let k = Key::new(7, Purpose::Act);
        let all = [
            k,
            Key::new(8, Purpose::Act),
            Key::new(7, Purpose::Chance),
            k.with(0),
            k.with(1),
            k.with(0).with(1),
            k.with(1).with(0),
        ];
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                assert_ne!(a.stream().next_u64(), b.stream().next_u64());
            }
        }
    }

    #[test]
    fn moments_are_right() {
        let n = 200_000;
        let mut s = Key::new(1, Purpose::Evaluation).stream();
        let mean = |f: &mut dyn FnMut() -> f32| (0..n).map(|_| f() as f64).sum::<f64>() / n as f64;
        assert!((mean(&mut || s.uniform()) - 0.5).abs() < 0.005);
        assert!(mean(&mut || s.normal()).abs() < 0.01);
        assert!((mean(&mut || s.gumbel()) - 0.577_215_7).abs() < 0.015);
        assert!((mean(&mut || s.gamma(0.3)) - 0.3).abs() < 0.01);
        assert!((mean(&mut || s.gamma(2.5)) - 2.5).abs() < 0.02);
        let mut d = [0.0; 5];
        s.dirichlet(0.3, &mut d);
        assert!((d.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}
