//! Many positions at once, each searched in a new tree: matches and solved positions.

use super::settings::Settings;
use crate::backend::AnyGame;
use crate::batch::Playthrough;
use crate::error::Result;
use crate::game::Turn;
use crate::net::Network;
use crate::play::act::sum_determinisations;
use crate::rng::Purpose;
use crate::search::root::{Exploration, RootSummary, RowKey};
use crate::searcher::{SearchRequest, Searchers};
use crate::stop::Stop;

/// Searches of many positions at once, each in a new tree of `params.simulations` simulations. Threads share the positions, and results
/// do not depend on their number.
pub struct PositionBatch {
    searchers: Searchers,
    simulations: u32,
    determinisations: usize,
}

impl PositionBatch {
    /// The search of up to `positions` at once by `settings`, whose `params.simulations` is that of every position and deal. L is
    /// `settings.leaves`, 1 for 0.
    ///
    /// # Errors
    /// Those of [`Searchers::new`].
    pub fn new(
        game: &dyn AnyGame,
        network: &dyn Network,
        settings: Settings,
        positions: usize,
    ) -> Result<Self> {
        let params = settings.batch_params();
        let (d, threads) = (settings.deals(&game.sizes()), settings.num_threads());
        Ok(Self {
            searchers: Searchers::new(game, network, params, settings.placement, positions * d, threads)?,
            simulations: params.simulations,
            determinisations: d,
        })
    }

    /// From now on searches fail with [`crate::Error::Stopped`] once `stop` is requested.
    pub fn stop_by(&mut self, stop: &Stop) {
        self.searchers.stop_by(stop);
    }

    /// Searches each position, where a player must be to move; `keys[i]` is the key of `plays[i]`'s random numbers.
    ///
    /// # Errors
    /// Those of the network and the device.
    pub fn search(&mut self, plays: &[&Playthrough], keys: &[RowKey]) -> Result<Vec<RootSummary>> {
        let deals =
            plays.iter().zip(keys).flat_map(|(play, key)| determinised(play, *key, self.determinisations));
        let found =
            self.searchers.search(&deals.collect::<Vec<_>>(), self.simulations, Exploration::Plain)?;
        if self.determinisations == 1 {
            return Ok(found);
        }
        let sum = |parts: &[RootSummary]| {
            let mut sum = RootSummary::default();
            sum_determinisations(parts, &mut sum);
            sum
        };
        Ok(found.chunks_exact(self.determinisations).map(sum).collect())
    }
}

/// The positions to search: `d` deals that agree with what the player to move knows, or the position itself without hidden information.
pub fn determinised(play: &Playthrough, key: RowKey, d: usize) -> Vec<SearchRequest> {
    let game = play.game();
    if !game.sizes().hidden_information {
        return vec![SearchRequest { state: play.state().to_vec(), history: play.history().to_vec(), key }];
    }
    let player = match play.turn() {
        Turn::Player(p) => p,
        Turn::Chance | Turn::Over => 0,
    };
    let draw = |determinisation: u64| {
        let key = RowKey { determinisation, ..key };
        let mut rng = key.key(Purpose::Determinise).stream();
        let state = game.determinise(play.state(), player, &mut rng);
        SearchRequest { state, history: play.history().to_vec(), key }
    };
    (0..d as u64).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::net::{HashNet, IoShape};
    use crate::registry::any_game;
    use std::sync::Arc;

    /// A game with these cards dealt.
    fn dealt(game: &Arc<dyn AnyGame>, names: &str) -> Playthrough {
        let mut play = Playthrough::new(game.clone());
        names.split_whitespace().for_each(|name| play.step_text(name).expect("legal"));
        play
    }

    #[test]
    fn determinisations_do_not_depend_on_hidden_hands() {
        let options = "players = 3\ncards = 2\ndealer = 2\nnetwork_sees = 'deal'";
        let game = any_game("blob", &options.parse().expect("TOML")).expect("valid");
        let one = dealt(&game, "2♠ K♥ Q♥ 3♦ 9♣ 10♥");
        let other = dealt(&game, "2♠ A♠ A♥ 3♦ A♣ A♦");
        assert_eq!((one.turn(), other.turn()), (Turn::Player(0), Turn::Player(0)));
        assert_ne!(one.state(), other.state());
        let key = RowKey { seed: 5, ..RowKey::default() };
        let (drawn, same) = (determinised(&one, key, 8), determinised(&other, key, 8));
        assert_eq!(drawn, same);
        let mut states: Vec<&[u8]> = drawn.iter().map(|position| position.state.as_slice()).collect();
        states.sort_unstable();
        states.dedup();
        assert_eq!(states.len(), 8, "all draws are different deals");
    }

    /// Without hidden information there is one deal, and never none.
    #[test]
    fn every_position_has_a_result_whatever_number_of_deals_is_set() {
        let found = |play: &Playthrough, game: &Arc<dyn AnyGame>, determinisations: usize| {
            let sizes = game.sizes();
            let network = HashNet(IoShape::of(&sizes));
            let settings =
                Settings { determinisations, threads: 1, ..Settings::new(&Config::default(), &sizes) };
            let mut batch = PositionBatch::new(game.as_ref(), &network, settings, 5).expect("it fits");
            batch.search(&[play; 5], &[RowKey::default(); 5]).expect("searched")
        };
        let open = any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let start = Playthrough::new(open.clone());
        let hidden =
            any_game("blob", &"players = 3\ncards = 2\ndealer = 2".parse().expect("TOML")).expect("valid");
        let hand = dealt(&hidden, "2♠ K♥ Q♥ 3♦ 9♣ 10♥");
        for (play, game, deals) in [(&start, &open, 0), (&start, &open, 5), (&hand, &hidden, 0)] {
            let (results, of_one) = (found(play, game, deals), found(play, game, 1));
            assert_eq!((results.len(), &results), (5, &of_one), "{deals} deals of {}", game.name());
        }
    }
}
