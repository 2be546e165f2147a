//! The names of a run's files.

use crate::error::Result;
use crate::files::if_exists;
use std::collections::BTreeSet;
use std::fs;
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

/// The path of the games of `epoch`.
pub fn games_name(epoch: u64) -> String {
    format!("{GAMES}/epoch-{epoch:06}.jsonl")
}

/// The path of the network of `epoch` that is kept as an opponent.
pub fn opponent_name(epoch: u64) -> String {
    format!("{OPPONENTS}/epoch-{epoch:06}.safetensors")
}

/// The epochs up to `epoch` that have a file in this `folder` of `dir`, in order. The folder is listed, instead of testing a name per
/// epoch, since the name of a checkpoint may contain any number. None if it does not exist.
///
/// # Errors
/// [`Error::Io`].
pub fn numbered_files(dir: &Path, folder: &str, epoch: u64) -> Result<BTreeSet<u64>> {
    let path = dir.join(folder);
    let entries = if_exists(&path, fs::read_dir(&path))?;
    let number = |entry: std::io::Result<fs::DirEntry>| -> Option<u64> {
        let entry = entry.ok().filter(|entry| entry.path().is_file())?;
        let name = entry.file_name().into_string().ok()?;
        let number = name.strip_prefix("epoch-")?.split_once('.')?.0.parse().ok()?;
        [games_name(number), opponent_name(number)].contains(&format!("{folder}/{name}")).then_some(number)
    };
    Ok(entries
        .into_iter()
        .flatten()
        .filter_map(number)
        .filter(|number| (1..=epoch).contains(number))
        .collect())
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
