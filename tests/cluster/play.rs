//! Games for the tests of this folder.

use std::sync::Arc;
use vecaz::backend::AnyGame;
use vecaz::backend::RootCache;
use vecaz::cluster::Incarnation;
use vecaz::cluster::chunk::{ChunkLimits, ChunkReader, ChunkWriter, Origin};
use vecaz::cluster::digest;
use vecaz::config::{Config, Layers};
use vecaz::net::{IoShape, NetSpec, UniformNet};
use vecaz::play::PlayPlan;
use vecaz::play::{FinishedGame, new_slots};
use vecaz::registry::any_game;
use vecaz::run::learner::learner;
use vecaz::selfplay::SelfPlay;
use vecaz::weights::NetFile;

/// A configuration with its game and the bounds that follow from them.
pub struct Setting {
    pub config: Config,
    pub game: Arc<dyn AnyGame>,
    pub plan: PlayPlan,
    pub limits: ChunkLimits,
    pub digest: [u8; 32],
    pub reader: ChunkReader,
}

impl Setting {
    pub fn new(text: &str) -> Self {
        let config = Layers::default().text(text, "test").and_then(Layers::resolve).expect("valid");
        let game = any_game(config.game_name(), &config.game_options()).expect("registered");
        Self {
            plan: PlayPlan::new(&config, &game.sizes()),
            limits: ChunkLimits::of(game.as_ref()).expect("small"),
            digest: digest(&config, game.as_ref()),
            reader: ChunkReader::new().expect("memory"),
            config,
            game,
        }
    }

    pub fn sender(&self, incarnation: Incarnation) -> Origin {
        Origin { name: "worker".into(), incarnation, digest: self.digest }
    }

    pub fn writer(&self, incarnation: Incarnation) -> ChunkWriter {
        ChunkWriter::new(self.sender(incarnation), self.limits).expect("memory")
    }

    /// A network with its first weights.
    #[cfg_attr(not(unix), expect(dead_code, reason = "the tests that start servers are those of Unix"))]
    pub fn network(&self) -> NetFile {
        let spec = NetSpec::new(&self.config.net, &self.game.sizes());
        let weights = learner(&self.config, &self.game, &spec, None).and_then(|learner| learner.weights());
        NetFile::new(self.game.as_ref(), &spec, weights.expect("weights"), 0).expect("a file")
    }

    /// The first games of a process, searched with a uniform network.
    pub fn play(&self, incarnation: Incarnation, count: usize) -> Vec<FinishedGame> {
        let slots =
            new_slots(incarnation.first_slot(), self.config.selfplay.games, self.game.as_ref(), &self.plan);
        let network = UniformNet(IoShape::of(&self.game.sizes()));
        let mut selfplay = SelfPlay::new(&self.game, &self.config, &network, slots, 1).expect("fits");
        selfplay.set_network(&network, RootCache::default()).expect("a network");
        let mut games = Vec::new();
        while games.len() < count {
            games.extend(selfplay.poll().expect("played"));
        }
        games.truncate(count);
        games
    }
}
