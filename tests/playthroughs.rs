//! Replays games played by independent implementations (`tests/oracles/` has the scripts).
//!
//! Every file under `tests/fixtures/playthroughs/` is JSON lines, one game a line, of any registered game:
//! `{"game":..., "options":{...}, "actions":[...], "plies":[{"kind":"player"|"chance","to_play":p,"legal":[...]}, ...],
//! "returns":[...]}`. `plies` has an entry before each action; at a chance ply `legal` lists the outcomes and `chance`,
//! if there, their `[outcome, probability]` pairs. `returns` is null if the game was interrupted.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use vecaz::batch::Playthrough;
use vecaz::game::Turn;
use vecaz::registry::any_game;

#[derive(Deserialize)]
struct Game {
    game: String,
    options: toml::Table,
    actions: Vec<u16>,
    plies: Vec<Ply>,
    returns: Option<Vec<f32>>,
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

fn fixture_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/playthroughs");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files
}

fn replay(line: &str) -> Result<(), String> {
    let played: Game = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let rules = any_game(&played.game, &played.options).map_err(|e| e.to_string())?;
    if played.plies.len() != played.actions.len() || played.actions.is_empty() {
        return Err(format!("{} plies for {} actions", played.plies.len(), played.actions.len()));
    }
    let mut game = Playthrough::new(rules.clone());
    for (index, (ply, &action)) in played.plies.iter().zip(&played.actions).enumerate() {
        compare_ply(&game, ply).map_err(|what| format!("ply {index}: {what}"))?;
        game.step(action).map_err(|e| e.to_string())?;
    }
    let Some(expected) = played.returns else { return Ok(()) };
    if game.turn() != Turn::Over {
        return Err(format!("the game should be over, but {:?} is to decide", game.turn()));
    }
    let found = rules.returns(game.state());
    let equal = found.len() == expected.len()
        && found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() <= TOLERANCE);
    if equal { Ok(()) } else { Err(format!("returns {found:?}, the oracle's {expected:?}")) }
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

#[test]
fn games_of_other_implementations_replay_alike() {
    let files = fixture_files();
    assert!(!files.is_empty());
    let mut failures = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(!text.trim().is_empty(), "{name} holds no games");
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        failures.extend(lines.filter_map(|(index, line)| {
            replay(line).err().map(|what| format!("{name} line {}: {what}", index + 1))
        }));
    }
    assert!(failures.is_empty(), "{} games differ; the first: {}", failures.len(), failures[0]);
}

/// The comparison finds one wrong entry of each kind in a game that agrees otherwise.
#[test]
fn differences_are_found() {
    let right = r#"{"game":"tic_tac_toe","options":{},"actions":[0,3,1,4,2],"plies":[
        {"kind":"player","to_play":0,"legal":[0,1,2,3,4,5,6,7,8]},{"kind":"player","to_play":1,"legal":[1,2,3,4,5,6,7,8]},
        {"kind":"player","to_play":0,"legal":[1,2,4,5,6,7,8]},{"kind":"player","to_play":1,"legal":[2,4,5,6,7,8]},
        {"kind":"player","to_play":0,"legal":[2,5,6,7,8]}],"returns":[1,-1]}"#;
    replay(right).unwrap();
    let wrong = [
        (r#""returns":[1,-1]"#, r#""returns":[0,0]"#, "returns"),
        (r#""legal":[2,5,6,7,8]"#, r#""legal":[2,5,6,7]"#, "ply 4: legal"),
        (r#""to_play":1,"legal":[1,"#, r#""to_play":0,"legal":[1,"#, "ply 1: Player"),
        (r#""actions":[0,3,1,4,2]"#, r#""actions":[0,3,1,4,5]"#, "should be over"),
        (
            r#""kind":"player","to_play":0,"legal":[0,"#,
            r#""kind":"chance","to_play":0,"legal":[0,"#,
            "ply 0: Player",
        ),
    ];
    for (from, to, expected) in wrong {
        assert!(right.contains(from));
        let said = replay(&right.replacen(from, to, 1)).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
}
