//! `vecaz top`: a run with workers as it goes.

use crate::cluster::address::{Address, password};
use crate::cluster::overview::{Overview, OverviewReader};
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

Shows the last epoch, the queue, and every worker with its games a second and what limits it, each second until Ctrl-C.
Where stdout is no terminal, once, as with --once.";

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

/// Shows the run, once or until the process is ended.
///
/// # Errors
/// [`Error::Server`] where there is no such run.
pub fn execute(args: TopArgs) -> Result<()> {
    let password = password(args.password_file.as_deref())?;
    let server = Server::new(Address::typed("URL", &args.url)?, password.as_deref())?;
    let mut reader = OverviewReader::new(server)?;
    if args.once || !std::io::stdout().is_terminal() {
        return print(&reader.read()?.to_string());
    }
    let terminal = Term::stdout();
    let mut shown = 0;
    loop {
        let text = fitted(&reader.read()?, &terminal);
        terminal.clear_last_lines(shown).map_err(|e| Error::io("writing", "stdout", e))?;
        print(&text)?;
        shown = text.lines().count();
        sleep(INTERVAL);
    }
}

/// The lines that fit on the terminal, none of them longer than it is wide.
fn fitted(overview: &Overview, terminal: &Term) -> String {
    let (rows, columns) = terminal.size();
    let line = |line: &str| line.chars().take(columns as usize).chain(['\n']).collect::<String>();
    overview.to_string().lines().take(rows.saturating_sub(1) as usize).map(line).collect()
}
