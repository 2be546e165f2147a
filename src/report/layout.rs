//! Text in the width of the terminal: wrapped sentences, and tables of as many columns as fit.

use std::io::stdout;
use terminal_size::terminal_size_of;

/// The width without a terminal: stdout is a pipe or a file.
const DEFAULT_WIDTH: usize = 80;
/// Maximum width of sentences on any terminal.
const MAX_SENTENCE: usize = 110;
/// Blanks between two columns.
const GAP: &str = "  ";

/// The width of the terminal of stdout, in characters; without one the environment variable COLUMNS, else 80.
pub fn width() -> usize {
    let terminal = terminal_size_of(stdout()).map(|(columns, _)| usize::from(columns.0));
    let environment = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0);
    terminal.or_else(environment).unwrap_or(DEFAULT_WIDTH)
}

/// The width of sentences: [`width`], at most 110.
pub fn sentence_width() -> usize {
    width().min(MAX_SENTENCE)
}

/// Breaks the lines of `text` that are longer than `width` at blanks and indents the continuation by two blanks. Words, and lines that
/// begin with a blank (commands, tables), are not broken.
pub fn wrap(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for line in text.split_inclusive('\n') {
        match line.starts_with(' ') || line.trim_end().chars().count() <= width {
            true => out += line,
            false if line.ends_with('\n') => out += &fill(line, width, [0, 2]),
            false => out += fill(line, width, [0, 2]).trim_end(),
        }
    }
    out
}

/// `text` as one paragraph in lines of at most `width` characters, the first indented by `indent[0]` and the others by `indent[1]`.
pub fn fill(text: &str, width: usize, indent: [usize; 2]) -> String {
    let mut out = " ".repeat(indent[0]);
    let (mut column, mut is_first) = (indent[0], true);
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if !is_first && column + 1 + len > width {
            out += "\n";
            out += &" ".repeat(indent[1]);
            column = indent[1];
        } else if !is_first {
            out += " ";
            column += 1;
        }
        out += word;
        column += len;
        is_first = false;
    }
    out + "\n"
}

/// Joins the lines of each paragraph of `text`, so that they can be broken to the width of a terminal. Lines that begin with a blank are
/// not joined.
pub fn join_paragraphs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut joins = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if !out.is_empty() {
            out.push(if joins && is_prose { ' ' } else { '\n' });
        }
        out += line;
        joins = is_prose;
    }
    out
}

/// A column of a table, aligned to the right.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name in the header.
    pub name: &'static str,
    /// Characters of a cell.
    pub width: usize,
    /// Columns of the highest rank are omitted first if the table is too wide; those of rank 0 are always shown.
    pub rank: u8,
}

impl Column {
    /// A column of a table.
    pub const fn new(name: &'static str, width: usize, rank: u8) -> Self {
        Self { name, width, rank }
    }
}

/// The columns that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Index and width of each, in their order.
    shown: Vec<(usize, usize)>,
}

impl Table {
    /// The columns that fit into `width`, by their ranks.
    pub fn fitting(columns: &[Column], width: usize) -> Self {
        let of = |max_rank: u8| -> Vec<(usize, usize)> {
            let shown = columns.iter().enumerate().filter(|(_, column)| column.rank <= max_rank);
            shown.map(|(index, column)| (index, column.width)).collect()
        };
        let fits = |shown: &Vec<(usize, usize)>| {
            shown.iter().map(|(_, cell)| cell + GAP.len()).sum::<usize>() <= width + GAP.len()
        };
        let highest = columns.iter().map(|column| column.rank).max().unwrap_or(0);
        let shown = (0..=highest).rev().map(of).find(fits).unwrap_or_else(|| of(0));
        Self { shown }
    }

    /// The line of names.
    pub fn header(&self, columns: &[Column]) -> String {
        self.line(&columns.iter().map(|column| column.name.to_string()).collect::<Vec<_>>())
    }

    /// The line of `cells`, one for every column, shown or not.
    pub fn line(&self, cells: &[String]) -> String {
        let shown = self.shown.iter().filter_map(|&(index, width)| Some((cells.get(index)?, width)));
        shown.map(|(cell, width)| format!("{cell:>width$}")).collect::<Vec<_>>().join(GAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_blanks_and_commands_are_whole() {
        let text = "one two three\nfour five\n  vecaz run --resume a/long/folder\nsix/seven/eight nine\n";
        let expected =
            "one two\n  three\nfour five\n  vecaz run --resume a/long/folder\nsix/seven/eight\n  nine\n";
        assert_eq!(wrap(text, 9), expected);
        assert_eq!(wrap(text, 60), text);
        assert_eq!(wrap("ä ö ü", 5), "ä ö ü", "characters, not bytes");
    }

    #[test]
    fn paragraphs_are_joined_and_indented_lines_are_not() {
        let text = "Examples:\n  one\n  two\n\nLong\nparagraph.\n  table\nShort\none.\n";
        assert_eq!(join_paragraphs(text), "Examples:\n  one\n  two\n\nLong paragraph.\n  table\nShort one.");
    }

    #[test]
    fn columns_are_left_out_by_rank() {
        let columns = [Column::new("a", 3, 0), Column::new("b", 4, 2), Column::new("c", 2, 1)];
        let cells = ["1", "2", "3"].map(str::to_string);
        for (width, header, line) in [
            (13, "  a     b   c", "  1     2   3"),
            (12, "  a   c", "  1   3"),
            (7, "  a   c", "  1   3"),
            (6, "  a", "  1"),
            (1, "  a", "  1"),
        ] {
            let table = Table::fitting(&columns, width);
            assert_eq!(
                (table.header(&columns).as_str(), table.line(&cells).as_str()),
                (header, line),
                "{width}"
            );
        }
    }
}
