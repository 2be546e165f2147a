//! Heads: the layers whose outputs are learnt, each with its role, its target, its loss and its weight.

use super::kind::ActivationShape;
use crate::game::{Target, TargetKind};
use serde::Serialize;

/// The target that every policy head learns: the search's policy. `[A]`
pub const POLICY: &str = "policy";
/// The target that scalar value heads learn: the result for every player, in seats relative to the observer. `[P]`
pub const VALUES: &str = "values";

/// The targets that follow from a sample alone; other names are those of a game's own.
pub const SAMPLE_TARGETS: &[&str] = &[POLICY, VALUES, Head::OUTCOME];

/// What a head is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadRole {
    /// Priors of the search.
    Policy,
    /// Values of the search.
    Value,
    /// Training only: the tower learns more from each sample.
    Auxiliary,
}

/// The loss of a head's outputs y against a target t, for one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Cross-entropy of the softmax over legal actions, in nats.
    LegalCrossEntropy,
    /// Cross-entropy of the softmax over all outputs, in nats.
    ClassCrossEntropy,
    /// Mean over the outputs of (y - t)^2.
    SquaredError,
    /// Mean over the outputs of the cross-entropy of sigmoid(y) with the probability (1 + t) / 2, in nats.
    BinaryCrossEntropy,
}

/// One head of a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Head {
    /// Its name in metrics: "policy", "value", or that of its target.
    pub name: String,
    /// Its role.
    pub role: HeadRole,
    /// The layer whose output the loss reads, by its index in [`Model::layers`](super::Model::layers).
    pub layer: usize,
    /// The loss.
    pub loss: Loss,
    /// The name of the target.
    pub target: String,
    /// The weight of the loss, relative to the weight of its role in `[train]`.
    pub weight: f64,
    /// The layer that the search reads; None where only training uses the head.
    pub play: Option<usize>,
}

impl Head {
    /// The target that heads of win, draw and loss learn: the probability of each for the observer. `[3]`
    pub const OUTCOME: &str = "outcome";

    /// The name of the head that learns the values.
    pub const VALUE: &str = "value";

    /// Win, draw and loss with a mean of `value`, the draw as likely as it can be: certain for the results 1, 0 and -1.
    pub fn outcome_of(value: f32) -> [f32; 3] {
        let value = value.clamp(-1.0, 1.0);
        [value.max(0.0), 1.0 - value.abs(), (-value).max(0.0)]
    }

    /// The policy head whose logits are those of `layer`.
    pub fn policy(layer: usize) -> Self {
        Self {
            name: POLICY.into(),
            role: HeadRole::Policy,
            layer,
            loss: Loss::LegalCrossEntropy,
            target: POLICY.into(),
            weight: 1.0,
            play: Some(layer),
        }
    }

    /// The value head whose values are those of `layer`.
    pub fn value(layer: usize) -> Self {
        Self {
            name: Self::VALUE.into(),
            role: HeadRole::Value,
            layer,
            loss: Loss::SquaredError,
            target: VALUES.into(),
            weight: 1.0,
            play: Some(layer),
        }
    }

    /// The value head whose logits of win, draw and loss are those of `layer`, and whose value is that of `play`.
    pub fn outcome(layer: usize, play: usize) -> Self {
        let (name, loss) = (Self::OUTCOME.to_string(), Loss::ClassCrossEntropy);
        Self { target: name.clone(), name, loss, play: Some(play), ..Self::value(layer) }
    }

    /// The head that learns `target` with the outputs of `layer`.
    pub fn auxiliary(target: &Target, layer: usize) -> Self {
        let loss = match target.kind {
            TargetKind::Sign => Loss::BinaryCrossEntropy,
            TargetKind::Amount => Loss::SquaredError,
        };
        let (name, role) = (target.name.clone(), HeadRole::Auxiliary);
        Self { target: name.clone(), name, role, layer, loss, weight: 1.0, play: None }
    }
}

impl Target {
    /// Elements of the target where observations have this shape.
    pub fn len(&self, obs: ActivationShape) -> usize {
        match self.shape {
            crate::game::TargetShape::Points => obs.positions(),
            crate::game::TargetShape::Vector(len) => len,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_probabilities_with_the_value_as_mean() {
        for value in [-1.0f32, -0.75, -0.125, 0.0, 0.3, 1.0, 1.0005] {
            let [win, draw, loss] = Head::outcome_of(value);
            assert!([win, draw, loss].iter().all(|p| (0.0..=1.0).contains(p)), "{value}");
            assert!((win + draw + loss - 1.0).abs() < 1e-6 && (win - loss - value.min(1.0)).abs() < 1e-6);
            let [loses, draws, wins] = Head::outcome_of(-value);
            assert_eq!([win, draw, loss], [wins, draws, loses]);
        }
        assert_eq!(
            [1.0, 0.0, -1.0].map(Head::outcome_of),
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        );
    }
}
