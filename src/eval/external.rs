//! An external program as a player: `exec:COMMAND` of `vecaz eval --against`.
//!
//! One process is started per thread. It reads requests from stdin, one JSON object per line, and writes one reply line to
//! stdout for each. Requests of different games are interleaved, so each contains the whole game:
//!
//! ```json
//! {"game":"backgammon","options":{"short_game":false,"simple_doubles":false,"network_sees":"points",
//!  "cube":false,"match_points":0,"ply_limit":20000},"player":0,"actions":[0,13,39],"names":["player 0","6-4","24/20"],
//!  "legal":[33,39],"legal_names":["off/24","24/18"],"view":{"board":{"kind":"slots",..},..}}
//! ```
//!
//! (on one line). A request has nothing that the player to move may not know. `options` are all settings of the game. `actions` are all
//! actions and chance outcomes so far, `names` their names; both are null for those that the player does not see, such as cards that
//! others were dealt. `player` is the player to move, `legal` the legal actions, `legal_names` their names. `view` is the position as the
//! player sees it ([`crate::game::view::View`]). The reply is `{"action": 39}` or `{"action": "24/18"}`; other fields are ignored. stdin is closed after the last request. The last line of stderr is
//! shown if the program fails.

use super::program::{Program, shown};
use crate::batch::Playthrough;
use crate::batch::rollouts::Player;
use crate::error::Result;
use crate::game::Turn;
use crate::game::view::Viewer;
use crate::rng::Key;
use crate::stop::Stop;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// An external program that plays.
pub struct ExternalPlayer {
    program: Program,
}

impl ExternalPlayer {
    /// Starts `command` as [`Program::start`] does.
    ///
    /// # Errors
    /// Those of [`Program::start`].
    pub fn start(command: &str, timeout: Duration, withheld: &[String]) -> Result<Self> {
        Ok(Self { program: Program::start(command, timeout, withheld)? })
    }

    fn request(&mut self, position: &Playthrough) -> Result<u16> {
        let program = &mut self.program;
        if let Some(line) = program.early_line() {
            return Err(program.error(format!("wrote \"{}\" before a request", shown(&line))));
        }
        program.send(request_line(position));
        let line = program.line(Instant::now())?;
        parse_reply(position, &line)
            .ok_or_else(|| program.error(format!("replied \"{}\", {}", shown(&line), expected(position))))
    }
}

impl Player for ExternalPlayer {
    /// # Errors
    /// [`crate::Error::Opponent`] if the program exits, sends an invalid reply or exceeds the timeout, [`crate::Error::Stopped`] once a stop is
    /// requested. The program is then killed.
    fn choose(&mut self, position: &Playthrough, _key: Key) -> Result<u16> {
        self.request(position).inspect_err(|_| self.program.kill())
    }

    fn stop_by(&mut self, stop: &Stop) {
        self.program.stop_by(stop);
    }
}

/// The request line of a position: what the player to move may know.
fn request_line(position: &Playthrough) -> String {
    let game = position.game();
    let player = match position.turn() {
        Turn::Player(p) => Some(p),
        Turn::Chance | Turn::Over => None,
    };
    let viewer = player.map_or(Viewer::Public, Viewer::Player);
    let view = position.view(viewer);
    let (actions, names): (Vec<Option<u16>>, Vec<Option<String>>) =
        position.known_actions(viewer).into_iter().map(Option::unzip).unzip();
    let legal: Vec<u16> = view.actions.iter().map(|action| action.action).collect();
    let legal_names: Vec<&str> = view.actions.iter().map(|action| action.name.as_str()).collect();
    let line = json!({
        "game": game.name(), "options": game.options(), "player": player,
        "actions": actions, "names": names, "legal": legal, "legal_names": legal_names, "view": view,
    });
    format!("{line}\n")
}

/// The legal action of a reply; None if the reply is invalid.
fn parse_reply(position: &Playthrough, line: &str) -> Option<u16> {
    let reply: Value = serde_json::from_str(line).ok()?;
    match &reply["action"] {
        Value::Number(number) => {
            let action = u16::try_from(number.as_u64()?).ok()?;
            position.legal().contains(&action).then_some(action)
        }
        Value::String(name) => position.find(name),
        _ => None,
    }
}

fn expected(position: &Playthrough) -> String {
    let legal: Vec<String> = position.legal().iter().map(u16::to_string).collect();
    format!(
        "expected {{\"action\": A}} with A one of {} at ply {} of {}",
        shown(&legal.join(", ")),
        position.actions().len(),
        position.game().name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)] // which has the program `yes`
    #[test]
    fn control_characters_are_escaped() {
        let mut player =
            ExternalPlayer::start("yes \u{1b}[31m0", Duration::from_secs(60), &[]).expect("starts");
        let game = crate::registry::any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let error = player.request(&Playthrough::new(game)).expect_err("no action");
        assert!(error.to_string().contains("\"\\u{1b}[31m0\""), "{error}");
        assert_eq!(shown(&"9".repeat(1 << 20)).len(), crate::eval::program::SHOWN + 3);
    }

    /// In games of Blob with several rounds no request names a card that another player holds or that nobody holds.
    #[test]
    fn a_request_has_nothing_that_its_player_may_not_know() {
        let options = "players = 3\ncards = 3\nfull = true".parse().expect("TOML");
        let game = crate::registry::any_game("blob", &options).expect("registered");
        let mut requests = 0;
        for seed in 0..5 {
            let mut rng = Key::new(seed, crate::rng::Purpose::Evaluation).stream();
            let mut position = Playthrough::new(game.clone());
            while position.turn() != Turn::Over {
                if let Turn::Player(player) = position.turn() {
                    let state: crate::game::blob::State = bytemuck::pod_read_unaligned(position.state());
                    let open = state.hands[usize::from(player)]
                        | state.gone
                        | state.trick().iter().fold(0, |cards, card| cards | 1 << card);
                    let line = request_line(&position);
                    let mut earlier = Playthrough::new(game.clone());
                    let mut played = 0u64; // in earlier rounds too
                    for &action in position.actions() {
                        let is_card = earlier.turn() != Turn::Chance
                            && !game.action_name(earlier.state(), action).starts_with("bid");
                        played |= u64::from(is_card) << action;
                        earlier.step(action).expect("legal");
                    }
                    let own_deals = position.known_actions(Viewer::Player(player));
                    let dealt = |card: u16| own_deals.iter().flatten().any(|known| known.0 == card);
                    for card in (0..52u16).filter(|&card| (open | played) >> card & 1 == 0 && !dealt(card)) {
                        let name = game.action_name(&game.init(), card);
                        assert!(!line.contains(&format!("\"{name}")), "{name} in {line}");
                        requests += 1;
                    }
                    assert!(line.contains("\"names\":[") && line.contains("null"), "{line}");
                }
                let legal = position.legal();
                position.step(legal[rng.below(legal.len())]).expect("legal");
            }
        }
        assert!(requests > 1000, "{requests}");
    }

    #[test]
    fn only_numbers_and_names_of_legal_actions_are_valid_replies() {
        let game = crate::registry::any_game("tic_tac_toe", &toml::Table::new()).expect("registered");
        let mut position = Playthrough::new(game);
        position.step(4).expect("legal");
        for (line, action) in [
            ("{\"action\":3}", Some(3)),
            ("{\"action\": \"a1\", \"value\": 0.5}", Some(0)),
            ("{\"action\":\"8\"}", Some(8)),
            ("{\"action\":4}", None),
            ("{\"action\":\"b2\"}", None),
            ("{\"action\":-1}", None),
            ("{\"action\":3.5}", None),
            ("{\"action\":70000}", None),
            ("{\"action\":null}", None),
            ("{\"move\":3}", None),
            ("3", None),
            ("", None),
            ("{\"action\":3", None),
        ] {
            assert_eq!(parse_reply(&position, line), action, "{line}");
        }
    }
}
