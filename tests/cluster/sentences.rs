//! Wrong input gives an exit code other than 0 and one sentence with what would be right.

use super::server::{Redis, TinyRun, Vecaz, free_port, tiny, wait_until};
use std::path::Path;

/// The error message of a command that fails, of a worker that does not wait.
fn error(arguments: &[&str]) -> String {
    error_and_code(arguments).0
}

fn error_and_code(arguments: &[&str]) -> (String, Option<i32>) {
    let at_once: &[&str] = if arguments[0] == "work" { &["--wait", "0"] } else { &[] };
    let output = Vecaz::spawn(&[arguments, at_once].concat()).output();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code().is_some_and(|code| code > 0), "{arguments:?} did not fail: {text}");
    assert_eq!(text.trim().lines().count(), 1, "{arguments:?}: {text}");
    (text, output.status.code())
}

fn expect(arguments: &[&str], parts: &[&str]) {
    let text = error(arguments);
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: {part:?} is not in {text}");
    }
}

#[test]
fn addresses_without_a_server_and_with_a_password_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run").display().to_string();
    // No server listens on port 1.
    expect(
        &["work", "redis://127.0.0.1:1/run"],
        &["redis://127.0.0.1:1/run: no server there", "expected Redis"],
    );
    expect(
        &["run", "--cluster", "redis://127.0.0.1:1/run", "--out", &out],
        &["redis://127.0.0.1:1/run: no server there"],
    );
    assert!(!folder.path().join("run").exists(), "nothing was begun");
    let (text, code) = error_and_code(&["work", "redis://me:secret@127.0.0.1:1/run"]);
    assert_eq!(code, Some(2), "a wrong argument");
    assert!(text.contains("expected it in VECAZ_REDIS_PASSWORD") && !text.contains("secret"), "{text}");
    expect(&["work", "http://127.0.0.1/run"], &["scheme http, expected redis or rediss as in redis://"]);
    expect(&["work", "redis://127.0.0.1/run", "--password-file", "none.txt"], &["reading none.txt"]);
    expect(&["run", "--play", "0"], &["--cluster"]);
}

#[test]
fn servers_and_runs_that_do_not_fit_are_refused() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (url, run) = (redis.url("first"), TinyRun::new());
    let (config, out_text) = (run.config.clone(), run.out.display().to_string());
    expect(&["work", &url], &["no run of this name, expected one that `vecaz run --cluster"]);
    let output = run.learner(&url, &["--epochs", "1"]).output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // The name is taken by a run of another folder.
    let other = run.out.with_file_name("other").display().to_string();
    let second = ["run", "--cluster", &url, "--config", &config, "--epochs", "1", "--out", &other];
    expect(&second, &["the name is used by another run, expected another name"]);
    assert!(!run.out.with_file_name("other").exists(), "nothing was begun");
    let few = ["run", "--cluster", &redis.url("few"), "--config", &config, "--out", &other];
    for order in ["free", "strict"] {
        let order = format!("cluster.order={order}");
        expect(
            &[&few[..], &["--set", "selfplay.samples_per_epoch=100000", "--set", &order]].concat(),
            &["config key cluster.max_queued_bytes", "got 1048576, expected at least"],
        );
    }

    // As if the run went on.
    redis.command(&["HSET", "first:state", "over", "0"]);
    // A run of another protocol, or of another build of the game.
    redis.command(&["HSET", "first:state", "protocol", "2"]);
    expect(&["work", &url], &["the run's learner uses protocol 2, expected 1"]);
    redis.command(&["HSET", "first:state", "protocol", "1", "digest", &"00".repeat(32)]);
    expect(&["work", &url], &["expected the same vecaz as the learner's"]);
    redis.command(&["HSET", "first:state", "digest", "00"]);
    expect(&["work", &url], &["field digest of the run's state is \"00\""]);
    redis.command(&["HSET", "first:state", "config", "[game]\nname = 'ludo'"]);
    redis.command(&["HSET", "first:state", "digest", &"00".repeat(32)]);
    expect(&["work", &url], &["unknown game ludo"]);

    // Settings of the server.
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    expect(&["work", &url], &["maxmemory-policy is allkeys-lru", "expected noeviction"]);
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    expect(&["run", "--cluster", &url, "--resume", &out_text], &["maxmemory-policy is volatile-lru"]);
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let Some(replica) = Redis::start(&["--replicaof", &format!("127.0.0.1 {}", redis.port())]) else {
        return;
    };
    expect(&["work", &replica.url("first")], &["a read-only replica"]);
}

#[test]
fn passwords_come_from_the_environment_or_a_file() {
    let Some(redis) = Redis::start(&["--requirepass", "right"]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (wrong, right) = (folder.path().join("wrong"), folder.path().join("right"));
    std::fs::write(&wrong, "wrong\n").expect("written");
    std::fs::write(&right, "right\n").expect("written");
    let url = redis.url("run");
    expect(&["work", &url], &["the server requires a password, expected it in VECAZ_REDIS_PASSWORD"]);
    let with = |file: &std::path::Path| {
        ["work", &url, "--password-file", &file.display().to_string()].map(String::from)
    };
    let of = |words: &[String; 4]| error(&words.each_ref().map(String::as_str));
    assert!(of(&with(&wrong)).contains("the server refuses the user or the password"));
    assert!(of(&with(&right)).contains("no run of this name"));
}

/// `rediss://`: a run with a worker if the server's certificate is trusted, an error in one sentence if not.
#[test]
fn tls_servers_need_a_certificate_that_is_trusted() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls");
    let [authority, certificate, key] = ["ca.pem", "server.pem", "server.key"].map(|name| files.join(name));
    let port = free_port();
    let (port_text, certificate, key) =
        (port.to_string(), certificate.display().to_string(), key.display().to_string());
    let settings = ["--tls-port", &port_text, "--tls-cert-file", &certificate, "--tls-key-file", &key];
    let Some(redis) = Redis::start(&[&settings[..], &["--tls-auth-clients", "no"]].concat()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (config, out) =
        (tiny(&folder).display().to_string(), folder.path().join("run").display().to_string());
    let url = format!("rediss://127.0.0.1:{port}/tls");
    expect(&["work", &url], &[&url, "certificate"]);
    let trusting = [("SSL_CERT_FILE", authority.as_path())];
    let run = ["run", "--cluster", &url, "--play", "0", "--config", &config, "--epochs", "2", "--out", &out];
    let learner = Vecaz::spawn_with(&trusting, &[&run[..], &["--threads", "1"]].concat());
    wait_until("state of the run", || redis.command(&["EXISTS", "tls:state"]) == redis::Value::Int(1));
    let _worker = Vecaz::spawn_with(&trusting, &["work", &url, "--threads", "1"]);
    let output = learner.output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A port without TLS is refused.
    let plain = redis.url("tls").replace("redis://", "rediss://");
    expect(&["work", &plain], &["the connection failed"]);
}
