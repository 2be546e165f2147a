//! Smart Game Format 4, <https://www.red-bean.com/sgf/>.

use super::players::Players;
use crate::batch::Playthrough;
use crate::game::Turn;
use std::fmt::Write;

/// Moves of a line of text.
const MOVES_A_LINE: usize = 12;

/// The number of a game in SGF's property GM.
pub fn number(game: &str) -> Option<u8> {
    match game {
        "go" => Some(1),
        "othello" => Some(2),
        "gomoku" => Some(4),
        "hex" => Some(11),
        _ => None,
    }
}

/// A game as a tree of SGF.
pub fn write(play: &Playthrough, players: &Players<'_>) -> String {
    let game = play.game();
    let options = game.options();
    let mut text = format!(
        "(;FF[4]GM[{}]CA[UTF-8]AP[vecaz:{}]",
        number(game.name()).unwrap_or(1),
        env!("CARGO_PKG_VERSION")
    );
    if let Some(size) = options.get("size").and_then(toml::Value::as_integer) {
        let _ = write!(text, "SZ[{size}]");
    }
    if let Some(komi) = options.get("komi").and_then(toml::Value::as_float) {
        let _ = write!(text, "KM[{komi}]RU[Tromp-Taylor without suicide]");
    }
    let _ = write!(
        text,
        "PB[{}]PW[{}]RO[{}]",
        escaped(players.names[0]),
        escaped(players.names[1]),
        players.round
    );
    if let Some(result) = result(play, players) {
        let _ = write!(text, "RE[{result}]");
    }
    let mut moves = 0;
    let mut before = play.after(0);
    for &action in play.actions() {
        if let (Turn::Player(player), Some(value)) = (before.turn(), value(&before, action)) {
            text += if moves % MOVES_A_LINE == 0 { "\n;" } else { ";" };
            let _ = write!(text, "{}[{value}]", ["B", "W"][usize::from(player).min(1)]);
            moves += 1;
        }
        // The actions are those of a game that was played.
        if before.step(action).is_err() {
            break;
        }
    }
    text + ")\n"
}

/// The value of a move: a point by two letters, in Hex by letter and number, and the empty text for a pass.
fn value(play: &Playthrough, action: u16) -> Option<String> {
    let game = play.game();
    let name = game.action_name(play.state(), action);
    match game.name() {
        "hex" if name == "swap" => Some("swap-pieces".into()),
        "hex" => Some(name),
        "othello" if name == "pass" => Some(String::new()),
        "othello" => {
            let mut chars = name.chars();
            let column = chars.next()?;
            let row: u8 = chars.as_str().parse().ok()?;
            Some(format!("{column}{}", char::from(b'a' + row - 1)))
        }
        _ => game.sgf_point(action),
    }
}

/// `B+3.5`, `W+R`, `B+`, `0`; None for a game in progress.
fn result(play: &Playthrough, players: &Players<'_>) -> Option<String> {
    let [black, white] = players.returns?;
    if black == white {
        return Some("0".into());
    }
    let winner = if black > white { "B" } else { "W" };
    if players.resigned.is_some() {
        return Some(format!("{winner}+R"));
    }
    let scores = play.game().scores(play.state());
    match (play.game().name(), scores.as_slice()) {
        ("go" | "othello", [black, white]) => Some(format!("{winner}+{}", (black - white).abs())),
        _ => Some(format!("{winner}+")),
    }
}

/// Text in which a bracket or a backslash ends nothing.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace(']', "\\]").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;

    fn played(name: &str, options: &str, moves: &str) -> Playthrough {
        let mut play = Playthrough::new(any_game(name, &options.parse().expect("TOML")).expect("registered"));
        moves.split_whitespace().for_each(|name| play.step_text(name).expect("legal"));
        play
    }

    fn players(returns: Option<[f32; 2]>) -> Players<'static> {
        Players { names: ["a [b] \\", "c"], returns, resigned: None, round: 3 }
    }

    #[test]
    fn a_game_of_go_is_a_tree() {
        let play = played("go", "size = 5\nkomi = 0.5", "C3 B2 pass pass");
        let text = write(&play, &players(Some([-1.0, 1.0])));
        let expected = format!(
            "(;FF[4]GM[1]CA[UTF-8]AP[vecaz:{}]SZ[5]KM[0.5]RU[Tromp-Taylor without suicide]PB[a [b\\] \\\\]PW[c]RO[3]RE[W+0.5]\n\
             ;B[cc];W[bd];B[];W[])\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(text, expected);
        let resigned = Players { resigned: Some(0), ..players(Some([-1.0, 1.0])) };
        assert!(write(&play, &resigned).contains("RE[W+R]"));
        assert!(!write(&play, &players(None)).contains("RE["));
    }

    #[test]
    fn points_are_those_of_each_game() {
        let moves = |play: &Playthrough| {
            write(play, &players(Some([0.0, 0.0]))).lines().nth(1).expect("moves").to_string()
        };
        assert_eq!(
            moves(&played("hex", "size = 5\nswap = true", "a2 swap c3")),
            ";B[a2];W[swap-pieces];B[c3])"
        );
        assert_eq!(moves(&played("othello", "", "f5 d6")), ";B[fe];W[df])");
        assert_eq!(moves(&played("gomoku", "", "a1 h8")), ";B[aa];W[hh])");
        assert!(write(&played("gomoku", "", "a1"), &players(Some([0.0, 0.0]))).contains("RE[0]"));
    }
}
