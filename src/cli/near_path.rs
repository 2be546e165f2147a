//! The existing path that a mistyped one may mean.

use crate::config::near_distance;
use std::fs;
use std::path::{Path, PathBuf};

/// The entry that the first missing part of `path` probably means: one that begins with its name, else the nearest. None if `path`
/// exists, if nothing is near, and if several numbers are as near as the typed one's.
pub fn near_path(path: &Path) -> Option<PathBuf> {
    let is_missing = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
    let missing = path.ancestors().take_while(is_missing).last()?;
    let typed = missing.file_name()?.to_str()?;
    let folder = missing.parent()?;
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(listed).ok()?.flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    let near = near_name(typed, &names)?;
    Some(folder.join(near))
}

/// The one of `names` that `typed` means.
fn near_name<'a>(typed: &str, names: &'a [String]) -> Option<&'a str> {
    let distance = |name: &str| near_distance(&typed.to_lowercase(), &name.to_lowercase());
    let nearest = || {
        let scored = names.iter().filter_map(|name| Some((distance(name)?, name)));
        scored.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
    };
    let near = names.iter().find(|name| name.starts_with(typed)).or_else(nearest)?;
    // Whoever types another number means another run: the only one that is so near may be it, but none of several.
    let has_number = typed.contains(|letter: char| letter.is_ascii_digit());
    let is_other_number = |name: &str| has_number && without_digits(name) == without_digits(typed);
    let is_as_near = |name: &&String| {
        is_other_number(name) && distance(name).is_some() && distance(name) <= distance(near)
    };
    let is_one_of_several = is_other_number(near) && names.iter().filter(is_as_near).count() > 1;
    (!is_one_of_several).then_some(near.as_str())
}

fn without_digits(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_missing_part_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["hex-10", "hex-2", "othello-1", "connect_four-1/epochs", "quick.toml"] {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        for (typed, expected) in [
            ("hex", Some("hex-2")),
            ("hex-10x/metrics.jsonl", Some("hex-10")),
            ("otello-1", Some("othello-1")),
            ("othello-7", Some("othello-1")),
            ("connect_four-1/epoch", Some("connect_four-1/epochs")),
            ("quik.toml", Some("quick.toml")),
            ("hex-2", None),
            ("chess", None),
            ("chess/best.safetensors", None),
            ("chess.toml", None),
        ] {
            let found = near_path(&folder.path().join(typed));
            assert_eq!(found, expected.map(|name| folder.path().join(name)), "{typed}");
        }
    }

    #[test]
    fn of_several_numbers_none_is_meant() {
        let near = |typed: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
            near_name(typed, &names).map(str::to_string)
        };
        for (typed, names, expected) in [
            ("run1", vec!["run2"], Some("run2")),
            ("run1", vec!["run2", "run3"], None),
            ("hex-1", vec!["hex-2", "hex-10"], None),
            ("hex-1", vec!["hex-10", "hex-11"], None),
            ("hex-1", vec!["hex-2", "hex-200"], Some("hex-2")),
            ("hexx-1", vec!["hex-1", "hex-2"], Some("hex-1")),
            ("hex", vec!["hex1", "hex2"], Some("hex1")),
        ] {
            assert_eq!(near(typed, &names).as_deref(), expected, "{typed} {names:?}");
        }
    }
}
