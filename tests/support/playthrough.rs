//! Replays a game that an independent implementation has played, and compares every ply.
//!
//! Input: a registry and one line of JSON, `{"game":..., "options":{...}, "actions":[...], "plies":[{"kind":"player"|"chance","to_play":p,
//! "legal":[...]}, ...], "returns":[...]}`. `plies` has an entry before each action; at a chance ply `legal` lists the outcomes and `chance`,
//! if there, their `[outcome, probability]` pairs. `returns` is null if the game was interrupted; `scores`, if there, are the raw scores.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use vecaz::batch::Playthrough;
use vecaz::game::Turn;
use vecaz::registry::Registry;

#[derive(Deserialize)]
struct Game {
    game: String,
    options: toml::Table,
    actions: Vec<u16>,
    plies: Vec<Ply>,
    returns: Option<Vec<f32>>,
    scores: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct Ply {
    kind: Kind,
    #[serde(default)]
    to_play: Option<i32>,
    legal: Vec<u16>,
    #[serde(default)]
    chance: Option<Vec<(u16, f32)>>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Player,
    Chance,
}

/// Maximum difference of results and probabilities: the oracles compute in 32 or 64 bits.
const TOLERANCE: f32 = 1e-5;

fn are_close(found: &[f32], expected: &[f32]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= TOLERANCE)
}

/// Replays all games of the files `*.jsonl` in a folder, and returns how many there were.
///
/// # Panics
/// With the first difference, or if there is no game.
pub fn replay_folder(registry: &Registry, folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    let (mut games, mut failures) = (0, Vec::new());
    for path in &files {
        let text = std::fs::read_to_string(path).expect("a text");
        assert!(!text.trim().is_empty(), "{} holds no games", path.display());
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            games += 1;
            let failure = replay(registry, line).err();
            failures.extend(failure.map(|what| format!("{} line {}: {what}", path.display(), index + 1)));
        }
    }
    assert!(failures.is_empty(), "{} of {games} games differ; the first: {}", failures.len(), failures[0]);
    assert!(games > 0, "no games in {}", folder.display());
    games
}

/// Replays the game of one line.
pub fn replay(registry: &Registry, line: &str) -> Result<(), String> {
    let played: Game = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let rules = registry.game(&played.game, &played.options).map_err(|e| e.to_string())?;
    if played.plies.len() != played.actions.len() || played.actions.is_empty() {
        return Err(format!("{} plies for {} actions", played.plies.len(), played.actions.len()));
    }
    let mut game = Playthrough::new(rules.clone());
    for (index, (ply, &action)) in played.plies.iter().zip(&played.actions).enumerate() {
        compare_ply(&game, ply).map_err(|what| format!("ply {index}: {what}"))?;
        game.step(action).map_err(|e| e.to_string())?;
    }
    if played.returns.is_none() && played.scores.is_none() {
        return Ok(());
    }
    if game.turn() != Turn::Over {
        return Err(format!("the game should be over, but {:?} is to decide", game.turn()));
    }
    let found = [("returns", rules.returns(game.state())), ("scores", rules.scores(game.state()))];
    for ((what, found), expected) in found.into_iter().zip([played.returns, played.scores]) {
        let Some(expected) = expected.filter(|expected| !are_close(&found, expected)) else { continue };
        return Err(format!("{what} {found:?}, the oracle's {expected:?}"));
    }
    Ok(())
}

fn compare_ply(game: &Playthrough, ply: &Ply) -> Result<(), String> {
    let (kind, to_play) = match game.turn() {
        Turn::Player(player) => (Kind::Player, Some(i32::from(player))),
        Turn::Chance => (Kind::Chance, None),
        Turn::Over => return Err("the game is over, but the oracle plays on".into()),
    };
    if kind != ply.kind || (kind == Kind::Player && to_play != ply.to_play) {
        return Err(format!(
            "{kind:?} {to_play:?} is to decide, the oracle's {:?} {:?}",
            ply.kind, ply.to_play
        ));
    }
    let legal = game.legal();
    if legal != ply.legal {
        return Err(format!("legal {legal:?}, the oracle's {:?}", ply.legal));
    }
    let Some(chance) = &ply.chance else { return Ok(()) };
    let probs = game.game().chance_probs(game.state(), &legal);
    let found: Vec<(u16, f32)> = legal.into_iter().zip(probs).collect();
    let equal = found.len() == chance.len()
        && found.iter().zip(chance).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() <= TOLERANCE);
    if equal { Ok(()) } else { Err(format!("chance {found:?}, the oracle's {chance:?}")) }
}
