//! A network's weights -> layers ready to run, BatchNorm folded away.

use super::board::Runs;
use super::layer::{Affine, Dense, Layer};
use super::tile::{Epilogue, Kernels};
use crate::config::Arch;
use crate::error::{Error, Result};
use crate::net::spec::{BN_EPS, NetSpec, Weights};

/// All layers of one network.
pub(super) struct Packed {
    pub stem: Layer,
    pub blocks: Vec<[Layer; 2]>,
    /// The 1x1 convolutions of both heads as one (resnet): policy channels, then value channels.
    pub head: Option<Layer>,
    pub policy: Layer,
    pub hidden: Layer,
    pub value: Layer,
    /// Multiplications a position needs.
    pub products: usize,
}

/// Packs `weights`: the tower for `tower`, what comes after it for `full`, the f32 kernels of the same machine.
pub(super) fn pack(
    spec: &NetSpec,
    weights: &Weights,
    tower: &'static Kernels,
    full: &'static Kernels,
) -> Result<Packed> {
    spec.check(weights)?;
    let packer = Packer { spec, weights, tower, full };
    let mut packed = match spec.arch {
        Arch::Resnet => packer.resnet()?,
        Arch::Mlp => packer.mlp()?,
    };
    packed.products = packer.products(&packed);
    Ok(packed)
}

struct Packer<'a> {
    spec: &'a NetSpec,
    weights: &'a Weights,
    tower: &'static Kernels,
    full: &'static Kernels,
}

impl Packer<'_> {
    fn data(&self, name: &str) -> &[f32] {
        &self.weights[name].1
    }

    /// BatchNorm `name` with its running statistics as scale * x + offset.
    fn norm(&self, name: &str) -> Result<Affine> {
        let part = |part: &str| self.data(&format!("{name}.{part}"));
        let (weight, bias) = (part("weight"), part("bias"));
        let (mean, var) = (part("running_mean"), part("running_var"));
        let scale = |c: usize| f64::from(weight[c]) / (f64::from(var[c]) + BN_EPS).sqrt();
        let offset = |c: usize| f64::from(bias[c]) - f64::from(mean[c]) * scale(c);
        let channels = 0..weight.len();
        let affine = Affine {
            scale: channels.clone().map(|c| scale(c) as f32).collect(),
            offset: channels.map(|c| offset(c) as f32).collect(),
        };
        match affine.scale.iter().chain(&affine.offset).find(|x| !x.is_finite()) {
            Some(&value) => {
                Err(Error::NotFinite { what: format!("the scale or offset of BatchNorm {name}"), value })
            }
            None => Ok(affine),
        }
    }

    /// The BatchNorm that reads the residual stream after `blocks` blocks.
    fn stream_norm(&self, blocks: usize) -> Result<Option<Affine>> {
        let name = if blocks == self.spec.blocks { "bn".into() } else { format!("blocks.{blocks}.bn1") };
        self.norm(&name).map(Some)
    }

    fn resnet(&self) -> Result<Packed> {
        let NetSpec { channels, obs, policy_channels, value_channels, .. } = *self.spec;
        let squares = obs.height * obs.width;
        let conv = |name: &str, inputs: usize, fold: Option<Affine>, norm, epilogue| {
            let data = self.data(&format!("{name}.weight"));
            let scale = |co: usize| fold.as_ref().map_or(1.0, |f| f.scale[co]);
            let weight = |co: usize, tap: usize, ci: usize| scale(co) * data[(co * inputs + ci) * 9 + tap];
            let bias = fold.as_ref().map_or(vec![0.0; channels], |f| f.offset.clone());
            let dense = Dense { outputs: channels, taps: 9, inputs, weight: &weight, bias, norm, epilogue };
            Layer::new(self.tower, Runs::conv3x3(obs.height, obs.width), &dense)
        };
        let block = |i: usize| -> Result<[Layer; 2]> {
            let fold = Some(self.norm(&format!("blocks.{i}.bn2"))?);
            let inner = conv(&format!("blocks.{i}.conv1"), channels, fold, None, Epilogue::Inner);
            let norm = self.stream_norm(i + 1)?;
            Ok([inner, conv(&format!("blocks.{i}.conv2"), channels, None, norm, Epilogue::Leave)])
        };
        Ok(Packed {
            stem: conv("stem", obs.channels, None, self.stream_norm(0)?, Epilogue::Enter),
            blocks: (0..self.spec.blocks).map(block).collect::<Result<_>>()?,
            head: Some(self.head()?),
            policy: self.linear("policy.linear", self.full, squares, policy_channels, Epilogue::Output),
            hidden: self.linear("value.hidden", self.full, squares, value_channels, Epilogue::Hidden),
            value: self.value_out(),
            products: 0,
        })
    }

    /// Both heads' 1x1 convolutions with their BatchNorms.
    fn head(&self) -> Result<Layer> {
        let NetSpec { channels, obs, policy_channels, value_channels, .. } = *self.spec;
        let (policy, value) = (self.data("policy.conv.weight"), self.data("value.conv.weight"));
        let mut fold = self.norm("policy.bn")?;
        let value_fold = self.norm("value.bn")?;
        fold.scale.extend(value_fold.scale);
        fold.offset.extend(value_fold.offset);
        let weight = |co: usize, _: usize, ci: usize| {
            let row = if co < policy_channels {
                &policy[co * channels..]
            } else {
                &value[(co - policy_channels) * channels..]
            };
            fold.scale[co] * row[ci]
        };
        let dense = Dense {
            outputs: policy_channels + value_channels,
            taps: 1,
            inputs: channels,
            weight: &weight,
            bias: fold.offset.clone(),
            norm: None,
            epilogue: Epilogue::Hidden,
        };
        Ok(Layer::new(self.tower, Runs::pointwise(obs.height * obs.width), &dense))
    }

    fn mlp(&self) -> Result<Packed> {
        let NetSpec { channels, obs, .. } = *self.spec;
        let full_width = |name: &str, inputs: usize, fold: Option<Affine>, norm, epilogue| {
            let (data, bias) = (self.data(&format!("{name}.weight")), self.data(&format!("{name}.bias")));
            let scale = |co: usize| fold.as_ref().map_or(1.0, |f| f.scale[co]);
            let weight = |co: usize, _: usize, ci: usize| scale(co) * data[co * inputs + ci];
            let offset = |co: usize| fold.as_ref().map_or(0.0, |f| f.offset[co]);
            let bias = bias.iter().enumerate().map(|(co, b)| scale(co) * b + offset(co)).collect();
            let dense = Dense { outputs: channels, taps: 1, inputs, weight: &weight, bias, norm, epilogue };
            Layer::new(self.tower, Runs::pointwise(1), &dense)
        };
        let block = |i: usize| -> Result<[Layer; 2]> {
            let fold = Some(self.norm(&format!("blocks.{i}.bn2"))?);
            let inner = full_width(&format!("blocks.{i}.linear1"), channels, fold, None, Epilogue::Inner);
            let norm = self.stream_norm(i + 1)?;
            Ok([inner, full_width(&format!("blocks.{i}.linear2"), channels, None, norm, Epilogue::Leave)])
        };
        Ok(Packed {
            stem: full_width("stem", obs.len(), None, self.stream_norm(0)?, Epilogue::Enter),
            blocks: (0..self.spec.blocks).map(block).collect::<Result<_>>()?,
            head: None,
            policy: self.linear("policy.linear", self.tower, 1, channels, Epilogue::Output),
            hidden: self.linear("value.hidden", self.tower, 1, channels, Epilogue::Hidden),
            value: self.value_out(),
            products: 0,
        })
    }

    fn value_out(&self) -> Layer {
        self.linear("value.out", self.full, 1, self.spec.value_hidden, Epilogue::Output)
    }

    /// A linear layer on flattened `[inputs, positions]`, each position a tap.
    fn linear(
        &self,
        name: &str,
        kernels: &'static Kernels,
        positions: usize,
        inputs: usize,
        epilogue: Epilogue,
    ) -> Layer {
        let (data, bias) = (self.data(&format!("{name}.weight")), self.data(&format!("{name}.bias")));
        let weight = |co: usize, p: usize, ci: usize| data[(co * inputs + ci) * positions + p];
        let (outputs, bias) = (bias.len(), bias.to_vec());
        let dense = Dense { outputs, taps: positions, inputs, weight: &weight, bias, norm: None, epilogue };
        Layer::new(kernels, Runs::dense(positions), &dense)
    }

    fn products(&self, packed: &Packed) -> usize {
        let NetSpec { channels, obs, policy_channels, value_channels, value_hidden, arch, .. } = *self.spec;
        let inputs = match arch {
            Arch::Resnet => [obs.channels, policy_channels, value_channels],
            Arch::Mlp => [obs.len(), channels, channels],
        };
        let tower = packed.blocks.iter().flatten().chain(&packed.head);
        packed.stem.products(inputs[0])
            + tower.map(|layer| layer.products(channels)).sum::<usize>()
            + packed.policy.products(inputs[1])
            + packed.hidden.products(inputs[2])
            + packed.value.products(value_hidden)
    }
}
