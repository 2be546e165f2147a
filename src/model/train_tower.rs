//! A [`Tower`]'s layers as training runs them: a stem, pre-activation layers `y = linear(relu(norm(x)))` (He et al. 2016, Identity Mappings
//! in Deep Residual Networks), a tail `relu(norm(x))`, and the linear layers of the heads, which read it.
//!
//! In: a model and its [`Tower`]. Out: which of the model's layers and parameters each of these layers has, for every executor that trains.

use super::{
    ActivationShape, CompleteGraph, HeadConv, HeadRole, LayerKind, Model, PointLogits, ResidualBlock, Tower,
};
use crate::device_struct::device_enum;
use bytemuck::NoUninit;

device_enum! {
    /// How a linear layer's input and output positions are linked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
    pub enum Connectivity: u32 {
        /// The same weights at every position: an output row reads the same input row.
        Pointwise,
        /// A 3x3 convolution with a border of zeros: nine taps read the neighbours on the board.
        Conv3x3,
        /// A linear layer on the flattened board: one output row per board, one tap per position.
        Flatten,
        /// Its transpose: one input row per board; each output position has its own tap.
        Spread,
    }
}

impl Connectivity {
    /// That of the layer's gradient.
    pub fn transposed(self) -> Self {
        match self {
            Self::Pointwise | Self::Conv3x3 => self,
            Self::Flatten => Self::Spread,
            Self::Spread => Self::Flatten,
        }
    }
}

/// A linear layer: layers of the model side by side that read the same input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainLinear {
    /// Their weights, by the index in [`Model::params`].
    pub weights: Vec<usize>,
    /// The bias of the first, by the index in [`Model::params`].
    pub bias: Option<usize>,
    /// How its positions are linked.
    pub connectivity: Connectivity,
    /// Rows and columns of the input's positions.
    pub board: [usize; 2],
    /// Channels of the groups in a row of the input.
    pub row: Vec<usize>,
    /// The group that it reads.
    pub group: usize,
}

/// A message of an edge network in a pre-activation layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrainMessage {
    /// None.
    None,
    /// The linear layer at the vertices, whose outputs are added to the layer's.
    Vertex(TrainLinear),
    /// The linear layer reads sums over triangles in its first channels, as many as this says.
    Triangle(usize),
}

/// Whether a layer's output is added to the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// It is not.
    None,
    /// It is: the input of the layer before, where the block begins, is added.
    Add,
}

/// A pre-activation layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreActivation {
    /// The BatchNorm, by its index in [`Model::layers`].
    pub norm: usize,
    /// The linear layer.
    pub linear: TrainLinear,
    /// Its message.
    pub message: TrainMessage,
    /// Whether it ends a block.
    pub residual: Residual,
}

/// All layers of a network in training.
#[derive(Clone, Debug)]
pub struct TrainTower {
    /// The shape of the residual stream.
    pub stream: ActivationShape,
    /// Where the stream is on the edges of K_n.
    pub edges: Option<CompleteGraph>,
    /// Blocks of the tower.
    pub blocks: usize,
    /// The first layer with weights.
    pub stem: TrainLinear,
    /// The layers of the blocks, then the convolutions of the heads.
    pub layers: Vec<PreActivation>,
    /// The BatchNorms side by side whose ReLU the heads' linear layers read.
    pub tail: Vec<usize>,
    /// The linear layers of the heads, in the order of [`Model::heads`].
    pub heads: Vec<TrainHead>,
}

/// The linear layers of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainHead {
    /// What its first layer reads.
    pub input: HeadInput,
    /// The hidden layer with a ReLU, where it has one.
    pub hidden: Option<TrainLinear>,
    /// The layer of its outputs.
    pub out: TrainLinear,
    /// Where the outputs are, if the layer of the outputs makes some at every position.
    pub points: Option<PointLogits>,
    /// The function of the outputs.
    pub output: HeadOutput,
}

/// What a head's first linear layer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadInput {
    /// The tail.
    Tail,
    /// The mean of the tail over all edges of K_n.
    MeanOverEdges,
}

/// The function after a head's last linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOutput {
    /// The outputs as they are.
    Linear,
    /// The hyperbolic tangent.
    Tanh,
}

impl TrainTower {
    /// The layers of `model`, whose normal form is `tower`.
    pub fn new(model: &Model, tower: &Tower) -> Self {
        let stream = model.layers[tower.stem].shape;
        let positions = stream.positions();
        let (inner, board) = match stream {
            ActivationShape::Board { height, width, .. } => (Connectivity::Conv3x3, [height, width]),
            ActivationShape::Vector(_) | ActivationShape::Edges { .. } => {
                (Connectivity::Pointwise, [positions, 1])
            }
        };
        let edges = match stream {
            ActivationShape::Edges { vertices, .. } => Some(CompleteGraph::new(vertices)),
            ActivationShape::Vector(_) | ActivationShape::Board { .. } => None,
        };
        let linears = Linears { model, board };
        let linear =
            |layers: &[usize], connectivity, row: &[usize]| linears.linear(layers, connectivity, row);
        let channels = [stream.channels()];
        let stem = linear(&[tower.stem], inner, &[model.obs().len() / positions]);
        let blocks = tower.blocks.iter().flat_map(|block| {
            let linears = block.layers.map(|layer| linear(&[layer], inner, &channels));
            block_layers(model, block, linears, edges.as_ref())
        });
        let mut layers: Vec<PreActivation> = blocks.collect();
        let own = tower.auxiliary.iter().filter_map(|head| head.conv);
        let (tail, row) = match tower.heads {
            Some(heads) => {
                let heads: Vec<HeadConv> = heads.into_iter().chain(own).collect();
                let convs: Vec<usize> = heads.iter().map(|head| head.conv).collect();
                layers.push(PreActivation {
                    norm: tower.norm,
                    linear: linear(&convs, Connectivity::Pointwise, &channels),
                    message: TrainMessage::None,
                    residual: Residual::None,
                });
                let norms = heads.iter().map(|head| head.norm).collect();
                (norms, convs.iter().map(|&conv| model.outputs(conv)).collect())
            }
            None => (vec![tower.norm], channels.to_vec()),
        };
        Self {
            stream,
            blocks: tower.blocks.len(),
            stem,
            layers,
            tail,
            heads: linears.heads(tower, stream, &row),
            edges,
        }
    }
}

/// Makes linear layers of `model` on positions in the rows and columns of `board`.
struct Linears<'a> {
    model: &'a Model,
    board: [usize; 2],
}

impl Linears<'_> {
    /// `layers` side by side, which read the first group of a row with the groups `row`.
    fn linear(&self, layers: &[usize], connectivity: Connectivity, row: &[usize]) -> TrainLinear {
        TrainLinear {
            weights: layers.iter().map(|&layer| self.model.param_index(layer, 0)).collect(),
            bias: self.model.bias_index(layers[0]),
            connectivity,
            board: self.board,
            row: row.to_vec(),
            group: 0,
        }
    }

    /// The heads, which read the tail with the groups `row`.
    fn heads(&self, tower: &Tower, stream: ActivationShape, row: &[usize]) -> Vec<TrainHead> {
        let one_each = stream.one_logit_each();
        let points = self.model.point_logits();
        let per_logit = if points.is_some() { Connectivity::Pointwise } else { Connectivity::Flatten };
        let policy = of_tail(self.linear(&[tower.policy], per_logit, row), points);
        let auxiliary = tower.auxiliary.iter().enumerate().map(|(number, head)| {
            let per_point = matches!(self.model.layers[head.out].kind, LayerKind::Conv1x1 { .. });
            let connectivity = if per_point { Connectivity::Pointwise } else { Connectivity::Flatten };
            let group = if head.conv.is_some() { 2 + number } else { 0 };
            let out = TrainLinear { group, ..self.linear(&[head.out], connectivity, row) };
            of_tail(out, per_point.then_some(one_each))
        });
        let on_edges = matches!(stream, ActivationShape::Edges { .. });
        [policy, self.value(tower, on_edges, row)].into_iter().chain(auxiliary).collect()
    }

    /// The value head; on edges it reads the mean over them.
    fn value(&self, tower: &Tower, on_edges: bool, row: &[usize]) -> TrainHead {
        let model = self.model;
        let (board, input) = match on_edges {
            true => ([1, 1], HeadInput::MeanOverEdges),
            false => (self.board, HeadInput::Tail),
        };
        let hidden = self.linear(&[tower.hidden], Connectivity::Flatten, row);
        let values = self.linear(&[tower.values], Connectivity::Pointwise, &[model.outputs(tower.hidden)]);
        let learnt = model.heads.iter().find(|head| head.role == HeadRole::Value).map(|head| head.layer);
        let of_tanh = learnt.is_some_and(|layer| model.layers[layer].kind == LayerKind::Tanh);
        TrainHead {
            input,
            hidden: Some(TrainLinear { board, group: row.len().min(2) - 1, ..hidden }),
            out: TrainLinear { board: [1, 1], ..values },
            points: None,
            output: if of_tanh { HeadOutput::Tanh } else { HeadOutput::Linear },
        }
    }
}

/// A head of one layer that reads the tail.
fn of_tail(out: TrainLinear, points: Option<PointLogits>) -> TrainHead {
    TrainHead { input: HeadInput::Tail, hidden: None, out, points, output: HeadOutput::Linear }
}

/// The two layers of a residual block, whose linear layers are `linears`; `edges` is K_n for a tower on its edges.
fn block_layers(
    model: &Model,
    block: &ResidualBlock,
    [first, second]: [TrainLinear; 2],
    edges: Option<&CompleteGraph>,
) -> [PreActivation; 2] {
    let messages = match edges {
        Some(edges) => {
            let weights = vec![model.param_index(block.layers[0], 1)];
            let board = [edges.vertices, 1];
            let vertex = TrainLinear { weights, bias: None, board, ..first.clone() };
            [TrainMessage::Vertex(vertex), TrainMessage::Triangle(block.triangle_channels)]
        }
        None => [TrainMessage::None, TrainMessage::None],
    };
    let [vertex, triangle] = messages;
    let [first_norm, second_norm] = block.norms;
    [
        PreActivation { norm: first_norm, linear: first, message: vertex, residual: Residual::None },
        PreActivation { norm: second_norm, linear: second, message: triangle, residual: Residual::Add },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Arch;
    use crate::game::ObsShape;
    use crate::model::NetSpec;

    fn tower(arch: Arch) -> TrainTower {
        let spec = NetSpec {
            arch,
            blocks: 2,
            channels: 4,
            policy_channels: 2,
            value_channels: 3,
            value_hidden: 5,
            obs: ObsShape { channels: 7, height: 6, width: 1 },
            num_actions: 6,
            num_players: 3,
            zero_sum_pair: false,
            ..NetSpec::default()
        };
        let model = spec.model().expect("a network");
        TrainTower::new(&model, &Tower::of(&model).expect("a tower"))
    }

    #[test]
    fn the_linear_layers_of_heads_read_their_own_group() {
        for (arch, row, group) in
            [(Arch::Resnet, vec![2, 3], 1), (Arch::Mlp, vec![4], 0), (Arch::Edge, vec![4], 0)]
        {
            let tower = tower(arch);
            let [policy, value] = &tower.heads[..] else { panic!("{:?}", tower.heads) };
            let hidden = value.hidden.as_ref().expect("of the value");
            assert_eq!((&policy.out.row, policy.out.group), (&row, 0), "{arch:?}");
            assert_eq!((&hidden.row, hidden.group), (&row, group), "{arch:?}");
            assert_eq!((&value.out.row[..], value.out.board), (&[5][..], [1, 1]), "{arch:?}");
            assert_eq!(tower.layers.len(), if arch == Arch::Resnet { 5 } else { 4 }, "{arch:?}");
        }
    }

    #[test]
    fn messages_alternate_on_edges() {
        let tower = tower(Arch::Edge);
        assert_eq!(tower.edges.as_ref().map(|edges| edges.vertices), Some(4));
        for block in tower.layers.chunks(2) {
            let TrainMessage::Vertex(vertex) = &block[0].message else { panic!("{:?}", block[0]) };
            assert_eq!((vertex.board, vertex.bias, vertex.weights.len()), ([4, 1], None, 1));
            assert_ne!(vertex.weights, block[0].linear.weights);
            assert_eq!(block[1].message, TrainMessage::Triangle(2));
            assert_eq!([block[0].residual, block[1].residual], [Residual::None, Residual::Add]);
        }
    }
}
