//! Queries: a line of JSON -> positions to analyse.

use super::field::{Defect, defect, is_player, player_name, player_of};
use super::moves::{cut_off, first_position, step};
use super::restrictions;
use crate::game::Turn;
use crate::protocol::dialogue::Dialogue;
use crate::protocol::position::Position;
use crate::protocol::restriction::Restriction;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Fields that are read.
const KNOWN: &str = "\
id moves initialPlayer initialStones maxVisits maxTime analyzeTurns includePolicy reportDuringSearchEvery
priority maxMoves boardXSize boardYSize komi overrideSettings allowMoves avoidMoves";

/// Maximum number of turns of one query.
const MAX_TURNS: usize = 10_000;

/// Whose winning chances are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewpoint {
    /// Those of the player to move.
    ToMove,
    /// Those of this player of two.
    Player(u8),
}

/// What is to be reported about each turn.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The identifier of the client.
    pub id: Value,
    /// Maximum number of visits; None for those of the command line.
    pub visits: Option<u64>,
    /// The longest time.
    pub time: Option<Duration>,
    /// Time between two reports.
    pub interval: Option<Duration>,
    /// Whether priors are reported.
    pub policy: IncludePolicy,
    /// Maximum number of moves that are reported.
    pub max_moves: usize,
    /// Queries of a higher priority come first.
    pub priority: i64,
    /// Whose winning chances are reported.
    pub viewpoint: Viewpoint,
}

/// Whether the network's priors of all actions are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludePolicy {
    /// They are not.
    No,
    /// They are, with -1 for illegal actions and those that are not searched.
    Yes,
}

/// A position to analyse.
#[derive(Clone)]
pub struct WantedTurn {
    /// The number of moves before it.
    pub number: usize,
    /// The position, where a player is to move.
    pub position: Position,
    /// The moves that are searched; empty for all.
    pub moves: Vec<u16>,
}

/// A query: positions by the number of moves before them.
pub struct Query {
    /// What is to be reported.
    pub report: ReportOptions,
    /// The turns, in the order in which they are analysed.
    pub turns: Vec<WantedTurn>,
    /// The turns in which the game is over, by the number of moves before them.
    pub ended: Vec<usize>,
    /// Warnings about fields that are not read.
    pub warnings: Vec<Value>,
}

impl Query {
    /// Reads a query with its `id`.
    ///
    /// # Errors
    /// The field and its defect.
    pub fn read(dialogue: &Dialogue, id: &Value, fields: &Map<String, Value>) -> Result<Self, Defect> {
        let start = start(dialogue, fields)?;
        let moves = match fields.get("moves") {
            Some(Value::Array(moves)) => moves,
            Some(_) => return defect("moves", "expected a list of moves"),
            None => return defect("moves", "the list of moves is missing; [] is the start of the game"),
        };
        if let (Some(name), Some(first)) = (fields.get("initialPlayer"), start.player())
            && !(name.is_null() || is_player(&start, name, first))
        {
            let (game, first) = (start.game().name(), player_name(&start, first));
            let what = format!("got {name}, and player {first} begins by the rules of {game}");
            return defect("initialPlayer", what);
        }
        let numbers = wanted_turns(fields, moves.len())?;
        let restrictions = restrictions::read(&start, fields)?;
        let mut position = start;
        let mut found: Vec<(usize, Position)> = Vec::new();
        for number in 0..=moves.len() {
            if numbers.contains(&number) {
                found.push((number, dialogue.resumed(&position).unwrap_or_else(|| position.clone())));
            }
            if let Some(text) = moves.get(number) {
                step(dialogue, &mut position, text)
                    .or_else(|what| defect("moves", format!("move {number}: {what}")))?;
            }
        }
        let (turns, ended) = parted(&numbers, &found, &restrictions)?;
        let report = report(id, fields, &position)?;
        let sizes = dialogue.position.game().sizes();
        if report.viewpoint != Viewpoint::ToMove && !sizes.is_zero_sum_pair() {
            let expected = "reportAnalysisWinratesAs SIDETOMOVE in a game other than of two opponents; values has all players";
            return defect("overrideSettings", format!("expected {expected}"));
        }
        Ok(Self { report, turns, ended, warnings: warnings(id, fields) })
    }
}

/// The start of the game, with the settings that the query has.
fn start(dialogue: &Dialogue, fields: &Map<String, Value>) -> Result<Position, Defect> {
    let game = dialogue.position.game();
    let (options, obs) = (game.options(), game.sizes().obs);
    for (field, option, side) in [("boardXSize", "columns", obs.width), ("boardYSize", "rows", obs.height)] {
        let of_option = ["size", option].into_iter().find_map(|name| options.get(name)?.as_integer());
        // An observation of one row or column is no board.
        let size = of_option.or((obs.width > 1 && obs.height > 1).then_some(side as i64));
        let given = fields.get(field).filter(|given| !given.is_null());
        if let (Some(given), Some(size)) = (given, size)
            && given.as_i64() != Some(size)
        {
            return defect(field, format!("got {given}, expected {size}, the size of the network's board"));
        }
    }
    let game = match fields.get("komi") {
        None | Some(Value::Null) => game.clone(),
        Some(komi) => {
            let Some(komi) = komi.as_f64() else { return defect("komi", "expected a number") };
            dialogue.game_with("komi", komi).or_else(|e| defect("komi", e.to_string()))?
        }
    };
    first_position(Position::new(&game), fields)
}

/// The turns to analyse, and the numbers of those in which the game is over. `found` has the position of each.
fn parted(
    numbers: &[usize],
    found: &[(usize, Position)],
    restrictions: &[Restriction],
) -> Result<(Vec<WantedTurn>, Vec<usize>), Defect> {
    let (mut turns, mut ended) = (Vec::new(), Vec::new());
    for &number in numbers {
        let Some((_, position)) = found.iter().find(|(other, _)| *other == number) else { continue };
        match position.play().turn() {
            Turn::Player(_) => {
                let moves = restrictions::moves(position, number, restrictions)?;
                turns.push(WantedTurn { number, position: position.clone(), moves });
            }
            Turn::Chance => {
                let what = format!("turn {number}: chance decides, play its outcome first");
                return defect("analyzeTurns", what);
            }
            Turn::Over => match cut_off(position) {
                Some(what) => return defect("analyzeTurns", format!("turn {number}: {what}")),
                None => ended.push(number),
            },
        }
    }
    Ok((turns, ended))
}

/// The turns to analyse: by default that after all moves.
fn wanted_turns(fields: &Map<String, Value>, moves: usize) -> Result<Vec<usize>, Defect> {
    let turns = match fields.get("analyzeTurns") {
        None | Some(Value::Null) => return Ok(vec![moves]),
        Some(Value::Array(turns)) => turns,
        Some(_) => return defect("analyzeTurns", "expected a list of numbers"),
    };
    if turns.is_empty() || turns.len() > MAX_TURNS {
        return defect("analyzeTurns", format!("{} turns, expected 1 to {MAX_TURNS}", turns.len()));
    }
    let number = |turn: &Value| turn.as_u64().filter(|&turn| turn <= moves as u64).map(|turn| turn as usize);
    let numbers: Option<Vec<usize>> = turns.iter().map(number).collect();
    numbers.map_or_else(|| defect("analyzeTurns", format!("expected numbers from 0 to {moves}")), Ok)
}

/// The numbers of the turns that an action is about; None for all.
///
/// # Errors
/// The field and its defect.
pub fn turn_numbers(fields: &Map<String, Value>) -> Result<Option<&[Value]>, Defect> {
    match fields.get("turnNumbers") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(turns)) => Ok(Some(turns.as_slice())),
        Some(_) => defect("turnNumbers", "expected a list of numbers"),
    }
}

fn report(id: &Value, fields: &Map<String, Value>, position: &Position) -> Result<ReportOptions, Defect> {
    let number = |field: &'static str| match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64().filter(|number| *number >= 0.0) {
            Some(number) => Ok(Some(number)),
            None => defect(field, format!("got {value}, expected a number, 0 or more")),
        },
    };
    let seconds = |field: &'static str| match number(field)?.map(Duration::try_from_secs_f64) {
        None => Ok(None),
        Some(Ok(time)) => Ok(Some(time)),
        Some(Err(_)) => defect(field, "more seconds than a clock can hold"),
    };
    let policy = match fields.get("includePolicy") {
        None | Some(Value::Null | Value::Bool(false)) => IncludePolicy::No,
        Some(Value::Bool(true)) => IncludePolicy::Yes,
        Some(_) => return defect("includePolicy", "expected true or false"),
    };
    let priority = match fields.get("priority") {
        None | Some(Value::Null) => 0,
        Some(value) => match value.as_i64() {
            Some(priority) => priority,
            None => return defect("priority", "expected a whole number"),
        },
    };
    let visits = number("maxVisits")?;
    if visits.is_some_and(|visits| visits < 1.0) {
        return defect("maxVisits", "expected a whole number, 1 or more");
    }
    Ok(ReportOptions {
        id: id.clone(),
        visits: visits.map(|visits| visits as u64),
        time: seconds("maxTime")?,
        interval: seconds("reportDuringSearchEvery")?.map(|time| time.max(Duration::from_millis(1))),
        policy,
        max_moves: number("maxMoves")?.map_or(usize::MAX, |moves| moves as usize),
        priority,
        viewpoint: viewpoint(fields, position)?,
    })
}

/// `overrideSettings.reportAnalysisWinratesAs`.
fn viewpoint(fields: &Map<String, Value>, position: &Position) -> Result<Viewpoint, Defect> {
    let settings =
        fields.get("overrideSettings").and_then(|settings| settings.get("reportAnalysisWinratesAs"));
    match settings {
        None => Ok(Viewpoint::ToMove),
        Some(name) => match name.as_str().map(str::to_ascii_uppercase).as_deref() {
            Some("SIDETOMOVE") => Ok(Viewpoint::ToMove),
            Some("BLACK") => Ok(Viewpoint::Player(player_of(position, "B"))),
            Some("WHITE") => Ok(Viewpoint::Player(player_of(position, "W"))),
            _ => defect("overrideSettings", "expected reportAnalysisWinratesAs SIDETOMOVE, BLACK or WHITE"),
        },
    }
}

/// A warning for each field that is not read.
fn warnings(id: &Value, fields: &Map<String, Value>) -> Vec<Value> {
    let is_known = |field: &str| KNOWN.split_whitespace().any(|known| known == field);
    let unknown = fields.keys().filter(|field| !is_known(field));
    unknown.map(|field| json!({"id": id, "field": field, "warning": "this field is not read"})).collect()
}
