//! `vecaz config`: every configuration key with its meaning, valid values and default, as a TOML file.

use super::{Base, ConfigArgs};
use crate::config::KeyInfo;
use crate::config::keys::{one_of, toml_text};
use crate::config::nearest;
use crate::error::{Error, Result};
use crate::registry::Registry;
use crate::report::layout::{fill, sentence_width};
use crate::report::progress::print;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  vecaz config                          every key, as in `vecaz run`
  vecaz config search                   a section
  vecaz config train.lr --game hex      a key, as in `vecaz run --game hex`
  vecaz config --game hex > mine.toml   for vecaz run --config mine.toml";

/// The arguments of `vecaz config`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ConfigKeysArgs {
    /// The section or key to list, such as search or search.leaves [default: all]
    #[arg(value_name = "KEY")]
    pub key: Option<String>,
    /// The game and its settings.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Prints the keys as TOML, each below its meaning, valid values and default.
///
/// # Errors
/// Those of [`ConfigArgs::resolve`]; [`Error::ConfigKey`] for a key that does not exist.
pub fn execute(args: &ConfigKeysArgs, registry: &Registry) -> Result<()> {
    let config = args.config.resolve(registry, Base::BuiltIn, &[])?;
    let game = registry.game_of(&config)?;
    let mut keys = vec![KeyInfo {
        name: "name",
        meaning: "The game; `vecaz games` lists the aims and settings of each.",
        values: one_of(&registry.names()),
        default: toml_text(&registry.default_name()),
        value: toml_text(&game.name()),
    }];
    keys.extend(game.keys());
    let mut sections = vec![("game", "the game and its settings", keys)];
    sections.extend(config.sections());
    let known = |key: &str| {
        let names = sections.iter().flat_map(|(section, _, keys)| {
            std::iter::once(section.to_string())
                .chain(keys.iter().map(move |key| format!("{section}.{}", key.name)))
        });
        let names: Vec<String> = names.collect();
        match nearest(key, names.iter().map(String::as_str)) {
            Some(nearest) => format!("the nearest is {nearest}"),
            None => "`vecaz config` lists all".into(),
        }
    };
    let mut text = match &args.key {
        None => head(registry),
        Some(_) => String::new(),
    };
    let mut found = false;
    for (section, purpose, keys) in &sections {
        let is_listed = |key: &&KeyInfo| match args.key.as_deref() {
            None => true,
            Some(only) => only == *section || only == format!("{section}.{}", key.name),
        };
        let keys: Vec<&KeyInfo> = keys.iter().filter(is_listed).collect();
        if !keys.is_empty() {
            text += &format!("[{section}] # {purpose}\n");
            found = true;
        }
        keys.iter().for_each(|key| text += &describe(key));
    }
    match &args.key {
        Some(key) if !found => Err(Error::unknown_key(key, known(key))),
        _ => print(&text),
    }
}

fn head(registry: &Registry) -> String {
    let configs: Vec<&str> = registry.configs().iter().map(|config| config.name).collect();
    let text = format!(
        "Every key with its value, below its meaning, valid values and default. --set KEY=VALUE sets a key, --config FILE the keys of a file. \
         Built-in configurations, by their name for --config: {}.",
        configs.join(", ")
    );
    commented(&text) + "\n"
}

fn describe(key: &KeyInfo) -> String {
    let facts = format!("{} Values: {}; default {}.", key.meaning, key.values, key.default);
    // A key without a value has no TOML.
    let mark = if key.value == "none" { "# " } else { "" };
    format!("{}{mark}{} = {}\n\n", commented(&facts), key.name, key.value)
}

fn commented(text: &str) -> String {
    fill(text, sentence_width().saturating_sub(2), [0, 0]).lines().map(|line| format!("# {line}\n")).collect()
}
