//! The pre-activation residual network (He et al. 2016, <https://arxiv.org/abs/1603.05027>, figure 4e) as candle modules,
//! with a policy and a value head as in AlphaZero.

use super::candle_net::{Mode, Trunk, mode_flag, norm};
use super::spec::NetSpec;
use candle_core::{Result, Tensor};
use candle_nn::{BatchNorm, Conv2d, Conv2dConfig, Module, ModuleT, VarBuilder, conv2d_no_bias};

struct Block {
    bn1: BatchNorm,
    conv1: Conv2d,
    bn2: BatchNorm,
    conv2: Conv2d,
}

/// A 1x1 convolution, normalisation and ReLU, flattened channel by channel.
struct Head {
    conv: Conv2d,
    bn: BatchNorm,
}

/// The tower and the convolutional part of the heads.
pub(super) struct Resnet {
    obs: (usize, usize, usize),
    stem: Conv2d,
    blocks: Vec<Block>,
    bn: BatchNorm,
    policy: Head,
    value: Head,
}

impl Resnet {
    pub fn new(spec: &NetSpec, vb: &VarBuilder<'_>) -> Result<Self> {
        let c = spec.channels;
        let padded = Conv2dConfig { padding: 1, ..Default::default() };
        let blocks = (0..spec.blocks).map(|i| {
            let vb = vb.pp(format!("blocks.{i}"));
            Ok(Block {
                bn1: norm(c, vb.pp("bn1"))?,
                conv1: conv2d_no_bias(c, c, 3, padded, vb.pp("conv1"))?,
                bn2: norm(c, vb.pp("bn2"))?,
                conv2: conv2d_no_bias(c, c, 3, padded, vb.pp("conv2"))?,
            })
        });
        Ok(Self {
            obs: (spec.obs.channels, spec.obs.height, spec.obs.width),
            stem: conv2d_no_bias(spec.obs.channels, c, 3, padded, vb.pp("stem"))?,
            blocks: blocks.collect::<Result<_>>()?,
            bn: norm(c, vb.pp("bn"))?,
            policy: Head::new(c, spec.policy_channels, &vb.pp("policy"))?,
            value: Head::new(c, spec.value_channels, &vb.pp("value"))?,
        })
    }
}

impl Head {
    fn new(inputs: usize, channels: usize, vb: &VarBuilder<'_>) -> Result<Self> {
        let conv = conv2d_no_bias(inputs, channels, 1, Conv2dConfig::default(), vb.pp("conv"))?;
        Ok(Self { conv, bn: norm(channels, vb.pp("bn"))? })
    }

    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        self.bn.forward_t(&self.conv.forward(x)?, mode_flag(mode))?.relu()?.flatten_from(1)
    }
}

impl Trunk for Resnet {
    fn forward(&self, obs: &Tensor, mode: Mode) -> Result<(Tensor, Tensor)> {
        let train = mode_flag(mode);
        let (channels, height, width) = self.obs;
        let mut x = self.stem.forward(&obs.reshape(((), channels, height, width))?)?;
        for block in &self.blocks {
            let y = block.conv1.forward(&block.bn1.forward_t(&x, train)?.relu()?)?;
            let y = block.conv2.forward(&block.bn2.forward_t(&y, train)?.relu()?)?;
            x = (x + y)?;
        }
        let x = self.bn.forward_t(&x, train)?.relu()?;
        Ok((self.policy.forward(&x, mode)?, self.value.forward(&x, mode)?))
    }
}
