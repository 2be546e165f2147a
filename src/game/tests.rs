//! What the tests of several games share.

use super::{Game, History};

/// The legal actions at `s`, without a history.
pub(super) fn legal<G: Game>(game: &G, s: &G::State) -> Vec<u16> {
    let mut out = vec![0; game.sizes().num_edges()];
    let count = game.legal(s, History::default(), &mut out);
    out.truncate(count);
    out
}

/// The position after the actions of these names, spaces between them, from the start.
pub(super) fn play<G: Game>(game: &G, names: &str) -> G::State {
    let mut s = game.init();
    play_on(game, &mut s, names);
    s
}

/// Plays the actions of these names, spaces between them, at `s`.
pub(super) fn play_on<G: Game>(game: &G, s: &mut G::State, names: &str) {
    for name in names.split_whitespace() {
        let action = game.parse_action(s, History::default(), name).expect(name);
        game.step(s, action, History::default());
    }
}

/// Checks that each of the options is refused in one line with the part beside it.
pub(super) fn assert_refused<G: Game>(cases: &[(&str, &str)]) {
    for (options, part) in cases {
        let refused = G::from_options(&options.parse().expect("TOML")).map(drop);
        let message = refused.expect_err(options).to_string();
        assert!(message.contains(part) && !message.contains('\n'), "{message}");
    }
}
