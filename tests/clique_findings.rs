//! What the clique game says is worth saving, against graphs that networkx judged and encoded: see
//! `tests/oracles/clique.py`.

use serde_json::Value;
use vecaz::batch::{Playthrough, any_game};
use vecaz::game::Turn;

#[test]
fn draws_of_avoid_clique_are_given_out_as_networkx_writes_them() {
    let mut found = 0;
    for line in include_str!("fixtures/clique_games.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a fixture line");
        let options = serde_json::from_value(case["options"].clone()).expect("options");
        let mut play = Playthrough::new(any_game("clique", &options).expect("a game"));
        for action in case["actions"].as_array().expect("actions") {
            assert_eq!(play.game().finding(play.state()), None, "the game still goes on");
            play.step(action.as_u64().expect("a number") as u16).expect("legal");
        }
        assert_eq!(play.turn(), Turn::Over);
        let finding = play.game().finding(play.state()).unwrap_or(Value::Null);
        assert_eq!(finding, case["finding"], "{}", case["options"]);
        found += usize::from(!finding.is_null());
    }
    assert_eq!(found, 4);
}
