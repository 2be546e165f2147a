//! Weights as named arrays: the first ones, random ones for tests, and the check that they are a model's.

use super::Model;
use super::array::{Array, Weights};
use super::param::Param;
use super::role::{Gain, Role};
use crate::error::{Error, Result};
use crate::rng::{Key, Purpose, RngStream};

impl Param {
    /// Inputs of one output: the product of all axes but the first.
    fn fan_in(&self) -> f32 {
        self.shape[1..].iter().product::<usize>() as f32
    }
}

impl Model {
    /// The weights before the first update, a function of the model and `seed` alone: He initialisation by [`Gain`], biases
    /// and running means 0, scales and running variances 1.
    pub fn initial_weights(&self, seed: u64) -> Weights {
        self.weights_by_gain(seed, 0.0)
    }

    /// The same, for tests, with the gain of [`Gain::Hidden`] in place of [`Gain::Zero`]: every parameter has a gradient.
    pub fn initial_weights_without_zeros(&self, seed: u64) -> Weights {
        self.weights_by_gain(seed, 2.0)
    }

    /// The weights before the first update, where `zero` is the gain of [`Gain::Zero`].
    fn weights_by_gain(&self, seed: u64, zero: f32) -> Weights {
        self.draw(Key::new(seed, Purpose::Weights), |param, stream, len| match param.role {
            Role::Matrix(gain) => {
                let gain: f32 = match gain {
                    Gain::Hidden => 2.0,
                    Gain::Output => 0.02,
                    Gain::Zero => zero,
                };
                if gain == 0.0 {
                    return vec![0.0; len];
                }
                let deviation = (gain / param.fan_in()).sqrt();
                (0..len).map(|_| deviation * stream.normal()).collect()
            }
            Role::Scale | Role::RunningVariance => vec![1.0; len],
            Role::Bias | Role::RunningMean => vec![0.0; len],
        })
    }

    /// Weights for tests and benchmarks: linear maps that keep the variance, BatchNorm statistics near 0 and 1.
    pub fn random_weights(&self, key: Key) -> Weights {
        self.draw(key, |param, stream, len| {
            let (mean, deviation) = match param.role {
                Role::Matrix(_) => (0.0, (2.0 / param.fan_in()).sqrt()),
                Role::Scale | Role::RunningVariance => (1.0, 0.2),
                Role::Bias | Role::RunningMean => (0.0, 0.1),
            };
            // The variance of a BatchNorm stays positive: at most 4 deviations from its mean.
            (0..len).map(|_| mean + deviation * stream.normal().clamp(-4.0, 4.0)).collect()
        })
    }

    /// Weights whose elements `numbers` makes, given a parameter, its own random stream and its number of elements.
    fn draw(&self, key: Key, numbers: impl Fn(&Param, &mut RngStream, usize) -> Vec<f32>) -> Weights {
        let array = |(index, param): (usize, &Param)| {
            let data = numbers(param, &mut key.with(index as u64).stream(), param.range.len());
            (param.name.clone(), Array { shape: param.shape.clone(), data })
        };
        self.params.iter().enumerate().map(array).collect()
    }

    /// Checks that `weights` holds exactly this network's tensors, with finite numbers.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a size of 0, a missing, foreign or misshapen tensor; [`Error::NotFinite`].
    pub fn check(&self, weights: &Weights) -> Result<()> {
        for Param { name, shape, range, .. } in &self.params {
            let what = || format!("tensor {name}");
            let Some(Array { shape: found, data }) = weights.get(name) else {
                return Err(Error::mismatch(what(), "none", format_args!("{shape:?}")));
            };
            if range.is_empty() {
                return Err(Error::mismatch(what(), format_args!("{shape:?}"), "sizes from 1"));
            }
            if found != shape || data.len() != range.len() {
                let found = format!("{found:?} ({} numbers)", data.len());
                return Err(Error::mismatch(what(), found, format_args!("{shape:?}")));
            }
            if let Some(&value) = data.iter().find(|x| !x.is_finite()) {
                return Err(Error::NotFinite { what: format!("a weight of tensor {name}"), value });
            }
        }
        match weights.keys().find(|name| !self.params.iter().any(|param| param.name == **name)) {
            Some(name) => {
                Err(Error::mismatch("tensors of the network", name, "only those of its architecture"))
            }
            None => Ok(()),
        }
    }
}
