//! Games of Othello in the Generic Game Format: `(;GM[Othello]..BO[8 .. *]B[F5//1.2]W[F6]..;)`.

/// The start of the game on 8x8 as the format writes it: rows from the top, `O` white, `*` black, and the colour to move.
const START: &str = "---------------------------O*------*O---------------------------*";

/// A game: the moves of both colours in their order, each as a point or `PA`.
///
/// # Errors
/// The defect in a sentence.
pub fn moves(text: &str) -> Result<Vec<String>, String> {
    let mut rest = text.trim();
    rest = rest.strip_prefix("(;").ok_or("the game does not begin with (;")?;
    let mut moves = Vec::new();
    while let Some(open) = rest.find('[') {
        let name = rest[..open].trim_start_matches([';', ' ']).trim();
        let close = rest[open..].find(']').ok_or_else(|| format!("the property {name} has no end"))? + open;
        let value = &rest[open + 1..close];
        match name {
            "GM" if !value.eq_ignore_ascii_case("othello") => {
                return Err(format!("the game is {value}, not Othello"));
            }
            "BO" => check_start(value)?,
            "B" | "W" => moves.push(name_of_move(value)),
            _ => {}
        }
        rest = &rest[close + 1..];
    }
    if !rest.trim().starts_with(";)") {
        return Err("the game does not end with ;)".into());
    }
    Ok(moves)
}

/// `8 BOARD COLOUR`, with any blanks.
fn check_start(value: &str) -> Result<(), String> {
    let (size, board) = value.trim().split_once(' ').ok_or("the board has no size")?;
    let board: String = board.chars().filter(|c| !c.is_whitespace()).collect();
    match (size, board.eq_ignore_ascii_case(START)) {
        ("8", true) => Ok(()),
        ("8", false) => Err("the board is not that of the start of a game".into()),
        _ => Err(format!("the board has the size {size}, expected 8")),
    }
}

/// The name of a move as the game writes it, from `F5/eval/time`.
pub fn name_of_move(text: &str) -> String {
    let name = text.split('/').next().unwrap_or_default().trim().to_lowercase();
    if name.starts_with("pa") { "pass".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAME: &str = "(;GM[Othello]PC[NBoard]DT[2014-02-21 20:52:27 GMT]PB[./mEdax]PW[chris]RE[?]TI[15:00]TY[8]\
                        BO[8 ---------------------------O*------*O--------------------------- *]B[F5]W[F6/1.5/2.0]B[pa];)";

    #[test]
    fn moves_are_read_in_their_order() {
        assert_eq!(moves(GAME), Ok(["f5", "f6", "pass"].map(String::from).to_vec()));
        let rows =
            "(;GM[Othello]BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- *];)";
        assert_eq!(moves(rows), Ok(Vec::new()));
    }

    #[test]
    fn other_games_and_damaged_ones_are_refused() {
        for (text, part) in [
            ("", "begin"),
            ("(;GM[Othello]", "end with"),
            ("(;GM[Othello", "GM has no end"),
            ("(;GM[Go];)", "is Go"),
            (&GAME.replace("BO[8", "BO[10"), "size 10"),
            (&GAME.replace("O*-", "O*O"), "not that of the start"),
        ] {
            let error = moves(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
