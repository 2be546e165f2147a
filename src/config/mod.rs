//! What was typed -> what will be done: a TOML file and `--set key=value`, merged, checked, resolved.
//!
//! Every key has a default, so an empty file is a run of Connect Four. Unknown keys, wrong types and values out of range
//! are refused with the key, what was found and what would be right. Knows no other module but the error type.

mod check;
mod device;
mod layers;

pub use device::{DeviceName, Devices};
pub use layers::Layers;

use serde::{Deserialize, Serialize};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl std::fmt::Display for $name {
            /// As it is typed.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $text),+ })
            }
        }
    };
}

names! {
    /// How simulations choose and what the policy target is.
    Algorithm {
        /// PUCT with Dirichlet noise (AlphaZero, Silver et al. 2018); the target is the visit distribution.
        Puct = "puct",
        /// Sequential halving over Gumbel-sampled actions (Danihelka et al. 2022); the target is the improved policy.
        Gumbel = "gumbel",
    }
}
names! {
    /// Which implementation searches.
    SearchEngine {
        /// The lockstep batch engine.
        Batched = "batched",
        /// A plain scalar one, slow, for debugging. It searches every ply in a new tree and has no root cache.
        Reference = "reference",
    }
}
names! {
    /// Q of an edge that no simulation has taken (first-play urgency), PUCT only.
    Fpu {
        /// 0, a draw.
        Zero = "zero",
        /// The mean value of the node itself.
        Parent = "parent",
        /// The mean value less `fpu_reduction` times the root of the visited prior mass (as in KataGo).
        Reduced = "reduced",
        /// -1, a loss.
        Loss = "loss",
    }
}
names! {
    /// How a descent passes a chance node.
    ChanceRule {
        /// An outcome drawn with its probability.
        Sample = "sample",
        /// The outcome that has fallen furthest behind its probability: the expectation with less variance.
        Stratified = "stratified",
    }
}
names! {
    /// The network's kind.
    Arch {
        /// Pre-activation residual tower of 3x3 convolutions.
        Resnet = "resnet",
        /// Residual multilayer perceptron.
        Mlp = "mlp",
        /// Residual network on the edges of a complete graph (clique), of any number of vertices.
        Edge = "edge",
    }
}
names! {
    /// Number format of the network in self-play.
    Precision {
        /// 32-bit floats.
        F32 = "f32",
        /// bfloat16 products, 32-bit sums.
        Bf16 = "bf16",
        /// 8-bit integers with scales, on the CPU.
        Int8 = "int8",
        /// Products of IEEE half precision, 32-bit sums, on a GPU.
        F16 = "f16",
        /// 32-bit floats whose products are of numbers rounded to 10 bits, on a GPU.
        Tf32 = "tf32",
    }
}
names! {
    /// The instructions of the network's forward on the CPU.
    Instructions {
        /// The fastest that the machine has for the number format.
        Native = "native",
        /// x86-64 AMX beside AVX-512, in bf16 and int8.
        Amx = "amx",
        /// x86-64 AVX-512, in bf16 with AVX512-BF16, in int8 with AVX512-VNNI.
        Avx512 = "avx512",
        /// x86-64 AVX2 with FMA, in f32 and bf16.
        Avx2 = "avx2",
        /// Any machine's, in f32 and bf16.
        Portable = "portable",
    }
}
names! {
    /// Which instruction multiplies 16-bit numbers in the network's kernels on a GPU.
    TensorCores {
        /// `mma.sync`, of one warp: everywhere, and tested there.
        Mma = "mma",
        /// `wgmma`, of four warps, on Hopper (compute capability 9.0). It has not run on a GPU yet.
        Wgmma = "wgmma",
    }
}
names! {
    /// Number format of products and activations in training; weights, sums and the optimiser are always 32-bit floats.
    TrainPrecision {
        /// 32-bit floats.
        F32 = "f32",
        /// bfloat16.
        Bf16 = "bf16",
        /// Half precision, with a loss scale that adapts.
        F16 = "f16",
    }
}
names! {
    /// When the updates are made that an epoch's samples call for.
    TrainingMode {
        /// After the epoch's self-play.
        InTurns = "in_turns",
        /// While the next epoch's games are played, which do not wait for them: self-play's weights are one epoch older.
        Overlapped = "overlapped",
    }
}
names! {
    /// The optimiser.
    OptimizerKind {
        /// AdamW (Loshchilov and Hutter 2019).
        AdamW = "adamw",
        /// SGD with momentum; weight decay added to the gradient.
        Sgd = "sgd",
    }
}
names! {
    /// The learning rate after the warm-up.
    Schedule {
        /// Stays.
        Constant = "constant",
        /// Falls along half a cosine to `lr_final` at `lr_updates`.
        Cosine = "cosine",
        /// Is divided by `lr_step_factor` at each of `lr_steps`.
        Step = "step",
    }
}

macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty = $default:expr),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty),+ }
        impl Default for $name {
            fn default() -> Self { Self { $($field: $default),+ } }
        }
    };
}

section! {
    /// `[net]`: the network.
    NetConfig {
        /// Kind of network.
        arch: Arch = Arch::Resnet,
        /// Residual blocks.
        blocks: usize = 2,
        /// Channels of the tower, or width of the perceptron.
        channels: usize = 32,
        /// Channels of the policy head's 1x1 convolution (resnet).
        policy_channels: usize = 8,
        /// Channels of the value head's 1x1 convolution (resnet).
        value_channels: usize = 4,
        /// Hidden units of the value head.
        value_hidden: usize = 64,
        /// Number format in self-play and evaluation: `f32`, `bf16` or `int8` on the CPU, `f32`, `tf32`, `bf16` or `f16` on a
        /// GPU; `train.precision` is that of training. Against f32, a trained Connect Four network
        /// differs in bf16 by 5e-5 nats of policy and 0.002 of value, in int8 by 8e-4 and 0.011, and plays as strongly in
        /// either (`benches/precision.rs`).
        precision: Precision = Precision::F32,
        /// Instructions of the forward on the CPU. Sums in bf16 differ in their last bits between AMX, AVX-512 and the others: where the
        /// forward of another kind of machine is wanted, to the bit or to see how fast it is, its instructions are named here.
        isa: Instructions = Instructions::Native,
        /// What multiplies in bf16 and f16 on a GPU: `mma`, or on Hopper (compute capability 9.0) `wgmma`, which alone gets to more than
        /// 0.6 of its peak. `wgmma` is tested in emulation and with NVIDIA's compiler; IT HAS NOT RUN ON A GPU YET.
        tensor_cores: TensorCores = TensorCores::Mma,
        /// Device of the network in self-play and training; where none is given, `run.device`. Several GPUs,
        /// `cuda:0,cuda:1`, train each on their share of every batch; the network answers beside the trees on each GPU of
        /// `run.device` where all of those are in this list, and from the first of the list where not.
        device: Option<Devices> = None,
    }
}
section! {
    /// `[search]`: one search.
    SearchConfig {
        /// PUCT or Gumbel.
        algorithm: Algorithm = Algorithm::Gumbel,
        /// S: new simulations a ply.
        simulations: u32 = 64,
        /// L: leaves a row selects per pass.
        leaves: u32 = 1,
        /// T: nodes in a row's tree; 0 = as many as a ply's simulations can need.
        nodes: u32 = 0,
        /// Batched or reference.
        engine: SearchEngine = SearchEngine::Batched,
        /// PUCT: c_init of AlphaZero's exploration rate.
        c_init: f32 = 1.25,
        /// PUCT: c_base of AlphaZero's exploration rate.
        c_base: f32 = 19652.0,
        /// PUCT: Q of edges never taken.
        fpu: Fpu = Fpu::Reduced,
        /// PUCT: scale of the reduced first-play urgency.
        fpu_reduction: f32 = 0.2,
        /// PUCT: share of Dirichlet noise in the root priors of self-play.
        dirichlet_epsilon: f32 = 0.25,
        /// PUCT: Dirichlet alpha; 0 = 10 / (legal actions).
        dirichlet_alpha: f32 = 0.0,
        /// Gumbel: the most actions considered at the root.
        max_num_considered_actions: u32 = 16,
        /// Gumbel: c_visit of the monotone transformation of Q.
        c_visit: f32 = 50.0,
        /// Gumbel: c_scale of the monotone transformation of Q.
        c_scale: f32 = 1.0,
        /// Proven wins and losses are backed up exactly (MCTS-Solver, Winands et al. 2008). Two-player zero-sum only.
        solver: bool = true,
        /// Entries of the evaluation cache shared by all games; 0 = none.
        cache_entries: usize = 1 << 19,
        /// Keep the played action's subtree for the next ply.
        reuse: bool = true,
        /// Most inherited visits that count against the budget and in the policy target, as a share of `simulations`.
        inherit_cap: f32 = 1.0,
        /// Fewest new simulations a ply where visits are inherited.
        min_simulations: u32 = 16,
        /// Chance nodes: sampled or stratified.
        chance: ChanceRule = ChanceRule::Stratified,
        /// D: determinisations of one game with hidden information.
        determinisations: u32 = 1,
        /// Simulations of the tree built once per set of weights and cloned to every new game; 0 = none.
        root_cache: u32 = 0,
    }
}
section! {
    /// `[selfplay]`: the games that make samples.
    SelfPlayConfig {
        /// N: games at once.
        games: usize = 128,
        /// Samples an epoch gathers at least; the epoch ends with the stride that reaches it.
        samples_per_epoch: usize = 20_000,
        /// Passes between two looks at the sample count.
        passes_per_poll: u32 = 64,
        /// Uniformly random opening plies: each game draws a number in 0..=this. Their positions are no samples.
        opening_plies: u32 = 0,
        /// Share of games with no random opening.
        opening_none: f32 = 0.25,
        /// Plies of a game whose action is drawn from the policy target; after them the best is played.
        temperature_plies: u32 = 8,
        /// Weight of the search's root value in the value target; the rest is the game's result. Proven values stand alone.
        value_mix: f32 = 0.0,
        /// Share of plies searched with `fast_simulations` that make no sample (playout cap randomisation, Wu 2019).
        playout_cap_prob: f32 = 0.0,
        /// Simulations of a fast ply.
        fast_simulations: u32 = 16,
    }
}
section! {
    /// `[replay]`: the ring of samples.
    ReplayConfig {
        /// Samples the ring holds.
        capacity: usize = 400_000,
    }
}
section! {
    /// `[train]`: optimisation.
    TrainConfig {
        /// Number format of products and activations; bf16 and f16 where training is on a GPU.
        precision: TrainPrecision = TrainPrecision::F32,
        /// When updates are made: `in_turns` with self-play, or `overlapped` with that of the next epoch, which keeps a GPU busy while
        /// the other of the two waits for the host, and two devices at work where games and training are on different ones.
        mode: TrainingMode = TrainingMode::InTurns,
        /// AdamW or SGD.
        optimizer: OptimizerKind = OptimizerKind::AdamW,
        /// Peak learning rate.
        lr: f64 = 2e-3,
        /// Momentum (SGD), first moment's decay (AdamW).
        momentum: f64 = 0.9,
        /// Second moment's decay (AdamW).
        beta2: f64 = 0.999,
        /// Decoupled (AdamW) or coupled (SGD) weight decay.
        weight_decay: f64 = 1e-4,
        /// Gradient norm above which the gradient is scaled down; 0 = off.
        clip_norm: f64 = 1.0,
        /// Updates over which the rate rises from 0.
        warmup_updates: u64 = 100,
        /// What the rate does after the warm-up.
        schedule: Schedule = Schedule::Cosine,
        /// Cosine: updates at which the rate has fallen to `lr_final`.
        lr_updates: u64 = 20_000,
        /// Cosine: the rate at the end, as a share of `lr`.
        lr_final: f64 = 0.05,
        /// Step: updates at which the rate falls.
        lr_steps: Vec<u64> = vec![],
        /// Step: by what it is divided.
        lr_step_factor: f64 = 10.0,
        /// Samples of a batch.
        batch: usize = 512,
        /// Batches whose gradients are summed into one update.
        accumulate: usize = 1,
        /// Times each new sample is trained on, on average: updates of an epoch = new samples x this / (batch x accumulate).
        replay_ratio: f64 = 4.0,
        /// Samples in the replay before the first update.
        min_samples: usize = 10_000,
        /// Weight of the value loss beside the policy loss.
        value_weight: f64 = 1.0,
        /// See each sample through a random symmetry of the game.
        symmetries: bool = true,
    }
}
section! {
    /// `[run]`: how long, where, on what.
    RunConfig {
        /// The seed of everything.
        seed: u64 = 1,
        /// Epochs to run in all; 0 = no bound.
        epochs: u64 = 0,
        /// Minutes after which the run stops; 0 = no bound. Without either bound a run lasts 10 minutes.
        minutes: f64 = 0.0,
        /// Threads; 0 = all cores.
        threads: usize = 0,
        /// Device of games and trees in self-play and evaluation: `cpu`, `cuda` or `cuda:N`; of the network too, unless `net.device` is
        /// given. Training is where the network is. Self-play splits its games over several
        /// GPUs, `cuda:0,cuda:1`; evaluation, matches, `vecaz play` and the root cache take the first.
        device: Devices = Devices::default(),
        /// Memory the plan may take, in MiB; 0 = nine tenths of what the machine has free.
        memory_mib: u64 = 0,
        /// Latest checkpoints kept, beside the best.
        keep_checkpoints: usize = 3,
    }
}
section! {
    /// `[eval]`: strength after each epoch.
    EvalConfig {
        /// Epochs between evaluations; 0 = never.
        every: u64 = 1,
        /// How evaluation, matches and `vecaz play` search, whatever self-play does. With many simulations and no noise the
        /// most visited move of PUCT errs less than the survivor of Gumbel's halving.
        algorithm: Algorithm = Algorithm::Puct,
        /// Simulations of the searched moves.
        simulations: u32 = 64,
        /// Determinisations of the searched moves, each with `simulations`; 0 = as many as `search.determinisations`.
        determinisations: u32 = 0,
        /// Solved positions looked at (games with an exact solver).
        positions: usize = 200,
        /// Match games where there is no exact solver.
        match_games: usize = 32,
        /// The opponent of such matches: "random" or "rollouts:S".
        opponent: String = "rollouts:100".to_string(),
    }
}
section! {
    /// A whole configuration file.
    Config {
        /// `[game]`: `name` and the game's own settings.
        game: toml::Table = toml::Table::new(),
        /// `[net]`
        net: NetConfig = NetConfig::default(),
        /// `[search]`
        search: SearchConfig = SearchConfig::default(),
        /// `[selfplay]`
        selfplay: SelfPlayConfig = SelfPlayConfig::default(),
        /// `[replay]`
        replay: ReplayConfig = ReplayConfig::default(),
        /// `[train]`
        train: TrainConfig = TrainConfig::default(),
        /// `[run]`
        run: RunConfig = RunConfig::default(),
        /// `[eval]`
        eval: EvalConfig = EvalConfig::default(),
    }
}

impl Config {
    /// The game's name; Connect Four where none is given.
    pub fn game_name(&self) -> &str {
        self.game.get("name").and_then(toml::Value::as_str).unwrap_or("connect_four")
    }

    /// The game's own settings: `[game]` without `name`.
    pub fn game_options(&self) -> toml::Table {
        let mut options = self.game.clone();
        options.remove("name");
        options
    }

    /// D in evaluation, for a game with hidden information.
    pub fn eval_determinisations(&self) -> usize {
        match self.eval.determinisations {
            0 => self.search.determinisations as usize,
            d => d as usize,
        }
    }

    /// The devices of the network in self-play.
    pub fn network_devices(&self) -> Devices {
        self.net.device.unwrap_or(self.run.device)
    }

    /// The devices of training: those of the network in self-play.
    pub fn training_devices(&self) -> Devices {
        self.network_devices()
    }

    /// The whole configuration as TOML, such that reading it back gives the same.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}
