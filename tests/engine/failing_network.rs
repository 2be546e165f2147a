//! Searches whose network fails.

use super::{engine_with, facts, settings, setup};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vecaz::config::Algorithm;
use vecaz::engine::{Engine, Limit, Settings};
use vecaz::net::{HashNet, IoShape, Network};

/// A network that fails once, at its 21st forward, and the number of its forwards.
struct FailsOnce(HashNet, Arc<AtomicUsize>);

impl Network for FailsOnce {
    fn shape(&self) -> IoShape {
        self.0.shape()
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> vecaz::Result<()> {
        match self.1.fetch_add(1, Ordering::Relaxed) {
            20 => Err(vecaz::Error::unsupported("the 21st forward", "a test")),
            _ => self.0.forward(obs, logits, values),
        }
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(Self(self.0.clone(), self.1.clone()))
    }
}

/// Trees that a failed pass leaves are not searched further.
#[test]
fn after_a_network_failed_a_search_begins_anew() {
    for algorithm in [Algorithm::Puct, Algorithm::Gumbel] {
        let (game, network) = setup("othello", "");
        let mut settings = Settings { threads: 1, ..settings(game.as_ref()) };
        settings.params.algorithm = algorithm;
        let failing = FailsOnce(network, Arc::default());
        let mut engine = Engine::new(game, &failing, settings).expect("valid");
        engine.analyse(&Limit::simulations(2000)).expect_err("the 21st forward");
        let found = engine.analyse(&Limit::simulations(2000)).expect("a position");
        let fresh = engine_with("othello", |s| (s.threads, s.params.algorithm) = (1, algorithm));
        let expected = { fresh }.analyse(&Limit::simulations(2000)).expect("a position");
        assert_eq!(facts(&found), facts(&expected), "{algorithm}");
    }
}
