//! The configuration: a TOML file and `--set key=value`, merged, checked, resolved.
//!
//! Every key has a default, so an empty file is a run of Connect Four. Unknown keys, wrong types and values out of range are
//! refused with the key, where it was set, the value found and the values expected. Independent of games and machines, except for the
//! names of instruction sets ([`Isa`](crate::isa::Isa)) and devices.

mod check; // values that depend on other keys
mod config_file; // a whole configuration
mod device; // names of devices
mod isa_choice; // names of instruction sets
pub mod keys; // keys as they are described and read
mod layers; // files and assignments, merged
mod nearest; // the key that a wrong one means
mod net; // `[net]`
mod removed; // keys of earlier versions
mod sections; // all other sections

pub use config_file::{Config, DEFAULT_GAME};
pub use device::{DeviceName, Devices};
pub use isa_choice::IsaChoice;
pub use keys::KeyInfo;
pub use layers::{Layers, MAX_BYTES};
pub use nearest::{near_distance, nearest, nearest_hint};
pub use net::{Arch, Executor, NetConfig, PolicyHead, Precision, TensorCores, ValueHead};
pub use sections::{
    Algorithm, ClusterConfig, ClusterOrder, EvalConfig, FirstGame, MAX_GAMES, ReplayConfig, RunConfig,
    SearchConfig, SelfPlayConfig, TrainConfig, TrainPrecision, TrainingMode,
};
