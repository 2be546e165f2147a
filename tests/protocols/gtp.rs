//! GTP for Go, Hex and Gomoku.

use super::{Client, parts, talk};
use vecaz::protocol::choice::ProtocolName::Gtp;
use vecaz::protocol::dialogue::{Parts, Ponder};

/// The answers to the commands of a script.
fn answers(parts: Parts, commands: &[&str]) -> Vec<String> {
    let text = talk(Gtp, parts, &commands.join("\n"));
    text.split_terminator("\n\n").map(|answer| answer.trim_end().to_string()).collect()
}

/// Plays a dialogue of commands and answers; `*` in an answer stands for any rest.
fn check(parts: Parts, dialogue: &[(&str, &str)]) {
    let commands: Vec<&str> = dialogue.iter().map(|(command, _)| *command).collect();
    let answers = answers(parts, &commands);
    assert_eq!(answers.len(), dialogue.len(), "{answers:?}");
    for ((command, expected), answer) in dialogue.iter().zip(&answers) {
        match expected.strip_suffix('*') {
            Some(start) => assert!(answer.starts_with(start), "{command}: {answer}"),
            None => assert_eq!(answer, expected, "{command}"),
        }
    }
}

#[test]
fn a_dialogue_about_go() {
    check(
        parts("go", "size = 9"),
        &[
            ("protocol_version", "= 2"),
            ("1 name", "=1 vecaz"),
            ("22 version", "=22 0.*"),
            ("known_command genmove", "= true"),
            ("known_command fly", "= false"),
            ("known_command", "? syntax error"),
            ("7 fly", "?7 unknown command"),
            ("boardsize 19", "? unacceptable size"),
            ("boardsize x", "? syntax error"),
            ("boardsize 9", "="),
            ("clear_board", "="),
            ("komi 5.5", "="),
            ("komi a", "? syntax error"),
            ("play b c3", "="),
            ("play w C3", "? illegal move"),
            ("play w J10", "? illegal move"),
            ("play w I5", "? illegal move"),
            ("play red e5", "? syntax error"),
            ("play b E5 # white has passed", "="),
            ("\tplay\tWHITE g7\u{7}", "="),
            ("showboard", "=*"),
            ("final_status_list alive", "= G7\nE5\nC3"),
            ("final_status_list dead", "="),
            ("final_status_list sleeping", "? syntax error"),
            ("undo", "="),
            ("undo", "="),
            ("final_score", "= B+75.5"),
            ("undo", "="),
            ("undo", "? cannot undo"),
            ("final_score", "= W+5.5"),
            ("genmove b", "= *"),
            ("reg_genmove w", "= *"),
            ("genmove", "? syntax error"),
            ("99 quit", "=99"),
        ],
    );
}

#[test]
fn handicaps_of_go() {
    check(
        parts("go", "size = 9"),
        &[
            ("fixed_handicap 3", "= C3 G7 C7"),
            ("fixed_handicap 3", "? board not empty"),
            ("final_status_list alive", "= C7\nG7\nC3"),
            ("genmove w", "= *"),
            ("clear_board", "="),
            ("fixed_handicap 1", "? invalid number of stones"),
            ("fixed_handicap 10", "? invalid number of stones"),
            ("place_free_handicap 30", "= C3 G7 C7 G3 C5 G5 E3 E7 E5"),
            ("clear_board", "="),
            ("set_free_handicap D4", "? bad vertex list"),
            ("set_free_handicap D4 D4", "? bad vertex list"),
            ("set_free_handicap D4 pass", "? bad vertex list"),
            ("set_free_handicap D4 E5 A1", "="),
            ("final_status_list alive", "= E5\nD4\nA1"),
            ("play w D5", "="),
        ],
    );
    check(parts("go", "size = 5"), &[("fixed_handicap 2", "? invalid number of stones")]);
    check(
        parts("hex", "size = 5"),
        &[("fixed_handicap 2", "? unknown command"), ("komi 1", "? unknown command")],
    );
}

/// After the two passes a client may go on, and the cleanup passes only when the board as it stands is won.
#[test]
fn play_goes_on_after_two_passes() {
    check(
        parts("go", "size = 5\nkomi = 0.5"),
        &[
            ("play b C3", "="),
            ("play w pass", "="),
            ("play b pass", "="),
            ("final_score", "= B+24.5"),
            ("play w B2", "="),
            ("kgs-genmove_cleanup b", "= *"),
            ("undo", "="),
            ("undo", "="),
            ("play b A1", "="),
        ],
    );
}

#[test]
fn scores_have_no_more_than_two_decimals() {
    check(
        parts("go", "size = 5\nkomi = 0.1"),
        &[("play b A1", "="), ("play w E5", "="), ("final_score", "= W+0.1")],
    );
}

#[test]
fn a_dialogue_about_hex() {
    check(
        parts("hex", "size = 5\nswap = true"),
        &[
            ("boardsize 5", "="),
            ("boardsize 5 6", "? unacceptable size"),
            ("boardsize 5 5 5", "? syntax error"),
            ("boardsize 5 5", "="),
            ("play black a2", "="),
            ("play black b2", "? illegal move"),
            ("play white a2", "? illegal move"),
            ("play white 7", "? syntax error"),
            ("play white swap-pieces", "="),
            ("showboard", "=*"),
            ("final_score", "? cannot score"),
            ("play black swap-pieces", "? illegal move"),
            ("play black a1", "="),
            ("genmove black", "? it is the other player's turn"),
            ("play white c3", "="),
            ("play black a2", "="),
            ("play white d3", "="),
            ("play black a3", "="),
            ("play white e3", "="),
            ("play black a4", "="),
            ("play white e4", "="),
            ("play black a5", "="),
            ("final_score", "= B+"),
            ("genmove white", "= resign"),
            ("reg_genmove white", "= resign"),
            ("genmove black", "? the game is over"),
            ("play white resign", "="),
            ("play black a1", "? illegal move"),
            ("final_score", "= B+"),
            ("undo", "="),
            ("genmove black", "= *"),
        ],
    );
}

/// HexGui as it connects, then a person's swap, which it tells by a new board with the one stone on it, and the swap taken back.
#[test]
fn a_dialogue_with_hexgui() {
    check(
        parts("hex", "size = 11\nswap = true"),
        &[
            ("name", "= vecaz"),
            ("version", "= 0.*"),
            ("hexgui-analyze_commands", "? unknown command"),
            ("boardsize 11 11", "="),
            ("clear_board", "="),
            ("clear_board", "="),
            ("showboard", "=*"),
            ("play black b4", "="),
            ("showboard", "=*"),
            ("clear_board", "="),
            ("play white d2", "="),
            ("play black swap-pieces", "? illegal move"),
            ("play black d2", "? illegal move"),
            ("genmove black", "= *"),
            ("play white d2", "? illegal move"),
            ("undo", "="),
            ("clear_board", "="),
            ("play black b4", "="),
            ("genmove white", "= *"),
            ("quit", "="),
        ],
    );
    check(parts("hex", "size = 11"), &[("play white d2", "? illegal move"), ("genmove black", "= *")]);
}

/// Benzene's match script, which ends a game by a resignation and tells it to the other program.
#[test]
fn a_dialogue_with_the_match_script_of_benzene() {
    let moves = ["a1", "b2", "a2", "b3", "a3"];
    let mut dialogue = vec![("boardsize 3 3", "="), ("name", "= vecaz"), ("version", "= 0.*")];
    let plays: Vec<String> =
        moves.iter().enumerate().map(|(ply, cell)| format!("play {} {cell}", ["b", "w"][ply % 2])).collect();
    dialogue.extend(plays.iter().map(|play| (play.as_str(), "=")));
    dialogue.extend([
        ("genmove w", "= resign"),
        ("play w resign", "="),
        ("final_score", "= B+"),
        ("quit", "="),
    ]);
    check(parts("hex", "size = 3"), &dialogue);
}

#[test]
fn a_dialogue_about_gomoku() {
    check(
        parts("gomoku", "size = 15"),
        &[
            ("boardsize 15", "="),
            ("play b H8", "="),
            ("play w J8", "="),
            ("play b I8", "? illegal move"),
            ("play w A1", "? illegal move"),
            ("play b swap", "? illegal move"),
            ("genmove b", "= *"),
            ("undo", "="),
            ("genmove b", "= *"),
        ],
    );
}

#[test]
fn moves_of_the_engine_are_legal_to_the_end() {
    for (game, options, passes) in
        [("go", "size = 5", true), ("hex", "size = 4", false), ("gomoku", "size = 6", false)]
    {
        let moves: Vec<String> = (0..80).map(|ply| format!("genmove {}", ["b", "w"][ply % 2])).collect();
        let moves: Vec<&str> = moves.iter().map(String::as_str).collect();
        let answers = answers(parts(game, options), &moves);
        let errors: Vec<&String> = answers.iter().filter(|answer| answer.starts_with('?')).collect();
        assert!(errors.iter().all(|error| *error == "? the game is over"), "{game}: {answers:?}");
        // In Hex the one who has lost resigns, and the other one has no move.
        assert_eq!(answers.contains(&"= resign".to_string()), game == "hex", "{answers:?}");
        assert_eq!(errors.is_empty(), passes, "{game}");
        assert!(answers[0].starts_with("= ") && answers.len() == 80, "{game}: {answers:?}");
    }
}

#[test]
fn analysis_is_told_as_leela_zero_and_katago_do() {
    let text = talk(Gtp, parts("go", "size = 9"), "lz-genmove_analyze b 1\n");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "= ");
    let played = lines.iter().find_map(|line| line.strip_prefix("play ")).expect("a move");
    let info = lines.iter().rev().find(|line| line.starts_with("info ")).expect("a line");
    let first: Vec<&str> = info.split(" info ").next().expect("a move").split_whitespace().collect();
    assert_eq!(first[..3], ["info", "move", played]);
    let number = |key: &str| -> i64 {
        let at = first.iter().position(|word| *word == key).unwrap_or_else(|| panic!("{key} in {info}"));
        first[at + 1].parse().expect("a number")
    };
    assert!((0..=10_000).contains(&number("winrate")) && (0..=10_000).contains(&number("prior")), "{info}");
    assert!(number("visits") > 0 && number("order") == 0 && number("lcb") <= number("winrate"), "{info}");
    assert!(first.contains(&"pv") && text.ends_with("\n\n"), "{text}");
    let text = talk(Gtp, parts("go", "size = 9"), "kata-genmove_analyze w 1 maxmoves 2 rootInfo true\n");
    let info = text.lines().rev().find(|line| line.starts_with("info ")).expect("a line");
    assert!(info.contains(" rootInfo visits 20 ") && info.matches("info move").count() <= 2, "{info}");
    assert!(info.contains(" winrate 0.") && info.contains(" utility "), "{info}");
}

/// The moves of the last line of analysis in a dialogue about Go on 5x5, by their names.
fn analysed(commands: &str) -> Vec<String> {
    let text = talk(Gtp, parts("go", "size = 5"), commands);
    let info = text.lines().rev().find(|line| line.starts_with("info ")).unwrap_or_else(|| panic!("{text}"));
    let mut names: Vec<String> = info
        .split("info move ")
        .skip(1)
        .map(|part| part.split(' ').next().expect("a point").into())
        .collect();
    names.sort();
    names
}

/// The other side passes where a colour moves twice in a row. A pass after that one would end a game that is not over.
#[test]
fn a_pass_answers_no_pass_that_was_put_in() {
    let moves = |before: &str, arguments: &str| {
        analysed(&format!("{before}kata-genmove_analyze b 1 {arguments} minmoves 30\n"))
    };
    let twice = moves("play b C3\n", "");
    assert!(twice.len() == 24 && !twice.contains(&"pass".to_string()), "{twice:?}");
    assert_eq!(moves("play b C3\n", "allow b A1,pass 1"), ["A1"]);
    assert_eq!(moves("play b C3\n", "allow b pass 1"), ["pass"], "there is no other move");
    assert_eq!(moves("play b C3\nplay w pass\n", "").len(), 25, "this pass is white's own");
    let commands = ["play b C3", "genmove b", "reg_genmove b"];
    let answers = answers(parts("go", "size = 5"), &commands);
    assert!(answers[1..].iter().all(|answer| answer.starts_with("= ") && answer != "= pass"), "{answers:?}");
}

/// `allow` and `avoid` restrict the search of the position, whoever's they are only where that player is to move.
#[test]
fn allowed_and_avoided_points_restrict_the_analysis() {
    let moves = |arguments: &str| analysed(&format!("kata-genmove_analyze b 1 {arguments}\n"));
    assert_eq!(moves("allow b A1,c3,E5 1 minmoves 30"), ["A1", "C3", "E5"]);
    assert_eq!(moves("allow b A1,C3,E5 1 avoid b C3 50 minmoves 30"), ["A1", "E5"]);
    assert_eq!(moves("avoid b pass 1 minmoves 30").len(), 25);
    assert_eq!(moves("allow w A1 1 minmoves 30").len(), 26);
    for (arguments, answer) in [
        ("allow b Z9 1", "? the allowed and avoided moves leave no legal move"),
        ("allow b A1", "? syntax error"),
        ("allow b A1 0", "? syntax error"),
    ] {
        let text = talk(Gtp, parts("go", "size = 5"), &format!("kata-analyze b 1 {arguments}\n"));
        assert_eq!(text.trim_end(), answer);
    }
}

/// An analysis goes on until a line comes, which is answered after it.
#[test]
fn an_analysis_ends_with_the_next_line() {
    for stop in ["name", "", "# a comment"] {
        let mut client = Client::start(Gtp, parts("go", "size = 9"));
        client.send("5 lz-analyze b 1");
        assert_eq!(client.wait_for("=5"), "=5");
        let visits = |line: &str| -> u64 {
            let words: Vec<&str> = line.split_whitespace().collect();
            words[words.iter().position(|word| *word == "visits").expect("visits") + 1]
                .parse()
                .expect("a number")
        };
        let first = visits(&client.wait_for("info move"));
        let later = visits(&client.wait_for("info move")).max(visits(&client.wait_for("info move")));
        assert!(later >= first, "{first} {later}");
        client.send(stop);
        while !client.line().is_empty() {}
        let rest = client.end();
        assert_eq!(rest.iter().filter(|line| line.starts_with('=')).count(), usize::from(stop == "name"));
    }
}

#[test]
fn pondering_changes_no_answer_and_ends_with_the_next_line() {
    let mut parts = parts("hex", "size = 5");
    parts.pace.ponder = Ponder::Always;
    let mut client = Client::start(Gtp, parts);
    for ply in 0..6 {
        client.send(&format!("genmove {}", ["b", "w"][ply % 2]));
        assert!(client.wait_for("=").len() > 2);
        client.send("known_command genmove");
        assert_eq!(client.wait_for("="), "= true");
    }
    assert!(client.end().iter().all(String::is_empty));
}

#[test]
fn an_interrupt_ends_a_move_early() {
    let mut client = Client::start(Gtp, {
        let mut parts = parts("go", "size = 9");
        parts.pace.simulations = None;
        parts.pace.time = Some(std::time::Duration::from_secs(3600));
        parts
    });
    client.send("genmove b");
    client.send("# interrupt");
    assert!(client.wait_for("=").len() > 2);
    client.end();
}

/// More lines than are read ahead wait for a move, and the first of them begins an analysis, which the second ends.
#[test]
fn an_analysis_that_had_to_wait_ends_with_the_line_after_it() {
    let lines = ["name\n"; 3000].concat();
    let text = talk(Gtp, parts("go", "size = 9"), &format!("genmove b\nlz-analyze w 1\n{lines}"));
    assert_eq!(text.matches("= vecaz\n\n").count(), 3000);
}
