//! The abilities of the terminal: characters beyond ASCII, a cursor that moves, and whether it is still there.

use std::borrow::Cow;
use std::io::{Error, IsTerminal};

/// Characters that the program's own texts use beyond ASCII, and their replacements: the suits of cards.
const REPLACEMENTS: [(char, char); 4] = [('♠', 'S'), ('♥', 'H'), ('♣', 'C'), ('♦', 'D')];

/// The characters that a locale can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// All.
    Utf8,
    /// ASCII; other characters depend on the locale.
    Ascii,
}

impl Charset {
    /// The characters of the process's locale: the first of LC_ALL, LC_CTYPE and LANG that is set and not empty. Without any, UTF-8: a
    /// container has no locale, but its terminal is that of another machine.
    pub fn of_locale() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let Some(locale) = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set) else { return Self::Utf8 };
        let locale = locale.to_ascii_lowercase().replace('-', "");
        if locale.contains("utf8") { Self::Utf8 } else { Self::Ascii }
    }

    /// `text` with the program's own characters replaced, if this charset lacks them. Other characters, those of a path for example, are
    /// unchanged.
    pub fn show(self, text: &str) -> Cow<'_, str> {
        let replaced = |c: char| REPLACEMENTS.iter().find(|(from, _)| *from == c).map(|(_, to)| *to);
        match self {
            Self::Ascii if text.chars().any(|c| replaced(c).is_some()) => {
                text.chars().map(|c| replaced(c).unwrap_or(c)).collect()
            }
            _ => Cow::Borrowed(text),
        }
    }
}

/// True if `stream` is a terminal that can write a line again. A `dumb` terminal, or one of unknown kind (no TERM), has no codes for that. On
/// Windows, where TERM is not set, every console has.
pub fn has_cursor(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && (cfg!(not(unix)) || std::env::var("TERM").is_ok_and(|kind| is_capable(&kind)))
}

/// Has the console of Windows take escape codes, which it may show as characters otherwise. Terminals of other systems always do.
pub fn take_escape_codes() {
    #[cfg(windows)]
    for console in [console::Term::stdout(), console::Term::stderr()] {
        console.features().colors_supported(); // asks by switching
    }
}

fn is_capable(kind: &str) -> bool {
    !["", "dumb", "unknown"].contains(&kind)
}

/// True if `error`, of writing to stdout, means that stdout was a terminal which was closed (EIO). A disk that fails has the same number.
#[cfg(unix)]
pub fn is_closed_terminal(error: &Error) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let is_device = || {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from);
        stdout.and_then(|file| file.metadata()).is_ok_and(|meta| meta.file_type().is_char_device())
    };
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) && is_device()
}

/// False: without the signals of Unix, a closed terminal ends its programs.
#[cfg(not(unix))]
pub fn is_closed_terminal(_: &Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        for (set, expected) in [
            (&[][..], Charset::Utf8),
            (&[("LANG", "de_DE.UTF-8")], Charset::Utf8),
            (&[("LANG", "C.utf8")], Charset::Utf8),
            (&[("LANG", "C")], Charset::Ascii),
            (&[("LANG", "de_DE.ISO-8859-1")], Charset::Ascii),
            (&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")], Charset::Ascii),
            (&[("LC_ALL", ""), ("LC_CTYPE", "en_GB.UTF-8"), ("LANG", "C")], Charset::Utf8),
        ] {
            let variable =
                |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
            assert_eq!(Charset::of(variable), expected, "{set:?}");
        }
    }

    #[test]
    fn only_own_characters_are_replaced() {
        assert_eq!(Charset::Ascii.show("K♥ 10♠ 2♦ A♣ in /home/jörg"), "KH 10S 2D AC in /home/jörg");
        assert_eq!(Charset::Utf8.show("K♥"), "K♥");
    }

    #[test]
    fn a_dumb_terminal_has_no_cursor() {
        assert!(["xterm", "screen-256color", "linux"].iter().all(|kind| is_capable(kind)));
        assert!(!["", "dumb", "unknown"].iter().any(|kind| is_capable(kind)));
    }
}
