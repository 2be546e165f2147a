//! The heads of a network, and the layers that they need.

use super::head::{Head, HeadRole, VALUES};
use super::kind::LayerKind;
use super::layer_list::{Layer, Model};
use super::point_logits::PointLogits;

impl Model {
    /// The layer that the search reads of the first head with `role`.
    fn played(&self, role: HeadRole) -> usize {
        self.heads.iter().find(|head| head.role == role).and_then(|head| head.play).unwrap_or_default()
    }

    /// The layer that gives the logits. `[A]`
    pub fn policy(&self) -> usize {
        self.played(HeadRole::Policy)
    }

    /// Where the logits come from, if a layer with the same weights at every point of the board, or at every edge, makes them.
    pub fn point_logits(&self) -> Option<PointLogits> {
        let Layer { kind, inputs, .. } = &self.layers[self.policy()];
        match *kind {
            LayerKind::PointLogits(actions) => Some(self.layers[inputs[0]].shape.point_logits(actions)),
            LayerKind::Flatten => Some(self.layers[inputs[0]].shape.one_logit_each()),
            _ => None,
        }
    }

    /// The layer that gives the values in [-1, 1]. `[V]`
    pub fn value(&self) -> usize {
        self.played(HeadRole::Value)
    }

    /// The layer whose outputs the value head learns.
    pub fn value_outputs(&self) -> usize {
        self.heads.iter().find(|head| head.role == HeadRole::Value).map_or(0, |head| head.layer)
    }

    /// The auxiliary heads.
    pub fn auxiliary(&self) -> impl Iterator<Item = &Head> {
        self.heads.iter().filter(|head| head.role == HeadRole::Auxiliary)
    }

    /// Outputs of the layer that `head` learns.
    pub fn head_outputs(&self, head: &Head) -> usize {
        self.layers[head.layer].shape.len()
    }

    /// Elements of the target of `head` for one sample.
    pub fn target_len(&self, head: &Head) -> usize {
        if head.target == VALUES { self.num_players } else { self.head_outputs(head) }
    }

    /// True for the layers on which logits or values depend: all that an executor needs for play.
    pub fn layers_in_play(&self) -> Vec<bool> {
        let mut needed = vec![false; self.layers.len()];
        self.heads.iter().filter_map(|head| head.play).for_each(|layer| needed[layer] = true);
        for (index, layer) in self.layers.iter().enumerate().rev().filter(|(_, l)| !l.inputs.is_empty()) {
            if needed[index] {
                layer.inputs.iter().for_each(|&input| needed[input] = true);
            }
        }
        needed
    }
}
