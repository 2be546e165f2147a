//! The games and networks of `tests/cuda_parity.rs`; `examples/kernel_store.rs` compiles their programs beforehand for a machine
//! whose first minute is for tests.

use vecaz::config::{Arch, Precision};
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
pub fn networks() -> [NetSpec; 8] {
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
        ..NetSpec::default()
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
        board(2, 9, 9, 2, 64),
        NetSpec { arch: Arch::Mlp, ..board(198, 1, 1, 3, 250) },
        edges(91, 3, 64),
        edges(136, 2, 200),
        edges(3, 1, 9),
    ]
}

/// A game that a network plays beside its trees.
pub struct ResidentCase {
    /// The game's name and settings.
    pub game: (&'static str, &'static str),
    /// The network.
    pub net: (Arch, usize, usize),
    /// What it computes in.
    pub precision: Precision,
    /// N; each game selects [`RESIDENT_LEAVES`] leaves a pass.
    pub slots: usize,
}

/// L of the games of [`RESIDENT`].
pub const RESIDENT_LEAVES: usize = 2;

/// One of each kind of network and number format.
pub const RESIDENT: [ResidentCase; 5] = [
    ResidentCase {
        game: ("connect_four", ""),
        net: (Arch::Resnet, 3, 64),
        precision: Precision::Bf16,
        slots: 517,
    },
    ResidentCase {
        game: ("hex", "size = 5"),
        net: (Arch::Resnet, 2, 40),
        precision: Precision::F32,
        slots: 33,
    },
    ResidentCase { game: ("backgammon", ""), net: (Arch::Mlp, 2, 100), precision: Precision::F16, slots: 64 },
    ResidentCase { game: ("blob", ""), net: (Arch::Mlp, 1, 64), precision: Precision::Tf32, slots: 9 },
    ResidentCase {
        game: ("clique", "n = 9\nk = 4"),
        net: (Arch::Edge, 2, 64),
        precision: Precision::Bf16,
        slots: 129,
    },
];

/// Boards of a batch for [`networks`].
pub const BATCH: usize = 301;
/// Boards of a part of it, evaluated again in other slots.
pub const PART: usize = 5;
/// Boards of the larger of two batches of a double-buffered network.
pub const HALF: usize = 64;
