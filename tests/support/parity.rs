//! The games and networks of `tests/cuda_parity.rs`, and the programs that its tests compile: `examples/kernel_store.rs` compiles them
//! beforehand for a machine that is to spend its first minute on tests.

use vecaz::backend::kernels::device::{Limits, Program};
use vecaz::backend::kernels::forward::{self, Arithmetic, ElementType};
use vecaz::backend::kernels::source;
use vecaz::batch::any_game;
use vecaz::config::{Arch, NetConfig, TensorCores, TrainPrecision};
use vecaz::error::Result;
use vecaz::game::ObsShape;
use vecaz::model::NetSpec;

/// Games with settings that keep them short, and others that make large arrays.
pub const GAMES: [(&str, &str); 15] = [
    ("tic_tac_toe", ""),
    ("connect_four", ""),
    ("connect_four", "rows = 7\ncolumns = 8\nconnect = 5"),
    ("othello", ""),
    ("hex", ""),
    ("hex", "size = 5\nswap = true"),
    ("gomoku", "size = 9\nrule = 'exact'\nopening = 'swap2'"),
    ("go", ""),
    ("go", "size = 5\nmax_plies = 40"),
    ("chess", ""),
    ("clique", ""),
    ("clique", "n = 17\nk = 4\nmode = 'avoid_clique'"),
    ("backgammon", "ply_limit = 300"),
    ("blob", ""),
    ("blob", "players = 8\ncards = 6"),
];

/// Networks on boards, a perceptron and networks on edges, with sizes that fill no tile.
pub fn networks() -> [NetSpec; 7] {
    let board = |planes, height, width, blocks, channels| NetSpec {
        arch: Arch::Resnet,
        blocks,
        channels,
        policy_channels: 5,
        value_channels: 3,
        value_hidden: 37,
        obs: ObsShape { channels: planes, height, width },
        num_actions: height * width + 1,
        num_players: 2,
        zero_sum_pair: true,
    };
    let edges = |edges, blocks, channels| NetSpec {
        arch: Arch::Edge,
        num_actions: edges,
        ..board(4, edges, 1, blocks, channels)
    };
    [
        board(2, 6, 7, 6, 128),
        board(17, 19, 19, 2, 70),
        board(3, 3, 5, 3, 256),
        NetSpec { arch: Arch::Mlp, ..board(198, 1, 1, 3, 250) },
        edges(91, 3, 64),
        edges(136, 2, 200),
        edges(3, 1, 9),
    ]
}

/// A game that a network plays beside its trees.
pub struct Beside {
    /// The game's name and settings.
    pub game: (&'static str, &'static str),
    /// The network.
    pub net: (Arch, usize, usize),
    /// What it computes in.
    pub numbers: ElementType,
    /// N; each game selects [`BESIDE_LEAVES`] leaves a pass.
    pub slots: usize,
}

/// L of the games of [`BESIDE`].
pub const BESIDE_LEAVES: usize = 2;

/// One of each kind of network and number format.
pub const BESIDE: [Beside; 5] = [
    Beside { game: ("connect_four", ""), net: (Arch::Resnet, 3, 64), numbers: ElementType::Bf16, slots: 517 },
    Beside { game: ("hex", "size = 5"), net: (Arch::Resnet, 2, 40), numbers: ElementType::F32, slots: 33 },
    Beside { game: ("backgammon", ""), net: (Arch::Mlp, 2, 100), numbers: ElementType::F16, slots: 64 },
    Beside { game: ("blob", ""), net: (Arch::Mlp, 1, 64), numbers: ElementType::Tf32, slots: 9 },
    Beside {
        game: ("clique", "n = 9\nk = 4"),
        net: (Arch::Edge, 2, 64),
        numbers: ElementType::Bf16,
        slots: 129,
    },
];

/// Boards of a batch for [`networks`].
pub const BATCH: usize = 301;
/// Boards of a part of it, evaluated again in other slots.
pub const PART: usize = 5;
/// Boards of the larger of two batches of a double-buffered network.
pub const HALF: usize = 64;

/// Every program that the parity tests compile on a device of these limits.
pub fn programs(limits: Limits) -> Result<Vec<Program>> {
    let mut all = Vec::new();
    let beside_games = BESIDE.iter().map(|beside| beside.game);
    for (name, options) in GAMES.into_iter().chain(beside_games) {
        let game = any_game(name, &options.parse().expect("TOML"))?;
        for unit in ["search", "passes", "batch"] {
            all.push(source::program(game.as_ref(), unit)?);
        }
    }
    for precision in [TrainPrecision::F32, TrainPrecision::Bf16, TrainPrecision::F16] {
        all.push(source::training(None, precision)?);
    }
    let mma = |numbers| Arithmetic { numbers, cores: TensorCores::Mma };
    for beside in &BESIDE {
        let (arch, blocks, channels) = beside.net;
        let game = any_game(beside.game.0, &beside.game.1.parse().expect("TOML"))?;
        let net = NetConfig { arch, blocks, channels, ..NetConfig::default() };
        let spec = NetSpec::new(&net, &game.sizes());
        // On the device as many slots as leaves; asked by the host, the next power of two.
        let leaves = beside.slots * BESIDE_LEAVES;
        for slots in [leaves, leaves.next_power_of_two()] {
            all.push(forward::program(&spec, mma(beside.numbers), slots, limits)?);
        }
    }
    for spec in networks() {
        for numbers in [ElementType::F16, ElementType::Bf16, ElementType::Tf32, ElementType::F32] {
            for slots in [BATCH, PART, HALF] {
                all.push(forward::program(&spec, mma(numbers), slots, limits)?);
            }
        }
        if limits.capability == 90 {
            for numbers in [ElementType::F16, ElementType::Bf16] {
                for slots in [BATCH, 1] {
                    let by = Arithmetic { numbers, cores: TensorCores::Wgmma };
                    all.push(forward::program(&spec, by, slots, limits)?);
                }
            }
        }
    }
    Ok(all)
}
