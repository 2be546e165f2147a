//! The files of a crate, and which uses which.

use crate::module::{Module, read_module};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a crate, by module path.
pub struct Sources {
    pub modules: BTreeMap<Vec<String>, Module>,
}

pub fn crate_sources() -> Sources {
    fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> = fs::read_dir(folder)
            .expect("a folder of src")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                collect(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    collect(&src, &mut paths);
    let texts: Vec<(String, String)> = paths
        .iter()
        .map(|path| {
            let name = path.strip_prefix(&src).expect("a file of src").to_string_lossy().replace('\\', "/");
            (name, fs::read_to_string(path).expect("a source file"))
        })
        .filter(|(name, _)| name != "main.rs")
        .collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Sources::new(&texts)
}

impl Sources {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let path_of = |file: &str| -> Vec<String> {
            let path = file.trim_end_matches(".rs");
            let path = path.strip_suffix("/mod").unwrap_or(path);
            path.split('/').filter(|part| *part != "lib").map(str::to_string).collect()
        };
        let all: BTreeMap<_, _> = files
            .iter()
            .map(|(file, text)| (path_of(file), read_module(file, path_of(file), text)))
            .collect();
        // What no other file declares outside of tests is a test.
        let is_declared = |path: &[String]| {
            (1..=path.len())
                .all(|n| all.get(&path[..n - 1]).is_some_and(|m| m.children.contains(&path[n - 1])))
        };
        let tests: Vec<_> = all.keys().filter(|path| !is_declared(path)).cloned().collect();
        let mut modules = all;
        tests.iter().for_each(|path| drop(modules.remove(path)));
        Self { modules }
    }

    pub fn children(&self, path: &[String]) -> Vec<&str> {
        self.modules[path].children.iter().map(String::as_str).collect()
    }

    /// The module that defines what `path` names. Names that a module passes on are followed to where they come from.
    fn resolve(&self, path: &[String]) -> Vec<String> {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let depth = (0..=path.len()).rev().find(|&n| self.modules.contains_key(&path[..n])).unwrap_or(0);
            let (module, rest) = path.split_at(depth);
            let passed_on = rest.first().and_then(|name| self.modules[module].names.get(name));
            match passed_on {
                Some(target) if target != &path[..=depth] => {
                    path = target.iter().chain(&rest[1..]).cloned().collect();
                }
                _ => return module.to_vec(),
            }
        }
        panic!("{} leads round in a circle", path.join("::"));
    }

    pub fn arrows(&self) -> Vec<Arrow> {
        let mut out = Vec::new();
        for (from, module) in &self.modules {
            for (line, path) in &module.paths {
                let to = self.resolve(path);
                if &to != from {
                    let file = &self.modules[&to].file;
                    let at = format!("{}:{line} uses crate::{} of {file}", module.file, path.join("::"));
                    let names_module = path == &to;
                    out.push(Arrow { from: from.clone(), to, names_module, at });
                }
            }
        }
        out
    }
}

/// One use of a module by another.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// The module that uses, by its path in the crate.
    pub from: Vec<String>,
    /// The module that is used.
    pub to: Vec<String>,
    /// Whether it names the module itself and nothing in it, as in `pub(in crate::a)`.
    pub names_module: bool,
    /// Where it is written and what.
    pub at: String,
}

impl fmt::Display for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at)
    }
}
