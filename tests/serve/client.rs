//! The program on a free port, and a client.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server of its own for a test.
pub struct Server {
    pub child: Child,
    pub address: String,
    pub line: String,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts the program in an empty folder.
    pub fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::start_in(folder.path(), arguments)
    }

    /// Starts the program in `folder`.
    pub fn start_in(folder: &std::path::Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
        Self::start_by(command.arg("serve").args(arguments).current_dir(folder))
    }

    /// Starts the program by `command`.
    pub fn start_by(command: &mut Command) -> Self {
        #[cfg(unix)]
        super::signals::start_children_with_default_signals();
        let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address: {line:?}")).to_string();
        Self { child, address, line, _stdout: stdout }
    }

    /// The status and the whole reply to `text`, sent as it is; None if the server closes without one.
    pub fn raw(&self, text: &[u8]) -> Option<(u16, String)> {
        self.raw_within(text, PATIENCE)
    }

    /// The same, but a server that waits for more of the request is left after `patience`.
    pub fn raw_within(&self, text: &[u8], patience: Duration) -> Option<(u16, String)> {
        let mut stream = self.connect();
        stream.set_read_timeout(Some(patience)).expect("a timeout");
        // The server may close before it has read all.
        let _ = stream.write_all(text);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let status = reply.split(' ').nth(1)?.parse().ok()?;
        Some((status, reply))
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends a request with further header lines.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            self.address,
            body.len()
        );
        let (status, reply) = self.raw(request.as_bytes()).unwrap_or_else(|| panic!("no reply to {request}"));
        let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, body.to_string())
    }

    /// The status and the JSON of a reply; null for an empty one.
    pub fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, text) = self.send(method, path, "", body);
        let value = match text.as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|e| panic!("{method} {path}: {e}: {text}")),
        };
        (status, value)
    }

    /// The JSON of a request that succeeds.
    pub fn get(&self, path: &str) -> Value {
        let (status, value) = self.call("GET", path, "");
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// The JSON of a request that succeeds.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let (status, value) = self.call("POST", path, &body.to_string());
        assert!(status == 200 || status == 201, "{path} {body}: {status} {value}");
        value
    }

    /// The status and the sentence of a request that is refused.
    pub fn refused(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, value) = self.call(method, path, &body);
        assert!((400..600).contains(&status), "{method} {path} {body} was accepted: {value}");
        let sentence = value["error"].as_str().unwrap_or_else(|| panic!("no error: {value}")).to_string();
        assert!(!sentence.contains('\n') && sentence.len() > 5, "{sentence:?}");
        (status, sentence)
    }

    /// A stream of events.
    pub fn events(&self, path: &str) -> Events {
        let mut stream = self.connect();
        // Without chunks, as HTTP 1.0 has none.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("sent");
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while lines.read_line(&mut head).expect("a head") > 2 {}
        assert!(head.contains("text/event-stream"), "{path}: {head}");
        Events { lines }
    }

    /// The state of a table once `is_met` holds.
    pub fn wait(&self, path: &str, is_met: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let state = self.get(path);
            if is_met(&state) {
                return state;
            }
            assert!(start.elapsed() < PATIENCE, "{state}");
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// True if the server still answers.
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().expect("its status").is_none() && self.get("/api/info")["games"].is_array()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream of events.
pub struct Events {
    lines: BufReader<TcpStream>,
}

impl Iterator for Events {
    /// The name and the data of an event.
    type Item = (String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("event", text)) => name = text.to_string(),
                Some(("data", text)) => data += text,
                _ if line.trim_end().is_empty() && !name.is_empty() => {
                    return Some((name, serde_json::from_str(&data).expect("JSON")));
                }
                _ => {}
            }
        }
    }
}
