//! BatchNorm in inference: a scale and an offset of each channel, in the weights of the layer before it where it alone reads that layer.

use crate::error::{Error, Result};
use crate::model::{BN_EPS, LayerKind, Model, Weights};

/// The scale and the offset of a BatchNorm. `[channels]`
pub struct Affine {
    /// The factor of each channel.
    pub scale: Vec<f64>,
    /// What is added to each channel.
    pub offset: Vec<f64>,
}

impl Affine {
    /// Those of layer `norm` with its running statistics.
    ///
    /// # Errors
    /// [`Error::NotFinite`] where one is beyond f32.
    pub fn new(model: &Model, weights: &Weights, norm: usize) -> Result<Self> {
        let part = |number: usize| &weights[&model.params[model.param_index(norm, number)].name].data;
        let (weight, bias, mean, variance) = (part(0), part(1), part(2), part(3));
        let scale = |c: usize| f64::from(weight[c]) / (f64::from(variance[c]) + BN_EPS).sqrt();
        let offset = |c: usize| f64::from(bias[c]) - f64::from(mean[c]) * scale(c);
        let channels = 0..weight.len();
        let affine =
            Self { scale: channels.clone().map(scale).collect(), offset: channels.map(offset).collect() };
        match affine.scale.iter().chain(&affine.offset).find(|x| !(**x as f32).is_finite()) {
            Some(&value) => {
                let what = format!("the scale or offset of BatchNorm {}", model.layers[norm].name);
                Err(Error::NotFinite { what, value: value as f32 })
            }
            None => Ok(affine),
        }
    }
}

/// Which BatchNorms go into the weights of another layer.
pub struct Folding {
    /// The BatchNorm that a layer takes in. `[layers]`
    norms: Vec<Option<usize>>,
}

impl Folding {
    /// Each BatchNorm that alone reads a linear layer.
    pub fn of(model: &Model) -> Self {
        let mut readers = vec![0; model.layers.len()];
        model.layers.iter().flat_map(|layer| &layer.inputs).for_each(|&input| readers[input] += 1);
        model.heads.iter().for_each(|head| readers[head.layer] += 1);
        let mut norms = vec![None; model.layers.len()];
        for (index, layer) in model.layers.iter().enumerate() {
            if layer.kind == LayerKind::BatchNorm {
                let input = layer.inputs[0];
                let is_linear = matches!(
                    model.layers[input].kind,
                    LayerKind::Conv3x3 { .. }
                        | LayerKind::Conv1x1 { .. }
                        | LayerKind::Linear { .. }
                        | LayerKind::EdgeMessage
                );
                norms[input] = (is_linear && readers[input] == 1).then_some(index);
            }
        }
        Self { norms }
    }

    /// The BatchNorm that layer `index` takes in.
    pub fn norm_of(&self, index: usize) -> Option<usize> {
        self.norms[index]
    }

    /// True where BatchNorm `norm`, which reads layer `input`, is in the weights of that.
    pub fn is_folded(&self, norm: usize, input: usize) -> bool {
        self.norms[input] == Some(norm)
    }
}
