//! Games that keep the laws with the defaults of the trait, and names that a registry refuses.

use crate::as_inside::rules_as_inside;
use vecaz::contract;
use vecaz::game::hex::{Hex, State};
use vecaz::game::view::Viewer;
use vecaz::game::{Game, Sizes};
use vecaz::registry::Registry;

const NAMES: [&str; 4] = ["plain", "quick", "games/hex", ""];

/// Hex without symmetries and without a view, called by the name of this number.
#[derive(Clone)]
struct GameNamed<const NAME: usize>(Hex);

impl<const NAME: usize> Game for GameNamed<NAME> {
    type State = State;
    const NAME: &'static str = NAMES[NAME];

    rules_as_inside!(Hex);

    fn sizes(&self) -> Sizes {
        Sizes { num_symmetries: 1, point_actions: None, ..self.0.sizes() }
    }
}

#[test]
fn a_game_without_a_view_keeps_the_laws() {
    contract::check::<GameNamed<0>>().unwrap();
    let game = GameNamed::<0>::from_options(&toml::Table::new()).expect("the defaults");
    let text = vecaz::view::text(&game.view(&game.init(), Viewer::All));
    assert!(text.starts_with("State { stones: [") && text.lines().count() > 1, "{text}");
}

#[test]
fn a_name_that_runs_or_configurations_cannot_have_is_refused() {
    let refused = |registry: vecaz::Result<Registry>| registry.err().expect("refused").to_string();
    let [configuration, folder, empty] = [
        refused(Registry::built_in().with::<GameNamed<1>>()),
        refused(Registry::built_in().with::<GameNamed<2>>()),
        refused(Registry::built_in().with::<GameNamed<3>>()),
    ];
    assert!(
        configuration.contains("a game called quick: got a configuration of this name"),
        "{configuration}"
    );
    assert!(folder.contains("the name of a game: got \"games/hex\", expected letters"), "{folder}");
    assert!(empty.contains("the name of a game: got \"\", expected letters"), "{empty}");
    assert_eq!(Registry::built_in().with::<GameNamed<0>>().expect("a free name").default_name(), "plain");
}
