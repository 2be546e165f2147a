//! Protocols of players' programs: recorded dialogues, clocks and stops, and lines that no client should send.

#[path = "protocols/fuzz.rs"]
mod fuzz;
#[path = "protocols/gomocup.rs"]
mod gomocup;
#[path = "protocols/gtp.rs"]
mod gtp;
#[path = "protocols/json.rs"]
mod json;
#[path = "protocols/matches.rs"]
mod matches;
#[path = "protocols/nboard.rs"]
mod nboard;
#[path = "protocols/panicking_network.rs"]
mod panicking_network;
#[path = "protocols/times.rs"]
mod times;
#[path = "protocols/uci.rs"]
mod uci;

use std::io::{BufRead, BufReader, Cursor, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use vecaz::config::{Algorithm, Config};
use vecaz::engine::Settings;
use vecaz::net::{HashNet, IoShape};
use vecaz::protocol::choice::ProtocolName;
use vecaz::protocol::dialogue::{Pace, Parts, Ponder, converse};
use vecaz::registry::Registry;

/// A network of pseudo-random outputs for a game, with a pace of 20 simulations a move.
fn parts(name: &str, options: &str) -> Parts {
    let registry = Registry::built_in();
    let game = registry.game(name, &options.parse().expect("TOML")).expect("registered");
    let sizes = game.sizes();
    let mut settings = Settings { threads: 1, leaves: 1, ..Settings::new(&Config::default(), &sizes) };
    settings.params.algorithm = Algorithm::Puct;
    let pace = Pace {
        simulations: Some(20),
        time: None,
        max_simulations: None,
        overhead: Duration::from_millis(100),
        ponder: Ponder::Never,
    };
    Parts { game, registry, network: Box::new(HashNet(IoShape::of(&sizes))), settings, pace }
}

/// Output that is kept.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The output of a dialogue whose input is `script`.
fn talk_bytes(protocol: ProtocolName, parts: Parts, script: Vec<u8>) -> String {
    let kept = Kept::default();
    converse(parts, Cursor::new(script), Box::new(kept.clone()), |dialogue| protocol.make(dialogue))
        .expect("a dialogue");
    let bytes = kept.0.lock().expect("no panic").clone();
    String::from_utf8(bytes).expect("UTF-8")
}

fn talk(protocol: ProtocolName, parts: Parts, script: &str) -> String {
    talk_bytes(protocol, parts, script.as_bytes().to_vec())
}

/// A client that waits for answers.
struct Client {
    to_engine: Option<PipeWriter>,
    from_engine: BufReader<PipeReader>,
    engine: Option<JoinHandle<()>>,
}

impl Client {
    fn start(protocol: ProtocolName, parts: Parts) -> Self {
        let (input, to_engine) = std::io::pipe().expect("a pipe");
        let (from_engine, output) = std::io::pipe().expect("a pipe");
        let engine = std::thread::spawn(move || {
            converse(parts, input, Box::new(output), |dialogue| protocol.make(dialogue)).expect("a dialogue");
        });
        Self { to_engine: Some(to_engine), from_engine: BufReader::new(from_engine), engine: Some(engine) }
    }

    fn send(&mut self, line: &str) {
        let pipe = self.to_engine.as_mut().expect("open");
        pipe.write_all(format!("{line}\n").as_bytes()).expect("written");
    }

    /// The next line.
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.from_engine.read_line(&mut line).expect("read") > 0, "the engine has ended");
        line.trim_end().to_string()
    }

    /// The first line from here on that begins with `start`.
    fn wait_for(&mut self, start: &str) -> String {
        loop {
            let line = self.line();
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// Closes the input and returns all that is still said.
    fn end(mut self) -> Vec<String> {
        self.to_engine = None;
        let rest = self.from_engine.by_ref().lines().map(|line| line.expect("read")).collect();
        self.engine.take().expect("once").join().expect("no panic");
        rest
    }
}

/// The numbers at random of a seed.
fn stream(seed: u64) -> vecaz::rng::RngStream {
    vecaz::rng::Key::new(seed, vecaz::rng::Purpose::Evaluation).stream()
}

#[test]
fn a_protocol_refuses_other_games_in_a_sentence() {
    for (protocol, game, options, part) in [
        (ProtocolName::Gtp, "chess", "", "GTP for chess"),
        (ProtocolName::Gtp, "gomoku", "opening = 'swap2'", "swap2"),
        (ProtocolName::Uci, "go", "", "UCI for go"),
        (ProtocolName::Gomocup, "hex", "", "it is for Gomoku"),
        (ProtocolName::Gomocup, "gomoku", "opening = 'swap2'", "swap2"),
        (ProtocolName::NBoard, "othello", "size = 6", "Othello on 8x8"),
    ] {
        let refused =
            converse(parts(game, options), Cursor::new(""), Box::new(Kept::default()), |dialogue| {
                protocol.make(dialogue)
            });
        let error = refused.expect_err(part).to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn every_game_has_a_protocol() {
    for (game, protocol) in [
        ("go", ProtocolName::Gtp),
        ("hex", ProtocolName::Gtp),
        ("chess", ProtocolName::Uci),
        ("gomoku", ProtocolName::Gomocup),
        ("othello", ProtocolName::NBoard),
        ("blob", ProtocolName::Json),
        ("a game of a stranger", ProtocolName::Json),
    ] {
        assert_eq!(ProtocolName::of_game(game), protocol, "{game}");
    }
}

/// A client that closes its end is no failure of the engine: the error has the kind for which the program ends quietly.
#[test]
fn a_client_that_is_gone_ends_the_dialogue() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let ended = converse(parts("hex", "size = 5"), Cursor::new("name\n"), Box::new(Closed), |dialogue| {
        ProtocolName::Gtp.make(dialogue)
    });
    match ended {
        Err(vecaz::Error::Io { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::BrokenPipe),
        other => panic!("{other:?}"),
    }
}
