//! FENs as other programs write them.

/// `fields` as the rules read them, and a sentence for each field that was changed: castling rights without king and rook at home, the
/// clock of a draw that nobody has claimed, and full move numbers that the rules do not have.
pub fn normalised(fields: &[&str]) -> (String, Vec<String>) {
    let board = fields.first().copied().unwrap_or_default();
    let changes = [
        (2, "castling rights", fields.get(2).map(|text| rights(board, text))),
        (4, "halfmove clock", fields.get(4).map(|text| halfmove_clock(text))),
        (5, "full move number", fields.get(5).map(|text| full_move(text))),
    ];
    let mut read: Vec<String> = fields.iter().copied().map(String::from).collect();
    let mut notes = Vec::new();
    for (at, name, text) in changes {
        if let Some(text) = text
            && text != read[at]
        {
            notes.push(format!("{name} {} in the FEN, read as {text}", read[at]));
            read[at] = text;
        }
    }
    (read.join(" "), notes)
}

/// The castling rights of `text` whose king and rook are at home; all of `text` if it is something else.
fn rights(board: &str, text: &str) -> String {
    if text.is_empty() || !text.chars().all(|letter| "KQkq".contains(letter)) {
        return text.into();
    }
    let ranks: Vec<Vec<char>> = board.split('/').map(squares).collect();
    let piece = |rank: usize, file: usize| ranks.get(rank).and_then(|rank| rank.get(file)).copied();
    let is_kept = |right: &char| {
        let (rank, king, rook) = if right.is_ascii_uppercase() { (7, 'K', 'R') } else { (0, 'k', 'r') };
        let rook_file = if right.eq_ignore_ascii_case(&'k') { 7 } else { 0 };
        [piece(rank, 4), piece(rank, rook_file)] == [Some(king), Some(rook)]
    };
    let kept: String = text.chars().filter(is_kept).collect();
    if kept.is_empty() { "-".into() } else { kept }
}

/// The squares of a rank: piece letters, and blanks.
fn squares(rank: &str) -> Vec<char> {
    let square = |letter: char| match letter.to_digit(9) {
        Some(empty) => std::iter::repeat_n(' ', empty as usize),
        None => std::iter::repeat_n(letter, 1),
    };
    rank.chars().flat_map(square).collect()
}

/// 0 where a draw could have been claimed: the game goes on.
fn halfmove_clock(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(100..) => "0".into(),
        _ => text.into(),
    }
}

/// The number that the rules have instead of 0 and of more than 9999.
fn full_move(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(0) => "1".into(),
        Ok(10_000..) => "9999".into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::chess::START_FEN;

    fn read(fen: &str) -> (String, Vec<String>) {
        normalised(&fen.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn fields_that_the_rules_refuse_are_changed() {
        for (fen, expected, notes) in [
            (START_FEN, START_FEN, 0),
            ("4k3/8/8/8/8/8/8/4K2R w K -", "4k3/8/8/8/8/8/8/4K2R w K -", 0),
            ("4k3/8/8/8/8/8/8/4K2R w KQkq - 99 9999", "4k3/8/8/8/8/8/8/4K2R w K - 99 9999", 1),
            ("r3k3/8/8/8/8/8/8/3K3R b KQkq - 100 0", "r3k3/8/8/8/8/8/8/3K3R b q - 0 1", 3),
            ("r2k4/8/8/8/8/8/8/R4K2 w Qq - 4 10000", "r2k4/8/8/8/8/8/8/R4K2 w - - 4 9999", 2),
            ("4k2R/8/8/8/8/8/8/4K2r w Kk - 0 1", "4k2R/8/8/8/8/8/8/4K2r w - - 0 1", 1),
        ] {
            let (read, changes) = read(fen);
            assert_eq!((read.as_str(), changes.len()), (expected, notes), "{fen}: {changes:?}");
        }
        let (_, changes) = read("4k3/8/8/8/8/8/8/4K2R w KQ - 0 1");
        assert_eq!(changes, ["castling rights KQ in the FEN, read as K"]);
    }

    #[test]
    fn what_is_no_fen_stays() {
        for text in ["", "x", "8/9/x w HAha - -5 -1", "9/88888888 w K", "// w kK - ä 1e3 z"] {
            let (read, _) = read(text);
            assert_eq!(read.split(' ').count(), text.split(' ').count(), "{text}");
        }
        assert_eq!(read("8/9/x w HAha - -5 -1").0, "8/9/x w HAha - -5 -1");
    }
}
