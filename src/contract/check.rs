//! Checks a game against all laws.

use super::broken_law::BrokenLaw;
use super::law::caught;
use super::laws;
use super::trail::{Played, Trail};
use crate::game::Game;

/// Checks `G` with its default options and with each of its [`Game::VARIANTS`].
///
/// # Errors
/// The first law that does not hold.
pub fn check<G: Game>() -> Result<(), Box<BrokenLaw>> {
    for variant in std::iter::once(&"").chain(G::VARIANTS) {
        let broken = |what: String| {
            Box::new(BrokenLaw {
                game: G::NAME,
                options: variant.replace('\n', ", "),
                law: "variants_are_valid",
                what,
                actions: Vec::new(),
                names: Vec::new(),
            })
        };
        let options: toml::Table = variant.parse().map_err(|e: toml::de::Error| broken(e.to_string()))?;
        check_game(&G::from_options(&options).map_err(|e| broken(e.to_string()))?)?;
    }
    Ok(())
}

/// Checks a game with its settings.
///
/// # Errors
/// The first law that does not hold.
pub fn check_game<G: Game>(game: &G) -> Result<(), Box<BrokenLaw>> {
    for (law, holds) in laws::laws::<G>() {
        let trail = Trail::default();
        let found = caught(|| holds(game, &trail)).unwrap_or_else(|panic| Err(format!("panic: {panic}")));
        if let Err(what) = found {
            let Played { actions, names } = trail.into_played();
            let options = game.options().to_string().trim().replace('\n', ", ");
            return Err(Box::new(BrokenLaw { game: G::NAME, options, law, what, actions, names }));
        }
    }
    Ok(())
}
