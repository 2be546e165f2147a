//! The words and signs of Rust source.

/// A word or a sign of a source file with its line.
pub type Token = (usize, String);

/// The tokens of Rust source without comments, literals and lifetimes.
pub fn tokens(text: &str) -> Vec<Token> {
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
pub fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
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
