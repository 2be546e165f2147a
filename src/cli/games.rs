//! `vecaz games`: the games, their settings, and the configurations that come with the program.

use super::layers::described_configs;
use crate::backend::AnyGame;
use crate::error::Result;
use crate::registry::Registry;
use crate::report::layout::{fill, sentence_width};
use crate::report::progress::print;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  vecaz games
  vecaz games hex
  vecaz run --game hex --set game.size=7      with a setting of the game
  vecaz run --config hex13                    with a built-in configuration";

/// The arguments of `vecaz games`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GamesArgs {
    /// The game to list [default: all]
    #[arg(value_name = "GAME")]
    pub game: Option<String>,
}

/// Prints a paragraph per game: aims, settings, configurations.
///
/// # Errors
/// [`crate::Error::UnknownGame`].
pub fn execute(args: &GamesArgs, registry: &Registry) -> Result<()> {
    let configs = described_configs(registry)?;
    let names: Vec<&str> = match &args.game {
        Some(name) => vec![name],
        None => registry.names(),
    };
    let mut text = String::new();
    for name in names {
        let game = registry.game(name, &toml::Table::new())?;
        text += &describe(game.as_ref());
        for (config, _, sentence) in configs.iter().filter(|(_, of, _)| of == game.name()) {
            let purpose = if sentence.is_empty() { String::new() } else { format!(": {sentence}") };
            text += &fill(&format!("--config {config}{purpose}"), sentence_width(), [2, 6]);
        }
        text += "\n";
    }
    print(text.trim_end()).and_then(|()| print("\n"))
}

fn describe(game: &dyn AnyGame) -> String {
    let players = game.sizes().num_players as u8;
    let aims: Vec<String> = (0..players).map(|player| game.aim(player)).collect();
    let aims = match aims.iter().all(|aim| *aim == aims[0]) {
        true => format!("each of {players} players {}", aims[0]),
        false => aims.join("; "),
    };
    let mut text = fill(&format!("{}: {aims}", game.name()), sentence_width(), [0, 2]);
    for key in game.keys() {
        let line = format!("game.{}: {}, default {}", key.name, key.values, key.default);
        text += &fill(&format!("{line}. {}", key.meaning), sentence_width(), [2, 6]);
    }
    for target in game.targets() {
        text += &fill(&format!("a target for net.auxiliary: {}", target.name), sentence_width(), [2, 6]);
    }
    text
}
