//! The network of an epoch, made once from the trainer's weights or their average: self-play, evaluation, files and workers all take it from here.

use super::factory::ComponentFactory;
use crate::backend::AnyGame;
use crate::config::Config;
use crate::error::Result;
use crate::math;
use crate::net::{Network, Weights};
use crate::weights::{FileTemplate, NetFile};

/// The weights that play after an epoch, on the host.
pub struct EpochNetwork {
    /// The network's file, with the weights.
    pub file: NetFile,
    /// The network for self-play and evaluation, with the same weights.
    pub network: Box<dyn Network>,
}

impl EpochNetwork {
    /// The network with `weights` after a number of `updates`, whose files are made by `template`.
    ///
    /// # Errors
    /// Those of [`FileTemplate::file`] and of [`ComponentFactory::network`].
    pub fn new(
        factory: &dyn ComponentFactory,
        config: &Config,
        game: &dyn AnyGame,
        template: &FileTemplate,
        (weights, updates): (Weights, u64),
    ) -> Result<Self> {
        let file = template.file(weights, updates)?;
        let network = factory.network(config, game, &file.header.net, &file.weights)?;
        Ok(Self { file, network })
    }
}

/// The weights of the next network, after `before`: those of `before`, moved towards `newest`, the trainer's after `updates` updates, as
/// `train.average` says.
pub fn averaged(config: &Config, before: &NetFile, mut newest: Weights, updates: u64) -> Weights {
    let new = updates.saturating_sub(before.header.updates) as f64;
    if new == 0.0 {
        return before.weights.clone();
    }
    let window = config.train.average * updates as f64;
    // The weight of what came before; with the first updates of a run there is nothing to keep.
    let kept = if new < window { (1.0 - new / window) as f32 } else { 0.0 };
    if kept > 0.0 {
        for (newest, before) in newest.values_mut().zip(before.weights.values()) {
            for (newest, before) in newest.data.iter_mut().zip(&before.data) {
                *newest = math::mul_add(kept, before - *newest, *newest);
            }
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;
    use crate::net::NetSpec;
    use crate::registry::any_game;

    #[test]
    fn weights_are_averaged_over_a_share_of_the_updates() {
        let config = |average: f64| {
            let layers = Layers::default()
                .set(&format!("train.average={average}"))
                .and_then(|l| l.set("net.arch=mlp"));
            layers.and_then(Layers::resolve).expect("valid")
        };
        let game = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let spec = NetSpec::new(&config(0.0).net, &game.sizes());
        let model = spec.model().expect("valid");
        let [first, second] = [1, 2].map(|seed| model.initial_weights(seed));
        let before = NetFile::new(game.as_ref(), &spec, first.clone(), 900).expect("finite");
        // 100 of 1,000 updates are new: all of a window of 5 %, half of one of 20 %, an eighth of one of 80 %.
        // At last none is new.
        for (average, share, updates) in
            [(0.0, 1.0, 1000), (0.05, 1.0, 1000), (0.2, 0.5, 1000), (0.8, 0.125, 1000), (0.2, 0.0, 900)]
        {
            let found = averaged(&config(average), &before, second.clone(), updates);
            assert!(found.keys().eq(second.keys()));
            for (found, (first, second)) in found.values().zip(first.values().zip(second.values())) {
                for (found, (first, second)) in found.data.iter().zip(first.data.iter().zip(&second.data)) {
                    assert!((found - (first + share * (second - first))).abs() < 1e-6, "{average}");
                }
            }
        }
        assert_eq!(averaged(&config(0.2), &before, second.clone(), 900), before.weights, "bit for bit");
        let fresh = NetFile::new(game.as_ref(), &spec, first, 0).expect("finite");
        assert_eq!(averaged(&config(0.2), &fresh, second.clone(), 50), second, "the first updates of a run");
    }
}
