//! Text of files that people write: UTF-8, with or without a byte-order mark. Text in another encoding is refused by its name.

use std::fmt;
use std::io::{Error, ErrorKind};

/// The byte-order mark, as UTF-8.
const MARK: &str = "\u{feff}";

/// The defect of bytes that are not UTF-8 text: the encoding that they seem to have, and the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUtf8(String);

impl NotUtf8 {
    /// True if `error` reports text in another encoding.
    pub fn is_cause_of(error: &Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, expected UTF-8", self.0)
    }
}

impl std::error::Error for NotUtf8 {}

/// The text of `bytes`, without the byte-order mark that some editors write at the beginning.
///
/// # Errors
/// `InvalidData` with [`NotUtf8`].
pub(super) fn decode(bytes: Vec<u8>) -> std::io::Result<String> {
    let foreign = |what: String| Error::new(ErrorKind::InvalidData, NotUtf8(what));
    if let Some(encoding) = wide_encoding(&bytes) {
        return Err(foreign(format!("the text is in {encoding}")));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix(MARK).map(str::to_string).unwrap_or(text)),
        Err(error) => {
            let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
            let line = 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count();
            Err(foreign(format!(
                "line {line}: byte 0x{:02X} is not UTF-8 (the text may be in Latin-1 or Windows-1252)",
                bytes[at]
            )))
        }
    }
}

/// The name of an encoding with units of two or four bytes, by its byte-order mark or by the zero bytes of ASCII characters in it.
fn wide_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [0, 0, 0, 1..=255, ..] | [1..=255, 0, 0, 0, ..] => Some("UTF-32"),
        [0, 1..=255, 0, 1..=255, ..] | [1..=255, 0, 1..=255, 0, ..] => Some("UTF-16"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `text` in UTF-16, least significant byte first, without a mark.
    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_mark_is_removed_and_other_encodings_are_named() {
        assert_eq!(decode(b"\xef\xbb\xbf3,3\n".to_vec()).expect("UTF-8"), "3,3\n");
        assert_eq!(decode("♥ ä\n".into()).expect("UTF-8"), "♥ ä\n");
        assert_eq!(decode(Vec::new()).expect("UTF-8"), "");
        let swapped =
            |bytes: Vec<u8>| bytes.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect::<Vec<u8>>();
        let utf32 = |text: &str| text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect::<Vec<u8>>();
        for (bytes, part) in [
            (utf16("\u{feff}[game]"), "the text is in UTF-16, expected UTF-8"),
            (swapped(utf16("\u{feff}[game]")), "the text is in UTF-16, expected UTF-8"),
            (utf16("[game]"), "the text is in UTF-16, expected UTF-8"),
            (swapped(utf16("[game]")), "the text is in UTF-16, expected UTF-8"),
            (utf32("\u{feff}3"), "the text is in UTF-32, expected UTF-8"),
            (utf32("3,3"), "the text is in UTF-32, expected UTF-8"),
            (
                b"# a\n# Stra\xdfe\n".to_vec(),
                "line 2: byte 0xDF is not UTF-8 (the text may be in Latin-1 or Windows-1252), expected UTF-8",
            ),
        ] {
            let error = decode(bytes.clone()).expect_err(part);
            assert_eq!(error.to_string(), part, "{bytes:?}");
            assert!(NotUtf8::is_cause_of(&error));
        }
        assert!(!NotUtf8::is_cause_of(&Error::from(ErrorKind::InvalidData)));
    }
}
