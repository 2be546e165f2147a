//! The sizes of a network, as a configuration gives them and files keep them.

use super::{IoShape, Model};
use crate::config::keys::Section;
use crate::config::{Arch, NetConfig, PolicyHead, ValueHead};
use crate::error::{Error, Result};
use crate::game::{MAX_TARGET_LEN, ObsShape, PointActions, Sizes, Target, TargetShape};
use serde::{Deserialize, Serialize};

/// The value head of files that name none.
fn scalar() -> ValueHead {
    ValueHead::Scalar
}

/// True for the value head that files leave out.
fn is_scalar(head: &ValueHead) -> bool {
    *head == ValueHead::Scalar
}

/// True where logits are to be made at points; the key is one of residual networks.
fn has_points(net: &NetConfig) -> bool {
    net.arch == Arch::Resnet && net.policy_head == PolicyHead::Points
}

/// Everything that fixes a network's layers, as a configuration gives it and files keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetSpec {
    /// The architecture.
    pub arch: Arch,
    /// Residual blocks.
    pub blocks: usize,
    /// C: channels of the tower, or width of the perceptron.
    pub channels: usize,
    /// Channels of the policy head's 1x1 convolution (resnet).
    pub policy_channels: usize,
    /// Actions whose logits are made at every point of the board by the same weights (resnet); None: all logits by a dense layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_actions: Option<PointActions>,
    /// Channels of the value head's 1x1 convolution (resnet).
    pub value_channels: usize,
    /// What the value head learns.
    #[serde(default = "scalar", skip_serializing_if = "is_scalar")]
    pub value_head: ValueHead,
    /// Hidden units of the value head.
    pub value_hidden: usize,
    /// The targets of the game's own that heads learn in training.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auxiliary: Vec<Target>,
    /// The shape of one observation.
    pub obs: ObsShape,
    /// A: logits.
    pub num_actions: usize,
    /// P: values.
    pub num_players: usize,
    /// True where one value output v stands for (v, -v): two players whose returns sum to 0.
    pub zero_sum_pair: bool,
}

impl Default for NetSpec {
    /// The default network, for observations of one element, one action and two players whose returns sum to 0.
    fn default() -> Self {
        Self::on_one_element(&NetConfig::default())
    }
}

impl NetSpec {
    /// The network that `net` describes, for a game with these sizes and targets.
    ///
    /// # Errors
    /// [`Error::Config`] for a name in `net.auxiliary` that none of the targets has, and for logits at points in a game without.
    pub fn with_targets(net: &NetConfig, sizes: &Sizes, targets: &[Target]) -> Result<Self> {
        let named = |name: &str| {
            let known: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
            targets.iter().find(|target| target.name == name).cloned().ok_or_else(|| match known[..] {
                [] => {
                    Error::config("net.auxiliary", name, "an empty text: this game has no targets of its own")
                }
                _ => Error::config("net.auxiliary", name, known.join(" or ")),
            })
        };
        if has_points(net) && sizes.point_actions.is_none() {
            let expected = "dense: the actions of this game are not points of its board";
            return Err(Error::config("net.policy_head", net.policy_head, expected));
        }
        let auxiliary = net.auxiliary_names().map(named).collect::<Result<_>>()?;
        Ok(Self { auxiliary, ..Self::new(net, sizes) })
    }

    /// The network that `net` describes, for a game with these sizes, without the heads of `net.auxiliary`.
    pub fn new(net: &NetConfig, sizes: &Sizes) -> Self {
        Self {
            obs: sizes.obs,
            num_actions: sizes.num_actions,
            num_players: sizes.num_players,
            zero_sum_pair: sizes.is_zero_sum_pair(),
            point_actions: sizes.point_actions.filter(|_| has_points(net)),
            ..Self::on_one_element(net)
        }
    }

    /// The keys of `[net]` that fix the layers, with their values as typed there.
    pub fn keys(&self) -> [(&'static str, String); 9] {
        let policy_head = if self.point_actions.is_some() { PolicyHead::Points } else { PolicyHead::Dense };
        let auxiliary: Vec<&str> = self.auxiliary.iter().map(|target| target.name.as_str()).collect();
        [
            ("arch", self.arch.to_string()),
            ("blocks", self.blocks.to_string()),
            ("channels", self.channels.to_string()),
            ("policy_head", policy_head.to_string()),
            ("policy_channels", self.policy_channels.to_string()),
            ("value_channels", self.value_channels.to_string()),
            ("value_head", self.value_head.to_string()),
            ("value_hidden", self.value_hidden.to_string()),
            ("auxiliary", format!("\"{}\"", auxiliary.join(","))),
        ]
    }

    /// Those of [`NetSpec::keys`] on which the layers depend: the keys of convolutions are left out where the architecture has none.
    pub fn effective_keys(&self) -> Vec<(&'static str, String)> {
        let has_convolutions = self.arch == Arch::Resnet;
        let is_of_convolution = |key: &str| matches!(key, "policy_channels" | "value_channels");
        self.keys().into_iter().filter(|(key, _)| has_convolutions || !is_of_convolution(key)).collect()
    }

    fn on_one_element(net: &NetConfig) -> Self {
        Self {
            arch: net.arch,
            blocks: net.blocks,
            channels: net.channels,
            policy_channels: net.policy_channels,
            point_actions: None,
            value_channels: net.value_channels,
            value_head: net.value_head,
            value_hidden: net.value_hidden,
            auxiliary: Vec::new(),
            obs: ObsShape { channels: 1, height: 1, width: 1 },
            num_actions: 1,
            num_players: 2,
            zero_sum_pair: true,
        }
    }

    /// Checks the sizes of the layers against the ranges of the configuration's keys; needed for a spec that was read from a file.
    ///
    /// # Errors
    /// [`crate::Error::Config`] with the first key out of range.
    pub fn check_layers(&self) -> Result<()> {
        let net = NetConfig {
            arch: self.arch,
            blocks: self.blocks,
            channels: self.channels,
            policy_channels: self.policy_channels,
            value_channels: self.value_channels,
            value_hidden: self.value_hidden,
            ..NetConfig::default()
        };
        net.check_values("net")?;
        let too_long = self.auxiliary.iter().find(|target| match target.shape {
            TargetShape::Points => false,
            TargetShape::Vector(len) => !(1..=MAX_TARGET_LEN).contains(&len),
        });
        match too_long {
            Some(target) => {
                let expected = format!("targets of 1 to {MAX_TARGET_LEN} numbers");
                Err(Error::config("net.auxiliary", &target.name, expected))
            }
            None => Ok(()),
        }
    }

    /// Sizes of the input and output.
    pub fn io(&self) -> IoShape {
        IoShape { obs_len: self.obs.len(), num_actions: self.num_actions, num_players: self.num_players }
    }

    /// V: outputs of the value head, 1 or P.
    pub fn num_values(&self) -> usize {
        if self.zero_sum_pair { 1 } else { self.num_players }
    }

    /// The list of its layers.
    ///
    /// # Errors
    /// As [`Model::new`]; [`Error::Config`] for win, draw and loss of a game without them.
    pub fn model(&self) -> Result<Model> {
        if self.value_head == ValueHead::Wdl && !self.zero_sum_pair {
            let expected = "scalar: this game is not for two players whose returns sum to 0";
            return Err(Error::config("net.value_head", self.value_head, expected));
        }
        Model::new(self)
    }

    /// The network with the same parameters for a game of these sizes, where there is one: itself, or an edge network on
    /// another number of vertices.
    pub fn for_sizes(&self, sizes: &Sizes) -> Option<Self> {
        let spec = Self { obs: sizes.obs, num_actions: sizes.num_actions, ..self.clone() };
        let same_game = (self.num_players, self.obs.channels) == (sizes.num_players, sizes.obs.channels);
        let params = |spec: &Self| spec.model().map(|model| model.params).ok();
        (same_game && params(&spec).is_some() && params(&spec) == params(self)).then_some(spec)
    }
}
