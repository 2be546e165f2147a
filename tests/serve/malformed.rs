//! Random bytes in place of requests: the server refuses them and answers the next one.

use super::client::Server;
use serde_json::json;
use std::time::Duration;
use vecaz::rng::{Key, Purpose, RngStream};

/// Requests of the default test; `VECAZ_MALFORMED` sets another number.
const REQUESTS: u64 = 4000;
/// The wait for a reply; to some requests the server waits for more.
const PATIENCE: Duration = Duration::from_millis(300);

#[test]
fn malformed_requests_leave_the_server_up() {
    let mut server = Server::start(&["--threads", "1"]);
    let table =
        server.post("/api/tables", &json!({ "game": "blob", "options": { "players": 3, "cards": 3 } }));
    let id = table["id"].as_str().expect("an id").to_string();
    let requests = std::env::var("VECAZ_MALFORMED").map_or(REQUESTS, |text| text.parse().expect("a number"));
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for number in 0..requests {
        let mut rng = Key::new(17, Purpose::Evaluation).with(number).stream();
        let bytes = match number % 3 {
            0 => mutated(&mut rng, &server.address, &id),
            1 => wrong_json(&mut rng, &server.address, &id),
            _ => wrong_path(&mut rng, &server.address, &id),
        };
        let status = server.raw_within(&bytes, PATIENCE).map_or(0, |(status, _)| status);
        assert_ne!(status, 500, "{}", String::from_utf8_lossy(&bytes));
        *statuses.entry(status).or_default() += 1;
    }
    assert!(server.lives());
    assert!(statuses.get(&400).is_some_and(|&count| count as u64 > requests / 10), "{statuses:?}");
}

fn pick<'a>(rng: &mut RngStream, from: &[&'a str]) -> &'a str {
    from[rng.below(from.len())]
}

fn some_path(rng: &mut RngStream, id: &str) -> String {
    let table = format!("/api/tables/{id}");
    let ending = pick(
        rng,
        &["", "/play", "/undo", "/goto", "/position", "/seats", "/pause", "/hint", "/record", "/formats"],
    );
    match rng.below(4) {
        0 => pick(
            rng,
            &[
                "/api/info",
                "/api/set_up",
                "/api/clusters",
                "/api/tables",
                "/api/runs",
                "/",
                "/main.js",
                "/api/runs/r0/games/1",
            ],
        )
        .to_string(),
        _ => table + ending,
    }
}

fn request(method: &str, path: &str, host: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A valid request with some bytes changed, left out or added. Its end stays, so that the server does not wait for more.
fn mutated(rng: &mut RngStream, host: &str, id: &str) -> Vec<u8> {
    let path = some_path(rng, id);
    let mut bytes = request(pick(rng, &["GET", "POST", "DELETE", "PUT"]), &path, host, b"{}");
    for _ in 0..1 + rng.below(6) {
        let at = rng.below(bytes.len() - 6);
        match rng.below(3) {
            0 => bytes[at] = rng.below(256) as u8,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, rng.below(256) as u8),
        }
    }
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

/// A body of random JSON, or of bytes that are none.
fn wrong_json(rng: &mut RngStream, host: &str, id: &str) -> Vec<u8> {
    let mut body = Vec::new();
    match rng.below(5) {
        0 => body.extend((0..rng.below(64)).map(|_| rng.below(256) as u8)),
        1 => body.extend("[".repeat(1 + rng.below(4000)).bytes()),
        _ => {
            let fields = [
                "action", "name", "ply", "seat", "key", "actions", "paused", "seats", "game", "options",
                "from", "record", "placed",
            ];
            let values = [
                "0",
                "-1",
                "1e99",
                "null",
                "true",
                "[]",
                "{}",
                "\"\"",
                "\"\\u0000\"",
                "65536",
                "\"e4 e5\"",
                "\"hex\"",
                "{\"cells\":\"..0.\",\"player\":9}",
                "[{\"kind\":\"engine\",\"network\":\"uniform\",\"simulations\":18446744073709551615}]",
            ];
            let fields: Vec<String> = (0..rng.below(4))
                .map(|_| format!("{:?}:{}", pick(rng, &fields), pick(rng, &values)))
                .collect();
            body.extend(format!("{{{}}}", fields.join(",")).bytes());
        }
    }
    request("POST", &some_path(rng, id), host, &body)
}

/// Paths and queries that lead nowhere.
fn wrong_path(rng: &mut RngStream, host: &str, id: &str) -> Vec<u8> {
    let mut path = some_path(rng, id);
    let pieces = [
        "?seat=",
        "&ply=",
        "999999999999999999999",
        "-1",
        "%00",
        "%ff%fe",
        "/..",
        "%2e%2e/",
        "?",
        "&key=",
        "x",
        "/",
        "&format=",
        ";",
        "%",
    ];
    for _ in 0..1 + rng.below(6) {
        path += pick(rng, &pieces);
    }
    request(pick(rng, &["GET", "HEAD", "POST", "OPTIONS"]), &path, host, b"")
}

#[test]
fn long_requests_are_refused() {
    let server = Server::start(&["--threads", "1"]);
    let body = json!({ "game": "hex", "actions": "a1 ".repeat(750_000) }).to_string();
    assert_eq!(server.send("POST", "/api/tables", "", &body).0, 413);
    let query = "x".repeat(100_000);
    let (status, _) = server
        .raw(
            format!(
                "GET /api/tables?{query} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                server.address
            )
            .as_bytes(),
        )
        .expect("a reply");
    assert!(status == 414 || status == 431, "{status}");
}
