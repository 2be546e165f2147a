//! `vecaz serve`: a board in the browser.

use super::threads::start_threads;
use crate::error::{Error, Result};
use crate::registry::Registry;
use crate::report::progress::print;
use crate::serve::{Cluster, Options, Server, Token};
use crate::stop::Stop;
use clap::{Args, value_parser};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  vecaz serve                            the runs in the folder runs
  vecaz serve runs/hex-1 --open
  vecaz serve runs/hex-1 runs/hex-2 net.safetensors --port 8080
  vecaz serve runs/hex-1 --cluster redis://10.0.0.1/hex-1   its workers too
  vecaz serve --bind 0.0.0.0 --token     for other machines

Plays, analyses and reviews games of every kind against any network, and shows runs. Without a network for a game, the search
plays it without one. The address is printed; Ctrl-C ends.";

/// The interval at which a request to stop is looked for.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// The arguments of `vecaz serve`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Folders of runs, or of their checkpoints, or weights files [default: all runs in the folder runs]; the embedded network is offered in any case
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The port [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = value_parser!(u16))]
    pub port: u16,
    /// The address to listen at; one that other machines reach needs --token
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub bind: IpAddr,
    /// Answer only requests with a secret, which the printed address has
    #[arg(long)]
    pub token: bool,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// Show the workers of a run on other machines too, by its server and name as for `vecaz top`; may be repeated
    #[arg(long, value_name = "URL")]
    pub cluster: Vec<String>,
    /// A file whose first line is the password of the servers of --cluster [default: the environment's VECAZ_REDIS_PASSWORD]
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub password_file: Option<PathBuf>,
    /// Threads of a search, 0 for all cores
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = value_parser!(u64).range(..=4096))]
    pub threads: u64,
}

/// Serves until `stop` is requested.
///
/// # Errors
/// Those of [`Server::start`]; [`Error::Stopped`] at the end.
pub fn execute(args: ServeArgs, registry: &Registry, stop: &Stop) -> Result<()> {
    let threads = start_threads(args.threads as usize)?;
    let clusters = args.cluster.iter().map(|url| cluster_at(url, args.password_file.as_deref()));
    let clusters = clusters.collect::<Result<_>>()?;
    let ServeArgs { runs: paths, bind, port, .. } = args;
    let token = if args.token { Token::Needed } else { Token::None };
    let server = Server::start(&Options { paths, bind, port, token, threads }, registry, clusters)?;
    for note in server.notes() {
        tracing::warn!("{note}");
    }
    print(&format!("vecaz at {} (Ctrl-C ends)\n", server.url()))?;
    if args.open
        && let Err(error) = open_browser(&server.url())
    {
        tracing::warn!("{error}");
    }
    while stop.cause().is_none() {
        sleep(STOP_INTERVAL);
    }
    drop(server);
    stop.check()
}

/// The run with workers at `url`. Its server need not be there yet: the page says what is the matter.
///
/// # Errors
/// [`Error::Config`] for another text, and those of the password's file.
#[cfg(feature = "cluster")]
fn cluster_at(url: &str, password_file: Option<&Path>) -> Result<Cluster> {
    use crate::cluster::address::{Address, password};
    use crate::cluster::overview::OverviewReader;
    let password = password(password_file)?;
    let address = Address::typed("--cluster", url)?;
    let shown = address.to_string();
    let mut reader: Option<OverviewReader> = None;
    let read = move || {
        let open = match &mut reader {
            Some(open) => open,
            None => {
                let server = crate::cluster::server::Server::new(address.clone(), password.as_deref())?;
                reader.insert(OverviewReader::new(server)?)
            }
        };
        Ok(open.read()?.json())
    };
    Ok(Cluster::new(shown, Box::new(read)))
}

/// Refuses the flag.
///
/// # Errors
/// [`Error::Config`].
#[cfg(not(feature = "cluster"))]
fn cluster_at(url: &str, _: Option<&Path>) -> Result<Cluster> {
    Err(Error::flag_without_feature("--cluster", url, "cluster"))
}

/// Opens `url` by the program that the system has for that.
fn open_browser(url: &str) -> Result<()> {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new("xdg-open")
    };
    let spawned = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    spawned.map(drop).map_err(|e| {
        let program = command.get_program().to_string_lossy().into_owned();
        Error::unsupported("--open", format!("{program} does not start: {e}; open {url} yourself"))
    })
}
