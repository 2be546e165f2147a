//! A search whose network panics.

use super::{parts, talk};
use serde_json::{Value, json};
use vecaz::net::{IoShape, Network};
use vecaz::protocol::choice::ProtocolName;

/// A network that panics in every forward.
#[derive(Clone)]
struct Panics(IoShape);

impl Network for Panics {
    fn shape(&self) -> IoShape {
        self.0
    }

    fn forward(&mut self, _: &[f32], _: &mut [f32], _: &mut [f32]) -> vecaz::Result<()> {
        panic!("a network of a test that panics");
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

/// The search has an answer all the same, and the dialogue goes on.
#[test]
fn a_search_that_panics_is_an_error_and_the_dialogue_goes_on() {
    for (protocol, game, script, answers) in [
        (ProtocolName::Uci, "chess", "go nodes 5\nisready\nquit\n", ["bestmove (none)", "readyok"]),
        (ProtocolName::Gtp, "go", "1 genmove b\n2 name\n3 quit\n", ["?1 ", "=2 vecaz"]),
    ] {
        let mut parts = parts(game, "");
        parts.network = Box::new(Panics(parts.network.shape()));
        let said = talk(protocol, parts, script);
        for answer in answers {
            assert!(said.lines().any(|line| line.starts_with(answer)), "{answer}: {said}");
        }
    }
}

/// The error of a turn has its number: another turn of the query may have a result.
#[test]
fn a_turn_that_panics_is_told_by_its_number() {
    let mut parts = parts("go", "size = 5");
    parts.network = Box::new(Panics(parts.network.shape()));
    let query = json!({"id": "x", "moves": ["C3"], "analyzeTurns": [1], "maxVisits": 3});
    let said = talk(ProtocolName::Json, parts, &format!("{query}\n"));
    let reply: Value = serde_json::from_str(&said).expect("one reply");
    assert_eq!((&reply["id"], &reply["turnNumber"]), (&json!("x"), &json!(1)));
    assert!(reply["error"].is_string(), "{reply}");
}
