//! `vecaz new`: a Cargo project with a game of one's own, which trains, plays and is tested at once.

use crate::error::{Error, Result};
use crate::files::write_atomic;
use crate::registry::Registry;
use crate::report::progress::print_data;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  vecaz new onitama                   a board game, in ./onitama
  vecaz new skat --kind cards
  cd onitama && cargo run --release -- run --minutes 1
  cd onitama && cargo test --release        the laws of its rules";

/// The manifest of vecaz, whose build profile the project takes over: dependencies off every hot path are not optimised.
const MANIFEST: &str = include_str!("../../Cargo.toml");

/// Packages with profiles that only the tests of vecaz use.
const OF_TESTS: [&str; 5] = ["criterion", "insta", "proptest", "rten", "similar"];

/// The place of the sources that this program was built from.
const SOURCES: &str = env!("CARGO_MANIFEST_DIR");
/// The line of the templates that names the game.
const NAME_LINE: &str = "    const NAME: &'static str = \"NAME\";\n";

/// The arguments of `vecaz new`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct NewArgs {
    /// The name of the game and of its crate: lower-case letters, digits and _, a letter first
    pub name: String,
    /// The kind of game to begin from
    #[arg(long, default_value = "board")]
    pub kind: Kind,
    /// The folder to make [default: the name]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The source tree of vecaz that the crate depends on [default: that of this program]
    #[arg(long, value_name = "DIR")]
    pub vecaz: Option<PathBuf>,
}

/// The kind of game to begin from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Two players and a board.
    Board,
    /// Two players and dice.
    Dice,
    /// Two players and hands of cards that the other does not see.
    Cards,
    /// One player and chance.
    Solo,
}

impl Kind {
    /// A small complete game.
    fn game(self) -> &'static str {
        match self {
            Self::Board => include_str!("new/board.rs"),
            Self::Dice => include_str!("new/dice.rs"),
            Self::Cards => include_str!("new/cards.rs"),
            Self::Solo => include_str!("new/solo.rs"),
        }
    }
}

/// Writes the project.
///
/// # Errors
/// [`Error::Config`] for a name that no crate or another game has, and for a folder without the sources of vecaz; [`Error::Io`], also for
/// a folder that exists.
pub fn execute(args: &NewArgs, registry: &Registry) -> Result<()> {
    check_name(&args.name, registry)?;
    let sources = args.vecaz.clone().unwrap_or_else(|| SOURCES.into());
    let sources = std::path::absolute(&sources).map_err(|e| Error::io("reading", &sources, e))?;
    if !sources.join("src/registry.rs").is_file() {
        let expected = "the source tree of vecaz, which the crate depends on: name it with --vecaz";
        return Err(Error::config("the source tree", sources.display(), expected));
    }
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    if folder.exists() {
        let error = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(Error::io("creating", &folder, error));
    }
    let files = files(&args.name, args.kind, &sources);
    for (path, text) in &files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).map_err(|e| Error::io("creating", parent, e))?;
        write_atomic(&path, text.as_bytes())?;
    }
    print_data(&format!(
        "{} is a game of your own: its rules are in src/game.rs, and train, play and every other command is there.\n\
         Next: cd {0} && cargo test --release && cargo run --release -- run --minutes 1\n",
        folder.display()
    ))
}

/// Refuses names that a crate cannot have, and those of other games.
fn check_name(name: &str, registry: &Registry) -> Result<()> {
    let is_word = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_word || is_taken(name) {
        let expected =
            "the name of a crate: lower-case letters, digits and _, a letter first, no word of Rust";
        return Err(Error::config("the name", name, expected));
    }
    if registry.names().contains(&name) || registry.config(name).is_some() {
        return Err(Error::config("the name", name, "one that no game or built-in configuration has"));
    }
    Ok(())
}

/// True for names that a new project cannot have: reserved words and crates of Rust, crates that the project uses, and folders of cargo.
fn is_taken(name: &str) -> bool {
    const WORDS: &str = " abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl \
        in let loop macro match mod move mut override priv pub ref return self static struct super trait true try type typeof unsafe unsized \
        use virtual where while yield alloc core std test bytemuck game serde toml vecaz build deps examples incremental ";
    WORDS.contains(&format!(" {name} "))
}

/// The files of the project: path and text.
fn files(name: &str, kind: Kind, sources: &Path) -> Vec<(&'static str, String)> {
    let sources = toml::Value::String(sources.display().to_string());
    let cargo = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nbytemuck = {{ version = \"1.25\", features = [\"derive\"] }}\n\
         serde = {{ version = \"1.0\", features = [\"derive\"] }}\ntoml = \"1.0\"\nvecaz = {{ path = {sources} }}\n\n\
         {}\n\n[workspace]\n",
        release_profile().trim_end()
    );
    let main = format!(
        "//! The whole program: every command of vecaz, with this game as the one that is meant if none is named.\n\n\
         use vecaz::registry::Registry;\n\nfn main() -> std::process::ExitCode {{\n    \
         vecaz::cli::program_with(Registry::built_in().with::<{name}::game::Rules>())\n}}\n"
    );
    let laws = format!(
        "//! The laws that every game keeps; a failure names the law and the actions that led to it.\n\n#[test]\nfn the_laws_hold() {{\n    \
         vecaz::contract::check::<{name}::game::Rules>().unwrap();\n}}\n"
    );
    let net = match kind {
        Kind::Board => "arch = \"resnet\"\npolicy_head = \"points\"",
        _ => "arch = \"mlp\"",
    };
    let config = format!(
        "# Settings of training, built into the program. `cargo run --release -- config` lists all keys.\n\n\
         [game]\nname = \"{name}\"\n\n[net]\n{net}\n\n[search]\nsimulations = 32\n"
    );
    let name_lines = format!(
        "    const NAME: &'static str = \"{name}\";\n    const CONFIGS: &'static [NamedText] =\n        \
         &[NamedText {{ name: Self::NAME, text: include_str!(\"../config.toml\") }}];\n"
    );
    let game = kind.game().replace(NAME_LINE, &name_lines);
    let game = game.replace("History, ObsShape", "History, NamedText, ObsShape");
    vec![
        ("Cargo.toml", cargo),
        (".gitignore", "/target\n/runs\n".into()),
        ("config.toml", config),
        ("src/lib.rs", format!("//! The game {name}, for vecaz.\n\npub mod game;\n")),
        ("src/main.rs", main),
        ("src/game.rs", game),
        ("tests/laws.rs", laws),
    ]
}

/// The release profile of vecaz, with those of the single packages that it brings along.
fn release_profile() -> String {
    let is_of_tests = |section: &&str| OF_TESTS.iter().any(|name| section.contains(name));
    let sections = MANIFEST.split("\n\n").filter(|section| section.contains("[profile.release"));
    let lines = sections.filter(|section| !is_of_tests(section)).flat_map(str::lines);
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.fold(String::new(), |text, line| match line.starts_with('[') {
        true => text + "\n" + line + "\n",
        false => text + line + "\n",
    })
}
