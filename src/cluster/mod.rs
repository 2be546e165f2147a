//! Many machines: workers play games, one learner trains on them, Redis Streams carry what goes between them.
//!
//! In: chunks of finished games from workers. Out: weights and the configuration for workers. The learner is a run
//! ([`crate::run::Run`]) whose games also come from workers; a worker holds nothing that is not lost without harm.

pub mod address;
mod bounds;
pub mod chunk;
pub mod evaluation;
pub mod learner;
pub mod overview;
mod own_worker;
pub mod published;
mod reader;
pub mod received;
mod sender;
pub mod server;
mod shared;
pub mod status;
pub mod strict;
mod tally;
mod waiting;
mod window;
pub mod worker;
mod worker_play;

use crate::batch::AnyGame;
use crate::config::{
    ClusterConfig, ClusterOrder, Config, EvalConfig, NetConfig, ReplayConfig, RunConfig, SelfPlayConfig,
    TrainConfig,
};
use sha2::{Digest, Sha256};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The version of everything that is sent. Learner and workers have the same.
pub const PROTOCOL: u32 = 1;

/// Bits of a slot's number within its incarnation: as many slots as `selfplay.games` may be.
const SLOT_BITS: u32 = 20;
/// Bits of an incarnation in a slot's number, so that the number is exact in JSON, whose numbers are 64-bit floats for many readers.
const INCARNATION_BITS: u32 = 53 - SLOT_BITS;

/// The number of a worker's process, drawn at random when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The number of the process's first slot over the whole run. The learner's own slots begin at 0.
    pub fn first_slot(self) -> u64 {
        (self.0 % ((1 << INCARNATION_BITS) - 1) + 1) << SLOT_BITS
    }

    /// The field of the process in hashes.
    pub fn field(self) -> String {
        format!("{:016x}", self.0)
    }

    /// Whether the process has this slot.
    pub fn has_slot(self, slot: u64) -> bool {
        slot >> SLOT_BITS == self.first_slot() >> SLOT_BITS
    }
}

/// A number that no other process draws: from the system's randomness, by the standard library's keys of hash tables.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// What determines games and their meaning: the game's settings, the network's sizes, search, self-play and the seed. Devices,
/// number formats, threads and the number of games at once may differ from one process to the other; in strict order all but the number
/// of threads are the same.
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
        game: toml::Table::new(), // its settings stand beside
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
