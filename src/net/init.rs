//! First weights: He initialisation from the run's seed.

use super::spec::{Array, NetSpec, Weights};
use crate::rng::{Key, Purpose};

/// The weights before the first update, a function of `spec` and `seed` alone.
///
/// Convolutions and inner linear layers are normal with variance 2 / fan-in (He et al. 2015, eq. 10); the two output
/// layers are a hundred times narrower in variance, so that training starts from near-uniform policies and near-zero
/// values. Biases and running means are 0, scales and running variances 1.
pub fn initial_weights(spec: &NetSpec, seed: u64) -> Weights {
    let tensors = spec.tensors().into_iter().enumerate();
    tensors
        .map(|(number, (name, shape))| {
            let len = shape.iter().product();
            let data = if shape.len() > 1 {
                let fan_in: usize = shape[1..].iter().product();
                let gain = if is_output(&name) { 0.02 } else { 2.0 };
                let deviation = (gain / fan_in as f32).sqrt();
                let mut stream = Key::new(seed, Purpose::Weights).with(number as u64).stream();
                (0..len).map(|_| deviation * stream.normal()).collect()
            } else if name.ends_with("running_var") || name.ends_with(".weight") {
                vec![1.0; len]
            } else {
                vec![0.0; len]
            };
            (name, Array { shape, data })
        })
        .collect()
}

fn is_output(name: &str) -> bool {
    matches!(name, "policy.linear.weight" | "value.out.weight")
}
