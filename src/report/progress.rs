//! Terminal output of work in progress: a table line per epoch of a run, and the progress of the work.
//!
//! The table goes to stdout. Progress goes to stderr: bars if both are terminals that can write a line again and diagnostics, which would
//! break the bars, are off; otherwise lines at intervals. A terminal that is closed does not end the work.

use super::compact::compact;
use super::layout::{Column, Table, sentence_width, width, wrap};
use super::metrics::{EpochLosses, EpochRecord};
use super::terminal::{Charset, has_cursor, is_closed_terminal};
pub use super::work::RunEta;
use super::work::WorkItem;
use crate::error::{Error, Result, StopCause};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The amount of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Errors and results only.
    Quiet,
    /// Also the table and progress.
    #[default]
    Normal,
    /// Also diagnostics.
    Verbose,
}

/// Prints `text` for people to stdout, in the characters of the locale. Unlike `print!`, it does not panic if stdout is closed.
///
/// # Errors
/// Those of [`print_data`].
pub fn print(text: &str) -> Result<()> {
    print_data(&Charset::of_locale().show(text))
}

/// Writes `text` for programs to stdout, unchanged.
///
/// # Errors
/// [`Error::Stopped`] if stdout was a terminal that was closed, as by SIGHUP; otherwise [`Error::Io`], of kind `BrokenPipe` if the
/// reader has closed stdout, for which the program exits without a message.
pub fn print_data(text: &str) -> Result<()> {
    /// The number of the signal that a closed terminal sends.
    const SIGHUP: i32 = 1;
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|e| match is_closed_terminal(&e) {
        true => Error::Stopped(StopCause::Signal(SIGHUP)),
        false => Error::io("writing", "stdout", e),
    })
}

/// The columns of the table. With 80 characters the time left, which bars and lines show as well, and the games per second are omitted;
/// findings and workers, if the run has any, replace the positions per second.
const COLUMNS: [Column; 12] = [
    Column::new("epoch", 5, 0),
    Column::new("minutes", 7, 0),
    Column::new("left", 5, 5),
    Column::new("games/s", 7, 4),
    Column::new("pos/s", 6, 3),
    Column::new("policy loss", 11, 1),
    Column::new("value loss", 10, 0),
    Column::new("strength", 25, 0),
    Column::new("findings", 8, 1),
    Column::new("workers", 7, 2),
    Column::new("queue s", 7, 4),
    Column::new("lag", 4, 4),
];
/// Table lines between two headers in a terminal.
const ROWS_PER_HEADER: u64 = 25;

/// Whether the table of a run with `record` has the column.
fn has(column: &Column, record: &EpochRecord) -> bool {
    match column.name {
        "findings" => record.findings.is_some(),
        "workers" | "queue s" | "lag" => record.workers.is_some(),
        _ => true,
    }
}

/// The columns for `record` with their cells.
fn row(record: &EpochRecord, left: Option<String>) -> (Vec<Column>, Vec<String>) {
    COLUMNS.into_iter().zip(cells(record, left)).filter(|(column, _)| has(column, record)).unzip()
}

/// The cells of one epoch. Strength is as [`Strength`](super::metrics::Strength) prints it.
fn cells(record: &EpochRecord, left: Option<String>) -> [String; COLUMNS.len()] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let workers = record.workers.as_ref();
    let policy = record.losses.as_ref().and_then(EpochLosses::of_policy);
    [
        record.epoch.to_string(),
        format!("{:.1}", record.minutes()),
        or_dash(left),
        compact(record.games_per_second),
        compact(record.positions_per_second),
        or_dash(policy.map(|[entropy, _]| format!("{entropy:.4}"))),
        or_dash(record.losses.as_ref().map(|losses| format!("{:.4}", losses.value))),
        or_dash(record.strength.map(|strength| strength.to_string())),
        or_dash(record.findings.map(|count| count.to_string())),
        or_dash(workers.map(|workers| workers.active.to_string())),
        or_dash(workers.map(|workers| format!("{:.2}", workers.queue_seconds))),
        or_dash(workers.map(|workers| format!("{:.1}", workers.lag))),
    ]
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    Bars,
    Lines,
}

/// The terminal output of work in progress.
#[derive(Debug)]
pub struct Progress {
    verbosity: Verbosity,
    shown: Shown,
    bar: ProgressBar,
    work: Arc<Mutex<WorkItem>>,
    /// Its drop ends the thread that writes the lines; None before the first work.
    lines: Option<Sender<()>>,
    table: Table,
    rows: u64,
}

impl Progress {
    /// Output of this `verbosity`: bars if stdout and stderr are terminals that can write a line again.
    pub fn new(verbosity: Verbosity) -> Self {
        let has_bars = has_cursor(&std::io::stdout()) && has_cursor(&std::io::stderr());
        let shown = match verbosity {
            Verbosity::Quiet => Shown::Nothing,
            Verbosity::Normal if has_bars => Shown::Bars,
            Verbosity::Normal | Verbosity::Verbose => Shown::Lines,
        };
        let work = Arc::new(Mutex::new(WorkItem::new("", 0, "", None)));
        let bar = ProgressBar::hidden();
        Self { verbosity, shown, bar, work, lines: None, table: Table::default(), rows: 0 }
    }

    /// Starts work of `total` units, such as ("self-play", 20000, "samples"), after the work before.
    pub fn start(&mut self, name: &'static str, total: u64, unit: &'static str) {
        self.finish();
        {
            let mut work = lock(&self.work);
            *work = WorkItem::new(name, total, unit, work.run);
        }
        match self.shown {
            Shown::Nothing => {}
            Shown::Bars => self.bar = bar(name, total, unit, self.work.clone()),
            Shown::Lines if self.lines.is_none() => {
                let (end, ended) = channel();
                let work = self.work.clone();
                let named = thread::Builder::new().name("progress".into()).stack_size(1 << 17);
                // If the system refuses the thread, no lines are written.
                self.lines = named.spawn(move || write_lines(&work, &ended)).is_ok().then_some(end);
            }
            Shown::Lines => {}
        }
    }

    /// Sets the epoch of the run of which all further work is a part, and the run's end.
    pub fn set_run(&self, run: RunEta) {
        lock(&self.work).run = Some(run);
    }

    /// Sets the number of units done.
    pub fn set(&self, done: u64) {
        lock(&self.work).done = done;
        self.bar.set_position(done);
    }

    /// Sets the number of units done, the elapsed fraction of the time if it differs from that of the units, and a result so far.
    pub fn set_with(&self, done: u64, fraction: Option<f64>, detail: String) {
        {
            let mut work = lock(&self.work);
            (work.fraction, work.detail) = (fraction, detail);
        }
        self.set(done);
    }

    /// The progress, such as "self-play: 340 of 20000 samples"; None without work in progress.
    pub fn reached(&self) -> Option<String> {
        lock(&self.work).reached()
    }

    /// Ends the work and removes its bar.
    pub fn finish(&mut self) {
        let mut work = lock(&self.work);
        *work = WorkItem::new("", 0, "", work.run);
        drop(work);
        std::mem::replace(&mut self.bar, ProgressBar::hidden()).finish_and_clear();
    }

    /// Prints the table line of an epoch. The header is printed before it if the columns have changed, in a terminal also at intervals.
    ///
    /// # Errors
    /// [`Error::Io`] if stdout cannot be written.
    pub fn epoch(&mut self, record: &EpochRecord) -> Result<()> {
        let left = lock(&self.work).run.and_then(|run| run.left(Instant::now()));
        let (columns, cells) = row(record, left);
        let table = Table::fitting(&columns, width());
        let is_due = self.shown == Shown::Bars && self.rows.is_multiple_of(ROWS_PER_HEADER);
        let header =
            if is_due || table != self.table { table.header(&columns) + "\n" } else { String::new() };
        let line = table.line(&cells);
        (self.table, self.rows) = (table, self.rows + 1);
        self.print(&format!("{header}{line}\n"))
    }

    /// Prints a sentence about the work, in the width of the terminal.
    ///
    /// # Errors
    /// [`Error::Io`] if stdout cannot be written.
    pub fn note(&self, sentence: &str) -> Result<()> {
        self.print(&wrap(&format!("{sentence}\n"), sentence_width()))
    }

    fn print(&self, text: &str) -> Result<()> {
        if self.verbosity == Verbosity::Quiet {
            return Ok(());
        }
        match self.bar.suspend(|| print(text)) {
            // The terminal was closed: the work goes on without it, unless SIGHUP ends it.
            Err(Error::Stopped(_)) => Ok(()),
            printed => printed,
        }
    }
}

fn lock(work: &Mutex<WorkItem>) -> MutexGuard<'_, WorkItem> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A bar that fills the rest of the line.
fn bar(name: &'static str, total: u64, unit: &str, work: Arc<Mutex<WorkItem>>) -> ProgressBar {
    let template = match total {
        1 => "{prefix:>10} {spinner} {elapsed}{run_eta}".to_string(),
        _ => format!("{{prefix:>10}} {{wide_bar:.cyan/blue}} {{human_pos}}/{{human_len}} {unit}{{run_eta}}"),
    };
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let run_eta = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}", lock(&work).eta(Instant::now()));
    };
    let bar = ProgressBar::new(total).with_prefix(name);
    let style = match Charset::of_locale() {
        Charset::Utf8 => style.progress_chars("━╸─"),
        Charset::Ascii => style.progress_chars("=> ").tick_chars("|/-\\ "),
    };
    bar.set_style(style.with_key("run_eta", run_eta));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Writes a line to stderr 10 s after the first work began, then at intervals that double up to 10 minutes, until the sender of `ended`
/// is dropped.
fn write_lines(work: &Mutex<WorkItem>, ended: &Receiver<()>) {
    const FIRST: Duration = Duration::from_secs(10);
    const MAX_INTERVAL: Duration = Duration::from_secs(600);
    let mut interval = FIRST;
    while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        let line = lock(work).line(Instant::now());
        if let Some(line) = line {
            let _ = writeln!(std::io::stderr(), "{}", wrap(&line, sentence_width())); // stderr may be closed
        }
        interval = (2 * interval).min(MAX_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::{MeanScore, PointsLead, Strength, sample_records};
    use super::super::workers::WorkerCounts;
    use super::*;
    use crate::eval::opponent::{Opponent, Rung};

    fn table(records: &[EpochRecord], width: usize) -> Vec<String> {
        let (columns, _) = row(&records[0], None);
        let table = Table::fitting(&columns, width);
        let rows = records.iter().map(|record| table.line(&row(record, Some("12m".into())).1));
        std::iter::once(table.header(&columns)).chain(rows).collect()
    }

    #[test]
    fn without_policies_there_is_no_policy_loss() {
        let of = |policy| {
            let losses = Some(EpochLosses { policy, value: 0.5, ..EpochLosses::default() });
            EpochRecord { losses, ..EpochRecord::default() }
        };
        let (without, with) = (of(0.0), of(0.25));
        assert_eq!((&*cells(&without, None)[5], &*cells(&with, None)[5]), ("-", "0.2500"));
        let has = |record: &EpochRecord| record.scalars().iter().any(|(name, _)| name == "loss/policy");
        assert_eq!((has(&without), has(&with)), (false, true));
    }

    #[test]
    fn the_table_is_aligned_in_80_columns() {
        let mut records = sample_records(4);
        let rung = Some(Rung { number: 1, opponent: Opponent::Rollouts(100) });
        let (score, interval) = (Some(0.734), Some([0.561, 0.852]));
        records[1].strength =
            Some(Strength { match_score: score, match_interval: interval, rung, ..Strength::default() });
        let lead = Some(PointsLead { points: 3.9, mean: 1.94, interval: [1.2, 2.66] });
        records[2].strength = Some(Strength { lead, rung, ..Strength::default() });
        let mean_score = Some(MeanScore { mean: 12_345.6, interval: [12_000.0, 12_691.2] });
        records[3].strength =
            Some(Strength { mean_score, match_score: Some(0.9), rung, ..Strength::default() });
        let lines = table(&records, 80);
        insta::assert_snapshot!(lines.join("\n"), @r"
        epoch  minutes   pos/s  policy loss  value loss                   strength
            1      0.4    1251            -           -                 33.0 % err
            2      0.8    1251       1.5000      0.6500  73 % (56-85) rollouts:100
            3      1.2    2504       1.3667      0.5667     +1.9 ±0.7 rollouts:100
            4      1.7    1252       1.3000      0.5250                 12.3k ±346
        ");
        assert!(lines.iter().all(|line| line.chars().count() == 74));
    }

    #[test]
    fn columns_follow_the_width_and_the_findings() {
        let records = sample_records(1);
        let wide = table(&records, 90);
        assert!(
            wide[0].starts_with("epoch  minutes   left  games/s") && wide[1].contains("  12m  "),
            "{wide:?}"
        );
        assert!(table(&records, 60).iter().all(|line| line.chars().count() <= 60));
        let found = [EpochRecord { findings: Some(12), ..records[0].clone() }];
        let lines = table(&found, 80);
        assert!(lines[0].ends_with("  strength  findings") && lines[1].ends_with("        12"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
        let counts = WorkerCounts { active: 7, queue_seconds: 0.25, lag: 1.5, ..WorkerCounts::default() };
        let workers = [EpochRecord { workers: Some(counts), ..records[0].clone() }];
        let lines = table(&workers, 80);
        assert!(lines[0].ends_with("  strength  workers") && lines[1].ends_with("        7"), "{lines:?}");
        let lines = table(&workers, 120);
        assert!(lines[0].ends_with("  workers  queue s   lag"), "{lines:?}");
        assert!(lines[1].ends_with("        7     0.25   1.5"), "{lines:?}");
    }
}
