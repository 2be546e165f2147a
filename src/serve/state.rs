//! A table as JSON, with nothing that its viewer may not know.

use super::options::json_options;
use super::refusal::{Refusal, Served};
use super::seat::Seat;
use super::table::{Claim, Table};
use crate::backend::AnyGame;
use crate::batch::PastPly;
use crate::game::view::Viewer;
use crate::game::{Turn, result_text, winners, without_minus_zero};
use crate::protocol::dialogue::Ponder;
use serde_json::{Value, json};

/// The longest value of an option in a title: a FEN is longer.
const LONGEST_VALUE: usize = 24;

/// The game with its options, for people: "hex (size 9)".
pub fn title(game: &dyn AnyGame) -> String {
    let keys = game.keys().into_iter().filter(|key| key.value.len() < LONGEST_VALUE);
    let settings: Vec<String> = keys.map(|key| format!("{} {}", key.name, key.value)).collect();
    match settings.is_empty() {
        true => game.name().to_string(),
        false => format!("{} ({})", game.name(), settings.join(", ")),
    }
}

/// The table `id` in lists.
pub fn summary(id: &str, table: &Table) -> Value {
    json!({
        "id": id,
        "game": table.game().name(),
        "title": title(table.game().as_ref()),
        "plies": table.playthrough().actions().len(),
        "over": table.is_over(),
        "seats": table.seats().iter().map(Seat::kind).collect::<Vec<_>>(),
    })
}

/// The table `id` as `claim` may know it, at `ply` or at its present position.
///
/// # Errors
/// 400 for more plies than there are; those of [`Table::viewer`].
pub fn state(id: &str, table: &Table, claim: Claim<'_>, ply: Option<usize>) -> Served<Value> {
    let (game, viewer) = (table.game(), table.viewer(claim)?);
    let present = table.playthrough();
    let plies = present.actions().len();
    let ply = ply.unwrap_or(plies);
    if ply > plies {
        return Err(Refusal::bad(format!("ply: got {ply}, expected a whole number from 0 to {plies}")));
    }
    let earlier = (ply < plies).then(|| present.after(ply));
    let play = earlier.as_ref().unwrap_or(present);
    let view = play.view(viewer);
    let is_open = viewer == Viewer::All || !game.sizes().hidden_information;
    let notation = is_open.then(|| game.notation(play.state())).flatten();
    let over = play.turn() == Turn::Over;
    let returns = over.then(|| without_minus_zero(game.returns(play.state())));
    let zero_sum = game.sizes().zero_sum;
    let name_of = |player: u8| format!("player {player}");
    Ok(json!({
        "id": id,
        "version": table.version(),
        "game": game.name(),
        "options": json_options(&game.options()),
        "title": title(game.as_ref()),
        "hidden_information": game.sizes().hidden_information,
        "players": players(table, &view),
        "viewer": viewer_json(viewer),
        "ply": ply,
        "plies": plies,
        "turn": turn_json(play.turn()),
        "thinking": table.thinking().map(|thinking| {
            json!({ "player": thinking.player, "simulations": thinking.simulations })
        }),
        "searched": table.searched().map(|searched| {
            json!({ "player": searched.player, "visits": searched.visits, "simulations": searched.simulations })
        }),
        "paused": table.is_paused(),
        "error": table.error(),
        "history": (0..).zip(present.past(viewer)).map(past_json).collect::<Vec<_>>(),
        "result": returns.as_ref().map(|returns| result_text(returns, zero_sum, name_of)),
        "winners": returns.as_ref().map(|returns| winners(returns, zero_sum)),
        "scores": over.then(|| without_minus_zero(game.scores(play.state()))),
        "returns": returns,
        "points_of_value": game.points_of_value(),
        "notation": notation.map(|(name, text)| json!({ "name": name, "text": text })),
        // A position that was set up, before the first action. Its pieces are all of them, hidden ones too.
        "placed": (!table.has_secrets()).then(|| present.placed()).flatten(),
        // The seed and the rules give all deals.
        "seed": (!table.has_secrets()).then(|| table.seed()),
        "view": view,
    }))
}

fn players(table: &Table, view: &crate::game::view::View) -> Vec<Value> {
    let player = |(player, seat): (u8, &Seat)| {
        let engine = seat.engine();
        json!({
            "player": player,
            "kind": seat.kind(),
            "network": engine.map(|engine| &engine.network),
            "label": engine.map(|engine| &engine.label),
            "simulations": engine.and_then(|engine| engine.strength.simulations),
            "seconds": engine.and_then(|engine| engine.strength.seconds),
            "ponder": engine.is_some_and(|engine| engine.ponder == Ponder::Always),
            "colour": view.colours.get(usize::from(player)),
            "aim": table.game().aim(player),
        })
    };
    (0..).zip(table.seats()).map(player).collect()
}

fn viewer_json(viewer: Viewer) -> Value {
    match viewer {
        Viewer::Player(player) => json!(player),
        Viewer::Public => json!("public"),
        Viewer::All => json!("all"),
    }
}

fn turn_json(turn: Turn) -> Value {
    match turn {
        Turn::Player(player) => json!({ "kind": "player", "player": player }),
        Turn::Chance => json!({ "kind": "chance" }),
        Turn::Over => json!({ "kind": "over" }),
    }
}

fn past_json((ply, past): (usize, PastPly)) -> Value {
    let (kind, player) = match past.turn {
        Turn::Player(player) => ("player", Some(player)),
        Turn::Chance => ("chance", None),
        Turn::Over => ("over", None),
    };
    match past.known {
        Some(known) => json!({
            "ply": ply, "kind": kind, "player": player,
            "action": known.action, "name": known.name, "spot": known.spot,
        }),
        None => json!({ "ply": ply, "kind": kind, "player": player, "hidden": true }),
    }
}
