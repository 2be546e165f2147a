//! Throughput of one Redis server: real chunks of Hex 13 from several writers to one reader. The benchmark starts a server on a free port
//! of the loopback interface, or uses that of `--url`.
//!
//!     cargo bench --bench cluster_server
//!     cargo bench --bench cluster_server -- --writers 4 --seconds 10 --url redis://10.0.0.1/bench

use clap::Parser;
use redis::{Value, cmd};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vecaz::backend::RootCache;
use vecaz::cluster::chunk::{ChunkLimits, ChunkWriter, Origin};
use vecaz::cluster::server::{Connection, Server, list_of};
use vecaz::cluster::{Incarnation, digest};
use vecaz::config::Layers;
use vecaz::model::NetSpec;
use vecaz::play::PlayPlan;
use vecaz::play::new_slots;
use vecaz::registry::any_game;
use vecaz::run::learner::learner;
use vecaz::run::network::make_network;
use vecaz::selfplay::SelfPlay;

const SETTING: &str = "[game]\nname = 'hex'\nsize = 13\n[net]\nblocks = 1\nchannels = 16\n[search]\nsimulations = 4\n\
                       cache_entries = 0\n[selfplay]\ngames = 16";
const WORKER: Incarnation = Incarnation(1);
/// Upper bound on the entries in the stream.
const MAX_ENTRIES: u32 = 200;

#[derive(Parser)]
struct Args {
    /// Writers, each with a connection of its own, as a worker's process has.
    #[arg(long, default_value_t = 2)]
    writers: usize,
    /// Seconds of the measurement.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// A running server instead of a new one.
    #[arg(long)]
    url: Option<String>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A server that this process has started; killed when it is dropped.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> (Started, String) {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]).stdout(Stdio::null());
    let child = command.spawn().expect("redis-server starts");
    (Started(child), format!("redis://127.0.0.1:{port}/bench"))
}

fn connect(server: &Server) -> Connection {
    let start = Instant::now();
    loop {
        match server.connect() {
            Ok(link) => return link,
            Err(failure) => assert!(start.elapsed() < Duration::from_secs(10), "{failure:?}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A full chunk of games, searched with a network of random weights.
fn chunk() -> Vec<u8> {
    let config = Layers::default().text(SETTING, "bench").and_then(Layers::resolve).expect("valid");
    let game = any_game(config.game_name(), &config.game_options()).expect("registered");
    let plan = PlayPlan::new(&config, &game.sizes());
    let spec = NetSpec::new(&config.net, &game.sizes());
    let weights =
        learner(&config, &game, &spec, None).and_then(|learner| learner.weights()).expect("weights");
    let (network, _) = make_network(&config, game.as_ref(), &spec, &weights).expect("a network");
    let slots = new_slots(WORKER.first_slot(), config.selfplay.games, game.as_ref(), &plan);
    let mut selfplay = SelfPlay::new(&game, &config, network.as_ref(), slots, 1).expect("fits");
    selfplay.set_network(network.as_ref(), RootCache::default()).expect("a network");
    let sender = Origin { name: "bench".into(), incarnation: WORKER, digest: digest(&config, game.as_ref()) };
    let limits = ChunkLimits::of(game.as_ref()).expect("small");
    let mut writer = ChunkWriter::new(sender, limits).expect("memory");
    loop {
        for game in selfplay.poll().expect("played") {
            writer.push(&game).expect("fits");
            if writer.is_full() {
                return writer.finish(0).expect("compressed").1;
            }
        }
    }
}

/// Adds the chunk to the stream until `over`, and counts in `written`.
fn write(mut link: Connection, chunk: &[u8], over: &AtomicBool, written: &AtomicU64) {
    while !over.load(Ordering::Relaxed) {
        let mut add = cmd("XADD");
        add.arg("bench:games").arg("MAXLEN").arg(MAX_ENTRIES).arg("*").arg("c").arg(chunk);
        link.command(&add).expect("added");
        written.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads the stream for so many seconds; returns the number of entries.
fn read_for(seconds: f64, link: &mut Connection) -> u64 {
    let (start, mut read, mut position) = (Instant::now(), 0_u64, "0".to_string());
    while start.elapsed().as_secs_f64() < seconds {
        let mut entries = cmd("XREAD");
        entries.arg("COUNT").arg(8).arg("BLOCK").arg(100).arg("STREAMS").arg("bench:games").arg(&position);
        let streams = list_of(link.command(&entries).expect("read")).unwrap_or_default();
        let streams = streams.into_iter().filter_map(list_of).filter_map(|mut stream| stream.pop());
        for entry in streams.filter_map(list_of).flatten() {
            let Some([Value::BulkString(id), _]) =
                list_of(entry).and_then(|entry| <[Value; 2]>::try_from(entry).ok())
            else {
                panic!("an entry of another form");
            };
            position = String::from_utf8(id).expect("an id");
            read += 1;
        }
    }
    read
}

fn main() {
    let args = Args::parse();
    let (_started, url) = match args.url {
        Some(url) => (None, url),
        None => {
            let (started, url) = start();
            (Some(started), url)
        }
    };
    let server = Server::new(url.parse().expect("an address"), None).expect("a client");
    let (chunk, over, written) =
        (Arc::new(chunk()), Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut reading = connect(&server);
    reading.command(cmd("DEL").arg("bench:games")).expect("a server");
    let writers: Vec<_> = (0..args.writers)
        .map(|_| {
            let (link, chunk, over, written) =
                (connect(&server), chunk.clone(), over.clone(), written.clone());
            thread::spawn(move || write(link, &chunk, &over, &written))
        })
        .collect();
    let start = Instant::now();
    let read = read_for(args.seconds, &mut reading);
    let seconds = start.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    reading.command(cmd("DEL").arg("bench:games")).expect("a server");
    let written = written.load(Ordering::Relaxed);
    let rate = |count: u64| (count as f64 / seconds, (count as usize * chunk.len()) as f64 / seconds / 1e6);
    let ((writes, written), (reads, read)) = (rate(written), rate(read));
    println!(
        "chunks of {} bytes, {} writers, 1 reader, {seconds:.1} s, {} cores, commit {}: written {writes:.0} chunks/s, {written:.0} MB/s; \
         read {reads:.0} chunks/s, {read:.0} MB/s",
        chunk.len(),
        args.writers,
        thread::available_parallelism().map_or(1, std::num::NonZero::get),
        env!("VECAZ_COMMIT")
    );
}
