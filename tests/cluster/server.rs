//! A Redis server of a test's own, on a free port of the loopback, and processes of vecaz that use it.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vecaz::cluster::published::PublishedRun;
use vecaz::cluster::server::{Server, bytes_of};
use vecaz::cluster::worker::{Waited, Worker};
use vecaz::registry::Registry;
use vecaz::stop::Stop;

/// A time limit of these tests, times `VECAZ_TIMES_SLOWER`: how much slower an emulator is than the machine.
pub fn limit(seconds: u64) -> Duration {
    let times = std::env::var("VECAZ_TIMES_SLOWER").map_or(1, |text| text.parse().expect("a whole number"));
    Duration::from_secs(seconds * times)
}

/// Time limit of every wait in these tests.
fn timeout() -> Duration {
    limit(180)
}

pub struct Redis {
    folder: tempfile::TempDir,
    process: Child,
    port: u16,
    settings: Vec<String>,
}

impl Redis {
    /// A server with these settings and an append-only file. Without a redis-server the test is skipped with a message: None.
    pub fn start(settings: &[&str]) -> Option<Self> {
        let found = Command::new("redis-server").arg("--version").output().is_ok();
        if !found {
            let required = std::env::var_os("VECAZ_REQUIRE_REDIS").is_some_and(|value| value == "1");
            assert!(!required, "VECAZ_REQUIRE_REDIS=1, and there is no redis-server");
            eprintln!("SKIPPED: there is no redis-server, so this test of many machines has not run");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let settings: Vec<String> = settings.iter().map(|text| text.to_string()).collect();
        let process = Self::spawn(&folder, port, &settings);
        let redis = Self { folder, process, port, settings };
        redis.wait();
        Some(redis)
    }

    fn spawn(folder: &tempfile::TempDir, port: u16, settings: &[String]) -> Child {
        let mut command = Command::new("redis-server");
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "yes",
        ]);
        command.arg("--dir").arg(folder.path()).args(settings);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("redis-server starts")
    }

    fn wait(&self) {
        wait_until("a port", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    pub fn url(&self, run: &str) -> String {
        format!("redis://127.0.0.1:{}/{run}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server for a run, in this process.
    pub fn server(&self, run: &str) -> Server {
        Server::new(self.url(run).parse().expect("an address"), None).expect("a client")
    }

    /// A connection of the test's own.
    pub fn client(&self) -> redis::Connection {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).expect("a client");
        client.get_connection().expect("a connection")
    }

    /// A number of the server's INFO.
    pub fn number(&self, section: &str, name: &str) -> u64 {
        let info = bytes_of(self.command(&["INFO", section])).expect("a text");
        let info = String::from_utf8(info).expect("a text");
        let value = info.lines().find_map(|line| line.strip_prefix(name));
        let digits = value.unwrap_or("0").trim().split(',').next().unwrap_or_default();
        digits.parse().expect("a number")
    }

    /// Executes a command on a new connection, as soon as the server accepts commands.
    pub fn command(&self, words: &[&str]) -> redis::Value {
        self.command_of(words, &[])
    }

    /// The same with bytes as last argument.
    pub fn command_with(&self, words: &[&str], bytes: &[u8]) -> redis::Value {
        self.command_of(words, &[bytes])
    }

    fn command_of(&self, words: &[&str], more: &[&[u8]]) -> redis::Value {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).expect("a client");
        let start = Instant::now();
        loop {
            let reply = client.get_connection().and_then(|mut connection| {
                let mut command = redis::cmd(words[0]);
                command.arg(&words[1..]).arg(more);
                command.query(&mut connection)
            });
            match reply {
                Ok(value) => return value,
                Err(e) => assert!(start.elapsed() < timeout(), "{words:?}: {e}"),
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server, and starts it again after `pause`.
    pub fn kill(&mut self, pause: Duration) {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
        sleep(pause);
        self.process = Self::spawn(&self.folder, self.port, &self.settings);
        self.wait();
    }

    /// Suspends the server for `pause`, without closing its connections.
    pub fn freeze(&self, pause: Duration) {
        send("-STOP", &self.process);
        sleep(pause);
        send("-CONT", &self.process);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Publishes a run named `run` with this configuration, as a learner does.
pub fn publish(client: &mut redis::Connection, config: &str, digest: [u8; 32]) {
    let state = PublishedRun {
        protocol: 1,
        run: 7,
        generation: 8,
        digest,
        version: 1,
        sha256: [0; 32],
        window: 1 << 20,
    };
    let mut set = redis::cmd("HSET");
    set.arg("run:state").arg("config").arg(config);
    for (name, value) in state.fields() {
        set.arg(name).arg(value);
    }
    set.query::<()>(client).expect("set");
}

/// A worker of the run at `server`, which is there already.
pub fn find_worker(server: Server, set: &[(&str, Option<String>)]) -> vecaz::Result<Worker> {
    let (registry, at_once) = (Registry::built_in(), Some(Duration::ZERO));
    match Worker::wait_for(server, &registry, set, at_once, &Stop::default(), &mut |_| ())? {
        Waited::Run(worker) => Ok(*worker),
        Waited::RunOver => panic!("nothing was waited for"),
    }
}

/// A process of vecaz and what `wait_for_text` has read of its standard output; killed when it is dropped.
pub struct Vecaz(Child, Vec<u8>);

impl Vecaz {
    pub fn spawn(arguments: &[&str]) -> Self {
        Self::spawn_with(&[], arguments)
    }

    /// Spawns the process with these environment variables.
    pub fn spawn_with(variables: &[(&str, &Path)], arguments: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("vecaz"));
        command.args(arguments).env_remove("VECAZ_LOG").env_remove("VECAZ_REDIS_PASSWORD");
        command.envs(variables.iter().copied());
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vecaz starts"), Vec::new())
    }

    /// Waits until the process has printed `text`, which may be broken into lines; panics if it ends without.
    pub fn wait_for_text(&mut self, text: &str) {
        assert!(self.prints(text), "it has ended without {text:?}: {}", unbroken(&self.1));
    }

    /// Waits until the process has printed `text` or has ended; returns whether it has printed it.
    pub fn prints(&mut self, text: &str) -> bool {
        let stdout = self.0.stdout.as_mut().expect("piped");
        let mut byte = [0];
        while !unbroken(&self.1).contains(text) {
            if stdout.read(&mut byte).expect("stdout is read") == 0 {
                return false;
            }
            self.1.push(byte[0]);
        }
        true
    }

    pub fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("ended");
    }

    pub fn terminate(&self) {
        send("-TERM", &self.0);
    }

    pub fn is_over(&mut self) -> bool {
        self.0.try_wait().expect("known").is_some()
    }

    /// Waits until the process ends, and returns its output.
    pub fn output(mut self) -> Output {
        let start = Instant::now();
        while !self.is_over() {
            assert!(start.elapsed() < timeout(), "it did not end in time");
            sleep(Duration::from_millis(5));
        }
        let read = |stream: Option<&mut dyn Read>, mut bytes: Vec<u8>| {
            stream.map(|stream| stream.read_to_end(&mut bytes));
            bytes
        };
        let before = std::mem::take(&mut self.1);
        let stdout = read(self.0.stdout.as_mut().map(|stream| stream as &mut dyn Read), before);
        let stderr = read(self.0.stderr.as_mut().map(|stream| stream as &mut dyn Read), Vec::new());
        Output { status: self.0.wait().expect("ended"), stdout, stderr }
    }
}

/// Printed text without the line breaks that it has for the width of the output.
pub fn unbroken(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\n  ", " ")
}

impl Drop for Vecaz {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a free port").port()
}

pub fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < timeout(), "no {what} in time");
        sleep(Duration::from_millis(5));
    }
}

macro_rules! small_search {
    () => {
        "
[net]
arch = 'mlp'
blocks = 1
channels = 16
value_hidden = 8
[search]
simulations = 8
cache_entries = 512
"
    };
}
/// A network and a search of a few microseconds.
pub const SMALL_SEARCH: &str = small_search!();

/// A replay buffer of some epochs, and little training.
pub const SMALL_TRAINING: &str = "
[replay]
capacity = 9000
[train]
batch = 32
min_samples = 300
replay_ratio = 0.1
";

/// A small run of tic-tac-toe: epochs of a fraction of a second.
pub const TINY: &str = concat!(
    "
[game]
name = 'tic_tac_toe'",
    small_search!(),
    "[selfplay]
games = 16
samples_per_epoch = 3000
passes_per_poll = 8
opening_plies = 2
[replay]
capacity = 5000
[train]
batch = 32
min_samples = 300
replay_ratio = 1.0
[eval]
every = 0
[cluster]
max_queued_bytes = 1048576
max_lag = 1000000
"
);

/// A run of Connect Four with a network of about a millisecond, and a root cache of many seconds.
pub const SLOW: &str = "
[game]
name = 'connect_four'
[net]
arch = 'resnet'
blocks = 6
channels = 96
precision = 'f32'
[search]
algorithm = 'puct'
simulations = 800
root_cache = 100000
[selfplay]
games = 16
samples_per_epoch = 400000
[eval]
every = 0
";

/// A run over a server, in a folder of its own.
pub struct TinyRun {
    _folder: tempfile::TempDir,
    /// Its configuration.
    pub config: String,
    /// The run's folder.
    pub out: PathBuf,
}

impl TinyRun {
    /// A run of [`TINY`].
    pub fn new() -> Self {
        Self::of(TINY)
    }

    /// A run of this configuration.
    pub fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (config, out) = (folder.path().join("run.toml"), folder.path().join("run"));
        std::fs::write(&config, text).expect("written");
        Self { _folder: folder, config: config.display().to_string(), out }
    }

    /// A learner with one thread that begins the run at `url`.
    pub fn learner(&self, url: &str, more: &[&str]) -> Vecaz {
        let out = self.out.display().to_string();
        let words = ["run", "--cluster", url, "--config", &self.config, "--threads", "1", "--out", &out];
        Vecaz::spawn(&[&words[..], more].concat())
    }

    /// A learner with one thread that resumes the run at `url` and does not play.
    pub fn resumed(&self, url: &str, more: &[&str]) -> Vecaz {
        let out = self.out.display().to_string();
        let words = ["run", "--resume", &out, "--cluster", url, "--play", "0", "--threads", "1"];
        Vecaz::spawn(&[&words[..], more].concat())
    }
}

/// Writes [`TINY`] to a file in `folder`.
pub fn tiny(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("tiny.toml");
    std::fs::write(&path, TINY).expect("written");
    path
}
