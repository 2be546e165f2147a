//! The map of the modules is true: lib.rs lists them from the ground up, and a module uses only modules above it in that list.
//! Within a folder no two files use each other, except a file and its child. A `mod.rs` is a table of contents: no child uses what it
//! defines itself. What a module's head says it does not know, it does not use. Tests in src may use anything.

#[path = "floors/module.rs"]
mod module;
#[path = "floors/sources.rs"]
mod sources;
#[path = "floors/tokens.rs"]
mod tokens;

use sources::{Arrow, Sources, crate_sources};
use std::collections::{BTreeMap, BTreeSet};

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

#[test]
fn no_child_uses_what_the_mod_rs_above_it_defines() {
    let found: Vec<String> =
        arrows_to_tables_of_contents(&crate_sources()).iter().map(Arrow::to_string).collect();
    assert!(
        found.is_empty(),
        "a child uses what its mod.rs defines; give that a file:\n{}",
        found.join("\n")
    );
}

/// What the heads of modules say that they know nothing of, apart from what stands below them in the list.
const KNOWS_NOTHING_OF: [(&str, &[&str]); 19] = [
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
    ("records", &["net", "model", "tree", "search", "train"]),
    ("pass", &["train", "replay", "batch"]),
    ("searcher", &["train", "replay"]),
    ("selfplay", &["train", "replay"]),
    ("engine", &["files", "train", "replay", "selfplay", "tree"]),
    ("weights", &["train", "replay", "backend", "search", "tree"]),
    ("report", &["tree", "search", "net", "model", "backend", "train", "replay"]),
    ("serve", &["train", "replay", "selfplay"]),
    ("protocol", &["train", "replay", "selfplay", "run", "report", "tree"]),
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

/// Functions that Rust leaves to the C library or to the compiler, whose last bits therefore differ from machine to machine. `sqrt` is
/// exact, `mul_add` is where an instruction does it.
const NOT_EXACT: [&str; 24] = [
    "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "powf", "powi", "sin", "cos", "tan",
    "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "cbrt", "hypot", "mul_add",
];

/// Files on no way from weights to games and back: figures for people, the truth in f64 for tests, and candle, an executor with bits
/// of its own; the callers of `F8::exp` and `F8::ln`, whose bits are those of `math`; and `math` itself, for the instruction of ARM.
const MAY_BE_INEXACT: [&str; 10] = [
    "math.rs",
    "eval/elo.rs",
    "eval/ratings.rs",
    "eval/sprt.rs",
    "protocol/uci/info.rs",
    "report/compact.rs",
    "net/reference.rs",
    "net/candle_layers.rs",
    "search/select.rs",
    "search/expand.rs",
];

#[test]
fn results_do_not_depend_on_the_c_library() {
    let sources = crate_sources();
    let (mut found, mut needed) = (Vec::new(), BTreeSet::new());
    for module in sources.modules.values() {
        for (line, name) in module.methods.iter().filter(|(_, name)| NOT_EXACT.contains(&name.as_str())) {
            match MAY_BE_INEXACT.contains(&module.file.as_str()) {
                true => drop(needed.insert(module.file.as_str())),
                false => found.push(format!("{}:{line} calls {name}", module.file)),
            }
        }
    }
    assert!(found.is_empty(), "use the functions of `math`:\n{}", found.join("\n"));
    assert_eq!(needed.len(), MAY_BE_INEXACT.len(), "only {needed:?} need the exception");
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

/// All arrows from a module to one that lib.rs lists below it.
fn upward_arrows(sources: &Sources) -> Vec<Arrow> {
    let order: Vec<&str> = sources.children(&[]);
    let rank = |module: &[String]| order.iter().position(|name| *name == module[0]);
    sources
        .arrows()
        .into_iter()
        .filter(|arrow| !arrow.from.is_empty() && !arrow.to.is_empty() && rank(&arrow.from) < rank(&arrow.to))
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
