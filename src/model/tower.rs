//! The normal form that fused executors run, and which models have it.
//!
//! [`Tower`] says which layers of a [`Model`] are the stem, the blocks, the last normalisation and the heads. Fused executors read kinds,
//! shapes and parameters of those layers; they know no architecture and no parameter's name.

use super::{ActivationShape, HeadRole, Layer, LayerKind, Model, ValueFunction};

/// A residual tower with a policy and a value head. All fields are indices of [`Model::layers`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tower {
    /// The first layer with weights: a convolution, a linear layer on the flattened observation, or one at every edge.
    pub stem: usize,
    /// The residual blocks.
    pub blocks: Vec<ResidualBlock>,
    /// The BatchNorm (with a ReLU) after the last block.
    pub norm: usize,
    /// 1x1 convolutions with BatchNorm and ReLU before the policy and the value head; None where both read the tower itself.
    pub heads: Option<[HeadConv; 2]>,
    /// Logits: a linear layer on all positions, or a layer with outputs at each point of a board or one at each edge.
    pub policy: usize,
    /// The hidden linear layer of the value head (with a ReLU). On edges it reads the mean over them.
    pub hidden: usize,
    /// The outputs of the value head before `value_function`.
    pub values: usize,
    /// The function from these outputs to values.
    pub value_function: ValueFunction,
    /// The heads that only training uses, in the order of [`Model::heads`].
    pub auxiliary: Vec<AuxiliaryHead>,
}

/// A head that only training uses, on the tower's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxiliaryHead {
    /// The convolution with which it begins on boards.
    pub conv: Option<HeadConv>,
    /// Its outputs: a linear layer, or one channel at each point of a board.
    pub out: usize,
}

/// `x + second(relu(bn(first(relu(bn(x))))))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResidualBlock {
    /// The BatchNorm before each layer.
    pub norms: [usize; 2],
    /// The layers: of one kind, but on edges a message and a layer at every edge.
    pub layers: [usize; 2],
    /// Channels that are mixed around triangles before the second layer; 0 where the stream is not on the edges of K_n.
    pub triangle_channels: usize,
}

/// The role of a layer's output in the gradient of the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidualGrad {
    /// The output is not added to the stream.
    None,
    /// The output is the last one added to the stream: the stream's gradient starts here.
    Start,
    /// The output is an earlier one added to the stream: the stream's gradient accumulates here.
    Accumulate,
}

impl ResidualGrad {
    /// The role of output number `output` of a tower of `blocks` blocks. Output 0 is the stem's, outputs 2 i + 1 and 2 i + 2 are those of
    /// the layers of block i; a layer after the blocks is not added to the stream.
    pub fn of_output(output: usize, blocks: usize) -> Self {
        match output {
            after if after > 2 * blocks || after % 2 == 1 => Self::None,
            last if last == 2 * blocks => Self::Start,
            _ => Self::Accumulate,
        }
    }
}

/// A 1x1 convolution with BatchNorm and ReLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadConv {
    /// The convolution.
    pub conv: usize,
    /// Its BatchNorm.
    pub norm: usize,
}

impl Tower {
    /// The BatchNorm that reads the residual stream after `blocks` blocks.
    pub fn stream_norm(&self, blocks: usize) -> usize {
        self.blocks.get(blocks).map_or(self.norm, |block| block.norms[0])
    }

    /// The normal form of `model`.
    ///
    /// # Errors
    /// The first layer of the model that does not fit, and the kind that would fit.
    pub fn of(model: &Model) -> Result<Self, String> {
        let mut matcher = Matcher { model, seen: vec![false; model.layers.len()] };
        let tower = matcher.tower()?;
        match matcher.seen.iter().position(|seen| !seen) {
            Some(index) => Err(matcher.mismatch(index, "a layer of a residual tower")),
            None => Ok(tower),
        }
    }
}

/// One of a block's two layers.
#[derive(Clone, Copy)]
enum BlockLayer {
    First,
    Second,
}

/// Goes from the outputs back to the observation.
struct Matcher<'a> {
    model: &'a Model,
    seen: Vec<bool>,
}

impl<'a> Matcher<'a> {
    fn mismatch(&self, index: usize, expected: &str) -> String {
        let Layer { kind, name, .. } = &self.model.layers[index];
        let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
        format!("layer {index} is {}{name} where the fused kernels have {expected}", kind.name())
    }

    fn layer(&mut self, index: usize) -> &'a Layer {
        self.seen[index] = true;
        &self.model.layers[index]
    }

    /// The layer that `index`, which must be of a kind that `is` takes, reads.
    fn input_of(&mut self, index: usize, expected: &str, is: fn(LayerKind) -> bool) -> Result<usize, String> {
        let layer = self.layer(index);
        if is(layer.kind) { Ok(layer.inputs[0]) } else { Err(self.mismatch(index, expected)) }
    }

    /// The BatchNorm under the ReLU `index`.
    fn norm_of(&mut self, index: usize) -> Result<usize, String> {
        self.input_of(index, "a ReLU", |kind| kind == LayerKind::Relu)
    }

    /// The input of the BatchNorm `index`.
    fn input_of_norm(&mut self, index: usize) -> Result<usize, String> {
        self.input_of(index, "BatchNorm", |kind| kind == LayerKind::BatchNorm)
    }

    /// The input of a block's layer, which maps the tower's shape to itself.
    fn input_of_inner(
        &mut self,
        index: usize,
        order: BlockLayer,
        stream: ActivationShape,
    ) -> Result<usize, String> {
        let layer = &self.model.layers[index];
        let fits = match (stream, order) {
            (ActivationShape::Vector(_), _) => matches!(layer.kind, LayerKind::Linear { .. }),
            (ActivationShape::Board { .. }, _) => matches!(layer.kind, LayerKind::Conv3x3 { .. }),
            (ActivationShape::Edges { .. }, BlockLayer::First) => layer.kind == LayerKind::EdgeMessage,
            (ActivationShape::Edges { .. }, BlockLayer::Second) => {
                matches!(layer.kind, LayerKind::Conv1x1 { .. })
            }
        };
        if !fits || layer.shape != stream {
            return Err(self.mismatch(index, &format!("a layer from {stream} to as many")));
        }
        Ok(self.layer(index).inputs[0])
    }

    fn tower(&mut self) -> Result<Tower, String> {
        let model = self.model;
        let linear = |kind: LayerKind| matches!(kind, LayerKind::Linear { .. });
        let value = model.value();
        let function = model.layers[value].kind.value_function();
        let value_function = function.ok_or_else(|| self.mismatch(value, "a tanh"))?;
        let values = self.layer(value).inputs[0];
        let relu = self.input_of(values, "a linear layer", linear)?;
        let hidden = self.norm_of(relu)?;
        let value_input = self.input_of(hidden, "a linear layer", linear)?;
        let (heads, policy, end) = self.heads(value_input)?;
        let auxiliary = self.auxiliary(end)?;
        let norm = self.norm_of(end)?;
        let mut x = self.input_of_norm(norm)?;
        let stream = model.layers[x].shape;
        if heads.is_some() != matches!(stream, ActivationShape::Board { .. }) {
            return Err(self.mismatch(value_input, &format!("the value head of {stream}")));
        }
        let mut blocks = Vec::new();
        while model.layers[x].kind == LayerKind::Add {
            let [start, sum] = self.layer(x).inputs[..] else { return Err(self.mismatch(x, "a sum of two")) };
            blocks.push(self.block(start, sum, stream)?);
            x = start;
        }
        blocks.reverse();
        self.stem(x)?;
        Ok(Tower { stem: x, blocks, norm, heads, policy, hidden, values, value_function, auxiliary })
    }

    /// The heads' convolutions, the policy layer, and the end of the tower, which both heads read.
    fn heads(&mut self, value_input: usize) -> Result<(Option<[HeadConv; 2]>, usize, usize), String> {
        let model = self.model;
        match model.layers[value_input].kind {
            LayerKind::Flatten => {
                let (policy, relu) = self.board_policy()?;
                let (policy_conv, end) = self.conv_under(relu)?;
                let (value_conv, same) = self.head_conv(value_input)?;
                self.same_end(end, same)?;
                Ok((Some([policy_conv, value_conv]), policy, end))
            }
            LayerKind::MeanOverEdges => {
                let end = self.layer(value_input).inputs[0];
                let policy =
                    self.input_of(model.policy(), "one logit an edge", |kind| kind == LayerKind::Flatten)?;
                let one = |kind: LayerKind| matches!(kind, LayerKind::Conv1x1 { outputs: 1, .. });
                let same = self.input_of(policy, "one logit an edge", one)?;
                self.same_end(end, same)?;
                Ok((None, policy, end))
            }
            _ => {
                let policy = model.policy();
                let same =
                    self.input_of(policy, "a linear layer", |kind| matches!(kind, LayerKind::Linear { .. }))?;
                self.same_end(value_input, same)?;
                Ok((None, policy, value_input))
            }
        }
    }

    /// The layer of a board's logits, and the ReLU that it reads.
    fn board_policy(&mut self) -> Result<(usize, usize), String> {
        let policy = self.model.policy();
        let is_conv = |kind: LayerKind| matches!(kind, LayerKind::Conv1x1 { .. });
        if let LayerKind::PointLogits(_) = self.model.layers[policy].kind {
            let conv = self.layer(policy).inputs[0];
            return Ok((conv, self.input_of(conv, "outputs at each point", is_conv)?));
        }
        let is_linear = |kind: LayerKind| matches!(kind, LayerKind::Linear { .. });
        let flat = self.input_of(policy, "a linear layer", is_linear)?;
        let relu = self.input_of(flat, "a flattened board", |kind| kind == LayerKind::Flatten)?;
        Ok((policy, relu))
    }

    fn same_end(&self, value: usize, policy: usize) -> Result<(), String> {
        if value == policy { Ok(()) } else { Err(self.mismatch(policy, "what the value head reads too")) }
    }

    /// The auxiliary heads, which read the tower's end `end`.
    fn auxiliary(&mut self, end: usize) -> Result<Vec<AuxiliaryHead>, String> {
        let model = self.model;
        let is_auxiliary = |head: &&super::Head| head.role == HeadRole::Auxiliary;
        model.heads.iter().filter(is_auxiliary).map(|head| self.auxiliary_head(head.layer, end)).collect()
    }

    fn auxiliary_head(&mut self, layer: usize, end: usize) -> Result<AuxiliaryHead, String> {
        let model = self.model;
        let kind = |index: usize| model.layers[index].kind;
        let out = match kind(layer) {
            LayerKind::Flatten => {
                let one = |kind: LayerKind| matches!(kind, LayerKind::Conv1x1 { outputs: 1, .. });
                let out = self.layer(layer).inputs[0];
                let relu = self.input_of(out, "one output a point", one)?;
                return self.auxiliary_conv(relu, out, end);
            }
            _ => layer,
        };
        let input = self.input_of(out, "a linear layer", |kind| matches!(kind, LayerKind::Linear { .. }))?;
        if kind(input) == LayerKind::Flatten {
            let relu = self.layer(input).inputs[0];
            return self.auxiliary_conv(relu, out, end);
        }
        self.same_end(end, input)?;
        Ok(AuxiliaryHead { conv: None, out })
    }

    fn auxiliary_conv(&mut self, relu: usize, out: usize, end: usize) -> Result<AuxiliaryHead, String> {
        let (conv, same) = self.conv_under(relu)?;
        self.same_end(end, same)?;
        Ok(AuxiliaryHead { conv: Some(conv), out })
    }

    fn head_conv(&mut self, flat: usize) -> Result<(HeadConv, usize), String> {
        let relu = self.input_of(flat, "a flattened board", |kind| kind == LayerKind::Flatten)?;
        self.conv_under(relu)
    }

    /// The convolution under the ReLU `relu`, and what it reads.
    fn conv_under(&mut self, relu: usize) -> Result<(HeadConv, usize), String> {
        let norm = self.norm_of(relu)?;
        let conv = self.input_of_norm(norm)?;
        let end =
            self.input_of(conv, "a 1x1 convolution", |kind| matches!(kind, LayerKind::Conv1x1 { .. }))?;
        Ok((HeadConv { conv, norm }, end))
    }

    /// The block that adds its layer `second` to `start`.
    fn block(
        &mut self,
        start: usize,
        second: usize,
        stream: ActivationShape,
    ) -> Result<ResidualBlock, String> {
        let mut relu = self.input_of_inner(second, BlockLayer::Second, stream)?;
        let mut triangle_channels = 0;
        if let LayerKind::TriangleMix { channels } = self.model.layers[relu].kind {
            triangle_channels = channels;
            relu = self.layer(relu).inputs[0];
        }
        let second_norm = self.norm_of(relu)?;
        let first = self.input_of_norm(second_norm)?;
        let relu = self.input_of_inner(first, BlockLayer::First, stream)?;
        let first_norm = self.norm_of(relu)?;
        let stream_start = self.input_of_norm(first_norm)?;
        if stream_start != start {
            return Err(self.mismatch(stream_start, "the input of the block's sum"));
        }
        let (norms, layers) = ([first_norm, second_norm], [first, second]);
        Ok(ResidualBlock { norms, layers, triangle_channels })
    }

    fn stem(&mut self, stem: usize) -> Result<(), String> {
        let mut input = self.layer(stem).inputs.first().copied().unwrap_or(stem);
        let fits = matches!(
            (self.model.layers[stem].kind, self.model.obs()),
            (LayerKind::Conv3x3 { .. } | LayerKind::Linear { .. }, ActivationShape::Board { .. })
                | (LayerKind::Conv1x1 { .. }, ActivationShape::Edges { .. })
        );
        if self.model.layers[input].kind == LayerKind::Flatten {
            input = self.layer(input).inputs[0];
        }
        self.seen[input] = true;
        if fits && input == 0 {
            Ok(())
        } else {
            Err(self.mismatch(stem, "a stem that reads the observation"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::builder::ModelBuilder;
    use super::*;
    use crate::config::Arch;
    use crate::game::ObsShape;
    use crate::model::NetSpec;

    fn spec(arch: Arch) -> NetSpec {
        NetSpec {
            arch,
            blocks: 2,
            channels: 4,
            policy_channels: 2,
            value_channels: 3,
            value_hidden: 5,
            obs: ObsShape { channels: 2, height: 6, width: 1 },
            num_actions: 6,
            num_players: 3,
            zero_sum_pair: false,
            ..NetSpec::default()
        }
    }

    #[test]
    fn every_architecture_is_a_tower() {
        for (arch, names) in [
            (Arch::Resnet, ["stem", "blocks.1.bn2", "blocks.1.conv2", "bn", "value.hidden"]),
            (Arch::Mlp, ["stem", "blocks.1.bn2", "blocks.1.linear2", "bn", "value.hidden"]),
            (Arch::Edge, ["stem", "blocks.1.bn2", "blocks.1.out", "bn", "value.hidden"]),
        ] {
            let model = spec(arch).model().expect("a network");
            let tower = Tower::of(&model).expect("a tower");
            let ResidualBlock { norms, layers, triangle_channels } = tower.blocks[1];
            let found = [tower.stem, norms[1], layers[1], tower.norm, tower.hidden];
            assert_eq!(found.map(|index| model.layers[index].name.as_str()), names);
            assert_eq!((tower.blocks.len(), tower.heads.is_some()), (2, arch == Arch::Resnet));
            assert_eq!(triangle_channels, if arch == Arch::Edge { 2 } else { 0 });
        }
    }

    #[test]
    fn the_layer_that_does_not_fit_is_named() {
        let heads = |mut b: ModelBuilder, x: usize| {
            let spec = NetSpec { num_actions: 7, value_hidden: 5, ..NetSpec::default() };
            let heads = vec![b.policy(x, &spec), b.value(x, &spec)];
            Tower::of(&b.build(heads, 2)).expect_err("no tower")
        };
        let mut b = ModelBuilder::new(ActivationShape::Vector(9));
        let x = b.linear("stem", 0, 4);
        let x = b.layer("", LayerKind::Relu, &[x]);
        let reason = heads(b, x);
        assert!(reason.contains("linear (stem) where the fused kernels have BatchNorm"), "{reason}");
        // A second reader of the stem.
        let mut b = ModelBuilder::new(ActivationShape::Board { channels: 3, height: 2, width: 5 });
        let flat = b.flatten(0);
        let x = b.linear("stem", flat, 4);
        let end = b.norm_relu("bn", x);
        b.linear("second", x, 3);
        let reason = heads(b, end);
        assert!(reason.contains("linear (second)"), "{reason}");
    }

    /// Executors read a block's first layer on edges as a message and its second as a convolution.
    #[test]
    fn the_layers_of_a_block_on_edges_have_an_order() {
        let mut model = spec(Arch::Edge).model().expect("a network");
        let ResidualBlock { layers: [first, second], .. } = Tower::of(&model).expect("a tower").blocks[0];
        let kinds = [first, second].map(|layer| model.layers[layer].kind);
        model.layers[first].kind = kinds[1];
        let reason = Tower::of(&model).expect_err("two convolutions");
        assert!(reason.contains("layer from"), "{reason}");
        (model.layers[first].kind, model.layers[second].kind) = (kinds[0], kinds[0]);
        let reason = Tower::of(&model).expect_err("two messages");
        assert!(reason.contains("layer from"), "{reason}");
    }

    #[test]
    fn heads_of_a_board_have_no_place_on_edges() {
        let mut b = ModelBuilder::new(ActivationShape::Edges { channels: 5, vertices: 4 });
        let x = b.conv1x1("stem", 0, 4);
        let x = b.norm_relu("bn", x);
        let mut head = |name: &str| {
            let y = b.head_conv(name, x, 2);
            b.flatten(y)
        };
        let [policy, value] = ["policy", "value"].map(&mut head);
        let spec = NetSpec { num_actions: 6, value_hidden: 7, ..NetSpec::default() };
        let heads = vec![b.policy(policy, &spec), b.value(value, &spec)];
        let reason = Tower::of(&b.build(heads, 2)).expect_err("no tower");
        assert!(reason.contains("where the fused kernels have the value head of"), "{reason}");
    }
}
