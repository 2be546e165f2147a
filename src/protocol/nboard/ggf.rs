//! Games of Othello in the Generic Game Format: `(;GM[Othello]..BO[8 .. *]B[F5//1.2]W[F6]..;)`.

use crate::game::set_up::PlacedPieces;

/// Cells of the board.
const CELLS: usize = 64;

/// A game that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ggf {
    /// The position in which it begins; None for the start of the game.
    pub placed: Option<PlacedPieces>,
    /// The moves of both colours in their order, each as a point or `pass`.
    pub moves: Vec<String>,
}

/// Reads a game.
///
/// # Errors
/// The defect in a sentence.
pub fn read(text: &str) -> Result<Ggf, String> {
    let mut rest = text.trim();
    rest = rest.strip_prefix("(;").ok_or("the game does not begin with (;")?;
    let (mut placed, mut moves) = (None, Vec::new());
    while let Some(open) = rest.find('[') {
        let name = rest[..open].trim_start_matches([';', ' ']).trim();
        let close = rest[open..].find(']').ok_or_else(|| format!("the property {name} has no end"))? + open;
        let value = &rest[open + 1..close];
        match name {
            "GM" if !value.eq_ignore_ascii_case("othello") => {
                return Err(format!("the game is {value}, not Othello"));
            }
            "BO" => placed = Some(board(value)?),
            "B" | "W" => moves.push(name_of_move(value)),
            _ => {}
        }
        rest = &rest[close + 1..];
    }
    if !rest.trim().starts_with(";)") {
        return Err("the game does not end with ;)".into());
    }
    Ok(Ggf { placed, moves })
}

/// The position of `8 BOARD COLOUR`, with any blanks: rows from the top, `O` white, `*` black, `-` empty, and the colour to move.
fn board(value: &str) -> Result<PlacedPieces, String> {
    let (size, marks) = value.trim().split_once(' ').ok_or("the board has no cells after its size")?;
    if size != "8" {
        return Err(format!("the board has the size {size}, expected 8"));
    }
    let marks: Vec<char> = marks.chars().filter(|mark| !mark.is_whitespace()).collect();
    let (colour, cells) = marks.split_last().filter(|(_, cells)| cells.len() == CELLS).ok_or_else(|| {
        format!("the board has {} marks, expected {CELLS} cells and the colour to move", marks.len())
    })?;
    let cell = |mark: &char| match mark {
        '-' => Ok('.'),
        mark => player(*mark).map(|player| char::from(b'0' + player)),
    };
    Ok(PlacedPieces { cells: cells.iter().map(cell).collect::<Result<_, _>>()?, player: player(*colour)? })
}

/// The player of a colour.
fn player(mark: char) -> Result<u8, String> {
    match mark {
        '*' => Ok(0),
        'O' | 'o' => Ok(1),
        _ => Err(format!("the board has {mark:?}, expected * for black, O for white, - for an empty cell")),
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
        let start = format!("{}10......01{}", ".".repeat(27), ".".repeat(27));
        let game = read(GAME).expect("a game");
        assert_eq!(game.moves, ["f5", "f6", "pass"]);
        assert_eq!(game.placed, Some(PlacedPieces { cells: start, player: 0 }));
        let rows =
            "(;GM[Othello]BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- *];)";
        assert_eq!(read(rows), Ok(Ggf { placed: game.placed, moves: Vec::new() }));
        assert_eq!(read("(;GM[Othello];)"), Ok(Ggf { placed: None, moves: Vec::new() }));
    }

    #[test]
    fn any_board_is_read_with_the_colour_to_move() {
        let other = GAME.replace("O*-", "o*O").replace(" *]", " O]");
        let placed = read(&other).expect("a game").placed.expect("a board");
        assert_eq!((&placed.cells[27..37], placed.player), ("101.....01", 1));
    }

    #[test]
    fn other_games_and_damaged_ones_are_refused() {
        for (text, part) in [
            ("", "begin"),
            ("(;GM[Othello]", "end with"),
            ("(;GM[Othello", "GM has no end"),
            ("(;GM[Go];)", "is Go"),
            ("(;BO[8];)", "no cells after its size"),
            (&GAME.replace("BO[8", "BO[10"), "size 10"),
            (&GAME.replace("O*-", "O*"), "64 marks, expected 64 cells and the colour to move"),
            (&GAME.replace("O*-", "Ox-"), "'x'"),
            (&GAME.replace(" *]", " -]"), "'-'"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
