//! `vecaz completions`: completions for shells, and man pages, made from the commands' definitions.

use crate::error::{Error, Result};
use crate::files::write_atomic;
use crate::registry::Registry;
use crate::report::progress::print_data;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  vecaz completions bash > ~/.local/share/bash-completion/completions/vecaz
  vecaz completions zsh > ~/.zfunc/_vecaz        a folder of $fpath
  vecaz completions fish > ~/.config/fish/completions/vecaz.fish
  vecaz completions man --out ~/.local/share/man/man1
  vecaz completions man | man -l -               the program's page alone";

/// The arguments of `vecaz completions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell, or `man` for man pages
    #[arg(value_name = "SHELL")]
    pub target: Target,
    /// Write into this folder: a shell's file by its usual name, or a man page for the program and for every command
    /// [default: stdout]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// Completions for Bash.
    Bash,
    /// Completions for Elvish.
    Elvish,
    /// Completions for fish.
    Fish,
    /// Completions for PowerShell.
    Powershell,
    /// Completions for Zsh.
    Zsh,
    /// Man pages, in section 1.
    Man,
}

impl Target {
    fn shell(self) -> Option<Shell> {
        match self {
            Self::Bash => Some(Shell::Bash),
            Self::Elvish => Some(Shell::Elvish),
            Self::Fish => Some(Shell::Fish),
            Self::Powershell => Some(Shell::PowerShell),
            Self::Zsh => Some(Shell::Zsh),
            Self::Man => None,
        }
    }
}

/// Prints or writes the completions or the man pages of `command`, the whole program.
///
/// # Errors
/// [`Error::Io`].
pub fn execute(args: &CompletionsArgs, command: Command, registry: &Registry) -> Result<()> {
    let name = command.get_name().to_string();
    let mut command = with_names_of_games(command, registry);
    let files = match args.target.shell() {
        Some(shell) => {
            let mut text = Vec::new();
            generate(shell, &mut command, &name, &mut text);
            vec![(file_name(shell, &name), text)]
        }
        None => man_pages(command)?,
    };
    match &args.out {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|e| Error::io("creating", folder, e))?;
            files.iter().try_for_each(|(file, text)| write_atomic(folder.join(file), text))
        }
        None => files.first().map_or(Ok(()), |(_, text)| print_data(&String::from_utf8_lossy(text))),
    }
}

/// The file in which a shell looks for the completions of the program `name`.
fn file_name(shell: Shell, name: &str) -> String {
    use clap_complete::Generator;
    match shell {
        Shell::Bash => name.to_string(),
        shell => shell.file_name(name),
    }
}

/// `command` with the names of the games as values of every argument that takes one.
fn with_names_of_games(command: Command, registry: &Registry) -> Command {
    command.mut_subcommands(|command| {
        command.mut_args(|argument| match argument.get_id() == "game" {
            true => argument.value_parser(PossibleValuesParser::new(registry.names())),
            false => argument,
        })
    })
}

/// The page of the program and of each command: file name and roff.
fn man_pages(mut command: Command) -> Result<Vec<(String, Vec<u8>)>> {
    // Gives every command its name with that of the program.
    command.build();
    let name = command.get_name().to_string();
    let pages = command.get_subcommands().map(|of| (format!("{name}-{}", of.get_name()), of.clone()));
    let pages: Vec<(String, Command)> = pages.collect();
    let all = std::iter::once((name, command)).chain(pages);
    let page = |(title, command): (String, Command)| {
        let mut text = Vec::new();
        let rendered = Man::new(command).title(title.to_uppercase()).render(&mut text);
        rendered.map(|()| (format!("{title}.1"), text)).map_err(|e| Error::io("writing", &title, e))
    };
    all.map(page).collect()
}
