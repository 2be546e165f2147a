//! The edge network as candle modules: features on the edges of K_n, messages over shared vertices and triangles.
//!
//! A block on the features h_ij of edge (i, j), pre-activation as in the other towers:
//!
//!     a_ij = relu(bn1(h_ij))
//!     y_ij = W_edge a_ij + W_vertex (m_i + m_j),     m_i the mean of a over the n - 1 edges at i
//!     z_ij = relu(bn2(y_ij))
//!     t_ij = sum over k of z_ik z_jk / sqrt(n - 2)   in the first half of the channels, z_ij in the others
//!     h_ij = h_ij + W_out t_ij
//!
//! Sums at vertices alone cannot tell two triangles from a hexagon; the products around triangles (Maron et al. 2019,
//! Provably Powerful Graph Networks) can, and cost little beside the products with weights. One logit an edge; the value
//! reads the mean over the edges. No tensor's shape depends on n.

use super::candle_net::{Mode, Trunk, mode_flag, norm};
use super::edges::Edges;
use super::spec::NetSpec;
use crate::error::Error;
use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::{BatchNorm, Linear, Module, ModuleT, VarBuilder, linear_no_bias};

struct Block {
    bn1: BatchNorm,
    edge: Linear,
    vertex: Linear,
    bn2: BatchNorm,
    out: Linear,
}

/// Everything below the heads.
pub(super) struct Edge {
    graph: Graph,
    planes: usize,
    triangle_channels: usize,
    stem: Linear,
    blocks: Vec<Block>,
    bn: BatchNorm,
}

impl Edge {
    pub fn new(spec: &NetSpec, vb: &VarBuilder<'_>) -> crate::error::Result<Self> {
        let edges = Edges::of_observation(spec.obs, spec.num_actions)?;
        Self::with_graph(spec, Graph::new(&edges, vb.device())?, vb).map_err(Error::from)
    }

    fn with_graph(spec: &NetSpec, graph: Graph, vb: &VarBuilder<'_>) -> Result<Self> {
        let c = spec.channels;
        let blocks = (0..spec.blocks).map(|i| {
            let vb = vb.pp(format!("blocks.{i}"));
            Ok(Block {
                bn1: norm(c, vb.pp("bn1"))?,
                edge: linear_no_bias(c, c, vb.pp("edge"))?,
                vertex: linear_no_bias(c, c, vb.pp("vertex"))?,
                bn2: norm(c, vb.pp("bn2"))?,
                out: linear_no_bias(c, c, vb.pp("out"))?,
            })
        });
        Ok(Self {
            graph,
            planes: spec.obs.channels,
            triangle_channels: spec.triangle_channels(),
            stem: linear_no_bias(spec.obs.channels, c, vb.pp("stem"))?,
            blocks: blocks.collect::<Result<_>>()?,
            bn: norm(c, vb.pp("bn"))?,
        })
    }
}

/// relu(bn(x)) of `[B, E, C]`, normalised channel by channel.
fn norm_relu(bn: &BatchNorm, x: &Tensor, mode: Mode) -> Result<Tensor> {
    let (boards, edges, channels) = x.dims3()?;
    let flat = x.reshape((boards * edges, channels))?;
    bn.forward_t(&flat, mode_flag(mode))?.relu()?.reshape((boards, edges, channels))
}

impl Trunk for Edge {
    fn forward(&self, obs: &Tensor, mode: Mode) -> Result<(Tensor, Tensor)> {
        let planes = obs.reshape(((), self.planes, self.graph.edges))?.transpose(1, 2)?.contiguous()?;
        let mut x = self.stem.forward(&planes)?;
        for block in &self.blocks {
            let a = norm_relu(&block.bn1, &x, mode)?;
            let ends = self.graph.sum_of_ends(&block.vertex.forward(&self.graph.vertex_means(&a)?)?)?;
            let z = norm_relu(&block.bn2, &(block.edge.forward(&a)? + ends)?, mode)?;
            x = (x + block.out.forward(&self.graph.mix(&z, self.triangle_channels)?)?)?;
        }
        let x = norm_relu(&self.bn, &x, mode)?;
        let pooled = x.mean(1)?;
        Ok((x, pooled))
    }
}

/// K_n as tensors.
struct Graph {
    edges: usize,
    vertices: usize,
    triangle_scale: f64,
    /// 1 / (n - 1) where the edge is at the vertex. `[1, n, E]`
    means: Tensor,
    /// 1 where the vertex is an end of the edge. `[1, E, n]`
    ends: Tensor,
    /// The number of edge (i, j), E on the diagonal. `[n n]`
    number: Tensor,
    /// The place of edge e in a flat `[n n]`. `[E]`
    place: Tensor,
}

impl Graph {
    fn new(edges: &Edges, device: &Device) -> Result<Self> {
        let (n, count) = (edges.vertices, edges.len());
        let mut ends = vec![0.0_f32; count * n];
        let mut number = vec![count as u32; n * n];
        for (edge, &[i, j]) in edges.ends.iter().enumerate() {
            (ends[edge * n + i], ends[edge * n + j]) = (1.0, 1.0);
            (number[i * n + j], number[j * n + i]) = (edge as u32, edge as u32);
        }
        let place: Vec<u32> = edges.ends.iter().map(|[i, j]| (i * n + j) as u32).collect();
        let ends = Tensor::from_vec(ends, (1, count, n), device)?;
        let means = (ends.transpose(1, 2)?.contiguous()? * f64::from(edges.vertex_scale()))?;
        Ok(Self {
            edges: count,
            vertices: n,
            triangle_scale: f64::from(edges.triangle_scale()),
            means,
            ends,
            number: Tensor::from_vec(number, n * n, device)?,
            place: Tensor::from_vec(place, count, device)?,
        })
    }

    /// `[B, E, C]` -> `[B, n, C]`
    fn vertex_means(&self, x: &Tensor) -> Result<Tensor> {
        self.means.broadcast_matmul(x)
    }

    /// `[B, n, C]` -> `[B, E, C]`
    fn sum_of_ends(&self, x: &Tensor) -> Result<Tensor> {
        self.ends.broadcast_matmul(x)
    }

    /// The first `channels` of `[B, E, C]` multiplied around triangles, beside the others.
    fn mix(&self, z: &Tensor, channels: usize) -> Result<Tensor> {
        let (boards, _, all) = z.dims3()?;
        if channels == 0 {
            return Ok(z.clone());
        }
        let none = Tensor::zeros((boards, 1, channels), DType::F32, z.device())?;
        let part = Tensor::cat(&[&z.narrow(D::Minus1, 0, channels)?, &none], 1)?.contiguous()?;
        // [B, n n, T] -> [B, T, n, n]
        let matrix = part.index_select(&self.number, 1)?.transpose(1, 2)?.contiguous()?;
        let matrix = matrix.reshape((boards, channels, self.vertices, self.vertices))?;
        let product = (matrix.matmul(&matrix)? * self.triangle_scale)?;
        let product = product.reshape((boards, channels, ()))?.transpose(1, 2)?.contiguous()?;
        let triangles = product.index_select(&self.place, 1)?;
        if channels == all {
            return Ok(triangles);
        }
        Tensor::cat(&[&triangles, &z.narrow(D::Minus1, channels, all - channels)?], D::Minus1)
    }
}
