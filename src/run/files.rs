//! The names of a run's files.

use std::path::Path;

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

/// The name of the file at `path` in a run's folder, with `/` between folders on every system; None if it is not UTF-8.
pub fn listed_name(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_lists_are_the_same_on_every_system() {
        let path = Path::new("checkpoints").join("epoch-000001").join("weights.safetensors");
        assert_eq!(listed_name(&path).as_deref(), Some("checkpoints/epoch-000001/weights.safetensors"));
        assert_eq!(listed_name(Path::new("./config.toml")).as_deref(), Some("./config.toml"));
    }
}
