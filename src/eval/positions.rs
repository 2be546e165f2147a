//! Positions with exact scores: the file format, and error rates of choices on them.
//!
//! A file is JSON lines, one position per line: `{"actions":[3,2,...],"scores":[-2,null,4,...]}`. `actions` lead from the
//! start to the position. `scores` has one entry per action of the game: the exact score for the player to move (positive
//! wins, 0 draws, negative loses, larger is better), `null` if the action is not legal.

use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::error::{Error, Result};
use crate::files::read_text;
use crate::game::Turn;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// One position and the exact score of each action there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SolvedPosition {
    /// Actions from the start of the game, chance outcomes included.
    pub actions: Vec<u16>,
    /// Scores for the player to move; `None` for illegal actions. `[A]`
    pub scores: Vec<Option<i32>>,
}

impl SolvedPosition {
    /// The best score, or `None` for a position without actions, which checked files do not contain.
    pub fn best(&self) -> Option<i32> {
        self.scores.iter().flatten().copied().max()
    }

    /// True if `action` has the result (win, draw, loss) of best play. False for an illegal action.
    pub fn keeps_outcome(&self, action: u16) -> bool {
        self.score(action).is_some_and(|score| Some(score.signum()) == self.best().map(i32::signum))
    }

    /// True if `action` has the best score. False for an illegal action.
    pub fn is_best(&self, action: u16) -> bool {
        self.score(action).is_some_and(|score| Some(score) == self.best())
    }

    /// True if some actions keep the result of best play and others change it.
    pub fn has_right_and_wrong(&self) -> bool {
        self.random_outcome_error() > 0.0
    }

    /// The probability that a uniformly random legal action changes the result.
    pub fn random_outcome_error(&self) -> f64 {
        self.fraction_of_legal(|action| !self.keeps_outcome(action))
    }

    /// The probability that a uniformly random legal action is not among the best.
    pub fn random_exact_error(&self) -> f64 {
        self.fraction_of_legal(|action| !self.is_best(action))
    }

    fn score(&self, action: u16) -> Option<i32> {
        self.scores.get(usize::from(action)).copied().flatten()
    }

    fn fraction_of_legal(&self, counts: impl Fn(u16) -> bool) -> f64 {
        let legal = (0..self.scores.len() as u16).filter(|&action| self.score(action).is_some());
        let (all, counted) =
            legal.fold((0, 0), |(all, n), action| (all + 1, n + usize::from(counts(action))));
        counted as f64 / f64::from(all.max(1))
    }
}

/// Maximum size of a file of positions, in bytes.
const MAX_BYTES: u64 = 1 << 28;

/// Reads solved positions of `game`, one per line, and checks each against the rules. Empty lines are skipped.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Format`] with the line's number for invalid text, illegal actions, a
/// finished game, or scores that do not match the legal actions; [`Error::Format`] for a file without positions.
pub fn read(path: &Path, game: &Arc<dyn AnyGame>) -> Result<Vec<SolvedPosition>> {
    let text = read_text(path, MAX_BYTES).map_err(|e| Error::io("reading", path, e))?;
    parse_lines(&text, path, game)
}

/// [`read`] for text whose origin is `path`.
///
/// # Errors
/// [`Error::Format`] as for [`read`].
pub fn parse_lines(text: &str, path: &Path, game: &Arc<dyn AnyGame>) -> Result<Vec<SolvedPosition>> {
    let mut positions = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let parsed = parse(line, game);
        positions.push(parsed.map_err(|what| Error::format(path, format!("line {}: {what}", index + 1)))?);
    }
    if positions.is_empty() {
        return Err(Error::format(path, "has no positions, expected at least one line"));
    }
    Ok(positions)
}

fn parse(line: &str, game: &Arc<dyn AnyGame>) -> Result<SolvedPosition, String> {
    let position: SolvedPosition = serde_json::from_str(line)
        .map_err(|e| format!("expected {{\"actions\":[...],\"scores\":[number or null per action]}}: {e}"))?;
    check(&position, game)?;
    Ok(position)
}

/// The position reached by `position.actions`.
///
/// # Errors
/// [`Error::IllegalAction`] with the ply and the legal list.
pub fn replay(position: &SolvedPosition, game: &Arc<dyn AnyGame>) -> Result<Playthrough> {
    let mut playthrough = Playthrough::new(game.clone());
    position.actions.iter().try_for_each(|&action| playthrough.step(action))?;
    Ok(playthrough)
}

fn check(position: &SolvedPosition, game: &Arc<dyn AnyGame>) -> Result<(), String> {
    let reached = replay(position, game).map_err(|e| e.to_string())?;
    match reached.turn() {
        Turn::Player(_) => {}
        Turn::Over => return Err("the game is over after these actions".into()),
        Turn::Chance => return Err("no player is to move after these actions".into()),
    }
    let num_actions = game.sizes().num_actions;
    if position.scores.len() != num_actions {
        let found = position.scores.len();
        return Err(format!("{found} scores, expected {num_actions}, one per action of {}", game.name()));
    }
    let legal = reached.legal();
    for (action, score) in position.scores.iter().enumerate() {
        match (score, legal.contains(&(action as u16))) {
            (Some(score), false) => {
                return Err(format!("score {score} for action {action}, which is not legal"));
            }
            (None, true) => return Err(format!("no score for action {action}, which is legal")),
            (Some(_), true) | (None, false) => {}
        }
    }
    Ok(())
}

/// Writes one position as a line.
///
/// # Errors
/// Those of the writer.
pub fn write_line(position: &SolvedPosition, out: &mut impl Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, position)?;
    out.write_all(b"\n")
}

/// Error rates of choices over a set of positions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorRates {
    /// Number of positions.
    pub positions: usize,
    /// Fraction of choices that changed the result (win, draw, loss).
    pub outcome_error: f64,
    /// Fraction of choices whose score was not the best.
    pub exact_error: f64,
}

/// The error rates of `chosen`, one action per position.
///
/// # Errors
/// [`Error::Mismatch`] if the numbers of choices and positions differ.
pub fn error_rates(positions: &[SolvedPosition], chosen: &[u16]) -> Result<ErrorRates> {
    if positions.len() != chosen.len() {
        return Err(Error::mismatch("choices on solved positions", chosen.len(), positions.len()));
    }
    let rate = |errs: fn(&SolvedPosition, u16) -> bool| {
        let errors =
            positions.iter().zip(chosen).filter(|&(position, &action)| errs(position, action)).count();
        errors as f64 / positions.len().max(1) as f64
    };
    Ok(ErrorRates {
        positions: positions.len(),
        outcome_error: rate(|position, action| !position.keeps_outcome(action)),
        exact_error: rate(|position, action| !position.is_best(action)),
    })
}

/// The expected error rates of uniformly random play.
pub fn random_error_rates(positions: &[SolvedPosition]) -> ErrorRates {
    let mean =
        |f: fn(&SolvedPosition) -> f64| positions.iter().map(f).sum::<f64>() / positions.len().max(1) as f64;
    ErrorRates {
        positions: positions.len(),
        outcome_error: mean(SolvedPosition::random_outcome_error),
        exact_error: mean(SolvedPosition::random_exact_error),
    }
}

/// The error rates of the raw policy and the search on the same positions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionSummary {
    /// Number of positions.
    pub positions: usize,
    /// [`ErrorRates::outcome_error`] of the network's policy.
    pub policy_outcome_error: f64,
    /// [`ErrorRates::exact_error`] of the network's policy.
    pub policy_exact_error: f64,
    /// [`ErrorRates::outcome_error`] of the search.
    pub search_outcome_error: f64,
    /// [`ErrorRates::exact_error`] of the search.
    pub search_exact_error: f64,
}

impl PositionSummary {
    /// The rates of the policy and of the search on the same positions.
    pub fn new(policy: ErrorRates, search: ErrorRates) -> Self {
        Self {
            positions: policy.positions,
            policy_outcome_error: policy.outcome_error,
            policy_exact_error: policy.exact_error,
            search_outcome_error: search.outcome_error,
            search_exact_error: search.exact_error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    fn tic_tac_toe() -> Arc<dyn AnyGame> {
        any_game("tic_tac_toe", &toml::Table::new()).unwrap()
    }

    /// The error of reading a file with this text.
    fn refusal(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.jsonl");
        std::fs::write(&path, text).unwrap();
        let error = read(&path, &tic_tac_toe()).unwrap_err().to_string();
        error.rsplit_once("set.jsonl: ").unwrap().1.to_string()
    }

    const GOOD: &str = "{\"actions\":[0,1],\"scores\":[null,null,0,2,2,0,2,2,0]}\n";

    #[test]
    fn wrong_lines_are_refused_with_their_number() {
        let cases = [
            ("", "has no positions"),
            ("\n\n", "has no positions"),
            ("[1,2]\n", "line 1: expected {\"actions\""),
            ("{\"actions\":[0]}\n", "line 1: expected {\"actions\""),
            ("{\"actions\":[0],\"scores\":[1.5]}\n", "line 1: expected {\"actions\""),
            ("{\"actions\":[],\"scores\":[],\"weight\":1}\n", "line 1: expected {\"actions\""),
            ("{\"actions\":[0,0],\"scores\":[]}\n", "line 1: ply 1: action 0 is not legal here"),
            ("{\"actions\":[0,99],\"scores\":[]}\n", "line 1: ply 1: action 99 is not legal here"),
            ("{\"actions\":[0,3,1,4,2],\"scores\":[]}\n", "line 1: the game is over after these actions"),
            (
                "{\"actions\":[],\"scores\":[1,2]}\n",
                "line 1: 2 scores, expected 9, one per action of tic_tac_toe",
            ),
            (
                "{\"actions\":[4],\"scores\":[0,0,0,0,0,0,0,0,0]}\n",
                "line 1: score 0 for action 4, which is not legal",
            ),
            (
                "{\"actions\":[4],\"scores\":[null,0,0,0,null,0,0,0,0]}\n",
                "line 1: no score for action 0, which is legal",
            ),
        ];
        for (text, expected) in cases {
            assert!(refusal(text).starts_with(expected), "{text:?}: {}", refusal(text));
            if text.contains('{') {
                let second = refusal(&format!("{GOOD}\n{text}"));
                assert!(second.starts_with(&expected.replace("line 1", "line 3")), "{second}");
            }
        }
        let missing = read(Path::new("no/such/file.jsonl"), &tic_tac_toe()).unwrap_err().to_string();
        assert!(missing.starts_with("reading no/such/file.jsonl: "), "{missing}");
    }

    #[test]
    fn lines_are_written_as_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.jsonl");
        std::fs::write(&path, GOOD).unwrap();
        let set = read(&path, &tic_tac_toe()).unwrap();
        let mut out = Vec::new();
        write_line(&set[0], &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), GOOD);
    }

    #[test]
    fn outcome_errors_change_the_result_and_exact_errors_the_score() {
        let position =
            |scores: &[Option<i32>]| SolvedPosition { actions: Vec::new(), scores: scores.to_vec() };
        let won = position(&[Some(3), None, Some(1), Some(0), Some(-2)]);
        assert_eq!((won.keeps_outcome(0), won.is_best(0)), (true, true));
        assert_eq!((won.keeps_outcome(2), won.is_best(2)), (true, false));
        assert_eq!((won.keeps_outcome(3), won.is_best(3)), (false, false));
        assert_eq!((won.keeps_outcome(1), won.is_best(9)), (false, false), "illegal actions are errors");
        assert_eq!((won.random_outcome_error(), won.random_exact_error()), (0.5, 0.75));
        let lost = position(&[None, Some(-1), Some(-5)]);
        assert_eq!((lost.random_outcome_error(), lost.random_exact_error()), (0.0, 0.5));

        let set = [won, lost];
        let rates = error_rates(&set, &[2, 2]).unwrap();
        assert_eq!(rates, ErrorRates { positions: 2, outcome_error: 0.0, exact_error: 1.0 });
        let rates = error_rates(&set, &[4, 1]).unwrap();
        assert_eq!(rates, ErrorRates { positions: 2, outcome_error: 0.5, exact_error: 0.5 });
        let expected = random_error_rates(&set);
        assert_eq!(expected, ErrorRates { positions: 2, outcome_error: 0.25, exact_error: 0.625 });
        let refused = error_rates(&set, &[0]).unwrap_err().to_string();
        assert_eq!(refused, "choices on solved positions: found 1, expected 2");
    }
}
