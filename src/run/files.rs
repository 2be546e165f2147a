//! The names of a run's files.

/// The configuration's file in a run's folder.
pub const CONFIG: &str = "config.toml";
/// The folder of stored games in a run's folder.
pub const GAMES: &str = "games";
/// The folder of networks that are kept as opponents in a run's folder.
pub const OPPONENTS: &str = "opponents";
/// The best network so far, in a run's folder.
pub const BEST: &str = "best.safetensors";
/// The network of the epoch that the time limit cut, in a run's folder.
pub const FINAL: &str = "final.safetensors";
/// The list of a run's files, in its folder.
pub const MANIFEST: &str = "manifest.jsonl";
