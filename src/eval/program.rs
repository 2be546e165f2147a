//! Another program as a process: lines to it, lines from it, and what it said when it failed.
//!
//! One thread per pipe writes, reads, and keeps the last line of stderr, since a program may stop reading or writing at any time. The
//! program is killed with all processes that it has started when it is not needed any more.

use super::process_tree::ProcessTree;
use crate::error::{Error, Result};
use crate::stop::Stop;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of a line, in bytes.
const MAX_LINE: u64 = 1 << 16;
/// Maximum number of queued lines of stdout; a program that writes more blocks on its full pipe.
const MAX_LINES: usize = 2;
/// Time limit for a program to exit after it has closed its stdout, or after its stdin was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Polling interval for requests to stop while waiting for a reply.
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of characters of a line in an error.
pub const SHOWN: usize = 80;

/// A program that was started.
pub struct Program {
    command: String,
    timeout: Duration,
    /// The process with those that it has started; None after its end.
    processes: Option<ProcessTree>,
    /// Texts for the writer thread; None after a failure.
    requests: Option<Sender<String>>,
    replies: Receiver<String>,
    /// The last line of stderr.
    last_stderr_line: Arc<Mutex<String>>,
    /// Disconnected at the end of stderr.
    stderr_closed: Receiver<()>,
    stop: Stop,
}

impl Program {
    /// Starts `command`: the program and its arguments, separated by blanks; an argument with blanks is quoted. No shell is
    /// used. `timeout` is the time limit of one reply, `withheld` are environment variables that it does not inherit.
    ///
    /// # Errors
    /// [`Error::Opponent`] if it cannot be started.
    pub fn start(command: &str, timeout: Duration, withheld: &[String]) -> Result<Self> {
        let fail = |what: String| Error::Opponent { command: command.to_string(), what };
        let words =
            words(command).ok_or_else(|| fail("a quote without an end, expected a pair of quotes".into()))?;
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| fail("an empty command, expected a program and its arguments".into()))?;
        let mut process = Command::new(program);
        process.args(arguments);
        for name in withheld {
            process.env_remove(name);
        }
        let started = ProcessTree::start(process);
        let (processes, pipes) = started.map_err(|e| fail(format!("{program} cannot be started: {e}")))?;
        let Some((stdin, stdout, stderr)) = pipes else {
            processes.kill();
            return Err(fail("started without pipes for stdin, stdout and stderr".into()));
        };
        // One thread per pipe, since the program may stop reading or writing at any time. Each thread ends with its pipe.
        let (requests, to_write) = channel();
        let (read, replies) = sync_channel(MAX_LINES);
        let last_stderr_line = Arc::new(Mutex::new(String::new()));
        let (kept, (open, stderr_closed)) = (last_stderr_line.clone(), channel());
        let threads: [Box<dyn FnOnce() + Send>; 3] = [
            Box::new(move || write_requests(stdin, &to_write)),
            Box::new(move || read_replies(stdout, &read)),
            Box::new(move || {
                keep_last_line(stderr, &kept);
                drop(open);
            }),
        ];
        for work in threads {
            if let Err(e) = thread::Builder::new().spawn(work) {
                processes.kill();
                return Err(fail(format!("threads for its pipes cannot be started: {e}")));
            }
        }
        let (command, requests) = (command.to_string(), Some(requests));
        let stop = Stop::default();
        Ok(Self {
            command,
            timeout,
            processes: Some(processes),
            requests,
            replies,
            last_stderr_line,
            stderr_closed,
            stop,
        })
    }

    /// Sends `text`, whole lines, without waiting for the program to read them. If the program has exited, the missing reply shows it.
    pub fn send(&self, text: String) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(text);
        }
    }

    /// A line that has come without having been waited for.
    pub fn early_line(&self) -> Option<String> {
        self.replies.try_recv().ok()
    }

    /// The next line of stdout of a reply that is due within the timeout after `sent`.
    ///
    /// # Errors
    /// [`Error::Opponent`] if there is none, with the exit status and the last line of stderr if the program has exited;
    /// [`Error::Stopped`] once a stop is requested.
    pub fn line(&mut self, sent: Instant) -> Result<String> {
        let time = if self.requests.is_some() { self.timeout } else { Duration::ZERO };
        match self.next_reply(time.saturating_sub(sent.elapsed()))? {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.error(format!("did not reply within {} s", self.timeout.as_secs_f64())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.exit_error()),
        }
    }

    /// From now on waiting fails with [`Error::Stopped`] once `stop` is requested.
    pub fn stop_by(&mut self, stop: &Stop) {
        self.stop = stop.clone();
    }

    /// Kills the program at once.
    pub fn kill(&mut self) {
        self.end(Duration::ZERO);
    }

    /// The next line of stdout, or why there is none within `time`. Fails once a stop is requested.
    fn next_reply(&self, time: Duration) -> Result<Result<String, RecvTimeoutError>> {
        let start = Instant::now();
        loop {
            self.stop.check()?;
            let left = time.saturating_sub(start.elapsed());
            match self.replies.recv_timeout(left.min(STOP_INTERVAL)) {
                Err(RecvTimeoutError::Timeout) if left > STOP_INTERVAL => {}
                reply => return Ok(reply),
            }
        }
    }

    /// The error of a program that closed its stdout, with exit status and last line of stderr.
    fn exit_error(&mut self) -> Error {
        let status = self.processes.as_mut().and_then(|processes| processes.wait(EXIT_TIMEOUT));
        let _ = self.stderr_closed.recv_timeout(EXIT_TIMEOUT); // a child of the program may keep stderr open
        let last_line = self.last_stderr_line.lock().map(|line| line.clone()).unwrap_or_default();
        let what = match status {
            Some(status) => format!("exited ({status}) before it replied"),
            None => "closed its stdout before it replied".into(),
        };
        self.error(if last_line.is_empty() {
            what
        } else {
            format!("{what}; last line of stderr: {}", shown(&last_line))
        })
    }

    /// Closes stdin, waits at most `time` for the program to exit, and kills what is left of it and of the processes that it has started.
    fn end(&mut self, time: Duration) {
        self.requests = None;
        let Some(mut processes) = self.processes.take() else { return };
        processes.wait(time);
        processes.kill();
    }

    /// An error about the program.
    pub fn error(&self, what: String) -> Error {
        Error::Opponent { command: self.command.clone(), what }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end(if self.stop.cause().is_some() { Duration::ZERO } else { EXIT_TIMEOUT });
    }
}

/// The first [`SHOWN`] characters of a text, control characters escaped.
pub fn shown(text: &str) -> String {
    let mut beginning: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        beginning += "...";
    }
    beginning
}

/// The words of a command line; None if a quote is not closed.
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

/// Writes requests to stdin until the channel or the pipe is closed.
fn write_requests(mut stdin: ChildStdin, requests: &Receiver<String>) {
    for line in requests {
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Sends the lines of stdout until the pipe or the channel is closed.
fn read_replies(stdout: impl Read, replies: &SyncSender<String>) {
    let mut reader = BufReader::new(stdout);
    while let Some(line) = next_line(&mut reader) {
        if replies.send(line.trim_end().to_string()).is_err() {
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

/// The next line; a line longer than [`MAX_LINE`] comes in parts. None at the end.
fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let read = reader.take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
    (read > 0).then(|| String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_command_is_split_at_blanks_outside_quotes() {
        let split = |line: &str| words(line).expect("quotes are closed");
        assert_eq!(split("  gnugo  --mode gtp "), ["gnugo", "--mode", "gtp"]);
        assert_eq!(split("a 'b c' \"d 'e'\" f\"g h\"i \"\""), ["a", "b c", "d 'e'", "fg hi", ""]);
        assert_eq!(split(" \t"), Vec::<String>::new());
        assert_eq!(words("a 'b"), None);
    }

    /// Lines without end, counted.
    struct Lines(Arc<AtomicUsize>);

    impl Read for Lines {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.0.fetch_add(1, Ordering::Relaxed);
            out[..2].copy_from_slice(b"9\n");
            Ok(2)
        }
    }

    #[test]
    fn lines_are_read_only_on_demand() {
        let made = Arc::new(AtomicUsize::new(0));
        let (lines, (send, replies)) = (Lines(made.clone()), sync_channel(MAX_LINES));
        let reader = thread::spawn(move || read_replies(lines, &send));
        assert_eq!(replies.iter().take(1000).count(), 1000);
        drop(replies);
        reader.join().expect("no panic");
        let made = made.load(Ordering::Relaxed);
        assert!(made <= 1000 + MAX_LINES + 1, "{made} lines for 1000");
    }
}
