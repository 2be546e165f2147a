//! BatchNorm with its running statistics as a scale and an offset per channel, for the forwards that fold it into adjacent layers.

use super::{BN_EPS, HeadConv, Model, Weights};
use crate::error::{Error, Result};

/// Per-channel factors and terms: BatchNorm as relu(scale * x + offset).
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    pub scale: Vec<f32>,  // [channels]
    pub offset: Vec<f32>, // [channels]
}

/// BatchNorm layer `layer` with its running statistics as scale * x + offset.
pub(crate) fn norm(model: &Model, weights: &Weights, layer: usize) -> Result<Affine> {
    let part = |number: usize| weights[&model.params[model.param_index(layer, number)].name].data.as_slice();
    let (weight, bias) = (part(0), part(1));
    let (mean, var) = (part(2), part(3));
    let scale = |c: usize| f64::from(weight[c]) / (f64::from(var[c]) + BN_EPS).sqrt();
    let offset = |c: usize| f64::from(bias[c]) - f64::from(mean[c]) * scale(c);
    let channels = 0..weight.len();
    let affine = Affine {
        scale: channels.clone().map(|c| scale(c) as f32).collect(),
        offset: channels.map(|c| offset(c) as f32).collect(),
    };
    match affine.scale.iter().chain(&affine.offset).find(|x| !x.is_finite()) {
        Some(&value) => {
            let what = format!("the scale or offset of BatchNorm {}", model.layers[layer].name);
            Err(Error::NotFinite { what, value })
        }
        None => Ok(affine),
    }
}

/// The BatchNorms of both heads' 1x1 convolutions, policy channels first.
pub(crate) fn head_norm(model: &Model, weights: &Weights, [policy, value]: [HeadConv; 2]) -> Result<Affine> {
    let mut both = norm(model, weights, policy.norm)?;
    let value = norm(model, weights, value.norm)?;
    both.scale.extend(value.scale);
    both.offset.extend(value.offset);
    Ok(both)
}

/// Refuses a weight or bias that is infinite after folding.
pub(crate) fn check_folded(numbers: impl IntoIterator<Item = f32>) -> Result<()> {
    match numbers.into_iter().find(|x| !x.is_finite()) {
        Some(value) => {
            Err(Error::NotFinite { what: "a weight or bias with its BatchNorm folded in".into(), value })
        }
        None => Ok(()),
    }
}
