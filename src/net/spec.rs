//! What a network is made of: its sizes, the names and shapes of its tensors, its weights as plain arrays.
//!
//! The tower is the pre-activation residual network of He et al. 2016 (Identity Mappings in Deep Residual Networks); the
//! heads are those of AlphaGo Zero (Silver et al. 2017). The edge network is that of [`super::edges`]' complete graphs.
//! Tensors have torch's layouts.

use super::IoShape;
use super::edges::Edges;
use crate::config::{Arch, NetConfig};
use crate::error::{Error, Result};
use crate::game::ObsShape;
use crate::rng::Key;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Added to the variance in every BatchNorm.
pub const BN_EPS: f64 = 1e-5;

/// One named array of 32-bit floats, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Array {
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// The numbers, as many as the product of `shape`.
    pub data: Vec<f32>,
}

/// The tensors of a network by name; the names and shapes are those of [`NetSpec::tensors`].
pub type Weights = BTreeMap<String, Array>;

/// Everything that fixes a network's tensors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetSpec {
    /// Kind of network.
    pub arch: Arch,
    /// Residual blocks.
    pub blocks: usize,
    /// C: channels of the tower, or width of the perceptron.
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
    /// P: values.
    pub num_players: usize,
    /// True where one value output v stands for (v, -v): two players whose returns sum to 0.
    pub zero_sum_pair: bool,
}

impl NetSpec {
    /// The network that `net` describes, for a game with these sizes.
    pub fn new(net: &NetConfig, sizes: &crate::game::Sizes) -> Self {
        Self {
            arch: net.arch,
            blocks: net.blocks,
            channels: net.channels,
            policy_channels: net.policy_channels,
            value_channels: net.value_channels,
            value_hidden: net.value_hidden,
            obs: sizes.obs,
            num_actions: sizes.num_actions,
            num_players: sizes.num_players,
            zero_sum_pair: sizes.num_players == 2 && sizes.zero_sum,
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

    /// Channels of an edge network that are multiplied around triangles: the first half.
    pub fn triangle_channels(&self) -> usize {
        self.channels / 2
    }

    /// The network with the same tensors for a game of these sizes, where there is one: itself, or an edge network on
    /// another number of vertices.
    pub fn for_sizes(&self, sizes: &crate::game::Sizes) -> Option<Self> {
        let spec = Self { obs: sizes.obs, num_actions: sizes.num_actions, ..self.clone() };
        let same_game = (self.num_players, self.obs.channels) == (sizes.num_players, sizes.obs.channels);
        (same_game && spec.check_graph().is_ok() && spec.tensors() == self.tensors()).then_some(spec)
    }

    /// Refuses an edge network for a game that is not played on the edges of a complete graph.
    ///
    /// # Errors
    /// [`Error::Config`] for `net.arch`.
    pub fn check_graph(&self) -> Result<()> {
        match self.arch {
            Arch::Edge => Edges::of_observation(self.obs, self.num_actions).map(drop),
            Arch::Resnet | Arch::Mlp => Ok(()),
        }
    }

    /// Name and shape of every tensor, from input to output.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        match self.arch {
            Arch::Resnet => self.resnet_tensors(),
            Arch::Mlp => self.mlp_tensors(),
            Arch::Edge => self.edge_tensors(),
        }
    }

    fn resnet_tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (c, squares) = (self.channels, self.obs.height * self.obs.width);
        let mut list = TensorList::default();
        list.add("stem.weight", &[c, self.obs.channels, 3, 3]);
        for i in 0..self.blocks {
            for part in 1..=2 {
                list.batch_norm(&format!("blocks.{i}.bn{part}"), c);
                list.add(&format!("blocks.{i}.conv{part}.weight"), &[c, c, 3, 3]);
            }
        }
        list.batch_norm("bn", c);
        list.add("policy.conv.weight", &[self.policy_channels, c, 1, 1]);
        list.batch_norm("policy.bn", self.policy_channels);
        list.linear("policy.linear", self.num_actions, self.policy_channels * squares);
        list.add("value.conv.weight", &[self.value_channels, c, 1, 1]);
        list.batch_norm("value.bn", self.value_channels);
        list.linear("value.hidden", self.value_hidden, self.value_channels * squares);
        list.linear("value.out", self.num_values(), self.value_hidden);
        list.0
    }

    fn mlp_tensors(&self) -> Vec<(String, Vec<usize>)> {
        let c = self.channels;
        let mut list = TensorList::default();
        list.linear("stem", c, self.obs.len());
        for i in 0..self.blocks {
            for part in 1..=2 {
                list.batch_norm(&format!("blocks.{i}.bn{part}"), c);
                list.linear(&format!("blocks.{i}.linear{part}"), c, c);
            }
        }
        list.batch_norm("bn", c);
        list.linear("policy.linear", self.num_actions, c);
        list.linear("value.hidden", self.value_hidden, c);
        list.linear("value.out", self.num_values(), self.value_hidden);
        list.0
    }

    fn edge_tensors(&self) -> Vec<(String, Vec<usize>)> {
        let c = self.channels;
        let mut list = TensorList::default();
        list.add("stem.weight", &[c, self.obs.channels]);
        for i in 0..self.blocks {
            list.batch_norm(&format!("blocks.{i}.bn1"), c);
            list.add(&format!("blocks.{i}.edge.weight"), &[c, c]);
            list.add(&format!("blocks.{i}.vertex.weight"), &[c, c]);
            list.batch_norm(&format!("blocks.{i}.bn2"), c);
            list.add(&format!("blocks.{i}.out.weight"), &[c, c]);
        }
        list.batch_norm("bn", c);
        list.add("policy.linear.weight", &[1, c]);
        list.linear("value.hidden", self.value_hidden, c);
        list.linear("value.out", self.num_values(), self.value_hidden);
        list.0
    }

    /// Weights for tests and benchmarks: linear maps that keep the variance, BatchNorm statistics near 0 and 1.
    pub fn random(&self, key: Key) -> Weights {
        let tensor = |(index, (name, shape)): (usize, (String, Vec<usize>))| {
            let mut stream = key.with(index as u64).stream();
            let inputs: usize = shape[1..].iter().product();
            let (mean, deviation) = match name.rsplit('.').next() {
                Some("weight") if shape.len() == 1 => (1.0, 0.2),
                Some("weight") => (0.0, (2.0 / inputs as f32).sqrt()),
                Some("running_var") => (1.0, 0.2),
                _ => (0.0, 0.1),
            };
            let len = shape.iter().product();
            // The variance of a BatchNorm stays positive: at most 4 deviations from its mean.
            let data = (0..len).map(|_| mean + deviation * stream.normal().clamp(-4.0, 4.0)).collect();
            (name, Array { shape, data })
        };
        self.tensors().into_iter().enumerate().map(tensor).collect()
    }

    /// Checks that `weights` holds exactly this network's tensors, with finite numbers.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a size of 0, a missing, foreign or misshapen tensor; [`Error::NotFinite`]; those of
    /// [`NetSpec::check_graph`].
    pub fn check(&self, weights: &Weights) -> Result<()> {
        self.check_graph()?;
        let tensors = self.tensors();
        if self.zero_sum_pair && self.num_players != 2 {
            return Err(mismatch("players of a network with one value for two", self.num_players, 2));
        }
        for (name, shape) in &tensors {
            let Some(Array { shape: found, data }) = weights.get(name) else {
                return Err(mismatch(&format!("tensor {name}"), "none", format!("{shape:?}")));
            };
            let len: usize = shape.iter().product();
            if len == 0 {
                return Err(mismatch(&format!("tensor {name}"), format!("{shape:?}"), "sizes from 1"));
            }
            if found != shape || data.len() != len {
                let found = format!("{found:?} ({} numbers)", data.len());
                return Err(mismatch(&format!("tensor {name}"), found, format!("{shape:?}")));
            }
            if let Some(&value) = data.iter().find(|x| !x.is_finite()) {
                return Err(Error::NotFinite { what: format!("a weight of tensor {name}"), value });
            }
        }
        match weights.keys().find(|name| !tensors.iter().any(|(known, _)| known == *name)) {
            Some(name) => Err(mismatch("tensors of the network", name, "only those of its architecture")),
            None => Ok(()),
        }
    }
}

fn mismatch(what: &str, found: impl ToString, expected: impl ToString) -> Error {
    Error::Mismatch { what: what.to_string(), found: found.to_string(), expected: expected.to_string() }
}

#[derive(Default)]
struct TensorList(Vec<(String, Vec<usize>)>);

impl TensorList {
    fn add(&mut self, name: &str, shape: &[usize]) {
        self.0.push((name.to_string(), shape.to_vec()));
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) {
        self.add(&format!("{name}.weight"), &[outputs, inputs]);
        self.add(&format!("{name}.bias"), &[outputs]);
    }

    fn batch_norm(&mut self, name: &str, channels: usize) {
        for part in ["weight", "bias", "running_mean", "running_var"] {
            self.add(&format!("{name}.{part}"), &[channels]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(arch: Arch) -> NetSpec {
        NetSpec {
            arch,
            blocks: 1,
            channels: 4,
            policy_channels: 2,
            value_channels: 3,
            value_hidden: 5,
            obs: ObsShape { channels: 2, height: 6, width: 7 },
            num_actions: 7,
            num_players: 2,
            zero_sum_pair: true,
        }
    }

    #[test]
    fn tensors_have_torch_shapes() {
        let find = |arch, name: &str| spec(arch).tensors().into_iter().find(|(n, _)| n == name).map(|t| t.1);
        assert_eq!(find(Arch::Resnet, "stem.weight"), Some(vec![4, 2, 3, 3]));
        assert_eq!(find(Arch::Resnet, "policy.linear.weight"), Some(vec![7, 2 * 42]));
        assert_eq!(find(Arch::Resnet, "value.hidden.weight"), Some(vec![5, 3 * 42]));
        assert_eq!(find(Arch::Resnet, "stem.bias"), None);
        assert_eq!(find(Arch::Mlp, "stem.weight"), Some(vec![4, 84]));
        assert_eq!(find(Arch::Mlp, "value.out.weight"), Some(vec![1, 5]));
        // stem 1, two BatchNorms of 4 and two convolutions, BatchNorm 4, heads 1 + 4 + 2 and 1 + 4 + 2 + 2.
        assert_eq!(spec(Arch::Resnet).tensors().len(), 1 + 10 + 4 + 7 + 9);
    }

    #[test]
    fn wrong_weights_are_named() {
        let spec = spec(Arch::Mlp);
        let good: Weights = spec
            .tensors()
            .into_iter()
            .map(|(name, shape)| {
                let len = shape.iter().product();
                (name, Array { shape, data: vec![0.5; len] })
            })
            .collect();
        assert!(spec.check(&good).is_ok());
        let message = |change: &dyn Fn(&mut Weights)| {
            let mut weights = good.clone();
            change(&mut weights);
            spec.check(&weights).expect_err("must be refused").to_string()
        };
        assert!(message(&|w| drop(w.remove("bn.bias"))).contains("bn.bias"));
        assert!(
            message(&|w| drop(w.insert("extra".into(), Array { shape: vec![1], data: vec![0.0] })))
                .contains("extra")
        );
        assert!(message(&|w| w.get_mut("stem.bias").unwrap().shape = vec![2, 2]).contains("stem.bias"));
        assert!(message(&|w| w.get_mut("stem.bias").unwrap().data[1] = f32::NAN).contains("not finite"));
    }
}
