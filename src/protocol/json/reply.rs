//! Replies: what a search found -> a line of JSON.

use super::field::player_name;
use super::query::{IncludePolicy, ReportOptions, Viewpoint};
use crate::engine::Analysis;
use crate::protocol::position::Position;
use serde_json::{Value, json};

/// Whether a result is the last of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The search goes on.
    During,
    /// It is over.
    Final,
}

/// The result of a turn.
pub fn result(
    report: &ReportOptions,
    turn: usize,
    position: &Position,
    found: &Analysis,
    state: State,
) -> Value {
    // With two players the viewpoint of a value for the player to move is a sign.
    let sign = match report.viewpoint {
        Viewpoint::Player(player) if found.player != player => -1.0,
        _ => 1.0,
    };
    let names =
        |line: &[u16]| position.names(line, |play, action| play.game().action_name(play.state(), action));
    let own = found.own_value();
    let moves: Vec<Value> = found
        .moves
        .iter()
        .take(report.max_moves)
        .enumerate()
        .map(|(order, shown)| {
            let value = sign * shown.value.unwrap_or(own);
            json!({
                "move": shown.name, "action": shown.action, "order": order, "visits": shown.visits,
                "utility": value, "winrate": share(value), "prior": shown.prior, "policy": shown.policy,
                "pv": names(&shown.line),
            })
        })
        .collect();
    let mut reply = json!({
        "id": report.id, "turnNumber": turn, "isDuringSearch": state == State::During,
        "moveInfos": moves,
        "rootInfo": {
            "currentPlayer": player_name(position, found.player), "visits": found.visits,
            "utility": sign * own, "winrate": share(sign * own), "values": found.value, "winDrawLoss": found.outcome,
            "proven": found.proven,
            "simulations": found.simulations, "seconds": found.seconds,
        },
    });
    if report.policy == IncludePolicy::Yes {
        let mut policy = vec![-1.0; position.game().sizes().num_actions];
        found.moves.iter().for_each(|shown| policy[usize::from(shown.action)] = shown.prior);
        reply["policy"] = json!(policy);
    }
    reply
}

/// The share of points of a value in [-1, 1].
fn share(value: f32) -> f32 {
    (1.0 + value) / 2.0
}
