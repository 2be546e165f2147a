//! One source file: the modules that it declares, the paths that it names, and what it brings into its scope.

use crate::tokens::{Token, tokens, without_tests};
use std::collections::BTreeMap;

/// One file.
pub struct Module {
    pub file: String,
    /// The modules that it declares, in the order in which it lists them.
    pub children: Vec<String>,
    /// The paths that it names, each with its line.
    pub paths: Vec<(usize, Vec<String>)>,
    /// The methods that it calls, and functions of `f32` and `f64` that it names, each with its line.
    pub methods: Vec<(usize, String)>,
    /// What it brings into its scope: names, and the paths that they stand for.
    pub names: BTreeMap<String, Vec<String>>,
}

/// Reads the file of module `path`.
pub fn read_module(file: &str, path: Vec<String>, text: &str) -> Module {
    let tokens = without_tests(tokens(text));
    let word = |i: usize| tokens.get(i).map_or("", |(_, token)| token.as_str());
    let mut module = Module {
        file: file.to_string(),
        children: Vec::new(),
        paths: Vec::new(),
        methods: Vec::new(),
        names: BTreeMap::new(),
    };
    for (i, token) in tokens.iter().enumerate().skip(2) {
        let of_float = word(i - 1) == "::" && matches!(word(i - 2), "f32" | "f64");
        if of_float || (word(i - 1) == "." && word(i + 1) == "(") {
            module.methods.push(token.clone());
        }
    }
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
