//! The main line of a text in Smart Game Format: nodes with properties. <https://www.red-bean.com/sgf/sgf4.html>

use crate::error::{Error, Result};

/// A node: properties with their values, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node(pub Vec<(String, Vec<String>)>);

impl Node {
    /// The first value of a property.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).first().map(String::as_str)
    }

    /// The values of a property.
    pub fn values(&self, name: &str) -> &[String] {
        self.0.iter().find(|(found, _)| found == name).map_or(&[], |(_, values)| values)
    }
}

/// The nodes of the first game's main line: the first variation everywhere.
///
/// # Errors
/// [`Error::Unsupported`] for a text that is no game tree.
pub fn main_line(text: &str) -> Result<Vec<Node>> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let wrong = |at: usize, what: &str| {
        Error::unsupported("reading this file as SGF", format!("{what} at byte {at}"))
    };
    // The first parenthesis that closes ends the main line: what follows are other variations.
    while let Some((at, c)) = chars.next() {
        match c {
            '(' => {}
            ')' if nodes.is_empty() => return Err(wrong(at, "a game without a node")),
            ')' => return Ok(nodes),
            ';' => nodes.push(Node::default()),
            c if c.is_whitespace() => {}
            c if c.is_ascii_alphabetic() => {
                let mut name = String::from(c);
                while let Some((_, c)) = chars.next_if(|(_, c)| c.is_ascii_alphabetic()) {
                    name.push(c);
                }
                // Older files have lower case letters in names, which do not count.
                name.retain(|c| c.is_ascii_uppercase());
                let mut values = Vec::new();
                loop {
                    while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
                    if chars.next_if(|(_, c)| *c == '[').is_none() {
                        break;
                    }
                    values.push(value(&mut chars).ok_or_else(|| wrong(at, "a value without its end"))?);
                }
                let node = nodes.last_mut().ok_or_else(|| wrong(at, "a property outside of a node"))?;
                if values.is_empty() {
                    return Err(wrong(at, &format!("{name} without a value")));
                }
                node.0.push((name, values));
            }
            c => return Err(wrong(at, &format!("{c:?}"))),
        }
    }
    Err(wrong(text.len(), "no closing parenthesis"))
}

/// A value up to its closing bracket; a backslash makes the next character part of it, and takes the end of a line away.
fn value(chars: &mut impl Iterator<Item = (usize, char)>) -> Option<String> {
    let mut text = String::new();
    let mut is_ending_line = false; // after a backslash and the first half of \r\n
    loop {
        let was_ending_line = std::mem::take(&mut is_ending_line);
        match chars.next()?.1 {
            ']' => return Some(text.trim().to_string()),
            '\n' if was_ending_line => {}
            '\\' => match chars.next()?.1 {
                '\n' => {}
                '\r' => is_ending_line = true,
                c => text.push(c),
            },
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variation_is_read() {
        let text = "(;FF[4]GM[1]C[a \\] ; ( b]\n;B[aa](;W [bb];B[cc])(;W[dd]))";
        let nodes = main_line(text).expect("a tree");
        assert_eq!(nodes.len(), 4);
        assert_eq!((nodes[0].value("C"), nodes[0].value("GM")), (Some("a ] ; ( b"), Some("1")));
        assert_eq!((nodes[2].value("W"), nodes[3].value("B")), (Some("bb"), Some("cc")));
        assert_eq!(main_line("(;AB[aa][bb])").expect("a tree")[0].values("AB"), ["aa", "bb"]);
        for text in ["(;C[a\\\nb\nc])", "(;C[a\\\r\nb\nc])"] {
            assert_eq!(main_line(text).expect("a tree")[0].value("C"), Some("ab\nc"), "{text:?}");
        }
    }

    #[test]
    fn broken_texts_are_refused() {
        for text in ["", "(", "()", "(;B[aa]", "(;B[aa", "(B[aa])", "(;B)", "(;1[a])", "(;B[a\\"] {
            assert!(main_line(text).is_err(), "{text}");
        }
    }
}
