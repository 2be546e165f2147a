//! Another program as a player: `exec:COMMAND` of `vecaz eval --against`.
//!
//! The program is started once for each thread and asked over its stdin, one JSON object a line; it answers each with
//! one line on stdout. Questions about different games come mixed, so each tells its whole game:
//!
//! ```json
//! {"game":"backgammon","options":{"short_game":false,"simple_doubles":false,"ply_limit":20000},
//!  "player":0,"actions":[0,13,39],"names":["player 0","6-4","24/20"],
//!  "legal":[33,39],"legal_names":["off/24","24/18"]}
//! ```
//!
//! (on one line) `options` are the game's settings, all of them; `actions` everything played and dealt so far, `names` the
//! same in words; `player` is to move, and may play one of `legal`, in words `legal_names`. The answer is
//! `{"action": 39}` or `{"action": "24/18"}`; other fields are not read. stdin is closed when no more is asked. What the
//! program writes to stderr is shown only where it fails.

use super::rollouts::Player;
use crate::batch::Playthrough;
use crate::error::{Error, Result};
use crate::game::Turn;
use crate::rng::Key;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The longest answer that is read, in bytes.
const LONGEST_ANSWER: u64 = 1 << 16;
/// How long a program that has closed its stdout, or whose stdin was closed, may take to end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Bytes of an answer that an error shows.
const SHOWN: usize = 80;

/// A program that plays.
pub struct ExternalPlayer {
    command: String,
    patience: Duration,
    child: Child,
    /// Questions on their way; None once the program has failed.
    questions: Option<Sender<String>>,
    answers: Receiver<String>,
    /// The last line of stderr.
    complaint: Arc<Mutex<String>>,
    /// Disconnected when stderr has ended.
    silence: Receiver<()>,
}

impl ExternalPlayer {
    /// Starts `command`: the program and its arguments, parted by blanks, with quotes around what has blanks inside. No
    /// shell reads it. `patience` is how long one answer may take.
    ///
    /// # Errors
    /// [`Error::Opponent`] where it cannot be started.
    pub fn start(command: &str, patience: Duration) -> Result<Self> {
        let fail = |what: String| Error::Opponent { command: command.to_string(), what };
        let words = words(command).ok_or_else(|| fail("a quote is not closed".into()))?;
        let (program, arguments) = words.split_first().ok_or_else(|| fail("no program is named".into()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| fail(format!("{program} cannot be started: {e}")))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(fail("has no pipes".into()));
        };
        // Threads, since a program may stop reading as well as writing; each ends with its pipe.
        let (questions, due) = channel();
        let (told, answers) = channel();
        let complaint = Arc::new(Mutex::new(String::new()));
        let (heard, (loud, silence)) = (complaint.clone(), channel());
        thread::spawn(move || ask_all(stdin, &due));
        thread::spawn(move || read_answers(stdout, &told));
        thread::spawn(move || {
            keep_last_line(stderr, &heard);
            drop(loud);
        });
        let command = command.to_string();
        Ok(Self { command, patience, child, questions: Some(questions), answers, complaint, silence })
    }

    fn ask(&mut self, position: &Playthrough) -> Result<u16> {
        if let Ok(line) = self.answers.try_recv() {
            return Err(self.error(format!("said {:?} without being asked", shown(&line))));
        }
        // A program that has ended reads no question, and the missing answer tells so.
        let sent = self.questions.as_ref().map(|questions| questions.send(question(position)));
        match self.answers.recv_timeout(if sent.is_some() { self.patience } else { Duration::ZERO }) {
            Ok(line) => answered(position, &line)
                .ok_or_else(|| self.error(format!("answered {:?}, {}", shown(&line), expected(position)))),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.error(format!("gave no answer within {} s", self.patience.as_secs_f64())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// Why a program gives no answers any more.
    fn ended(&mut self) -> Error {
        let status = wait(&mut self.child, LAST_WORDS);
        let _ = self.silence.recv_timeout(LAST_WORDS); // a child of the program may keep stderr open for longer
        let complaint = self.complaint.lock().map(|line| line.clone()).unwrap_or_default();
        let what = match status {
            Some(status) => format!("ended ({status}) before it answered"),
            None => "closed its output before it answered".into(),
        };
        self.error(if complaint.is_empty() { what } else { format!("{what}; its last words: {complaint}") })
    }

    fn error(&self, what: String) -> Error {
        Error::Opponent { command: self.command.clone(), what }
    }
}

impl Player for ExternalPlayer {
    /// # Errors
    /// [`Error::Opponent`] where the program ends, answers nonsense or takes too long; it is not asked again then.
    fn choose(&mut self, position: &Playthrough, _key: Key) -> Result<u16> {
        let chosen = self.ask(position);
        if chosen.is_err() {
            self.questions = None;
            let _ = self.child.kill(); // it may have ended by itself
        }
        chosen
    }
}

impl Drop for ExternalPlayer {
    fn drop(&mut self) {
        self.questions = None;
        if wait(&mut self.child, LAST_WORDS).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The line that asks about a position.
fn question(position: &Playthrough) -> String {
    let game = position.game();
    let player = match position.turn() {
        Turn::Player(p) => Some(p),
        Turn::Chance | Turn::Over => None,
    };
    let legal = position.legal();
    let legal_names: Vec<String> = legal.iter().map(|&a| game.action_name(position.state(), a)).collect();
    let line = json!({
        "game": game.name(), "options": game.options(), "player": player,
        "actions": position.actions(), "names": position.names(),
        "legal": legal, "legal_names": legal_names,
    });
    format!("{line}\n")
}

/// The legal action that an answer names.
fn answered(position: &Playthrough, line: &str) -> Option<u16> {
    let answer: Value = serde_json::from_str(line).ok()?;
    match &answer["action"] {
        Value::Number(number) => {
            let action = u16::try_from(number.as_u64()?).ok()?;
            position.legal().contains(&action).then_some(action)
        }
        Value::String(name) => position.find(name),
        _ => None,
    }
}

fn expected(position: &Playthrough) -> String {
    let legal: Vec<String> = position.legal().iter().map(u16::to_string).collect();
    format!(
        "expected {{\"action\": A}} with A one of {} at ply {} of {}",
        shown(&legal.join(", ")),
        position.actions().len(),
        position.game().name()
    )
}

/// The beginning of a text.
fn shown(text: &str) -> String {
    let mut beginning: String = text.chars().take(SHOWN).collect();
    if beginning.len() < text.len() {
        beginning += "...";
    }
    beginning
}

/// The words of a command line; None where a quote is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None, None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_with(String::new).push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_with(String::new);
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_with(String::new).push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Writes questions until there are no more, or nobody reads.
fn ask_all(mut stdin: ChildStdin, due: &Receiver<String>) {
    for line in due {
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Passes lines on until stdout ends or nobody listens.
fn read_answers(stdout: ChildStdout, told: &Sender<String>) {
    let mut reader = BufReader::new(stdout);
    while let Some(line) = next_line(&mut reader) {
        if told.send(line.trim_end().to_string()).is_err() {
            return;
        }
    }
}

fn keep_last_line(stderr: ChildStderr, kept: &Mutex<String>) {
    let mut reader = BufReader::new(stderr);
    while let Some(line) = next_line(&mut reader) {
        let text = line.trim();
        if let (false, Ok(mut kept)) = (text.is_empty(), kept.lock()) {
            *kept = text.to_string();
        }
    }
}

/// The next line, in pieces where it is too long; none at the end.
fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let read = reader.take(LONGEST_ANSWER).read_until(b'\n', &mut line).ok()?;
    (read > 0).then(|| String::from_utf8_lossy(&line).into_owned())
}

/// Waits for a process to end, at most for `time`.
fn wait(child: &mut Child, time: Duration) -> Option<std::process::ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < time => thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_parted_at_blanks_outside_quotes() {
        let parted = |line: &str| words(line).expect("quotes are closed");
        assert_eq!(parted("  gnugo  --mode gtp "), ["gnugo", "--mode", "gtp"]);
        assert_eq!(parted("a 'b c' \"d 'e'\" f\"g h\"i \"\""), ["a", "b c", "d 'e'", "fg hi", ""]);
        assert_eq!(parted(" \t"), Vec::<String>::new());
        assert_eq!(words("a 'b"), None);
    }

    #[test]
    fn numbers_and_names_of_legal_actions_are_answers_and_nothing_else_is() {
        let game = crate::batch::any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let mut position = Playthrough::new(game);
        position.step(4).expect("legal");
        for (line, action) in [
            ("{\"action\":3}", Some(3)),
            ("{\"action\": \"a1\", \"value\": 0.5}", Some(0)),
            ("{\"action\":\"8\"}", Some(8)),
            ("{\"action\":4}", None),
            ("{\"action\":\"b2\"}", None),
            ("{\"action\":-1}", None),
            ("{\"action\":3.5}", None),
            ("{\"action\":70000}", None),
            ("{\"action\":null}", None),
            ("{\"move\":3}", None),
            ("3", None),
            ("", None),
            ("{\"action\":3", None),
        ] {
            assert_eq!(answered(&position, line), action, "{line}");
        }
    }
}
