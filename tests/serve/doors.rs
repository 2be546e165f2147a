//! Who is answered, where the server listens, and how it ends.

use super::client::Server;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// More than the time that the server gives the headers of a request.
const HEADER_PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn requests_of_other_sites_are_not_obeyed() {
    let server = Server::start(&["--threads", "1"]);
    let port = server.address.rsplit(':').next().expect("a port");
    let send = |host: &str, headers: &str, method: &str, path: &str| {
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        server.raw(request.as_bytes()).expect("a reply").0
    };
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("LocalHost:{port}")] {
        assert_eq!(send(&host, "", "GET", "/api/info"), 200, "{host}");
        for scheme in ["http", "https"] {
            let origin = format!("Origin: {scheme}://{host}\r\n");
            assert_eq!(send(&host, &origin, "GET", "/api/info"), 200, "{scheme} {host}");
        }
    }
    for host in ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "127.0.0.1.evil.example", ""] {
        assert_eq!(send(host, "", "GET", "/api/info"), 403, "{host}");
        assert_eq!(send(&format!("evil.example:{port}"), "", "GET", "/"), 403);
    }
    let own = server.address.clone();
    for origin in
        ["http://evil.example", "https://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"]
    {
        let header = format!("Origin: {origin}\r\n");
        for (method, path) in [("POST", "/api/tables"), ("DELETE", "/api/tables/x"), ("GET", "/api/tables")] {
            assert_eq!(send(&own, &header, method, path), 403, "{origin} {method}");
        }
    }
    assert_eq!(send(&own, "Sec-Fetch-Site: cross-site\r\n", "GET", "/api/tables"), 403);
    assert_eq!(send(&own, "Sec-Fetch-Site: same-origin\r\n", "GET", "/api/tables"), 200);
    let two =
        format!("GET /api/info HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(server.raw(two.as_bytes()).expect("a reply").0, 400);
    // A form of another site can send text without asking first.
    let form = "Content-Type: text/plain\r\nContent-Length: 22\r\n\r\n{\"game\":\"tic_tac_toe\"}";
    let request = format!("POST /api/tables HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n{form}");
    assert_eq!(server.raw(request.as_bytes()).expect("a reply").0, 415);
}

#[test]
fn replies_allow_nothing_of_other_sites() {
    let server = Server::start(&["--threads", "1"]);
    for path in ["/", "/main.js", "/api/info", "/nothing"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
        let (status, reply) = server.raw(request.as_bytes()).expect("a reply");
        let head = reply.split("\r\n\r\n").next().expect("a head").to_lowercase();
        assert_eq!(status, if path == "/nothing" { 404 } else { 200 }, "{path}");
        for part in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "nosniff",
            "cache-control: no-",
        ] {
            assert!(head.contains(part), "{path}: {head}");
        }
        assert!(!head.contains("access-control-allow-origin"), "{head}");
    }
    for path in
        ["/../Cargo.toml", "/..%2f..%2fetc/passwd", "//etc/passwd", "/src/serve/page/index.html", "/%00"]
    {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
        assert_eq!(server.raw(request.as_bytes()).expect("a reply").0, 404, "{path}");
    }
    let tag = "ETag: ".to_lowercase();
    let request = |headers: &str| {
        let text = format!(
            "GET /main.js HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n",
            server.address
        );
        server.raw(text.as_bytes()).expect("a reply")
    };
    let first = request("").1;
    let tag = first.lines().find_map(|line| line.strip_prefix(&tag)).expect("a tag");
    assert_eq!(request(&format!("If-None-Match: {tag}\r\n")).0, 304);
}

#[test]
fn other_machines_need_the_token() {
    let refused = Command::new(assert_cmd::cargo::cargo_bin("vecaz"))
        .args(["serve", "--bind", "0.0.0.0"])
        .output()
        .expect("runs");
    let line = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(2) && line.contains("--bind: got 0.0.0.0") && line.contains("--token"),
        "{line}"
    );
    let server = Server::start(&["--threads", "1", "--bind", "0.0.0.0", "--token"]);
    let token =
        server.line.split("token=").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a token");
    assert_eq!(server.refused("GET", "/api/info", &serde_json::Value::Null).0, 401);
    assert_eq!(server.send("GET", "/", "", "").0, 401);
    assert_eq!(server.send("GET", "/api/info?token=0", "", "").0, 401);
    let cookie = format!("vecaz_token_{}", server.address.rsplit(':').next().expect("a port"));
    assert_eq!(server.send("GET", "/api/info", &format!("Cookie: {cookie}=\r\n"), "").0, 401);
    let of_another = format!("Cookie: vecaz_token_1={token}\r\n");
    assert_eq!(server.send("GET", "/api/info", &of_another, "").0, 401, "of a server at another port");
    for (path, header) in [
        (format!("/api/info?token={token}"), String::new()),
        ("/api/info".into(), format!("Cookie: other=1; {cookie}={token}\r\n")),
        ("/api/info".into(), format!("Authorization: Bearer {token}\r\n")),
    ] {
        assert_eq!(server.send("GET", &path, &header, "").0, 200, "{path} {header}");
    }
    let request =
        format!("GET /?token={token} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
    let (_, reply) = server.raw(request.as_bytes()).expect("a reply");
    assert!(reply.contains(&format!("{cookie}={token}; Path=/; HttpOnly; SameSite=Strict")), "{reply}");
}

/// A client that never finishes the headers of its request does not hold a descriptor of the server for ever. Connections in use stay open:
/// a stream of events that is silent for longer, and one that is kept for a second request.
#[test]
fn connections_with_unfinished_headers_are_closed() {
    let server = Server::start(&["--threads", "1"]);
    let table = server.post("/api/tables", &json!({ "game": "tic_tac_toe" }));
    let at = format!("/api/tables/{}", table["id"].as_str().expect("an id"));
    let mut states = server.events(&format!("{at}/events"));
    states.next().expect("a state");
    let half = format!("GET /api/info HTTP/1.1\r\nHost: {}\r\nConnection:", server.address);
    let unfinished = ["", "P", "GET /api", half.as_str()];
    let begin = |number: usize| {
        let mut stream = server.connect();
        stream.write_all(unfinished[number % unfinished.len()].as_bytes()).expect("sent");
        stream
    };
    let streams: Vec<TcpStream> = (0..40).map(begin).collect();
    let start = Instant::now();
    for mut stream in streams {
        let left = HEADER_PATIENCE.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).expect("a timeout");
        let mut reply = Vec::new();
        let read = stream.read_to_end(&mut reply);
        assert!(read.is_ok(), "the connection is still open: {read:?}");
    }
    let action = &table["view"]["actions"][0]["action"];
    server.post(&format!("{at}/play"), &json!({ "action": action }));
    let (name, state) = states.next().expect("the stream is still open");
    assert_eq!((name.as_str(), &state["plies"]), ("state", &json!(1)));
    let request = |end: &str| format!("GET /main.js HTTP/1.1\r\nHost: {}\r\n{end}\r\n", server.address);
    let both = request("") + &request("Connection: close\r\n");
    let (_, replies) = server.raw(both.as_bytes()).expect("replies");
    assert_eq!(replies.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{replies}");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_searches_and_streams() {
    let mut server = Server::start(&["--threads", "1"]);
    let table = server.post("/api/tables", &json!({ "game": "hex" }));
    let at = format!("/api/tables/{}", table["id"].as_str().expect("an id"));
    let mut states = server.events(&format!("{at}/events"));
    states.next().expect("a state");
    let mut analysis = server.events(&format!("{at}/analysis?interval=50"));
    analysis.next().expect("an event");
    let start = Instant::now();
    rustix_kill(server.child.id());
    let last = states.next().expect("an event");
    assert_eq!((last.0.as_str(), &last.1["reason"]), ("closed", &json!("the server has ended")));
    assert!(analysis.count() < 10_000, "the stream ends");
    let status = server.child.wait().expect("its status");
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(status.code(), Some(130));
}

/// Sends SIGINT.
#[cfg(unix)]
fn rustix_kill(id: u32) {
    let status = Command::new("kill").args(["-INT", &id.to_string()]).status().expect("kill");
    assert!(status.success());
}

/// A machine without a browser: the address is printed, and what opens it is not found.
#[cfg(target_os = "linux")]
#[test]
fn a_page_that_nothing_opens_is_served_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
    command.args(["serve", "--threads", "1", "--open"]).current_dir(folder.path()).env("PATH", folder.path());
    let mut server = Server::start_by(command.stderr(std::process::Stdio::piped()));
    assert!(server.lives());
    // The warning may come after the first answers.
    let mut warning = String::new();
    let stderr = server.child.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut warning).expect("read");
    server.child.kill().expect("it runs");
    assert!(warning.contains("xdg-open") && warning.contains(&server.address), "{warning}");
}

#[test]
fn wrong_arguments_end_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    for (arguments, part) in [
        (vec!["nothing"], "nothing"),
        (vec!["."], "neither a run"),
        (vec!["--port", "99999"], "--port"),
        (vec!["--port", port.as_str()], "in use"),
        (vec!["--bind", "localhosts"], "--bind"),
    ] {
        let output = Command::new(assert_cmd::cargo::cargo_bin("vecaz"))
            .arg("serve")
            .args(&arguments)
            .current_dir(folder.path())
            .output()
            .expect("runs");
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && line.contains(part), "{arguments:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
}
