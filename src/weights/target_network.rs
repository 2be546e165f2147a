//! The part of a network that predicts a target of a game's own, as a network.

use crate::config::ValueHead;
use crate::error::{Error, Result};
use crate::game::{Target, TargetKind, TargetShape, Valuation};
use crate::model::{Array, NetSpec, Weights};

/// The parts of `spec` and `weights` that predict the target of `valuation`: a network with a value for each number of the target, in [-1, 1].
///
/// A linear layer that predicts log-odds is a value head of two hidden units for each number, y = relu(y) - relu(-y), and 2 sigmoid(y) - 1 is
/// tanh(y / 2).
///
/// # Errors
/// [`Error::Unsupported`] for a network without a head that predicts the target, a vector of signs.
pub fn target_network(
    spec: &NetSpec,
    weights: &Weights,
    valuation: &Valuation,
) -> Result<(NetSpec, Weights)> {
    let head = format!("auxiliary.{}", valuation.target);
    let tensor = |name: &str| weights.get(&format!("{head}.{name}"));
    let len = spec.auxiliary.iter().find_map(|target| match target {
        Target { name, shape: TargetShape::Vector(len), kind: TargetKind::Sign } => {
            (name == valuation.target).then_some(*len)
        }
        _ => None,
    });
    let (Some(len), Some(weight), Some(bias)) = (len, tensor("out.weight"), tensor("out.bias")) else {
        return Err(no_head(valuation));
    };
    let mut own: Weights = weights.clone();
    own.retain(|name, _| !name.starts_with("auxiliary.") && !name.starts_with("value."));
    for part in ["conv", "bn"] {
        let prefix = format!("{head}.{part}.");
        let of_part = weights.iter().filter_map(|(name, array)| Some((name.strip_prefix(&prefix)?, array)));
        own.extend(of_part.map(|(name, array)| (format!("value.{part}.{name}"), array.clone())));
    }
    let both = |array: &Array| {
        let mut shape = array.shape.clone();
        shape[0] *= 2;
        let data = array.data.iter().copied().chain(array.data.iter().map(|x| -x)).collect();
        Array { shape, data }
    };
    let half = |number: usize, hidden: usize| match hidden {
        _ if hidden == number => 0.5,
        _ if hidden == number + len => -0.5,
        _ => 0.0,
    };
    let data = (0..len).flat_map(|number| (0..2 * len).map(move |hidden| half(number, hidden))).collect();
    own.insert("value.hidden.weight".into(), both(weight));
    own.insert("value.hidden.bias".into(), both(bias));
    own.insert("value.out.weight".into(), Array { shape: vec![len, 2 * len], data });
    own.insert("value.out.bias".into(), Array { shape: vec![len], data: vec![0.0; len] });
    let spec = NetSpec {
        value_head: ValueHead::Scalar,
        value_hidden: 2 * len,
        value_channels: spec.policy_channels,
        auxiliary: Vec::new(),
        num_players: len,
        zero_sum_pair: false,
        ..spec.clone()
    };
    Ok((spec, own))
}

/// The error of a network without the head that a valuation needs.
pub(super) fn no_head(valuation: &Valuation) -> Error {
    let name = valuation.target;
    Error::unsupported(
        "these settings of the game with this network",
        format!(
            "they need a head that predicts {name}, which training with net.auxiliary = \"{name}\" makes"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Arch, NetConfig, Precision};
    use crate::game::ObsShape;
    use crate::net::Network;
    use crate::net::cpu::CpuNet;
    use crate::net::reference;

    const LEN: usize = 5;

    fn spec(arch: Arch, side: usize) -> NetSpec {
        let net = NetConfig { arch, blocks: 1, channels: 12, ..NetConfig::default() };
        let target = Target::new("results", TargetShape::Vector(LEN), TargetKind::Sign);
        let obs = ObsShape { channels: 7, height: side, width: side };
        let base = NetSpec::new(&net, &crate::game::Sizes { obs, num_actions: 9, ..Default::default() });
        NetSpec { auxiliary: vec![target], ..base }
    }

    fn valuation(target: &'static str) -> Valuation {
        Valuation { target, seen: ObsShape { channels: 7, height: 1, width: 1 }, values: |_, _, _| {} }
    }

    /// The values of the part are 2 p - 1 for the probabilities that the head predicts, and its logits those of the whole.
    #[test]
    fn values_are_the_predictions_of_the_head() {
        for (arch, side) in [(Arch::Mlp, 1), (Arch::Resnet, 4)] {
            let spec = spec(arch, side);
            let model = spec.model().expect("a network");
            let weights = model.initial_weights(3);
            let (own_spec, own) = target_network(&spec, &weights, &valuation("results")).expect("a head");
            let mut network = CpuNet::new(&own_spec, &own, Precision::F32).expect("packed");
            let obs: Vec<f32> = (0..7 * side * side).map(|i| (i as f32 * 1.7).sin()).collect();
            let (mut logits, mut values) = ([0.0; 9], [0.0; LEN]);
            network.forward(&obs, &mut logits, &mut values).expect("finite");
            let layers = reference::activations(&model, &weights, &obs).expect("finite");
            let head = model.auxiliary().next().expect("a head");
            let expected = layers[head.layer].iter().map(|y| (y / 2.0).tanh() as f32);
            let differs = |(found, expected): (&f32, f32)| (found - expected).abs() > 1e-5;
            assert!(!values.iter().zip(expected).any(differs), "{arch}: {values:?}");
            assert!(values.iter().any(|value| value.abs() > 1e-3), "{arch}: {values:?}");
            let expected = layers[model.policy()].iter().map(|&y| y as f32);
            assert!(!logits.iter().zip(expected).any(differs), "{arch}");
        }
    }

    #[test]
    fn a_network_without_the_head_is_refused() {
        let spec = spec(Arch::Mlp, 1);
        let weights = spec.model().expect("a network").initial_weights(3);
        let error = target_network(&spec, &weights, &valuation("other")).expect_err("no head").to_string();
        assert!(error.contains("net.auxiliary = \"other\""), "{error}");
    }
}
