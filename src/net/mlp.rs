//! The residual multilayer perceptron as candle modules: the residual network's blocks with linear layers in place of
//! convolutions.

use super::candle_net::{Mode, Trunk, mode_flag, norm};
use super::spec::NetSpec;
use candle_core::{Result, Tensor};
use candle_nn::{BatchNorm, Linear, Module, ModuleT, VarBuilder, linear};

struct Block {
    bn1: BatchNorm,
    linear1: Linear,
    bn2: BatchNorm,
    linear2: Linear,
}

/// Everything below the heads.
pub(super) struct Mlp {
    stem: Linear,
    blocks: Vec<Block>,
    bn: BatchNorm,
}

impl Mlp {
    pub fn new(spec: &NetSpec, vb: &VarBuilder<'_>) -> Result<Self> {
        let c = spec.channels;
        let blocks = (0..spec.blocks).map(|i| {
            let vb = vb.pp(format!("blocks.{i}"));
            Ok(Block {
                bn1: norm(c, vb.pp("bn1"))?,
                linear1: linear(c, c, vb.pp("linear1"))?,
                bn2: norm(c, vb.pp("bn2"))?,
                linear2: linear(c, c, vb.pp("linear2"))?,
            })
        });
        Ok(Self {
            stem: linear(spec.obs.len(), c, vb.pp("stem"))?,
            blocks: blocks.collect::<Result<_>>()?,
            bn: norm(c, vb.pp("bn"))?,
        })
    }
}

impl Trunk for Mlp {
    fn forward(&self, obs: &Tensor, mode: Mode) -> Result<(Tensor, Tensor)> {
        let train = mode_flag(mode);
        let mut x = self.stem.forward(obs)?;
        for block in &self.blocks {
            let y = block.linear1.forward(&block.bn1.forward_t(&x, train)?.relu()?)?;
            let y = block.linear2.forward(&block.bn2.forward_t(&y, train)?.relu()?)?;
            x = (x + y)?;
        }
        let x = self.bn.forward_t(&x, train)?.relu()?;
        Ok((x.clone(), x))
    }
}
