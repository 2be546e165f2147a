//! `[net]`: the keys of the network, and the names that they take.

use super::device::Devices;
use super::isa_choice::IsaChoice;
use super::keys::{names, section};

names! {
    /// The network's architecture.
    Arch {
        /// Pre-activation residual tower of 3x3 convolutions.
        Resnet = "resnet",
        /// Residual multilayer perceptron.
        Mlp = "mlp",
        /// Residual message-passing network on the edges of the complete graph K_n (clique), for any n.
        Edge = "edge",
    }
    /// The layer that makes the logits of a residual network.
    PolicyHead {
        /// A dense layer on all points of the board: weights of its own for each action.
        Dense = "dense",
        /// The same weights at every point, for games whose actions are points of the board.
        Points = "points",
    }
    /// What the value head of a network for two players whose returns sum to 0 learns.
    ValueHead {
        /// One value in (-1, 1), by its squared error.
        Scalar = "scalar",
        /// The probabilities of win, draw and loss, by their cross-entropy; the value is that of a win minus that of a loss.
        Wdl = "wdl",
    }
    /// Number format of the network in self-play.
    Precision {
        /// 32-bit floats.
        F32 = "f32",
        /// bfloat16 operands, f32 accumulation.
        Bf16 = "bf16",
        /// 8-bit integers with scales, i32 accumulation. CPU only.
        Int8 = "int8",
        /// IEEE half-precision operands, f32 accumulation. GPU only.
        F16 = "f16",
        /// f32 operands rounded to a 10-bit mantissa, f32 accumulation. GPU only.
        Tf32 = "tf32",
    }
    /// The executor of the network, in self-play, evaluation and training.
    Executor {
        /// `fused` if it covers the network's tower, otherwise `candle`. A run's first lines show the choice and its reason.
        Auto = "auto",
        /// The tensor library candle: every kind of layer, in f32, on the CPU, or on a GPU in a build with the feature
        /// `candle-cuda`, on a Mac's with `candle-metal`. Several times slower than `fused`; for new kinds of layer, and to check `fused`.
        Candle = "candle",
        /// vecaz's own kernels, on the CPU and on GPUs.
        Fused = "fused",
    }
    /// The tensor-core instruction of the GPU kernels for 16-bit operands.
    TensorCores {
        /// `wgmma` on Hopper (compute capability 9.0), `mma.sync` on all others.
        Auto = "auto",
        /// `mma.sync` everywhere.
        Mma = "mma",
    }
}

section! {
    /// `[net]`: the network.
    NetConfig {
        /// Architecture.
        arch: Arch = Arch::Resnet,
        /// Residual blocks.
        blocks: usize [1..=256] = 2,
        /// Channels of the tower (resnet), features of an edge (edge), or width of a layer (mlp).
        channels: usize [1..=4096] = 32,
        /// The layer of the logits (resnet): `dense`, with weights of its own for each action, or for games whose actions are points of
        /// the board `points`, the same weights at every point. After five minutes `points` leads by 108 Elo in Hex, 160 in Gomoku and
        /// 153 in chess, and by none in Go and Othello (2026-11-26-policy-head.md).
        policy_head: PolicyHead = PolicyHead::Dense,
        /// Channels of the policy head's 1x1 convolution (resnet); AlphaGo Zero has 2, 8 is not tuned. The head's dense layer has
        /// weights for this x squares x actions: in chess most weights of a small network.
        policy_channels: usize [1..=1024] = 8,
        /// Channels of the value head's 1x1 convolution (resnet); AlphaGo Zero has 1, 4 is not tuned.
        value_channels: usize [1..=1024] = 4,
        /// What the value head learns: `scalar`, one value for each player, or with two players whose returns sum to 0 `wdl`, the
        /// probabilities of win, draw and loss (Leela Chess Zero). The search reads a value either way; `scalar`, as no gain of
        /// `wdl` is measured yet.
        value_head: ValueHead = ValueHead::Scalar,
        /// Hidden units of the value head. AlphaGo Zero has 256 for a tower of 256 channels; 64, not tuned, suits small towers.
        value_hidden: usize [1..=4096] = 64,
        /// Targets of the game's own that heads learn besides policy and value, names separated by commas; `vecaz games GAME` lists
        /// them. The heads cost time in training only. Their weight is `train.auxiliary_weight`; none, as no gain is measured yet.
        auxiliary: String = String::new(),
        /// Executor of the network: `auto`, `candle` or `fused`. `candle` is for comparisons with another implementation; `fused`
        /// is an error if vecaz's own kernels do not cover a layer of the network.
        executor: Executor = Executor::Auto,
        /// Number format in self-play and evaluation: `f32`, `bf16` or `int8` on the CPU; `f32`, `tf32`, `bf16` or `f16` on a
        /// GPU. The format of training is `train.precision`. Compared with f32, a trained Connect Four network in bf16 differs by
        /// 5e-5 nats of policy and 0.002 of value, in int8 by 8e-4 nats and 0.011, and plays equally strong in both
        /// (2026-11-20-precision.md). Self-play in int8 makes more games a minute (2026-11-30-int8.md). `f16` is for Turing GPUs, which lack bf16; `tf32` keeps the range of f32 on tensor cores.
        precision: Precision = Precision::F32,
        /// Instruction set of the forward on the CPU. All give the same bits in each number format, except the last bits of `amx`
        /// and of `bfmmla` in bf16: on machines that have them, `avx512` and `neon` repeat the results of machines that do not. Training in bf16 uses AMX
        /// with `native` and `amx` alone.
        isa: IsaChoice = IsaChoice::Native,
        /// Tensor-core instruction for bf16 and f16 on a GPU: `auto` takes `wgmma` on Hopper (compute capability 9.0) and `mma` on all
        /// others, `mma` takes `mma.sync` everywhere. With `wgmma` 6x128 makes 1.27 times the simulations (2026-11-27-gpu.md); `mma`
        /// is faster for up to some 64 positions at once, and on Hopper repeats runs made with it.
        tensor_cores: TensorCores = TensorCores::Auto,
        /// Device of the network in self-play and training; default: `run.device`. Several GPUs, `cuda:0,cuda:1`, each train on a
        /// part of every batch. In self-play, each GPU of `run.device` evaluates its own games if all of them are in this list;
        /// otherwise the first device of this list evaluates all games.
        device: Option<Devices> = None,
    }
}

impl NetConfig {
    /// The names in `auxiliary`.
    pub fn auxiliary_names(&self) -> impl Iterator<Item = &str> {
        self.auxiliary.split(',').map(str::trim).filter(|name| !name.is_empty())
    }
}
