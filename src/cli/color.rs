//! Colours of help, progress bars and diagnostics: `--color`, else the variables NO_COLOR, CLICOLOR_FORCE and CLICOLOR, else the terminal.

use crate::report::terminal::has_cursor;
use clap::ColorChoice;
use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};

/// Whether `stream` gets colours. A variable that is empty counts as not set (no-color.org, bixense.com/clicolors).
pub fn has_colors(choice: ColorChoice, stream: &impl IsTerminal) -> bool {
    decide(choice, has_cursor(stream), |name| std::env::var(name).ok())
}

fn decide(choice: ColorChoice, is_capable: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR").is_some() => false,
        ColorChoice::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColorChoice::Auto => is_capable && set("CLICOLOR").as_deref() != Some("0"),
    }
}

/// Sets the colours of the library that draws progress bars, whose own rule takes an empty NO_COLOR for a set one.
pub fn set_bar_colors(choice: ColorChoice) {
    console::set_colors_enabled(has_colors(choice, &stdout()));
    console::set_colors_enabled_stderr(has_colors(choice, &stderr()));
}

/// The value of `--color` in `arguments`, for help and errors that are printed before the arguments are parsed.
pub fn typed_choice(arguments: &[OsString]) -> ColorChoice {
    let mut value = None;
    for (argument, next) in arguments.iter().zip(arguments.iter().skip(1).map(Some).chain([None])) {
        match argument.to_str() {
            Some("--") => break,
            Some("--color") => value = next.and_then(|next| next.to_str()),
            Some(text) => value = text.strip_prefix("--color=").or(value),
            None => {}
        }
    }
    value.and_then(|value| value.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_comes_before_the_variables_and_these_before_the_terminal() {
        let decided = |choice, is_capable, set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(known, _)| *known == name);
            decide(choice, is_capable, |name| find(name).map(|(_, value)| value.to_string()))
        };
        for (is_capable, set, expected) in [
            (true, &[][..], true),
            (false, &[], false),
            (true, &[("NO_COLOR", "1")], false),
            (true, &[("NO_COLOR", "")], true),
            (true, &[("CLICOLOR", "0")], false),
            (true, &[("CLICOLOR", "")], true),
            (false, &[("CLICOLOR", "1")], false),
            (false, &[("CLICOLOR_FORCE", "1")], true),
            (false, &[("CLICOLOR_FORCE", "0")], false),
            (true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        ] {
            assert_eq!(decided(ColorChoice::Auto, is_capable, set), expected, "{is_capable} {set:?}");
            assert!(decided(ColorChoice::Always, is_capable, set));
            assert!(!decided(ColorChoice::Never, is_capable, set));
        }
    }

    #[test]
    fn the_flag_is_found_before_the_arguments_are_parsed() {
        for (line, expected) in [
            ("vecaz run", ColorChoice::Auto),
            ("vecaz --color never run", ColorChoice::Never),
            ("vecaz run --color=always --help", ColorChoice::Always),
            ("vecaz run --color", ColorChoice::Auto),
            ("vecaz run -- --color never", ColorChoice::Auto),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(typed_choice(&arguments), expected, "{line}");
        }
    }
}
