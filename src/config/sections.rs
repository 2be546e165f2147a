//! The sections of a configuration: their keys, and the names that they take.

use super::device::Devices;
use super::keys::{names, section, show_names};
use crate::device_struct::device_enum;
use bytemuck::NoUninit;
use serde::{Deserialize, Serialize};

/// Maximum number of games of self-play at once: the bound of `selfplay.games`.
pub const MAX_GAMES: usize = 1 << 20;

/// Defines enums that kernels use too. Their values are typed by name.
macro_rules! device_names {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $vdoc:literal])* $variant:ident = $text:literal),+ $(,)? })+) => {$(
        device_enum! {
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit, Serialize, Deserialize)]
            pub enum $name: u32 { $($(#[doc = $vdoc])* #[serde(rename = $text)] $variant,)+ }
        }
        show_names! { $name { $($variant = $text),+ } }
    )+};
}

device_names! {
    /// The search algorithm: the selection rule and the policy target.
    Algorithm {
        /// PUCT with Dirichlet noise (AlphaZero, Silver et al. 2018); the target is the visit distribution.
        Puct = "puct",
        /// Sequential halving over Gumbel-sampled actions (Danihelka et al. 2022); the target is the improved policy.
        Gumbel = "gumbel",
        /// No tree: all positions after a whole turn are evaluated, and the turn to the best one is played (TD-Gammon, Tesauro 1995); there
        /// is no policy target. CPU only.
        Afterstate = "afterstate",
    }
}
names! {
    /// Number format of operands and activations in training. Weights, sums and optimiser state are always f32.
    TrainPrecision {
        /// 32-bit floats.
        F32 = "f32",
        /// bfloat16.
        Bf16 = "bf16",
        /// IEEE half precision with dynamic loss scaling.
        F16 = "f16",
    }
    /// Whether updates run after self-play or overlap with it.
    TrainingMode {
        /// The updates follow the epoch's self-play.
        InTurns = "in_turns",
        /// The updates run during the next epoch's self-play, whose weights are therefore one epoch older.
        Overlapped = "overlapped",
    }
    /// The order in which a learner takes the games of its workers.
    ClusterOrder {
        /// In the order of arrival.
        Free = "free",
        /// In the order of a run on one machine, so that the results are equal to the byte.
        Strict = "strict",
    }
    /// Where the first game of each slot begins.
    FirstGame {
        /// As all other games.
        Start = "start",
        /// At a random ply of a random game.
        Within = "within",
    }
}

section! {
    /// `[search]`: one search.
    SearchConfig {
        /// PUCT, Gumbel, or `afterstate`: no tree, all positions after a whole turn are evaluated and the best is played.
        algorithm: Algorithm = Algorithm::Gumbel,
        /// S: new simulations a ply.
        simulations: u32 [1..=1_000_000] = 64,
        /// L: leaves that a row selects per pass, with virtual loss. More than 1 gives larger network batches for few games.
        leaves: u32 [1..=4096] = 1,
        /// T: nodes of a row's tree, which bound its memory, at least the number that a ply's simulations can add; 0 = that
        /// number, doubled if subtrees are kept.
        nodes: u32 [0..=100_000_000] = 0,
        /// PUCT: c_init of AlphaZero's exploration factor ln((1 + N + c_base) / c_base) + c_init at N visits; AlphaZero's value.
        c_init: f32 [0.0..=100.0] = 1.25,
        /// PUCT: c_base of that factor; AlphaZero's value. It adds 0.69 at 19,652 visits and 0.015 at 300: for deep searches.
        c_base: f32 [1.0..=1e9] = 19652.0,
        /// PUCT: Q of an edge without visits is the node's mean value minus this times the square root of the visited prior mass; KataGo's
        /// rule and value (`fpuReductionMax`). A larger one narrows the search; 0 has the same error (2026-11-20-learning.md).
        fpu_reduction: f32 [0.0..=2.0] = 0.2,
        /// PUCT: weight of Dirichlet noise in the root priors of self-play.
        dirichlet_epsilon: f32 [0.0..=1.0] = 0.25,
        /// PUCT: Dirichlet alpha; 0 = 10 / (number of legal actions), close to AlphaZero's 0.3 (chess), 0.15 (shogi) and 0.03
        /// (Go). Other values are for comparisons with programs that fix it; at least 0.01, as smaller ones vanish in f32.
        dirichlet_alpha: f32 [0.0..=1000.0] = 0.0,
        /// Gumbel: maximum number of actions considered at the root.
        max_num_considered_actions: u32 [1..=65_536] = 16,
        /// Gumbel: visits from which a node below the root selects by PUCT (`c_init`, `c_base`, `fpu_reduction`), for deep searches. With fewer
        /// visits it selects by the improved policy, with which the error of deep searches stops falling. Connect Four, 800 simulations: 1.5 % in place of 2.5
        /// (2026-11-29-below-root.md). For returns that differ little, and for comparisons with mctx: a large number.
        puct_visits: u32 [0..=1_000_000_000] = 32,
        /// Gumbel: c_visit of sigma(Q) = (c_visit + largest number of visits) x c_scale x Q, for Q to count early; the paper's
        /// value (Danihelka et al. 2022).
        c_visit: f32 [0.0..=1e6] = 50.0,
        /// Gumbel: c_scale of sigma. Larger where returns differ little (2026-11-22-smoke.md).
        c_scale: f32 [0.0..=1e3] = 1.0,
        /// Backs up proven wins, draws and losses exactly (MCTS-Solver, Winands et al. 2008). Two-player zero-sum games only.
        solver: bool = true,
        /// Entries of the evaluation cache shared by all games; 0 = no cache, to save its memory or to measure the network. Hits
        /// in Connect Four with 64 simulations a ply: 26 to 39 % (2026-11-20-learning.md). It holds one network's evaluations; longer epochs can use more.
        cache_entries: usize [0..=1 << 32] = 1 << 19,
        /// Keeps the subtree of the played action for the next ply.
        reuse: bool = true,
        /// Maximum of inherited visits that count: against the budget, relative to `simulations`, and in the policy target of
        /// PUCT, relative to the new simulations. It bounds the weight of a deep root cache; 1: at most half of a target.
        inherit_cap: f32 [0.0..=1000.0] = 1.0,
        /// PUCT: minimum number of new simulations of a ply with inherited visits.
        min_simulations: u32 [1..=1_000_000] = 16,
        /// D: determinisations of one game with hidden information.
        determinisations: u32 [1..=4096] = 1,
        /// Maximum number of simulations of a tree of the root cache: trees of positions in which many games begin, built once
        /// per set of weights and cloned into new games; 0 = none. Gumbel: at most a quarter of `simulations`. 1000: search error
        /// 6.9 in place of 8.2 % in Connect Four with 64 simulations a ply; 5000 showed no difference (2026-11-24-root-cache.md).
        root_cache: u32 [0..=10_000_000] = 1000,
    }
    /// `[selfplay]`: the games that produce samples.
    SelfPlayConfig {
        /// N: number of games played at once.
        games: usize [1..=MAX_GAMES] = 128,
        /// Minimum number of samples of an epoch, which ends with the poll that reaches it; 0 = those of at most about 8 seconds of two
        /// cores, by an estimate from the game, the network and `search`, which the run's `config.toml` then has.
        samples_per_epoch: usize [0..=1_000_000_000] = 0,
        /// Minimum number of samples of the first epoch; each next one has twice as many, up to `samples_per_epoch`; 0 = an
        /// eighth of `samples_per_epoch` if that is 0, otherwise all.
        first_epoch: usize [0..=1_000_000_000] = 0,
        /// Where the first game of each slot begins: at the `start`, or `within` a random game, at a random ply, so that games
        /// begin to end at once, and not all at the same time.
        first_game: FirstGame = FirstGame::Within,
        /// Passes between two polls of the sample count. With fewer passes an epoch ends nearer to `samples_per_epoch`; with more
        /// the host reads the decisions of a GPU less often. 64: about one ply of the default search.
        passes_per_poll: u32 [1..=1_000_000] = 64,
        /// Uniformly random opening plies: each game draws a number from 1 to this, or has none by `opening_none`. Opening positions are not samples.
        opening_plies: u32 [0..=10_000] = 0,
        /// Fraction of games without random opening plies.
        opening_none: f32 [0.0..=1.0] = 0.25,
        /// Plies after the opening and the first deals whose action is sampled from the policy target; later plies play the best action.
        temperature_plies: u32 = 8,
    }
    /// `[replay]`: the replay buffer.
    ReplayConfig {
        /// Samples in the buffer; at least those of an update, `train.batch`.
        capacity: usize [1..=1_000_000_000] = 400_000,
    }
    /// `[train]`: optimisation.
    TrainConfig {
        /// Number format of what is multiplied: `f32`, `bf16`, or on a GPU `f16`. On a GPU activations are in it too, with half the memory
        /// of f32. On a CPU `bf16` is faster with AMX, 2.4 times at 6x64 (2026-11-29-training-with-amx.md), and with AVX512-BF16 on AMD's
        /// processors, 1.7 times (2026-11-28-training-in-bf16.md); elsewhere it is slower than f32. Where it is faster it is the default of
        /// fused networks that play in bf16 or int8 with `net.isa` native or amx; a run's `config.toml` has what was chosen. `f16` is for
        /// Turing GPUs, which lack bf16; its loss is scaled (Micikevicius et al. 2018), as small gradients vanish in f16.
        precision: TrainPrecision = TrainPrecision::F32,
        /// Whether updates run after self-play or overlap with it: `in_turns`, or `overlapped` with the self-play of the next
        /// epoch. Overlapping keeps a GPU busy while one of the two waits for the host, and uses both devices if games and
        /// training are on different ones. On a CPU it is not faster (2026-11-22-training-order.md).
        mode: TrainingMode = TrainingMode::InTurns,
        /// Peak learning rate of AdamW (Loshchilov and Hutter 2019), whose moments have Adam's decays, 0.9 and 0.999.
        lr: f64 [0.0..=100.0] = 2e-3,
        /// Weight decay, decoupled from the gradient. The value of AlphaZero, which trained by SGD; not tuned.
        weight_decay: f64 [0.0..=10.0] = 1e-4,
        /// Norm above which the gradient is scaled down to it, against outlier batches (Pascanu et al. 2013); 0 = off; 1: not
        /// tuned.
        clip_norm: f64 [0.0..=1e6] = 1.0,
        /// Updates of the linear warm-up from rate 0; at most `lr_updates` count.
        warmup_updates: u64 = 100,
        /// Updates until the rate is `lr_final`, to which it falls along half a cosine after the warm-up.
        lr_updates: u64 [1..=1_000_000_000_000] = 20_000,
        /// The final rate, relative to `lr`; 1: constant rate. Above 0, as runs may exceed `lr_updates`; 0.05 is not tuned.
        lr_final: f64 [0.0..=1.0] = 0.05,
        /// Samples of an update.
        batch: usize [1..=1_048_576] = 512,
        /// Average number of times that a sample is trained on: updates of an epoch = new samples x this / batch.
        replay_ratio: f64 [0.0..=1000.0] = 4.0,
        /// Samples in the replay buffer before the first update; at most `replay.capacity`. 0 = those for
        /// which the first update is due by `replay_ratio`.
        min_samples: usize [0..=1_000_000_000] = 0,
        /// Weight of the value loss relative to the policy loss; AlphaZero's value. Games whose values differ little may need
        /// more.
        value_weight: f64 [0.0..=1000.0] = 1.0,
        /// Weight of the loss of each head of `net.auxiliary` relative to the policy loss. In KataGo ownership weighs as much as the
        /// value (Wu 2019); not tuned.
        auxiliary_weight: f64 [0.0..=1000.0] = 1.0,
        /// Lambda of value targets (TD(lambda), Sutton 1988): the target of a sample is the search's value of the next sample of its
        /// game with weight 1 - lambda, and the target of that one with weight lambda. 1: the game's result.
        /// A value that `search.solver` has proven is the target of its own sample; what goes back to earlier ones is the return without it.
        /// Workers on other machines and `net.value_head = "wdl"` need 1.
        td_lambda: f32 [0.0..=1.0] = 1.0,
        /// The share of all updates so far over which the weights that play are averaged: with each epoch the mean moves towards the newest weights by
        /// the epoch's updates / (average x updates). 0: the newest weights alone play. In backgammon, whose targets are noisy, 0.2 is worth 0.03 to 0.05
        /// points a game (2026-11-27-average.md); where a game is still learned fast, a mean lags behind.
        average: f64 [0.0..=1.0] = 0.0,
        /// Applies a random symmetry of the game to each sample.
        symmetries: bool = true,
    }
    /// `[run]`: seed, length, threads, devices, memory.
    RunConfig {
        /// The seed of all random numbers. An equal seed repeats a run (docs/determinism.md); other seeds show how much of a result is chance.
        seed: u64 = 1,
        /// The weights file of a trained network of the same game and sizes (of an edge network, for any number of vertices) from which training starts: `vecaz run --start`. Empty: random
        /// weights.
        start: String = String::new(),
        /// Epochs in total; 0 = no limit.
        epochs: u64 = 0,
        /// Time limit of the whole run in minutes; 0 = no limit. A run without either limit takes at most 10 minutes.
        minutes: f64 [0.0..=1e7] = 0.0,
        /// CPU threads; 0 = all cores, on Apple's processors all performance cores.
        threads: usize [0..=4096] = 0,
        /// Device of games and trees in self-play and evaluation: `cpu`, `cuda` or `cuda:N`; also of the network and of training
        /// unless `net.device` is given. Self-play splits its games over several GPUs, `cuda:0,cuda:1`; evaluation, matches,
        /// `vecaz play` and the root cache use the first.
        device: Devices = Devices::default(),
        /// Memory limit of the plan, in MiB; 0 = 0.9 of the free memory within the limits of control groups and `ulimit`.
        memory_mib: u64 = 0,
        /// Number of latest checkpoints kept, besides the best network. More allow a return to an earlier epoch; they share the parts of
        /// the replay buffer that they have in common.
        keep_checkpoints: usize [1..=100_000] = 3,
        /// Epochs between networks that are kept in `opponents/`, besides that of the first epoch, for `vecaz eval --ladder`; 0 = none. After
        /// 32 of them the interval doubles with every doubling of the epoch. Each is as large as `best.safetensors`.
        keep_networks: u64 = 10,
    }
    /// `[eval]`: playing strength.
    EvalConfig {
        /// Epochs between measurements, within `share`; 0 = never. The last epoch before a limit is measured too,
        /// unless the limit of time ends its measurement.
        every: u64 = 1,
        /// Maximum share of the time that measurements take: a match has as many games as that allows, at least 4 a seat. They
        /// follow the clock and do not influence games and training. 0 = no limit: every `every` epochs in full.
        share: f64 [0.0..=1.0] = 0.1,
        /// Search algorithm of evaluation, matches and `vecaz play`; default: `afterstate` if `search.algorithm` is, else `gumbel`. PUCT gives all visits to an action whose prior is near 1,
        /// right or wrong: in Connect Four it erred in 5.9 % with 64 simulations, Gumbel in 5.3 % (2026-11-29-below-root.md).
        algorithm: Option<Algorithm> = None,
        /// Simulations per move.
        simulations: u32 [1..=1_000_000] = 64,
        /// Turns that `afterstate` looks ahead: 1, or 2 for the mean over chance of the best reply to each of the best turns (up to eight
        /// within 0.06 of the best), which takes some hundred times as long.
        turns: u32 [1..=2] = 1,
        /// Determinisations per move, each with `simulations`; 0 = `search.determinisations`.
        determinisations: u32 [0..=4096] = 0,
        /// Solved positions per measurement (games that come with them: Connect Four, tic-tac-toe, the clique game on K_6).
        positions: usize [1..=1_000_000] = 200,
        /// Match games per measurement (games without solved positions), within `share`.
        match_games: usize [1..=1_000_000] = 64,
        /// The opponent of matches: "ladder", "random" or "rollouts:S". The ladder grows with the player: random, rollouts:100,
        /// rollouts:800, then own earlier networks, each after 75 % against the one before (62.5 % with four players), or
        /// where scores are points after a lead of twice its uncertainty.
        opponent: String = "ladder".to_string(),
    }
    /// `[cluster]`: workers on other machines.
    ClusterConfig {
        /// "free": games of workers are taken in the order of arrival, so that no worker waits for another. "strict": a run
        /// repeats exactly, with the weights and replay buffer of a run on the learner's machine alone, whatever the number of workers; in
        /// bf16 all machines use AMX, all use `bfmmla`, or none uses either.
        order: ClusterOrder = ClusterOrder::Free,
        /// Maximum age of the weights with which a worker has finished a game, in versions (epochs) before the newest; older
        /// games are refused. Games played during training are 1 version old; 2 allows one more.
        max_lag: u64 [1..=1_000_000] = 2,
        /// Maximum number of bytes of games that all workers have sent and the learner has not stored in a checkpoint yet; at
        /// least twice those of an epoch. It bounds the server's memory; 256 MiB hold 0.75 million samples of Hex 13
        /// (2026-11-23-cluster.md). In strict order an epoch's polls are the bound, and only the minimum is checked.
        max_queued_bytes: u64 [1 << 20..=1 << 40] = 256 << 20,
    }
}
impl ClusterConfig {
    /// True if all keys have their defaults; the section is then omitted from the configuration of a run.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
