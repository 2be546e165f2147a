//! `vecaz top`: the state of a run with workers, refreshed each second.

use crate::cluster::address::{Address, password};
use crate::cluster::overview::OverviewReader;
use crate::cluster::server::Server;
use crate::error::{Error, Result};
use crate::report::layout::{width, wrap};
use crate::report::progress::print;
use crate::report::terminal::has_cursor;
use clap::Args;
use console::Term;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  vecaz top redis://10.0.0.1/hex-9
  vecaz top redis://10.0.0.1/hex-9 --once

Shows the last epoch, the queue, and every worker with its games a second and its bottleneck, each second until Ctrl-C. If the
server fails after the first reading, the error is shown and the reading repeated. If stdout is not a terminal, or one that
cannot write lines again (TERM=dumb), the state is printed once, as with --once.";

/// Time between two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// Time between the two readings that show which workers still send their status.
const ONCE: Duration = Duration::from_millis(2500);

/// The arguments of `vecaz top`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// The server and the run's name there, as for `vecaz work`
    #[arg(value_name = "URL")]
    pub url: String,
    /// Print once and end
    #[arg(long)]
    pub once: bool,
    /// A file whose first line is the server's password [default: the environment's VECAZ_REDIS_PASSWORD]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

/// Shows the run, once or until the process is ended. Errors after the first reading are shown and do not end it.
///
/// # Errors
/// [`Error::Server`] if the first reading fails.
pub fn execute(args: TopArgs) -> Result<()> {
    let password = password(args.password_file.as_deref())?;
    let server = Server::new(Address::typed("URL", &args.url)?, password.as_deref())?;
    let mut reader = OverviewReader::new(server)?;
    if args.once || !has_cursor(&std::io::stdout()) {
        reader.read()?;
        sleep(ONCE);
        return print(&wrap(&reader.read()?.without_silent(ONCE).to_string(), width()));
    }
    let terminal = Term::stdout();
    let (mut newest, mut shown) = (reader.read()?.to_string(), 0);
    let mut failure = String::new();
    loop {
        let text = fitted(&(failure + &newest), &terminal);
        terminal.clear_last_lines(shown).map_err(|e| Error::io("writing", "stdout", e))?;
        print(&text)?;
        shown = text.lines().count();
        sleep(INTERVAL);
        failure = match reader.read() {
            Ok(overview) => {
                newest = overview.to_string();
                String::new()
            }
            Err(error) => format!("{error}; retrying; the last state was:\n"),
        };
    }
}

/// The lines that fit on the terminal, cut to its width.
fn fitted(text: &str, terminal: &Term) -> String {
    let (rows, columns) = terminal.size();
    let text = wrap(text, columns as usize);
    let line = |line: &str| line.chars().take(columns as usize).chain(['\n']).collect::<String>();
    text.lines().take(rows.saturating_sub(1) as usize).map(line).collect()
}
