//! What is there in place of a path that is not.

use crate::config::nearest;
use std::fs;
use std::path::{Path, PathBuf};

/// The entry that the first missing part of `path` probably means: one that begins with its name, else the nearest. None if `path`
/// exists or nothing is near.
pub fn near_path(path: &Path) -> Option<PathBuf> {
    let is_missing = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
    let missing = path.ancestors().take_while(is_missing).last()?;
    let typed = missing.file_name()?.to_str()?;
    let folder = missing.parent()?;
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(listed).ok()?.flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    let begins = names.iter().find(|name| name.starts_with(typed)).map(String::as_str);
    let near = begins.or_else(|| nearest(typed, names.iter().map(String::as_str)))?;
    Some(folder.join(near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_missing_part_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["hex-10", "hex-2", "othello-1", "connect_four-1/epochs"] {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        for (typed, expected) in [
            ("hex", Some("hex-2")),
            ("hex-1/metrics.jsonl", Some("hex-10")),
            ("otello-1", Some("othello-1")),
            ("connect_four-1/epoch", Some("connect_four-1/epochs")),
            ("hex-2", None),
            ("chess", None),
            ("chess/best.safetensors", None),
        ] {
            let found = near_path(&folder.path().join(typed));
            assert_eq!(found, expected.map(|name| folder.path().join(name)), "{typed}");
        }
    }
}
