//! The queries of a client, analysed one after another by their priority.

use super::field::{Defect, defect};
use super::query::{Query, ReportOptions, WantedTurn, turn_numbers};
use super::reply::{State, result};
use crate::engine::Analysis;
use crate::error::Result;
use crate::protocol::dialogue::{Dialogue, Goal, LineOutcome, Protocol, Reading};
use serde_json::{Map, Value, json};

/// Maximum number of turns that may wait.
const MAX_WAITING: usize = 100_000;

/// A turn that is to be analysed.
struct QueryTurn {
    report: ReportOptions,
    wanted: WantedTurn,
}

/// The turns that a client ends.
struct Terminated<'a> {
    /// The query; None for all.
    id: Option<&'a Value>,
    /// The numbers of moves before them; None for all.
    turns: Option<&'a [Value]>,
}

impl<'a> Terminated<'a> {
    /// Reads the fields of `terminate`, with `terminateId`, or of `terminate_all`, without it.
    fn read(action: &str, fields: &'a Map<String, Value>) -> Result<Self, Defect> {
        let id = match (action, fields.get("terminateId").filter(|id| !id.is_null())) {
            ("terminate_all", _) => None,
            (_, Some(id)) => Some(id),
            (_, None) => return defect("terminateId", "the query to terminate is missing"),
        };
        Ok(Self { id, turns: turn_numbers(fields)? })
    }

    fn has(&self, turn: &QueryTurn) -> bool {
        self.id.is_none_or(|id| turn.report.id == *id)
            && self.turns.is_none_or(|turns| turns.contains(&json!(turn.wanted.number)))
    }
}

/// The engine's side of JSON lines.
#[derive(Default)]
pub struct Json {
    /// Turns in the order in which they came.
    waiting: Vec<QueryTurn>,
    /// The turn that is analysed.
    current: Option<QueryTurn>,
}

impl Json {
    /// Analyses the turn that has waited longest of those of the highest priority.
    fn next(&mut self, dialogue: &mut Dialogue) {
        if self.current.is_some() {
            return;
        }
        let highest = self.waiting.iter().map(|turn| turn.report.priority).max();
        let Some(index) = self.waiting.iter().position(|turn| Some(turn.report.priority) == highest) else {
            return;
        };
        let turn = self.waiting.remove(index);
        let own = dialogue.own_goal();
        let report = &turn.report;
        // A limit of the query replaces those of the command line.
        let (simulations, time) = match (report.visits, report.time) {
            (None, None) => (own.simulations, own.time),
            limits => limits,
        };
        let goal = Goal { simulations, time, interval: report.interval, clock: None };
        let WantedTurn { position, moves, .. } = turn.wanted.clone();
        dialogue.search_from_now(position, goal, moves);
        self.current = Some(turn);
    }

    fn query(&mut self, dialogue: &mut Dialogue, id: &Value, fields: &Map<String, Value>) -> Result<()> {
        let query = match Query::read(dialogue, id, fields) {
            Ok(query) => query,
            Err((field, what)) => {
                return say(dialogue, &json!({"id": id, "field": field, "error": what}));
            }
        };
        if self.waiting.len() + query.turns.len() > MAX_WAITING {
            let what = format!("more than {MAX_WAITING} turns wait");
            return say(dialogue, &json!({"id": id, "error": what}));
        }
        query.warnings.iter().try_for_each(|warning| say(dialogue, warning))?;
        let Query { report, turns, ended, .. } = query;
        ended.into_iter().try_for_each(|number| say(dialogue, &no_results(&report, number)))?;
        self.waiting.extend(turns.into_iter().map(|wanted| QueryTurn { report: report.clone(), wanted }));
        self.next(dialogue);
        Ok(())
    }

    fn action(&mut self, dialogue: &mut Dialogue, id: &Value, fields: &Map<String, Value>) -> Result<()> {
        let mut reply = Value::Object(fields.clone());
        match fields["action"].as_str() {
            Some("query_version") => {
                reply["version"] = json!(env!("CARGO_PKG_VERSION"));
                reply["git_hash"] = json!(env!("VECAZ_COMMIT"));
                reply["game"] = json!(dialogue.position.game().name());
                reply["options"] = json!(dialogue.position.game().options());
            }
            Some(action @ ("terminate" | "terminate_all")) => match Terminated::read(action, fields) {
                Ok(meant) => self.terminate(dialogue, &meant)?,
                Err((field, what)) => {
                    return say(dialogue, &json!({"id": id, "field": field, "error": what}));
                }
            },
            Some("clear_cache") => dialogue.configure(),
            _ => {
                let what = "expected query_version, terminate, terminate_all or clear_cache";
                return say(dialogue, &json!({"id": id, "field": "action", "error": what}));
            }
        }
        say(dialogue, &reply)
    }

    /// Ends turns. One that waits has no results, and the one that is analysed those so far.
    fn terminate(&mut self, dialogue: &mut Dialogue, meant: &Terminated<'_>) -> Result<()> {
        if self.current.as_ref().is_some_and(|turn| meant.has(turn)) {
            dialogue.stop();
        }
        for turn in self.waiting.extract_if(.., |turn| meant.has(turn)) {
            say(dialogue, &no_results(&turn.report, turn.wanted.number))?;
        }
        Ok(())
    }
}

/// The reply for a turn that was not analysed: the query was ended before it, or the game.
fn no_results(report: &ReportOptions, number: usize) -> Value {
    json!({"id": report.id, "turnNumber": number, "isDuringSearch": false, "noResults": true})
}

fn say(dialogue: &mut Dialogue, value: &Value) -> Result<()> {
    dialogue.say(&value.to_string())
}

impl Protocol for Json {
    fn line(&mut self, dialogue: &mut Dialogue, line: &str) -> Result<LineOutcome> {
        if line.trim().is_empty() {
            return Ok(LineOutcome::Continue);
        }
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(fields)) => match fields.get("id") {
                Some(id @ Value::String(_)) if fields.contains_key("action") => {
                    self.action(dialogue, id, &fields)?;
                }
                Some(id @ Value::String(_)) => self.query(dialogue, id, &fields)?,
                _ => say(dialogue, &json!({"field": "id", "error": "expected a text that names the query"}))?,
            },
            Ok(_) => say(dialogue, &json!({"error": "expected a JSON object"}))?,
            Err(error) => say(dialogue, &json!({"error": format!("not JSON: {error}")}))?,
        }
        Ok(LineOutcome::Continue)
    }

    fn reading(&self, _line: &str) -> Reading {
        Reading::Now
    }

    fn progress(&mut self, dialogue: &mut Dialogue, found: &Analysis) -> Result<()> {
        match &self.current {
            Some(turn) => say(
                dialogue,
                &result(&turn.report, turn.wanted.number, &turn.wanted.position, found, State::During),
            ),
            None => Ok(()),
        }
    }

    fn found(&mut self, dialogue: &mut Dialogue, found: Result<Box<Analysis>>) -> Result<()> {
        if let Some(turn) = self.current.take() {
            let reply = match found {
                Ok(found) => {
                    result(&turn.report, turn.wanted.number, &turn.wanted.position, &found, State::Final)
                }
                Err(error) => {
                    let (id, number) = (&turn.report.id, turn.wanted.number);
                    json!({"id": id, "turnNumber": number, "error": error.to_string()})
                }
            };
            say(dialogue, &reply)?;
        }
        self.next(dialogue);
        Ok(())
    }
}
