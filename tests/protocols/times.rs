//! Clocks of real games.

use super::{Client, parts};
use std::time::{Duration, Instant};
use vecaz::batch::Playthrough;
use vecaz::protocol::choice::ProtocolName::{Gomocup, Gtp, Uci};
use vecaz::registry::any_game;

/// Two games at a second and a hundredth a move, the engine on both sides: no clock runs out, and the time is used.
#[test]
fn no_game_is_lost_on_time() {
    for _ in 0..2 {
        let mut client = Client::start(Uci, parts("chess", ""));
        client.send("setoption name Move Overhead value 200");
        let mut play = Playthrough::new(any_game("chess", &Default::default()).expect("chess"));
        let increment = Duration::from_millis(10);
        let mut left = [Duration::from_secs(1); 2];
        for ply in 0..120 {
            if play.legal().is_empty() {
                break;
            }
            client.send(&format!("position startpos moves {}", play.names().join(" ")));
            let [white, black] = left.map(|time| time.as_millis());
            let start = Instant::now();
            client.send(&format!("go wtime {white} btime {black} winc 10 binc 10"));
            let line = client.wait_for("bestmove");
            let own = &mut left[ply % 2];
            let used = start.elapsed();
            assert!(used < *own, "ply {ply}: {used:?} of {own:?}");
            *own = *own - used + increment;
            play.step_text(line.split(' ').nth(1).expect("a move")).expect("legal");
        }
        // A game may end early, by a repetition.
        let is_used = left.iter().all(|&time| time < Duration::from_millis(990));
        assert!(is_used || play.actions().len() < 10, "{left:?}");
        client.end();
    }
}

/// A client whose clock stops 60 ms after the answer, six times as late as it was said: the engine sees that on the clock and keeps more time back.
/// It would have none left after a few moves otherwise.
#[test]
fn a_slow_client_is_measured_by_its_clock() {
    let mut client = Client::start(Uci, parts("chess", ""));
    client.send("setoption name Move Overhead value 10");
    let (delay, increment) = (Duration::from_millis(60), Duration::from_millis(80));
    let mut left = Duration::from_secs(1);
    for ply in 0..70 {
        // Positions in turn, so that no tree is kept and every search uses its time.
        client.send(["position startpos moves e2e4 e7e5", "position startpos moves d2d4 d7d5"][ply % 2]);
        let start = Instant::now();
        client.send(&format!("go wtime {} btime 1000 winc 80 binc 80", left.as_millis()));
        client.wait_for("bestmove");
        let used = start.elapsed() + delay;
        assert!(used < left, "move {ply}: {used:?} of {left:?}");
        left = left - used + increment;
    }
    client.end();
}

#[test]
fn clocks_of_gtp_and_gomocup_are_kept() {
    let mut client = Client::start(Gtp, parts("go", "size = 7"));
    let (seconds, start) = (Duration::from_millis(1500), Instant::now());
    client.send("time_settings 1 0 0");
    assert_eq!(client.wait_for("="), "=");
    for _ in 0..12 {
        client.send("genmove b");
        assert!(client.wait_for("=").len() > 2);
        client.send("genmove w");
        assert!(client.wait_for("=").len() > 2);
    }
    assert!(start.elapsed() < 2 * seconds, "{:?}", start.elapsed());
    client.end();
    let mut client = Client::start(Gomocup, parts("gomoku", "size = 15"));
    for line in ["START 15", "INFO timeout_turn 300", "INFO timeout_match 0", "INFO time_left 2147483647"] {
        client.send(line);
    }
    assert_eq!(client.line(), "OK");
    for turn in ["BEGIN", "TURN 0,0", "TURN 14,14"] {
        let start = Instant::now();
        client.send(turn);
        client.line();
        let used = start.elapsed();
        assert!(used < Duration::from_millis(300) && used > Duration::from_millis(30), "{used:?}");
    }
    client.end();
}

#[test]
fn movetime_is_used_and_kept() {
    let mut client = Client::start(Uci, parts("chess", ""));
    client.send("setoption name Move Overhead value 0");
    client.send("position startpos");
    for ms in [20, 150, 300] {
        let start = Instant::now();
        client.send(&format!("go movetime {ms}"));
        client.wait_for("bestmove");
        let used = start.elapsed();
        let limit = Duration::from_millis(ms);
        // A search ends early where the time left is too short to make its trees larger.
        let least = limit.min(Duration::from_millis(80)) / 4;
        assert!(used > least && used < limit + Duration::from_millis(150), "{used:?} of {limit:?}");
    }
    client.end();
}
