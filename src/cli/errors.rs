//! Errors as one line on stderr, and the exit code of each.

use super::near_path::near_path;
use crate::config::nearest;
use crate::error::{Error, StopCause};
use crate::files::NotUtf8;
use crate::registry::Registry;
use crate::report::terminal::Charset;
use clap::Command;
use clap::error::{ContextKind, ErrorKind};
use std::io::ErrorKind::{BrokenPipe, NotFound};
use std::io::Write;
use std::process::ExitCode;

/// Writes the error as one line to stderr, except for a signal or a closed stdout, whose cause the user knows. Returns the exit code.
pub fn report_error(error: &Error) -> ExitCode {
    /// The number of SIGPIPE, which ends programs that do not handle it.
    const SIGPIPE: u8 = 13;
    match error {
        Error::Io { source, .. } if source.kind() == BrokenPipe => {
            return ExitCode::from(128 + SIGPIPE);
        }
        Error::Stopped(StopCause::Signal(signal)) => return ExitCode::from(128 + *signal as u8),
        _ => {}
    }
    let near = match error {
        Error::Io { doing: "reading", path, source } if source.kind() == NotFound => near_path(path),
        _ => None,
    };
    let near = near.map(|path| format!("; the nearest is {}", path.display())).unwrap_or_default();
    write_line(&format!("error: {}", one_line(&(error.to_string() + &near))));
    match error {
        Error::Config { .. }
        | Error::ConfigText { .. }
        | Error::ConfigKey { .. }
        | Error::UnknownGame { .. } => ExitCode::from(2),
        Error::Io { source, .. } if NotUtf8::is_cause_of(source) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    }
}

/// Writes a line to stderr, in the characters of the locale. A failed write, to a closed or full stderr, is ignored.
fn write_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", Charset::of_locale().show(text));
}

/// Prints help and version to stdout. Any other parse error is one line on stderr, with exit code 2.
pub fn usage_error(error: &clap::Error, program: &Command, registry: &Registry) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let printed = error.print().map_err(|e| Error::io("writing", "stdout", e));
        return printed.map_or_else(|error| report_error(&error), |()| ExitCode::SUCCESS);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    write_line(&describe_usage(error, program, registry));
    ExitCode::from(2)
}

/// A parse error in one sentence: the typed text and the expected one.
fn describe_usage(error: &clap::Error, program: &Command, registry: &Registry) -> String {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    if error.kind() == ErrorKind::ValueValidation {
        let (argument, got) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue));
        let what = std::error::Error::source(error).map(|e| e.to_string()).unwrap_or_default();
        return one_line(&format!("error: {argument}: got {got}, {}", expected_value(&what)));
    }
    let text = error.render().to_string();
    let facts = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // clap's other tip, to put `--` before a value, is wrong if no argument takes such a value.
    let (tips, facts): (Vec<&str>, Vec<&str>) =
        facts.map(str::trim).filter(|line| !line.is_empty()).partition(|line| line.starts_with("tip: "));
    let mut sentence = one_line(&facts.join(" "));
    if error.kind() == ErrorKind::InvalidSubcommand {
        let names: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
        sentence += &format!("; the commands are {}", names.join(", "));
    }
    let typed = context(match error.kind() {
        ErrorKind::InvalidValue => ContextKind::InvalidValue,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => ContextKind::InvalidArg,
    });
    // clap suggests names with some letters in common, as foo and solo have.
    let similar = tips.iter().filter_map(|tip| Some(tip.split_once(" exists: ")?.1.trim_matches('\'')));
    for name in similar.filter(|name| nearest(&typed, [*name]).is_some()) {
        sentence += &format!("; the nearest is {name}");
    }
    if error.kind() == ErrorKind::UnknownArgument {
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
        let typed = context(ContextKind::InvalidArg);
        sentence += &option_of_name(&typed, usage, program, registry).unwrap_or_default();
    }
    sentence
}

/// "; --game hex names a game" if `typed` is a game or a configuration and the command of `usage` has the option for it.
fn option_of_name(typed: &str, usage: &str, program: &Command, registry: &Registry) -> Option<String> {
    let command = program.find_subcommand(usage.split(' ').nth(1)?)?;
    let has = |option| command.get_opts().any(|arg| arg.get_long() == Some(option));
    if has("game") && registry.names().contains(&typed) {
        return Some(format!("; --game {typed} names a game"));
    }
    let is_config = has("config") && registry.configs().iter().any(|config| config.name == typed);
    is_config.then(|| format!("; --config {typed} names a configuration"))
}

/// The expected values of an argument, from the parser's message about a value that it refused.
fn expected_value(what: &str) -> String {
    if let Some((_, range)) = what.split_once(" is not in ") {
        let (first, last) = range.split_once("..").unwrap_or((range, ""));
        // The end of `a..b` is excluded, that of `a..=b` is not.
        let is_included = last.starts_with('=');
        let last = last.trim_start_matches('=').parse::<u64>().unwrap_or(u64::MAX);
        return match if is_included { last } else { last - 1 } {
            last if last < i64::MAX as u64 => format!("expected a whole number from {first} to {last}"),
            _ => format!("expected a whole number, {first} or more"),
        };
    }
    let is_whole = what.contains("digit") || what.contains("integer") || what.contains("number too");
    match (is_whole, what.contains("float")) {
        (true, _) => "expected a whole number, 0 or more".into(),
        (_, true) => "expected a number".into(),
        _ => what.to_string(),
    }
}

/// `text` on one line. Characters that control the terminal or the writing direction are escaped.
fn one_line(text: &str) -> String {
    let escaped = |c: char| match c {
        c if c.is_control() => c.escape_unicode().to_string(),
        '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    let words = text.split_whitespace().map(|word| word.chars().map(escaped).collect::<String>());
    words.collect::<Vec<_>>().join(" ")
}
