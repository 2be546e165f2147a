//! The map of the modules is true: lib.rs lists them from the ground up, and a module uses only modules above it in that list.
//! Within a folder no two files use each other, except a file and its child. A `mod.rs` is a table of contents: no child uses what it
//! defines itself. What a module's head says it does not know, it does not use. Tests in src may use anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn no_module_uses_one_below_it_in_the_list_of_lib_rs() {
    let found: Vec<String> = upward_arrows(&crate_sources()).iter().map(Arrow::to_string).collect();
    assert!(found.is_empty(), "a module uses one that lib.rs lists below it:\n{}", found.join("\n"));
}

#[test]
fn no_files_of_a_folder_use_each_other_in_a_circle() {
    let of_folder = |(folder, arrows): (String, Vec<Arrow>)| {
        let arrows: Vec<String> = arrows.iter().map(Arrow::to_string).collect();
        format!("in {folder}:\n{}", arrows.join("\n"))
    };
    let found: Vec<String> = circles(&crate_sources()).into_iter().map(of_folder).collect();
    assert!(found.is_empty(), "files that use each other in a circle:\n{}", found.join("\n"));
}

/// Folders whose `mod.rs` defines what its children use: a game is its `mod.rs`, the others are to become tables of contents.
const NOT_THIN: [&str; 14] = [
    "backend/cpu",
    "cluster/evaluation",
    "config",
    "contract",
    "device/cuda",
    "game",
    "game/backgammon",
    "game/blob",
    "model",
    "net/cpu",
    "net/gpu",
    "run",
    "train",
    "train/device",
];

#[test]
fn no_child_uses_what_the_mod_rs_above_it_defines() {
    let (mut found, mut needed) = (Vec::new(), BTreeSet::new());
    for arrow in arrows_to_tables_of_contents(&crate_sources()) {
        let folder = arrow.to.join("/");
        match NOT_THIN.contains(&folder.as_str()) {
            true => drop(needed.insert(folder)),
            false => found.push(arrow.to_string()),
        }
    }
    assert!(
        found.is_empty(),
        "a child uses what its mod.rs defines; give that a file:\n{}",
        found.join("\n")
    );
    let thin: Vec<&&str> = NOT_THIN.iter().filter(|folder| !needed.contains(**folder)).collect();
    assert!(thin.is_empty(), "their mod.rs is a table of contents; remove them from the list: {thin:?}");
}

/// What the heads of modules say that they know nothing of, apart from what stands below them in the list.
const KNOWS_NOTHING_OF: [(&str, &[&str]); 13] = [
    ("device", &["device_struct"]),
    ("game", &["device"]),
    ("tree", &["game", "batch", "config"]),
    ("search", &["batch", "device"]),
    ("model", &["batch", "tree", "search", "device"]),
    ("net", &["batch", "tree", "search"]),
    ("play", &["net", "model", "device"]),
    ("replay", &["net", "search", "tree", "device"]),
    ("train", &["play", "search", "tree"]),
    ("backend", &["train", "replay", "model"]),
    ("pass", &["train", "replay", "batch"]),
    ("selfplay", &["train", "replay"]),
    ("weights", &["train", "replay", "backend", "search", "tree"]),
];

#[test]
fn modules_do_not_use_what_their_heads_say_they_do_not_know() {
    let arrows = crate_sources().arrows();
    let found: Vec<String> = KNOWS_NOTHING_OF
        .iter()
        .flat_map(|(module, unknown)| {
            let of_module =
                arrows.iter().filter(move |arrow| arrow.from.first().is_some_and(|from| from == module));
            of_module.filter(|arrow| arrow.to.first().is_some_and(|to| unknown.contains(&to.as_str())))
        })
        .map(Arrow::to_string)
        .collect();
    assert!(found.is_empty(), "a module uses what it should not know:\n{}", found.join("\n"));
}

/// A made-up crate with one upward arrow and one circle, each written in another way, and with what must not count: comments,
/// strings, tests, a child that uses its parent, and names that a module passes on from further up.
#[test]
fn arrows_are_found_however_they_are_written() {
    let sources = Sources::new(&[
        ("lib.rs", "pub mod ground; pub mod middle; pub mod top;"),
        (
            "ground.rs",
            "// crate::top\nconst S: &str = \"crate::top\"; fn f() -> char { '\"' }\n#[cfg(test)] mod tests { use crate::top; }",
        ),
        ("middle/mod.rs", "mod a; mod b; mod c;\npub use c::Shared; use a::A;"),
        ("middle/a.rs", "use super::{b::B, Shared};\nfn f(x: &'static u8) { crate::top::g(); }"),
        ("middle/b.rs", "mod x86 { use super::super::a::A; }"),
        ("middle/c.rs", "use crate::ground::S; use super::Parent;"),
        ("top.rs", "use crate::{ground, middle::Shared as Other};"),
    ]);
    let upward: Vec<String> = upward_arrows(&sources).iter().map(Arrow::to_string).collect();
    assert_eq!(upward, ["middle/a.rs:2 uses crate::top::g of top.rs"]);
    let circles = circles(&sources);
    assert_eq!(circles.keys().collect::<Vec<_>>(), ["middle"]);
    let arrows: Vec<String> = circles["middle"].iter().map(Arrow::to_string).collect();
    assert_eq!(
        arrows,
        [
            "middle/a.rs:1 uses crate::middle::b::B of middle/b.rs",
            "middle/b.rs:1 uses crate::middle::a::A of middle/a.rs"
        ]
    );
}

/// A child that takes a definition from its `mod.rs` and one that takes a name which that passes on, or names a place to be seen from.
#[test]
fn only_definitions_of_a_mod_rs_count() {
    let sources = Sources::new(&[
        ("lib.rs", "pub mod a; pub mod b;"),
        ("a/mod.rs", "mod x; mod y; mod deep; pub use y::Y; pub struct Own;"),
        ("a/x.rs", "use super::{Own, Y}; pub(in crate::a) fn f() {}"),
        ("a/y.rs", "pub struct Y;"),
        ("a/deep/mod.rs", "mod z;"),
        ("a/deep/z.rs", "use super::super::Own;"),
        ("b.rs", "use crate::a::Own;"),
    ]);
    let found: Vec<String> = arrows_to_tables_of_contents(&sources).iter().map(Arrow::to_string).collect();
    assert_eq!(
        found,
        ["a/deep/z.rs:1 uses crate::a::Own of a/mod.rs", "a/x.rs:1 uses crate::a::Own of a/mod.rs"]
    );
}

/// One use of a module by another.
#[derive(Clone, Debug)]
struct Arrow {
    /// The module that uses, by its path in the crate.
    from: Vec<String>,
    /// The module that is used.
    to: Vec<String>,
    /// Whether it names the module itself and nothing in it, as in `pub(in crate::a)`.
    names_module: bool,
    /// Where it is written and what.
    at: String,
}

impl fmt::Display for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at)
    }
}

/// All arrows from a module to one that lib.rs lists below it.
fn upward_arrows(sources: &Sources) -> Vec<Arrow> {
    let order: Vec<&str> = sources.children(&[]);
    let place = |module: &[String]| order.iter().position(|name| *name == module[0]);
    sources
        .arrows()
        .into_iter()
        .filter(|arrow| {
            !arrow.from.is_empty() && !arrow.to.is_empty() && place(&arrow.from) < place(&arrow.to)
        })
        .collect()
}

/// All arrows from a file to what a `mod.rs` above it defines.
fn arrows_to_tables_of_contents(sources: &Sources) -> Vec<Arrow> {
    let is_table = |module: &[String]| sources.modules[module].file.ends_with("/mod.rs");
    let mut arrows = sources.arrows();
    arrows.retain(|arrow| arrow.from.len() > arrow.to.len() && arrow.from.starts_with(&arrow.to));
    arrows.retain(|arrow| is_table(&arrow.to) && !arrow.names_module);
    arrows
}

/// For each folder whose files use one another in a circle: the arrows of which the circles consist. A file stands for its folder.
fn circles(sources: &Sources) -> BTreeMap<String, Vec<Arrow>> {
    let mut siblings: BTreeMap<Vec<String>, Vec<Arrow>> = BTreeMap::new();
    for arrow in sources.arrows() {
        let shared = arrow.from.iter().zip(&arrow.to).take_while(|(a, b)| a == b).count();
        if shared > 0 && shared < arrow.from.len().min(arrow.to.len()) {
            siblings.entry(arrow.from[..shared].to_vec()).or_default().push(arrow);
        }
    }
    let mut out = BTreeMap::new();
    for (folder, arrows) in siblings {
        let depth = folder.len();
        let (from, to) = (|a: &Arrow| a.from[depth].clone(), |a: &Arrow| a.to[depth].clone());
        let mut reach: BTreeSet<(String, String)> = arrows.iter().map(|a| (from(a), to(a))).collect();
        loop {
            let next: Vec<_> = reach
                .iter()
                .flat_map(|(a, b)| {
                    reach.iter().filter(move |(c, _)| b == c).map(|(_, d)| (a.clone(), d.clone()))
                })
                .collect();
            let before = reach.len();
            reach.extend(next);
            if reach.len() == before {
                break;
            }
        }
        let of_circles: Vec<Arrow> =
            arrows.into_iter().filter(|a| reach.contains(&(to(a), from(a)))).collect();
        if !of_circles.is_empty() {
            out.insert(folder.join("/"), of_circles);
        }
    }
    out
}

/// The files of a crate, by module path.
struct Sources {
    modules: BTreeMap<Vec<String>, Module>,
}

/// One file.
struct Module {
    file: String,
    /// The modules that it declares, in the order in which it lists them.
    children: Vec<String>,
    /// The paths that it names, each with its line.
    paths: Vec<(usize, Vec<String>)>,
    /// What it brings into its scope: names, and the paths that they stand for.
    names: BTreeMap<String, Vec<String>>,
}

fn crate_sources() -> Sources {
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
    fn new(files: &[(&str, &str)]) -> Self {
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

    fn children(&self, path: &[String]) -> Vec<&str> {
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

    fn arrows(&self) -> Vec<Arrow> {
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

/// A word or a sign of a source file with its line.
type Token = (usize, String);

/// The tokens of Rust source without comments, literals and lifetimes.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
    let (mut out, mut i, mut line) = (Vec::new(), 0, 1);
    // Where a literal or a comment ends that began at `from` and ends with `end`.
    let skip_to = |from: usize, end: &str| {
        let end: Vec<char> = end.chars().collect();
        (from..chars.len()).find(|&j| chars[j..].starts_with(&end)).map_or(chars.len(), |j| j + end.len())
    };
    while i < chars.len() {
        let start = i;
        let c = at(i);
        if c.is_alphabetic() || c == '_' {
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
            let word: String = chars[start..i].iter().collect();
            let hashes = (i..chars.len()).take_while(|&j| chars[j] == '#').count();
            if matches!(word.as_str(), "r" | "br" | "cr") && at(i + hashes) == '"' {
                i = skip_to(i + hashes + 1, &format!("\"{}", "#".repeat(hashes)));
            } else {
                out.push((line, word));
            }
        } else if c == '/' && at(i + 1) == '/' {
            i = skip_to(i, "\n") - 1;
        } else if c == '/' && at(i + 1) == '*' {
            i = skip_to(i + 2, "*/");
        } else if c == '"' {
            i += 1;
            while i < chars.len() && at(i) != '"' {
                i += if at(i) == '\\' { 2 } else { 1 };
            }
            i += 1;
        } else if c == '\'' && at(i + 1) == '\\' {
            i = skip_to(i + 3, "'");
        } else if c == '\'' && at(i + 2) == '\'' {
            i += 3;
        } else if c.is_whitespace() || c.is_numeric() || c == '\'' {
            i += 1;
        } else {
            let sign = if c == ':' && at(i + 1) == ':' { "::".to_string() } else { c.to_string() };
            i += sign.len();
            out.push((line, sign));
        }
        i = i.max(start + 1).min(chars.len());
        line += chars[start..i].iter().filter(|c| **c == '\n').count();
    }
    out
}

/// Leaves out every item that is compiled for tests alone.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let marker = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut out, mut i) = (Vec::with_capacity(tokens.len()), 0);
    while i < tokens.len() {
        let is_test = tokens.len() - i >= marker.len()
            && tokens[i..].iter().zip(marker).all(|((_, token), sign)| token == sign);
        if !is_test {
            out.push(tokens[i].clone());
            i += 1;
            continue;
        }
        let (mut depth, mut j) = (0, i + marker.len());
        while j < tokens.len() {
            match tokens[j].1.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            let ends = matches!(tokens[j].1.as_str(), "}" | ";") && depth == 0;
            j += 1;
            if ends {
                break;
            }
        }
        i = j;
    }
    out
}

/// Reads the file of module `path`.
fn read_module(file: &str, path: Vec<String>, text: &str) -> Module {
    let tokens = without_tests(tokens(text));
    let word = |i: usize| tokens.get(i).map_or("", |(_, token)| token.as_str());
    let mut module =
        Module { file: file.to_string(), children: Vec::new(), paths: Vec::new(), names: BTreeMap::new() };
    // The modules written out in the file that the token lies in, and at which depth of braces each ends.
    let mut inline: Vec<(String, usize)> = Vec::new();
    let (mut depth, mut i) = (0, 0);
    while i < tokens.len() {
        let line = tokens[i].0;
        match word(i) {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inline.retain(|(_, end)| *end <= depth);
            }
            "mod" if word(i + 2) == ";" => module.children.push(word(i + 1).to_string()),
            "mod" if word(i + 2) == "{" => inline.push((word(i + 1).to_string(), depth + 1)),
            "mod" if word(i + 1) == "$" && word(i + 3) == "{" => {
                inline.push((word(i + 2).to_string(), depth + 1))
            }
            "use" => {
                let scope: Vec<String> =
                    path.iter().cloned().chain(inline.iter().map(|(name, _)| name.clone())).collect();
                let mut tree = UseTree { scope: &scope, tokens: &tokens, next: i + 1, found: Vec::new() };
                tree.read(Vec::new());
                i = tree.next;
                for (found, name) in tree.found {
                    if inline.is_empty() && name != "*" {
                        module.names.insert(name, found.clone());
                    }
                    module.paths.push((line, found));
                }
                continue;
            }
            "crate" | "super" if word(i + 1) == "::" => {
                let mut parts = vec![word(i).to_string()];
                while word(i + 1) == "::" && word(i + 2).starts_with(|c: char| c.is_alphabetic() || c == '_')
                {
                    parts.push(word(i + 2).to_string());
                    i += 2;
                }
                let scope: Vec<String> =
                    path.iter().cloned().chain(inline.iter().map(|(name, _)| name.clone())).collect();
                module.paths.extend(absolute(&scope, &parts).map(|path| (line, path)));
            }
            _ => {}
        }
        i += 1;
    }
    keep_paths_of_crate(&mut module, &path);
    module
}

/// Leaves out the paths of other crates, and completes those of `module`, at `path`, that begin with one of its children:
/// `pub use child::Name`.
fn keep_paths_of_crate(module: &mut Module, path: &[String]) {
    let Module { children, paths, names, .. } = module;
    let is_own = |found: &mut Vec<String>| {
        if found.first().is_none_or(|first| first != RELATIVE) {
            return true;
        }
        found.remove(0);
        let is_child = found.first().is_some_and(|first| children.contains(first));
        if is_child {
            found.splice(0..0, path.iter().cloned());
        }
        is_child
    };
    paths.retain_mut(|(_, found)| is_own(found));
    names.retain(|_, found| is_own(found));
}

/// Marks a path that begins with neither `crate`, `super` nor `self`: one of a child or of another crate.
const RELATIVE: &str = "";

/// The path from the root of the crate; None for `self` alone.
fn absolute(scope: &[String], parts: &[String]) -> Option<Vec<String>> {
    let ups = parts.iter().take_while(|part| *part == "super").count();
    match parts.first().map(String::as_str)? {
        "crate" => Some(parts[1..].to_vec()),
        "super" => Some(scope[..scope.len() - ups].iter().chain(&parts[ups..]).cloned().collect()),
        "self" => Some(scope.iter().chain(&parts[1..]).cloned().collect()),
        _ => Some(std::iter::once(RELATIVE.to_string()).chain(parts.iter().cloned()).collect()),
    }
}

/// Reads the tree of one `use`.
struct UseTree<'a> {
    scope: &'a [String],
    tokens: &'a [Token],
    next: usize,
    /// Paths from the root of the crate, each with its name in scope.
    found: Vec<(Vec<String>, String)>,
}

impl UseTree<'_> {
    fn word(&self) -> &str {
        self.tokens.get(self.next).map_or("", |(_, token)| token)
    }

    fn read(&mut self, mut parts: Vec<String>) {
        loop {
            let word = self.word().to_string();
            self.next += 1;
            match word.as_str() {
                "::" => {}
                "{" => {
                    while self.word() != "}" {
                        self.read(parts.clone());
                        if self.word() == "," {
                            self.next += 1;
                        }
                    }
                    self.next += 1;
                    return;
                }
                "*" => return self.add(parts, "*"),
                "as" => {
                    let name = self.word().to_string();
                    self.next += 1;
                    return self.add(parts, &name);
                }
                "self" if !parts.is_empty() => {}
                _ => parts.push(word),
            }
            if matches!(self.word(), "," | "}" | ";" | "") {
                let name = parts.last().cloned().unwrap_or_default();
                return self.add(parts, &name);
            }
        }
    }

    fn add(&mut self, parts: Vec<String>, name: &str) {
        self.found.extend(absolute(self.scope, &parts).map(|path| (path, name.to_string())));
    }
}
