//! Folds BatchNorm in inference into the weights of the layer before it, where nothing else reads that layer.

use crate::model::{LayerKind, Model};

/// Which BatchNorms are in the weights of another layer.
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
