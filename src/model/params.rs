//! All parameters of a network, by layer, by name and in the flat arrays.

use super::array::{Array, Weights};
use super::kind::LayerKind;
use super::layer_list::Model;
use super::param::Param;
use crate::error::Result;

impl Model {
    /// Parameters that gradients move.
    pub fn trained(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| !param.role.is_statistic())
    }

    /// Running means and variances.
    pub fn statistics(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| param.role.is_statistic())
    }

    /// Elements of the parameters that gradients move.
    pub fn num_parameters(&self) -> usize {
        self.trained().last().map_or(0, |param| param.range.end)
    }

    /// Elements of the running means and variances.
    pub fn num_statistics(&self) -> usize {
        self.statistics().last().map_or(0, |param| param.range.end)
    }

    /// The index in [`Model::params`] of parameter `number` of layer `layer`, in the order of [`super::LayerKind::params`].
    pub fn param_index(&self, layer: usize, number: usize) -> usize {
        self.layers[layer].params.start + number
    }

    /// The index of the bias of layer `layer`, where it is a linear layer.
    pub fn bias_index(&self, layer: usize) -> Option<usize> {
        matches!(self.layers[layer].kind, LayerKind::Linear { .. }).then(|| self.param_index(layer, 1))
    }

    /// 1 for every flat parameter that is subject to weight decay, else 0. `[num_parameters]`
    pub fn decay_mask(&self) -> Vec<f32> {
        let mut mask = vec![0.0; self.num_parameters()];
        for param in self.params.iter().filter(|param| param.role.decays()) {
            mask[param.range.clone()].fill(1.0);
        }
        mask
    }

    /// The flat parameters and statistics of `weights`.
    ///
    /// # Errors
    /// As [`Model::check`].
    pub fn flatten(&self, weights: &Weights) -> Result<(Vec<f32>, Vec<f32>)> {
        self.check(weights)?;
        let mut parameters = vec![0.0; self.num_parameters()];
        let mut statistics = vec![0.0; self.num_statistics()];
        for Param { name, role, range, .. } in &self.params {
            let flat = if role.is_statistic() { &mut statistics } else { &mut parameters };
            flat[range.clone()].copy_from_slice(&weights[name].data);
        }
        Ok((parameters, statistics))
    }

    /// The weights by name again.
    pub fn unflatten(&self, parameters: &[f32], statistics: &[f32]) -> Weights {
        let array = |param: &Param| {
            let flat = if param.role.is_statistic() { statistics } else { parameters };
            Array { shape: param.shape.clone(), data: flat[param.range.clone()].to_vec() }
        };
        self.params.iter().map(|param| (param.name.clone(), array(param))).collect()
    }

    /// The parts of a flat array of parameters, one for each of [`Model::params`] (empty for statistics).
    pub(crate) fn parts_mut<'a>(&self, mut parameters: &'a mut [f32]) -> Vec<&'a mut [f32]> {
        let mut parts = Vec::with_capacity(self.params.len());
        for param in &self.params {
            let len = if param.role.is_statistic() { 0 } else { param.range.len() };
            let (part, rest) = parameters.split_at_mut(len);
            parts.push(part);
            parameters = rest;
        }
        parts
    }
}
