//! `vecaz top`: a run with workers as it goes.

use crate::cluster::address::{Address, password};
use crate::cluster::overview::OverviewReader;
use crate::cluster::server::Server;
use crate::error::{Error, Result};
use crate::report::progress::print;
use clap::Args;
use console::Term;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  vecaz top redis://10.0.0.1/hex-9
  vecaz top redis://10.0.0.1/hex-9 --once

Shows the last epoch, the queue, and every worker with its games a second and what limits it, each second until Ctrl-C. Where the
server fails after the first look, it says so and tries again. Where stdout is no terminal, once, as with --once.";

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

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

/// Shows the run, once or until the process is ended, whatever fails after the first look.
///
/// # Errors
/// [`Error::Server`] where there is no such run at first.
pub fn execute(args: TopArgs) -> Result<()> {
    let password = password(args.password_file.as_deref())?;
    let server = Server::new(Address::typed("URL", &args.url)?, password.as_deref())?;
    let mut reader = OverviewReader::new(server)?;
    if args.once || !std::io::stdout().is_terminal() {
        return print(&reader.read()?.to_string());
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
            Err(error) => format!("{error}; it is tried again, and this was before:\n"),
        };
    }
}

/// The lines that fit on the terminal, none of them longer than it is wide.
fn fitted(text: &str, terminal: &Term) -> String {
    let (rows, columns) = terminal.size();
    let line = |line: &str| line.chars().take(columns as usize).chain(['\n']).collect::<String>();
    text.lines().take(rows.saturating_sub(1) as usize).map(line).collect()
}
