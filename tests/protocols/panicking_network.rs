//! A search whose network panics.

use super::{parts, talk};
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
