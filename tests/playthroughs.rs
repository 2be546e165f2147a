//! Replays games played by independent implementations (`tests/oracles/` has the scripts): every file under
//! `tests/fixtures/playthroughs/`, one game a line, of any registered game.

#[path = "support/playthrough.rs"]
mod playthrough;

use std::path::Path;
use vecaz::registry::Registry;

#[test]
fn games_of_other_implementations_replay_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/playthroughs");
    playthrough::replay_folder(&Registry::built_in(), &folder);
}

/// The comparison finds one wrong entry of each kind in a game that agrees otherwise.
#[test]
fn differences_are_found() {
    let right = r#"{"game":"tic_tac_toe","options":{},"actions":[0,3,1,4,2],"plies":[
        {"kind":"player","to_play":0,"legal":[0,1,2,3,4,5,6,7,8]},{"kind":"player","to_play":1,"legal":[1,2,3,4,5,6,7,8]},
        {"kind":"player","to_play":0,"legal":[1,2,4,5,6,7,8]},{"kind":"player","to_play":1,"legal":[2,4,5,6,7,8]},
        {"kind":"player","to_play":0,"legal":[2,5,6,7,8]}],"returns":[1,-1]}"#;
    let registry = Registry::built_in();
    let replay = |line: &str| playthrough::replay(&registry, line);
    replay(right).unwrap();
    let wrong = [
        (r#""returns":[1,-1]"#, r#""returns":[0,0]"#, "returns"),
        (r#""legal":[2,5,6,7,8]"#, r#""legal":[2,5,6,7]"#, "ply 4: legal"),
        (r#""to_play":1,"legal":[1,"#, r#""to_play":0,"legal":[1,"#, "ply 1: Player"),
        (r#""actions":[0,3,1,4,2]"#, r#""actions":[0,3,1,4,5]"#, "should be over"),
        (
            r#""kind":"player","to_play":0,"legal":[0,"#,
            r#""kind":"chance","to_play":0,"legal":[0,"#,
            "ply 0: Player",
        ),
    ];
    for (from, to, expected) in wrong {
        assert!(right.contains(from));
        let said = replay(&right.replacen(from, to, 1)).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
}
