//! The boards of `vecaz serve` for a page in one file: its modules, joined to one script, and its styles.
//!
//! A browser loads no module from a file on disk, so each becomes a function that returns what it exports. Their imports and exports have
//! the plain forms that [`joined`] reads; a test compares the names of both.

use std::fmt::Write;

/// A script module: the name of its file and its text.
type Module = (&'static str, &'static str);

macro_rules! board_modules {
    ($($name:literal)+) => {
        [$(($name, include_str!(concat!("../serve/page/", $name)))),+]
    };
}

/// The modules that draw boards. A module imports only from those before it.
const BOARD: [Module; 10] = board_modules![
    "dom.js" "wording.js" "pieces.js" "spots.js" "overlay.js" "board_cards.js" "board_graph.js"
    "board_grid.js" "board_slots.js" "board.js"
];
/// Steps through games.
const VIEWER: Module = ("viewer.js", include_str!("page/viewer.js"));

const BOARD_STYLE: &str = include_str!("../serve/page/board.css");
const VIEWER_STYLE: &str = include_str!("page/viewer.css");
/// Its first rules set the colours of both themes.
const PAGE_STYLE: &str = include_str!("../serve/page/style.css");
/// The first rule after those.
const AFTER_COLOURS: &str = "\n*, *::before, *::after {";

/// The script that shows the games of a page.
pub(super) fn script() -> String {
    joined(&[&BOARD[..], &[VIEWER]].concat())
}

/// The styles of boards and of their surroundings, with the colours of the browser's page for elements of the class `games` only.
pub(super) fn style() -> String {
    let colours = PAGE_STYLE.split(AFTER_COLOURS).next().unwrap_or_default();
    let colours = colours
        .replace(":root:not([data-theme=\"light\"])", ".games")
        .replace(":root[data-theme=\"dark\"]", ".games[data-theme=\"dark\"]")
        .replace(":root", ".games");
    format!("{colours}{BOARD_STYLE}{VIEWER_STYLE}")
}

/// One script of `modules`, each of which imports only from those before it.
fn joined(modules: &[Module]) -> String {
    let mut script = String::from("const modules = {};\n");
    for (name, text) in modules {
        let (body, exports) = as_function_body(text);
        let _ = writeln!(
            script,
            "modules[\"{name}\"] = (() => {{\n{body}return {{ {} }};\n}})();",
            exports.join(", ")
        );
    }
    script
}

/// The text of a module with its imports as constants and without the word `export`, and the names that it exports. Lines of comments are
/// left out.
fn as_function_body(text: &str) -> (String, Vec<&str>) {
    let (mut body, mut exports) = (String::with_capacity(text.len()), Vec::new());
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//")
            || trimmed.starts_with("/**")
            || trimmed.starts_with("* ")
            || trimmed == "*/"
        {
            continue;
        }
        let import = line.strip_prefix("import ").and_then(|rest| rest.split_once(" from \"./"));
        if let Some((names, module)) = import {
            let _ = writeln!(body, "const {names} = modules[\"{}];", module.trim_end_matches(';'));
        } else if let Some(declaration) = line.strip_prefix("export ") {
            exports.extend(declared(declaration));
            body += declaration;
            body.push('\n');
        } else {
            body += line;
            body.push('\n');
        }
    }
    (body, exports)
}

/// The name that a declaration declares.
fn declared(declaration: &str) -> Option<&str> {
    let rest = declaration.strip_prefix("async ").unwrap_or(declaration);
    let (_, rest) = rest.split_once(' ')?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_import_is_an_export_of_an_earlier_module() {
        let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, text) in [&BOARD[..], &[VIEWER]].concat() {
            for line in text.lines().filter(|line| line.starts_with("import")) {
                let (names, module) = line
                    .strip_prefix("import { ")
                    .and_then(|rest| rest.strip_suffix("\";"))
                    .and_then(|rest| rest.split_once(" } from \"./"))
                    .unwrap_or_else(|| panic!("{name}: {line}"));
                let exports =
                    known.get(module).unwrap_or_else(|| panic!("{name} imports {module} too early"));
                assert!(names.split(", ").all(|name| exports.contains(&name)), "{name}: {line}");
            }
            known.insert(name, as_function_body(text).1);
        }
        assert!(known["board.js"] == ["Board"] && known["dom.js"].contains(&"html"), "{known:?}");
    }

    #[test]
    fn modules_become_functions() {
        let modules = [
            ("a.js", "// A.\nexport const one = 1;\nexport function two(x) {\n  return x; // kept\n}\n"),
            ("b.js", "import { one, two } from \"./a.js\";\n\n/** B. */\nexport class B {}\n"),
        ];
        let script = joined(&modules);
        let expected = "const modules = {};\nmodules[\"a.js\"] = (() => {\nconst one = 1;\nfunction two(x) {\n  return x; // kept\n}\n\
                        return { one, two };\n})();\nmodules[\"b.js\"] = (() => {\nconst { one, two } = modules[\"a.js\"];\n\nclass B {}\n\
                        return { B };\n})();\n";
        assert_eq!(script, expected);
    }

    #[test]
    fn the_script_ends_no_element_and_names_no_other_site() {
        let (script, style) = (script(), style());
        assert!(
            !script.contains("</") && !script.contains("<!--") && !style.contains('<'),
            "it stands in an element"
        );
        assert!(!script.contains("import ") && !script.contains("export "), "a module");
        for text in [&script, &style] {
            let links = text.match_indices("http").map(|(at, _)| &text[at..]);
            assert_eq!(links.filter(|link| !link.starts_with("http://www.w3.org/")).count(), 0);
        }
        assert!(
            !style.contains(":root") && style.contains(".games {") && style.contains("--cell:"),
            "{style:.400}"
        );
        assert!(script.len() + style.len() < 120_000, "{}", script.len() + style.len());
    }
}
