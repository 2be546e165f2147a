//! The view of a position with its legal actions, as far as the viewer may know them.

use super::rules::{Game, History, Turn};
use super::view::{ActionView, View, Viewer};

/// The view of a position with its legal actions, or outcomes of chance, if `viewer` may know them: in games with hidden information a
/// player's actions are known only to that player, and outcomes of chance to nobody.
pub fn describe<G: Game>(game: &G, state: &G::State, history: History<'_>, viewer: Viewer) -> View {
    let mut view = game.view(state, viewer);
    let open = viewer == Viewer::All || !game.sizes().hidden_information;
    let knows_actions = match game.turn(state) {
        Turn::Player(player) => open || viewer.knows_hand_of(player),
        Turn::Chance => open,
        Turn::Over => false,
    };
    if knows_actions {
        let mut legal = vec![0; game.sizes().num_edges()];
        let count = game.legal(state, history, &mut legal);
        let action_view = |&action: &u16| ActionView {
            action,
            name: game.action_name(state, action),
            spot: game.spot(state, action),
        };
        view.actions = legal[..count].iter().map(action_view).collect();
    }
    view
}

/// True if `viewer` comes to know that `action` was taken in `state`.
pub fn is_known<G: Game>(game: &G, state: &G::State, action: u16, viewer: Viewer) -> bool {
    match viewer {
        Viewer::All => true,
        Viewer::Player(player) => game.sees_action(state, action, player),
        Viewer::Public => {
            (0..game.sizes().num_players as u8).all(|player| game.sees_action(state, action, player))
        }
    }
}
