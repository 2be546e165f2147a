//! Many machines: workers play games, one learner trains on them, Redis Streams carry the data between them.
//!
//! In: chunks of finished games from workers. Out: weights and the configuration for workers. The learner is a run
//! ([`crate::run::Run`]) whose games also come from workers. All data of a worker may be lost without harm to the run.

pub mod address;
mod bounds;
pub mod chunk;
mod entry_queue;
pub mod evaluation;
pub mod learner;
mod local_worker;
pub mod overview;
pub mod published;
mod reader;
pub mod received;
mod run_shared;
mod sender;
pub mod server;
pub mod status;
pub mod strict;
mod window;
pub mod worker;
mod worker_counters;
mod worker_play;

use crate::backend::AnyGame;
use crate::config::{
    ClusterConfig, ClusterOrder, Config, EvalConfig, NetConfig, ReplayConfig, RunConfig, SelfPlayConfig,
    TrainConfig,
};
use sha2::{Digest, Sha256};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The version of all formats that are sent. Learner and workers need the same one.
pub const PROTOCOL: u32 = 1;

/// Bits of a slot's number within its incarnation: enough for the largest `selfplay.games`.
const SLOT_BITS: u32 = 20;
/// Bits of an incarnation in a slot's number. Many readers of JSON take numbers as 64-bit floats, which are exact up to 53 bits.
const INCARNATION_BITS: u32 = 53 - SLOT_BITS;

/// The number of a worker's process, drawn at random when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The number of the process's first slot in the whole run. The learner's own slots begin at 0.
    pub fn first_slot(self) -> u64 {
        (self.0 % ((1 << INCARNATION_BITS) - 1) + 1) << SLOT_BITS
    }

    /// The field of the process in hashes of the server.
    pub fn field(self) -> String {
        format!("{:016x}", self.0)
    }

    /// Whether this slot belongs to the process.
    pub fn has_slot(self, slot: u64) -> bool {
        slot >> SLOT_BITS == self.first_slot() >> SLOT_BITS
    }
}

/// A random number of 64 bits. The standard library seeds the keys of hash tables from the system's randomness.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// SHA-256 of all that determines games and their meaning: the game's settings, the network's sizes, search, self-play and the
/// seed. Devices, number formats, threads and the number of games at once may differ between processes. In strict order only the
/// number of threads may differ.
pub fn digest(config: &Config, game: &dyn AnyGame) -> [u8; 32] {
    let (net, selfplay, default) = (&config.net, &config.selfplay, Config::default());
    let NetConfig { executor, precision, isa, tensor_cores, device, .. } = default.net;
    let SelfPlayConfig { games, samples_per_epoch, passes_per_poll, .. } = default.selfplay;
    let machine = match config.cluster.order {
        ClusterOrder::Free => String::new(),
        ClusterOrder::Strict => {
            let SelfPlayConfig { games, passes_per_poll, .. } = *selfplay;
            format!("{}, {games}, {passes_per_poll}", strict::platform(config))
        }
    };
    let common = Config {
        game: toml::Table::new(), // `game.options()` has its settings
        net: NetConfig { executor, precision, isa, tensor_cores, device, ..net.clone() },
        selfplay: SelfPlayConfig { games, samples_per_epoch, passes_per_poll, ..selfplay.clone() },
        replay: ReplayConfig::default(),
        train: TrainConfig::default(),
        run: RunConfig { seed: config.run.seed, ..RunConfig::default() },
        eval: EvalConfig::default(),
        cluster: ClusterConfig::default(),
        ..config.clone()
    };
    let text = format!("{PROTOCOL}\n{}\n{}\n{}\n{machine}", game.name(), game.options(), common.to_toml());
    Sha256::digest(text).into()
}
