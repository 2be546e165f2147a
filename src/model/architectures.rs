//! The networks, one function each.
//!
//! All are pre-activation residual towers (He et al. 2016, Identity Mappings in Deep Residual Networks, figure 4e) with the heads
//! of AlphaGo Zero (Silver et al. 2017). The order of the layers is that of the parameters, from input to output, on which the first
//! weights depend.

use super::builder::ModelBuilder;
use super::complete_graph::CompleteGraph;
use super::kind::{ActivationShape, LayerKind};
use super::role::Gain;
use super::{Head, Model, NetSpec, SAMPLE_TARGETS};
use crate::config::{Arch, PolicyHead};
use crate::error::{Error, Result};
use crate::game::PointActions;

impl Model {
    /// The network that `spec` describes.
    ///
    /// # Errors
    /// [`crate::Error::Config`] for an edge network on anything but the edges of a complete graph, [`crate::Error::Mismatch`]
    /// where one value is to stand for more or fewer than two players.
    pub fn new(spec: &NetSpec) -> Result<Self> {
        if spec.zero_sum_pair && spec.num_players != 2 {
            return Err(Error::mismatch(
                "players of a network with one value for two",
                spec.num_players,
                "2",
            ));
        }
        check_policy(spec)?;
        check_auxiliary(spec)?;
        match spec.arch {
            Arch::Resnet => Ok(resnet(spec)),
            Arch::Mlp => Ok(mlp(spec)),
            Arch::Edge => edge(spec),
        }
    }
}

/// Refuses logits at points outside a residual network, and more of them than actions.
fn check_policy(spec: &NetSpec) -> Result<()> {
    let refused = |expected: &str| Err(Error::config("net.policy_head", PolicyHead::Points, expected));
    let (height, width) = (spec.obs.height, spec.obs.width);
    let at_points = |actions: PointActions| actions.planes.saturating_mul(height).saturating_mul(width);
    match spec.point_actions {
        Some(_) if spec.arch != Arch::Resnet => refused("dense, or net.arch = \"resnet\""),
        Some(actions) if !(1..=spec.num_actions).contains(&at_points(actions)) => {
            refused("dense: the game has fewer actions than points")
        }
        _ => Ok(()),
    }
}

/// Refuses auxiliary heads of a network on the edges of K_n, and two targets of one name.
fn check_auxiliary(spec: &NetSpec) -> Result<()> {
    let names: Vec<&str> = spec.auxiliary.iter().map(|target| target.name.as_str()).collect();
    let refused = |expected: &str| Err(Error::config("net.auxiliary", names.join(","), expected));
    match spec.arch {
        Arch::Edge if !names.is_empty() => refused("no targets where net.arch = \"edge\""),
        _ if (1..names.len()).any(|i| names[..i].contains(&names[i])) => refused("each target once"),
        _ if names.iter().any(|name| SAMPLE_TARGETS.contains(name) || *name == Head::VALUE) => {
            refused("targets of the game's own, with names that no other head has")
        }
        _ => Ok(()),
    }
}

/// A residual tower of 3x3 convolutions; each head begins with a 1x1 convolution.
fn resnet(spec: &NetSpec) -> Model {
    let mut b = ModelBuilder::new(spec.obs.into());
    let mut x = b.conv3x3("stem", 0, spec.channels);
    for block in (0..spec.blocks).map(|i| format!("blocks.{i}")) {
        let y = b.norm_relu(format!("{block}.bn1"), x);
        let y = b.conv3x3(format!("{block}.conv1"), y, spec.channels);
        let y = b.norm_relu(format!("{block}.bn2"), y);
        let conv2 = LayerKind::Conv3x3 { outputs: spec.channels, gain: Gain::Zero };
        let y = b.layer(format!("{block}.conv2"), conv2, &[y]);
        x = b.add(x, y);
    }
    let x = b.norm_relu("bn", x);
    let policy = b.head_conv("policy", x, spec.policy_channels);
    let policy = match spec.point_actions {
        Some(actions) => b.policy_at_points(policy, actions, spec.num_actions),
        None => {
            let policy = b.flatten(policy);
            b.policy(policy, spec)
        }
    };
    let value = b.head_conv("value", x, spec.value_channels);
    let value = b.flatten(value);
    let value = b.value(value, spec);
    with_auxiliary(b, [policy, value], x, spec)
}

/// The residual tower's blocks with linear layers in place of convolutions.
fn mlp(spec: &NetSpec) -> Model {
    let mut b = ModelBuilder::new(spec.obs.into());
    let obs = b.flatten(0);
    let mut x = b.linear("stem", obs, spec.channels);
    for block in (0..spec.blocks).map(|i| format!("blocks.{i}")) {
        let y = b.norm_relu(format!("{block}.bn1"), x);
        let y = b.linear(format!("{block}.linear1"), y, spec.channels);
        let y = b.norm_relu(format!("{block}.bn2"), y);
        let linear2 = LayerKind::Linear { outputs: spec.channels, gain: Gain::Zero };
        let y = b.layer(format!("{block}.linear2"), linear2, &[y]);
        x = b.add(x, y);
    }
    let x = b.norm_relu("bn", x);
    let policy = b.policy(x, spec);
    let value = b.value(x, spec);
    with_auxiliary(b, [policy, value], x, spec)
}

/// The model with the heads `played` and those that only training uses, on the tower's end `x`.
fn with_auxiliary(mut b: ModelBuilder, played: [Head; 2], x: usize, spec: &NetSpec) -> Model {
    let mut heads = Vec::from(played);
    heads.extend(spec.auxiliary.iter().map(|target| b.auxiliary(target, x, spec)));
    b.build(heads, spec.num_players)
}

/// A residual network on the edges of K_n: messages over shared vertices, products around triangles; one logit an edge, the value
/// from the mean over the edges.
///
/// Sums at vertices alone cannot tell two triangles from a hexagon; the products around triangles can, and cost little compared with the
/// products with weights. No parameter's shape depends on n, so that one network serves every n.
fn edge(spec: &NetSpec) -> Result<Model> {
    let vertices = CompleteGraph::of_observation(spec.obs, spec.num_actions)?.vertices;
    let mut b = ModelBuilder::new(ActivationShape::Edges { channels: spec.obs.channels, vertices });
    let mut x = b.conv1x1("stem", 0, spec.channels);
    for block in (0..spec.blocks).map(|i| format!("blocks.{i}")) {
        let y = b.norm_relu(format!("{block}.bn1"), x);
        let y = b.layer(&block, LayerKind::EdgeMessage, &[y]);
        let y = b.norm_relu(format!("{block}.bn2"), y);
        let y = b.layer("", LayerKind::TriangleMix { channels: spec.channels / 2 }, &[y]);
        let out = LayerKind::Conv1x1 { outputs: spec.channels, gain: Gain::Zero };
        let y = b.layer(format!("{block}.out"), out, &[y]);
        x = b.add(x, y);
    }
    let x = b.norm_relu("bn", x);
    let policy = b.layer("policy.linear", LayerKind::Conv1x1 { outputs: 1, gain: Gain::Output }, &[x]);
    let policy = Head::policy(b.flatten(policy));
    let pooled = b.layer("", LayerKind::MeanOverEdges, &[x]);
    let value = b.value(pooled, spec);
    Ok(b.build(vec![policy, value], spec.num_players))
}
