//! What a network is made of: its sizes and the names, shapes and order of its tensors, in PyTorch's layouts.

use crate::config::{Arch, NetConfig};
use crate::game::{ObsShape, Sizes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One named array of 32-bit floats, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Array {
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// The numbers, as many as the product of `shape`.
    pub data: Vec<f32>,
}

/// The weights of a network by name; the names and shapes are those of [`NetSpec::tensors`].
pub type Weights = BTreeMap<String, Array>;

/// The sizes that fix a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetSpec {
    /// Kind of network.
    pub arch: Arch,
    /// Residual blocks.
    pub blocks: usize,
    /// Channels of the tower, or width of the perceptron.
    pub channels: usize,
    /// Channels of the policy head's 1x1 convolution (resnet).
    pub policy_channels: usize,
    /// Channels of the value head's 1x1 convolution (resnet).
    pub value_channels: usize,
    /// Hidden units of the value head.
    pub value_hidden: usize,
    /// Shape of one observation.
    pub obs: ObsShape,
    /// A: logits.
    pub num_actions: usize,
    /// P: players.
    pub num_players: usize,
    /// True for two players whose values are v and -v: the value head then has one output.
    pub zero_sum_pair: bool,
}

impl NetSpec {
    /// The network of `config` for a game of these `sizes`.
    pub fn new(config: &NetConfig, sizes: &Sizes) -> Self {
        Self {
            arch: config.arch,
            blocks: config.blocks,
            channels: config.channels,
            policy_channels: config.policy_channels,
            value_channels: config.value_channels,
            value_hidden: config.value_hidden,
            obs: sizes.obs,
            num_actions: sizes.num_actions,
            num_players: sizes.num_players,
            zero_sum_pair: sizes.num_players == 2 && sizes.zero_sum,
        }
    }

    /// V: outputs of the value head.
    pub fn num_values(&self) -> usize {
        if self.zero_sum_pair { 1 } else { self.num_players }
    }

    /// Names and shapes of all tensors, in the order of the forward pass.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let c = self.channels;
        let area = self.obs.height * self.obs.width;
        let mut list = List(Vec::new());
        let hidden_in = match self.arch {
            Arch::Resnet => {
                list.add("stem.weight", &[c, self.obs.channels, 3, 3]);
                for i in 0..self.blocks {
                    list.norm(&format!("blocks.{i}.bn1"), c);
                    list.add(&format!("blocks.{i}.conv1.weight"), &[c, c, 3, 3]);
                    list.norm(&format!("blocks.{i}.bn2"), c);
                    list.add(&format!("blocks.{i}.conv2.weight"), &[c, c, 3, 3]);
                }
                list.norm("bn", c);
                list.add("policy.conv.weight", &[self.policy_channels, c, 1, 1]);
                list.norm("policy.bn", self.policy_channels);
                list.linear("policy.linear", self.num_actions, self.policy_channels * area);
                list.add("value.conv.weight", &[self.value_channels, c, 1, 1]);
                list.norm("value.bn", self.value_channels);
                self.value_channels * area
            }
            Arch::Mlp => {
                list.linear("stem", c, self.obs.len());
                for i in 0..self.blocks {
                    for half in 1..=2 {
                        list.norm(&format!("blocks.{i}.bn{half}"), c);
                        list.linear(&format!("blocks.{i}.linear{half}"), c, c);
                    }
                }
                list.norm("bn", c);
                list.linear("policy.linear", self.num_actions, c);
                c
            }
        };
        list.linear("value.hidden", self.value_hidden, hidden_in);
        list.linear("value.out", self.num_values(), self.value_hidden);
        list.0
    }
}

struct List(Vec<(String, Vec<usize>)>);

impl List {
    fn add(&mut self, name: &str, shape: &[usize]) {
        self.0.push((name.to_string(), shape.to_vec()));
    }

    fn norm(&mut self, name: &str, channels: usize) {
        for part in ["weight", "bias", "running_mean", "running_var"] {
            self.add(&format!("{name}.{part}"), &[channels]);
        }
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) {
        self.add(&format!("{name}.weight"), &[outputs, inputs]);
        self.add(&format!("{name}.bias"), &[outputs]);
    }
}
