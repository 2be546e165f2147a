//! Writes a set of solved positions to stdout. `tests/fixtures/README.md` has the commands of the committed sets.

mod generate;

use clap::Parser;
use generate::{Generator, SetPlan, every_position};
use std::path::PathBuf;
use std::sync::Arc;
use vecaz::Result;
use vecaz::backend::AnyGame;
use vecaz::eval::positions::{self, SolvedPosition};
use vecaz::registry::any_game;

#[derive(Parser)]
struct Args {
    /// A game with an exact solver, with its standard settings.
    #[arg(long, default_value = "connect_four")]
    game: String,
    /// Number of positions [default: every position of the game, for small games].
    #[arg(long)]
    positions: Option<usize>,
    /// The smallest ply.
    #[arg(long, default_value_t = 6)]
    from_ply: usize,
    /// The largest ply.
    #[arg(long, default_value_t = 34)]
    to_ply: usize,
    /// Probability of keeping a position that can be won within two plies.
    #[arg(long, default_value_t = 0.25)]
    keep_tactical: f32,
    /// Probability of keeping a position in which every action has the same result.
    #[arg(long, default_value_t = 0.1)]
    keep_indifferent: f32,
    /// Seed of the games.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Files with positions to exclude.
    #[arg(long)]
    exclude: Vec<PathBuf>,
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let game = any_game(&args.game, &toml::Table::new())?;
    let mut made = Vec::new();
    for position in source(&args, game)? {
        let position = position?;
        positions::write_line(&position, &mut std::io::stdout().lock())?;
        made.push(position);
    }
    eprintln!("uniformly random play: {}", serde_json::to_string(&positions::random_error_rates(&made))?);
    Ok(())
}

fn source(args: &Args, game: Arc<dyn AnyGame>) -> Result<Box<dyn Iterator<Item = Result<SolvedPosition>>>> {
    let Some(positions) = args.positions else {
        return Ok(Box::new(every_position(&game)?.into_iter().map(Ok)));
    };
    let mut exclude = Vec::new();
    for path in &args.exclude {
        exclude.extend(positions::read(path, &game)?);
    }
    let plan = SetPlan {
        positions,
        plies: args.from_ply..=args.to_ply,
        keep_tactical: args.keep_tactical,
        keep_indifferent: args.keep_indifferent,
        seed: args.seed,
    };
    Ok(Box::new(Generator::new(game, plan, &exclude)?))
}
