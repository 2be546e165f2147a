//! Terminal output of a run in progress: one table line per epoch, and progress bars.
//!
//! The table goes to stdout. The bars go to stderr, only if both are terminals; redirected output has table lines only.

use super::chart::compact;
use super::metrics::EpochRecord;
use crate::error::{Error, Result};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The amount of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Errors and results only.
    Quiet,
    /// Also the table and progress bars.
    #[default]
    Normal,
    /// Also diagnostics.
    Verbose,
}

/// Prints `text` to stdout. Unlike `print!`, it does not panic if stdout is closed.
///
/// # Errors
/// [`Error::Io`]; of kind `BrokenPipe` if the reader has closed stdout, on which the program exits silently.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|e| Error::io("writing", "stdout", e))
}

/// The table's columns: name and width.
const COLUMNS: [(&str, usize); 8] = [
    ("epoch", 5),
    ("minutes", 7),
    ("games/s", 8),
    ("positions/s", 11),
    ("policy loss", 11),
    ("value loss", 10),
    ("strength", 12),
    ("games/day", 9),
];
/// Table lines between two headers in a terminal.
const ROWS_PER_HEADER: u64 = 25;

/// The table's header line.
pub fn header() -> String {
    align(COLUMNS.map(|(name, _)| name.to_string()))
}

/// The table line of one epoch. Strength is the search's outcome error on solved positions ("4.5 % err"), or the score of a
/// match ("73 % won"). If the run has findings, the line ends with their number.
pub fn row(record: &EpochRecord) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let line = align([
        record.epoch.to_string(),
        format!("{:.1}", record.minutes()),
        compact(record.games_per_second),
        compact(record.positions_per_second),
        or_dash(record.losses.map(|losses| format!("{:.4}", losses.policy))),
        or_dash(record.losses.map(|losses| format!("{:.4}", losses.value))),
        or_dash(strength(record)),
        compact(record.games_per_day),
    ]);
    match record.findings {
        Some(count) => format!("{line}  {count} findings"),
        None => line,
    }
}

fn strength(record: &EpochRecord) -> Option<String> {
    let strength = record.strength?;
    let error = strength.search_outcome_error.map(|share| format!("{:.1} % err", 100.0 * share));
    error.or_else(|| strength.match_score.map(|share| format!("{:.0} % won", 100.0 * share)))
}

fn align(cells: [String; COLUMNS.len()]) -> String {
    let cells = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:>width$}"));
    cells.collect::<Vec<_>>().join("  ")
}

/// The terminal output of a run in progress.
#[derive(Debug)]
pub struct Progress {
    verbosity: Verbosity,
    /// True if bars are shown.
    interactive: bool,
    bar: ProgressBar,
    /// What the bar shows: work, units in total, name of the units.
    work: (&'static str, u64, &'static str),
    /// Units done.
    done: AtomicU64,
    rows: u64,
}

impl Progress {
    /// Output of this `verbosity`, with bars if stdout and stderr are terminals.
    pub fn new(verbosity: Verbosity) -> Self {
        let terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let interactive = terminal && verbosity != Verbosity::Quiet;
        let bar = ProgressBar::hidden();
        Self { verbosity, interactive, bar, work: ("", 0, ""), done: AtomicU64::new(0), rows: 0 }
    }

    /// Starts a bar of `total` units, such as ("self-play", 20000, "samples"), and removes the previous one.
    pub fn start(&mut self, work: &'static str, total: u64, unit: &'static str) {
        self.finish();
        (self.work, self.done) = ((work, total, unit), AtomicU64::new(0));
        if !self.interactive {
            return;
        }
        let template = format!(
            "{work:>10} {{bar:30.cyan/blue}} {{human_pos}}/{{human_len}} {unit}  {{rate}}  {{eta}} left  {{msg}}"
        );
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}/s", compact(state.per_sec()));
        };
        self.bar = ProgressBar::new(total).with_style(style.with_key("rate", rate).progress_chars("━╸─"));
        self.bar.enable_steady_tick(Duration::from_millis(500));
    }

    /// Sets the number of units done.
    pub fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.bar.set_position(done);
    }

    /// Sets the text after the bar, such as a rate in other units.
    pub fn detail(&self, text: impl Into<String>) {
        if self.interactive {
            self.bar.set_message(text.into());
        }
    }

    /// How far the work is, such as "self-play: 340 of 20000 samples"; None before the first.
    pub fn reached(&self) -> Option<String> {
        let (work, total, unit) = self.work;
        let done = self.done.load(Ordering::Relaxed);
        match total {
            0 => None,
            1 => Some(work.to_string()),
            _ => Some(format!("{work}: {done} of {total} {unit}")),
        }
    }

    /// Removes the bar.
    pub fn finish(&mut self) {
        std::mem::replace(&mut self.bar, ProgressBar::hidden()).finish_and_clear();
    }

    /// Prints the epoch's table line, at intervals with the header before it.
    ///
    /// # Errors
    /// [`Error::Io`] if stdout cannot be written.
    pub fn epoch(&mut self, record: &EpochRecord) -> Result<()> {
        let due = if self.interactive { self.rows.is_multiple_of(ROWS_PER_HEADER) } else { self.rows == 0 };
        self.rows += 1;
        let header = if due { header() + "\n" } else { String::new() };
        self.print(&format!("{header}{}\n", row(record)))
    }

    /// Prints a sentence about the run.
    ///
    /// # Errors
    /// [`Error::Io`] if stdout cannot be written.
    pub fn note(&self, sentence: &str) -> Result<()> {
        self.print(&format!("{sentence}\n"))
    }

    fn print(&self, text: &str) -> Result<()> {
        if self.verbosity == Verbosity::Quiet {
            return Ok(());
        }
        self.bar.suspend(|| print(text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::{Strength, sample_records};
    use super::*;

    #[test]
    fn the_table_is_aligned() {
        let mut records = sample_records(3);
        records[1].strength = Some(Strength { match_score: Some(0.734), ..Strength::default() });
        assert!(
            row(&EpochRecord { findings: Some(12), ..records[0].clone() }).ends_with("1.89M  12 findings")
        );
        let lines: Vec<String> = std::iter::once(header()).chain(records.iter().map(row)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        epoch  minutes   games/s  positions/s  policy loss  value loss      strength  games/day
            1      0.4      43.8         1251            -           -    33.0 % err      1.89M
            2      0.8      43.9         1251       1.5000      0.6500      73 % won       1.9M
            3      1.2      87.9         2504       1.3667      0.5667    13.0 % err      2.53M
        ");
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()));
    }
}
