//! Text in other encodings: a byte-order mark is ignored, UTF-16 and Latin-1 are refused by name, one wrong byte does not end a game.

use super::*;

/// `text` in UTF-16 with its mark, as Windows' Notepad writes it.
fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().fold(vec![0xff, 0xfe], |mut bytes, unit| {
        bytes.extend(unit.to_le_bytes());
        bytes
    })
}

#[test]
fn a_mark_is_ignored_and_other_encodings_are_named_wherever_text_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    let file = path.to_str().expect("UTF-8");
    let at = format!("@{file}");
    let positions = include_str!("../../assets/positions/tic_tac_toe.jsonl").lines().next().expect("a line");
    let net = run();
    let inspect = ["inspect", "--game", "tic_tac_toe"];
    for (arguments, text) in [
        ([&inspect[..], &["--config", file]].concat(), "[search]\nleaves = 1 # Stra\u{df}e"),
        ([&inspect[..], &["--actions", &at]].concat(), "4,0 # \u{df}"),
        (vec!["eval", &net, "--sims", "2", "--positions", file], positions),
    ] {
        let plain = text.split(" #").next().expect("a beginning");
        std::fs::write(&path, [b"\xef\xbb\xbf", plain.as_bytes()].concat()).expect("written");
        stdout(&mut vecaz(&arguments));
        std::fs::write(&path, utf16(plain)).expect("written");
        let (code, line) = refusal(&mut vecaz(&arguments));
        let expected = format!("error: reading {file}: the text is in UTF-16, expected UTF-8\n");
        assert_eq!((code, line), (2, expected), "{arguments:?}");
        std::fs::write(&path, [plain.as_bytes(), b" # Stra\xdfe\n"].concat()).expect("written");
        let (code, line) = refusal(&mut vecaz(&arguments));
        assert!(code == 2 && line.contains(": byte 0xDF is not UTF-8 (the text may be in Latin-1"), "{line}");
    }
    let from_stdin = [&inspect[..], &["--actions", "-"]].concat();
    stdout(vecaz(&from_stdin).write_stdin(b"\xef\xbb\xbfb2,a1".as_slice()));
    let (code, line) = refusal(vecaz(&from_stdin).write_stdin(utf16("b2,a1")));
    assert_eq!((code, line.as_str()), (2, "error: reading stdin: the text is in UTF-16, expected UTF-8\n"));
}

#[test]
fn a_byte_that_is_not_utf8_does_not_end_a_game() {
    let text = stdout(vecaz(&["play", &run(), "--sims", "8"]).write_stdin(b"b\xfc\nb2\nquit\n".as_slice()));
    assert!(text.contains("is not legal here") && text.contains("player 1 (the network) plays "), "{text}");
}

#[test]
fn suits_are_letters_without_utf8_and_json_is_unchanged() {
    let inspect = |arguments: &[&str], locale: &str| {
        let mut command = vecaz(&["inspect", "--legal", "--game", "blob", "--set", "game.cards=1"]);
        command.args(arguments).env("LC_ALL", locale);
        stdout(&mut command)
    };
    let [ascii, utf8] = ["C", "C.UTF-8"].map(|locale| inspect(&[], locale));
    assert!(ascii.is_ascii() && ascii.contains("=KH ") && utf8.contains("=K♥ "), "{ascii}\n{utf8}");
    assert_eq!(inspect(&["--json"], "C"), inspect(&["--json"], "en_GB.UTF-8"));
    assert!(inspect(&["--json"], "C").contains("K♥"));
    let (_, line, _) =
        failure(vecaz(&["inspect", "--game", "blob", "--actions", "XX"]).env("LC_ALL", "de_DE.ISO-8859-1"));
    assert!(line.is_ascii() && line.contains("action XX is not legal here"), "{line}");
}
