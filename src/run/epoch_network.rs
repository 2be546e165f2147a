//! The network of an epoch, made once from the trainer's weights: self-play, evaluation, files and workers all take it from here.

use super::factory::ComponentFactory;
use super::learner::Learner;
use crate::backend::AnyGame;
use crate::config::Config;
use crate::error::Result;
use crate::net::Network;
use crate::weights::{FileTemplate, NetFile};

/// The trainer's weights at the end of an epoch, copied to the host once.
pub struct EpochNetwork {
    /// The network's file, with the weights.
    pub file: NetFile,
    /// The network for self-play and evaluation, with the same weights.
    pub network: Box<dyn Network>,
}

impl EpochNetwork {
    /// The present network of `trainer`, whose files are made by `template`.
    ///
    /// # Errors
    /// Those of the device, of [`FileTemplate::file`] and of [`ComponentFactory::network`].
    pub fn new(
        factory: &dyn ComponentFactory,
        config: &Config,
        game: &dyn AnyGame,
        template: &FileTemplate,
        trainer: &dyn Learner,
    ) -> Result<Self> {
        let file = template.file(trainer.weights()?, trainer.updates())?;
        let network = factory.network(config, game, &file.header.net, &file.weights)?;
        Ok(Self { file, network })
    }
}
