//! Lines of JSON, for every game.

use super::{Client, parts, talk};
use serde_json::{Value, json};
use vecaz::batch::Playthrough;
use vecaz::game::Turn;
use vecaz::protocol::choice::ProtocolName::Json;
use vecaz::protocol::dialogue::Parts;
use vecaz::registry::Registry;

fn say(parts: Parts, queries: &[Value]) -> Vec<Value> {
    let script: String = queries.iter().map(|query| format!("{query}\n")).collect();
    let text = talk(Json, parts, &script);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_query_has_the_fields_of_katago() {
    let query = json!({
        "id": "a", "moves": [["B", "C3"], ["W", "D4"]], "initialPlayer": "B", "rules": "tromp-taylor", "komi": 6.5,
        "boardXSize": 9, "boardYSize": 9, "maxVisits": 40, "includePolicy": true, "analyzeTurns": [2, 0],
    });
    let replies = say(parts("go", "size = 9"), &[query]);
    assert_eq!(replies[0], json!({"id": "a", "field": "rules", "warning": "this field is not read"}));
    let [_, second, first] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!((&second["turnNumber"], &first["turnNumber"]), (&json!(2), &json!(0)));
    for reply in [first, second] {
        assert_eq!((&reply["id"], &reply["isDuringSearch"]), (&json!("a"), &json!(false)));
        let root = &reply["rootInfo"];
        assert_eq!((&root["currentPlayer"], &root["visits"]), (&json!("B"), &json!(40)));
        let moves = reply["moveInfos"].as_array().expect("moves");
        let visits: u64 = moves.iter().map(|shown| shown["visits"].as_u64().expect("visits")).sum();
        assert_eq!(visits, 40);
        let priors: f64 = moves.iter().map(|shown| shown["prior"].as_f64().expect("a prior")).sum();
        assert!((priors - 1.0).abs() < 1e-3, "{priors}");
        assert!(
            (0..moves.len())
                .all(|order| moves[order]["order"] == order && moves[order]["pv"][0] == moves[order]["move"])
        );
        let (winrate, utility) =
            (root["winrate"].as_f64().expect("a number"), root["utility"].as_f64().expect("a number"));
        assert!((winrate - (1.0 + utility) / 2.0).abs() < 1e-6);
        let policy = reply["policy"].as_array().expect("a policy");
        assert_eq!(policy.len(), 82);
        assert_eq!(policy.iter().filter(|p| p.as_f64() == Some(-1.0)).count(), 82 - moves.len());
    }
}

#[test]
fn winning_chances_are_told_from_the_side_that_is_asked_for() {
    // The second player is to move: black in chess, where white begins.
    for (game, options, first, to_move, other) in [
        ("go", "size = 5", "C3", "WHITE", "BLACK"),
        ("chess", "", "e2e4", "BLACK", "WHITE"),
        ("connect_four", "", "3", "WHITE", "BLACK"),
    ] {
        let query = |viewpoint: &str| json!({"id": viewpoint, "moves": [first], "overrideSettings": {"reportAnalysisWinratesAs": viewpoint}});
        let queries = ["SIDETOMOVE", "BLACK", "WHITE", "GREEN"].map(query);
        let replies = say(parts(game, options), &queries);
        let utility = |id: &str| {
            let reply = replies.iter().find(|reply| reply["id"] == id).expect("a reply");
            reply["rootInfo"]["utility"].as_f64().expect("a number")
        };
        let own = utility("SIDETOMOVE");
        assert!(own == utility(to_move) && own == -utility(other) && own != 0.0, "{game}: {replies:?}");
        assert!(
            replies.iter().any(|reply| reply["field"] == "overrideSettings" && reply["error"].is_string())
        );
    }
}

#[test]
fn a_side_is_asked_for_in_games_of_two_opponents_alone() {
    let query = json!({"id": "a", "moves": [], "overrideSettings": {"reportAnalysisWinratesAs": "BLACK"}});
    for (game, options) in [("clique", "mode = 'ramsey'"), ("blob", "players = 3\ncards = 1")] {
        let replies = say(parts(game, options), std::slice::from_ref(&query));
        let error = replies[0]["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("turn 0: chance decides")
                || error.contains("expected reportAnalysisWinratesAs SIDETOMOVE"),
            "{replies:?}"
        );
    }
}

/// Random games of all games: dice and cards by name or number, each decision analysed.
#[test]
fn every_game_is_analysed_at_every_decision() {
    let registry = Registry::built_in();
    for name in registry.names() {
        let game = registry.game(name, &Default::default()).expect("registered");
        let mut play = Playthrough::new(game);
        let mut rng = super::stream(5);
        let mut turns = Vec::new();
        while turns.len() < 12 && play.turn() != Turn::Over {
            if let Turn::Player(_) = play.turn() {
                turns.push(play.actions().len());
            }
            let legal = play.legal();
            play.step(legal[rng.below(legal.len())]).expect("legal");
        }
        let mixed = |(index, (action, name)): (usize, (&u16, String))| {
            if index % 2 == 0 { json!(action) } else { json!(name) }
        };
        let moves: Vec<Value> = play.actions().iter().zip(play.names()).enumerate().map(mixed).collect();
        let query = json!({"id": name, "moves": moves, "analyzeTurns": turns, "maxVisits": 6});
        let replies = say(parts(name, ""), &[query]);
        let numbers: Vec<usize> =
            replies.iter().map(|reply| reply["turnNumber"].as_u64().expect("a number") as usize).collect();
        assert_eq!(numbers, turns, "{name}: {replies:?}");
        for (reply, &turn) in replies.iter().zip(&turns) {
            let position = play.after(turn);
            let moves = reply["moveInfos"].as_array().expect("moves");
            assert_eq!(moves.len(), position.legal().len(), "{name} {turn}");
            assert!(
                moves.iter().all(|shown| position.find(shown["move"].as_str().expect("a name")).is_some()),
                "{name} {turn}"
            );
        }
    }
}

/// The fields of KataGo: lists for players, of which those of the player to move restrict the search.
#[test]
fn allowed_and_avoided_moves_restrict_the_search() {
    let all = json!({"id": "all", "moves": ["C3"], "analyzeTurns": [0, 1], "maxVisits": 30});
    let with = |id: &str, field: &str, lists: Value| {
        let mut query = all.clone();
        (query["id"], query[field]) = (json!(id), lists);
        query
    };
    let list = |player: &str, moves: Value| json!({"player": player, "moves": moves, "untilDepth": 1});
    let both = {
        let mut query = with("both", "allowMoves", json!([list("B", json!(["A1", "B1", 24]))]));
        query["avoidMoves"] = json!([list("B", json!(["B1"])), list("W", json!(["pass", "C3"]))]);
        query
    };
    let queries = [
        with("allow", "allowMoves", json!([list("B", json!(["A1", "C3", "Z9"]))])),
        with("avoid", "avoidMoves", json!([list("W", json!(["pass"]))])),
        both,
        with("none", "allowMoves", json!([list("W", json!(["C3"]))])),
        with("who", "allowMoves", json!([list("green", json!(["C3"]))])),
        with("what", "avoidMoves", json!([{"player": "B"}])),
        with("until", "avoidMoves", json!([{"player": "B", "moves": [], "untilDepth": 0}])),
        with("list", "avoidMoves", json!("pass")),
    ];
    let replies = say(parts("go", "size = 5"), &queries);
    let names = |id: &str, turn: u64| -> Vec<String> {
        let reply = replies.iter().find(|reply| reply["id"] == id && reply["turnNumber"] == turn);
        let reply = reply.unwrap_or_else(|| panic!("{id} {turn}: {replies:?}"));
        assert_eq!(reply["rootInfo"]["visits"], 30, "{id} {turn}");
        let mut names: Vec<String> = reply["moveInfos"]
            .as_array()
            .expect("moves")
            .iter()
            .map(|shown| shown["move"].as_str().expect("a name").to_string())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("allow", 0), ["A1", "C3"], "a point off the board means nothing");
    assert_eq!(names("allow", 1).len(), 25, "black's list says nothing of white");
    assert_eq!(names("avoid", 0).len(), 26);
    assert!(names("avoid", 1).len() == 24 && !names("avoid", 1).contains(&"pass".to_string()));
    assert_eq!(names("both", 0), ["A1", "E1"]);
    assert_eq!(names("both", 1).len(), 24);
    for (id, field, part) in [
        ("none", "allowMoves", "turn 1: the allowed and avoided moves leave no legal move"),
        ("who", "allowMoves", "player: got \"green\""),
        ("what", "avoidMoves", "moves: expected a list"),
        ("until", "avoidMoves", "untilDepth"),
        ("list", "avoidMoves", "expected a list"),
    ] {
        let reply = replies.iter().find(|reply| reply["id"] == id).expect("a reply");
        assert_eq!(reply["field"], field, "{reply}");
        assert!(reply["error"].as_str().is_some_and(|error| error.contains(part)), "{reply}");
    }
}

/// What a reply says does not depend on cards that the player to move cannot know.
#[test]
fn hidden_cards_change_nothing() {
    let options = "players = 3\ncards = 2\ndealer = 2";
    let reply = |cards: &str| {
        let moves: Vec<&str> = cards.split(' ').collect();
        let mut replies = say(
            parts("blob", options),
            &[json!({"id": "x", "moves": moves, "maxVisits": 50, "includePolicy": true})],
        );
        replies[0]["rootInfo"]["seconds"] = json!(0);
        replies.remove(0)
    };
    let one = reply("2♠ K♥ Q♥ 3♦ 9♣ 10♥");
    assert_eq!(one, reply("2♠ A♠ A♥ 3♦ A♣ A♦"));
    assert_ne!(one, reply("2♣ A♠ A♥ 3♦ A♣ A♦"), "another hand of the player to move");
    assert!(
        one["moveInfos"]
            .as_array()
            .expect("moves")
            .iter()
            .all(|shown| shown["pv"].as_array().map(Vec::len) == Some(1))
    );
}

#[test]
fn wrong_queries_are_answered_with_the_field() {
    for (query, field, part) in [
        (json!({"id": "x"}), "moves", "missing"),
        (json!({"id": "x", "moves": 3}), "moves", "a list"),
        (json!({"id": "x", "moves": ["e9"]}), "moves", "move 0: ply 0: action e9 is not legal"),
        (json!({"id": "x", "moves": [["green", "C3"]]}), "moves", "\"green\" is not to move"),
        (json!({"id": "x", "moves": [["B", "C3", 1]]}), "moves", "a pair"),
        (json!({"id": "x", "moves": [null]}), "moves", "got null"),
        (json!({"id": "x", "moves": [], "analyzeTurns": [1]}), "analyzeTurns", "from 0 to 0"),
        (json!({"id": "x", "moves": [], "analyzeTurns": []}), "analyzeTurns", "0 turns"),
        (json!({"id": "x", "moves": [], "maxVisits": 0}), "maxVisits", "1 or more"),
        (json!({"id": "x", "moves": [], "maxVisits": "many"}), "maxVisits", "0 or more"),
        (json!({"id": "x", "moves": [], "maxTime": 1e300}), "maxTime", "more seconds"),
        (json!({"id": "x", "moves": [], "includePolicy": 1}), "includePolicy", "true or false"),
        (json!({"id": "x", "moves": [], "priority": 0.5}), "priority", "whole"),
        (json!({"id": "x", "moves": [], "initialPlayer": "green"}), "initialPlayer", "\"green\" is not to"),
        (json!({"id": "x", "moves": [], "initialStones": 3}), "initialStones", "a list of pairs"),
        (
            json!({"id": "x", "moves": [], "initialStones": ["C3"]}),
            "initialStones",
            "stone 0: expected a pair",
        ),
        (json!({"id": "x", "moves": [], "initialStones": [["B", "pass"]]}), "initialStones", "stone 0"),
        (
            json!({"id": "x", "moves": [], "initialStones": [["B", "C3"], ["B", "C3"]]}),
            "initialStones",
            "stone 1",
        ),
        (
            json!({"id": "x", "moves": [], "initialStones": [["B", "A1"], ["W", "A2"], ["W", "B1"]]}),
            "initialStones",
            "the stones around A1 have no liberty",
        ),
        (
            json!({"id": "x", "moves": [], "initialStones": [["B", "C3"]], "initialPlayer": "green"}),
            "initialPlayer",
            "not to move",
        ),
        (json!({"id": "x", "moves": [], "boardXSize": 19}), "boardXSize", "expected 5"),
        (json!({"id": "x", "moves": [], "komi": "a"}), "komi", "a number"),
        (json!({"id": "x", "moves": [], "komi": 1000}), "komi", "game.komi"),
        (json!({"id": "x", "moves": ["pass", "pass", "C3"]}), "moves", "the game is over"),
        (json!({"id": "x", "action": "fly"}), "action", "expected query_version"),
        (json!({"id": "x", "action": "terminate"}), "terminateId", "missing"),
        (
            json!({"id": "x", "action": "terminate", "terminateId": "y", "turnNumbers": "0"}),
            "turnNumbers",
            "expected a list of numbers",
        ),
        (json!({"id": "x", "action": "terminate_all", "turnNumbers": 3}), "turnNumbers", "a list of numbers"),
        (json!({"id": 5, "moves": []}), "id", "a text"),
        (json!({"moves": []}), "id", "a text"),
    ] {
        let replies = say(parts("go", "size = 5"), std::slice::from_ref(&query));
        let error = replies[0]["error"].as_str().unwrap_or_else(|| panic!("{query}: {replies:?}"));
        assert!(replies[0]["field"] == field && error.contains(part), "{query}: {replies:?}");
        assert_eq!(replies.len(), 1, "{replies:?}");
    }
    for (query, field, part) in [
        (json!({"id": "x", "moves": [["1", "c3"]]}), "moves", "\"1\" is not to move"),
        (json!({"id": "x", "moves": [], "initialStones": [["0", "c3"]]}), "initialStones", "as moves"),
        (
            json!({"id": "x", "moves": [], "initialPlayer": "W"}),
            "initialPlayer",
            "got \"W\", and player 0 begins by the rules of hex",
        ),
    ] {
        let replies = say(parts("hex", "size = 5"), std::slice::from_ref(&query));
        let error = replies[0]["error"].as_str().unwrap_or_else(|| panic!("{query}: {replies:?}"));
        assert!(replies[0]["field"] == field && error.contains(part), "{query}: {replies:?}");
    }
    // Games without an option `size`.
    for (game, field, part) in [
        ("chess", "boardXSize", "expected 8"),
        ("connect_four", "boardYSize", "expected 6"),
        ("connect_four", "boardXSize", "expected 7"),
    ] {
        let replies = say(parts(game, ""), &[json!({"id": "x", "moves": [], field: 19})]);
        let error = replies[0]["error"].as_str().unwrap_or_else(|| panic!("{game}: {replies:?}"));
        assert!(replies[0]["field"] == field && error.contains(part), "{game}: {replies:?}");
    }
    let text = talk(Json, parts("go", "size = 5"), "{\n[]\n\n\"x\"\n");
    assert_eq!(text.lines().filter(|line| line.contains("\"error\":")).count(), 3, "{text}");
    let replies = say(parts("backgammon", ""), &[json!({"id": "dice", "moves": []})]);
    assert!(
        replies[0]["error"].as_str().is_some_and(|error| error.contains("chance decides")),
        "{replies:?}"
    );
}

/// A field that is null is one that is absent.
#[test]
fn nulls_say_nothing() {
    let fields = "analyzeTurns maxVisits maxTime includePolicy reportDuringSearchEvery priority maxMoves allowMoves \
                  avoidMoves initialStones initialPlayer boardXSize boardYSize komi overrideSettings";
    let mut query = json!({"id": "x", "moves": []});
    for field in fields.split_whitespace() {
        query[field] = Value::Null;
    }
    let end = json!({"id": "t", "action": "terminate_all", "turnNumbers": null});
    let replies = say(parts("go", "size = 5"), &[end.clone(), query]);
    assert_eq!(replies[0], end);
    assert!(replies.len() == 2 && replies[1]["turnNumber"] == 0, "{replies:?}");
}

/// Nobody need claim a draw by repetition, and play goes on after it. The end of a game has no results; the turns before it have.
#[test]
fn a_turn_at_the_end_has_no_results() {
    let dance = ["g1f3", "g8f6", "f3g1", "f6g8"];
    let moves = [dance, dance, ["f2f3", "e7e5", "g2g4", "d8h4"]].concat();
    for (game, options, moves, turns, last) in [
        ("chess", "", json!(moves), json!([8, 9, 12]), 12),
        ("go", "size = 5", json!(["C3", "pass", "pass"]), json!([0, 2, 3]), 3),
    ] {
        let query = json!({"id": "a", "moves": moves, "analyzeTurns": turns, "maxVisits": 5});
        let replies = say(parts(game, options), &[query]);
        let end = json!({"id": "a", "turnNumber": last, "isDuringSearch": false, "noResults": true});
        assert_eq!(replies[0], end, "{game}");
        let found: Vec<&Value> = replies[1..].iter().map(|reply| &reply["turnNumber"]).collect();
        assert_eq!(json!(found), json!(turns.as_array().expect("a list")[..2]), "{game}: {replies:?}");
        let is_analysed = |reply: &Value| reply["rootInfo"]["visits"].as_u64() > Some(0);
        assert!(replies[1..].iter().all(is_analysed), "{game}: {replies:?}");
    }
}

/// A handicap of Go: stones, or moves of one colour between which the other one passes.
#[test]
fn handicaps_of_go_are_placed() {
    let stones = json!([["B", "C3"], ["B", "G7"]]);
    let queries = [
        json!({"id": "stones", "moves": [["W", "C7"]], "initialStones": stones, "analyzeTurns": [0, 1]}),
        json!({"id": "moves", "moves": [["B", "C3"], ["B", "G7"], ["W", "C7"]], "analyzeTurns": [2, 3]}),
        json!({"id": "white", "moves": [], "initialStones": stones, "initialPlayer": "W"}),
        json!({"id": "black", "moves": [], "initialStones": stones}),
        json!({"id": "none", "moves": [], "initialStones": []}),
    ];
    let replies = say(parts("go", "size = 9"), &queries);
    let found: Vec<Value> = replies
        .iter()
        .map(|reply| {
            let moves = reply["moveInfos"].as_array().map(Vec::len);
            json!([reply["id"], reply["turnNumber"], reply["rootInfo"]["currentPlayer"], moves])
        })
        .collect();
    let expected = json!([
        ["stones", 0, "W", 80],
        ["stones", 1, "B", 79],
        ["moves", 2, "W", 80],
        ["moves", 3, "B", 79],
        ["white", 0, "W", 80],
        ["black", 0, "B", 80],
        ["none", 0, "B", 82],
    ]);
    assert_eq!(json!(found), expected, "{replies:?}");
}

/// White may move first in Go, on an empty board as well: by `initialPlayer`, else by the first move. No pass of black's comes before it, so
/// that a pass of white's does not end the game.
#[test]
fn white_may_move_first() {
    let queries = [
        json!({"id": "named", "moves": [], "initialPlayer": "W"}),
        json!({"id": "moves", "moves": [["W", "C3"], ["B", "D4"]], "initialPlayer": "w", "analyzeTurns": [0, 1, 2]}),
        json!({"id": "first", "moves": [["W", "C3"]], "analyzeTurns": [0, 1]}),
        json!({"id": "black", "moves": [["B", "C3"]], "initialPlayer": "W", "analyzeTurns": [0, 1]}),
        json!({"id": "null", "moves": [], "initialPlayer": null, "initialStones": null}),
        json!({"id": "pass", "moves": [["W", "pass"], ["B", "C3"]], "initialPlayer": "W", "analyzeTurns": [1, 2]}),
    ];
    let replies = say(parts("go", "size = 5"), &queries);
    let found: Vec<Value> = replies
        .iter()
        .map(|reply| json!([reply["id"], reply["turnNumber"], reply["rootInfo"]["currentPlayer"]]))
        .collect();
    let expected = json!([
        ["named", 0, "W"],
        ["moves", 0, "W"],
        ["moves", 1, "B"],
        ["moves", 2, "W"],
        ["first", 0, "W"],
        ["first", 1, "B"],
        ["black", 0, "W"],
        ["black", 1, "W"],
        ["null", 0, "B"],
        ["pass", 1, "B"],
        ["pass", 2, "W"],
    ]);
    assert_eq!(json!(found), expected, "{replies:?}");
}

/// A game of Go that `max_plies` cuts off is not over for a client: what is beyond the limit, or at it, is refused with the limit.
#[test]
fn moves_beyond_the_longest_game_are_refused_with_its_limit() {
    let pairs = json!([["B", "C3"], ["W", "D4"], ["B", "pass"], ["W", "B2"]]);
    let queries = [
        json!({"id": "beyond", "moves": ["C3", "D4", "E5", "B2"], "analyzeTurns": [0]}),
        json!({"id": "pairs", "moves": pairs}),
        json!({"id": "end", "moves": ["C3", "D4", "pass"], "analyzeTurns": [0, 3]}),
        json!({"id": "before", "moves": ["C3", "D4"]}),
        json!({"id": "over", "moves": ["C3", "pass", "pass"]}),
    ];
    let replies = say(parts("go", "size = 5\nmax_plies = 3"), &queries);
    for (id, field, part) in [
        ("beyond", "moves", "move 3: the game is cut off after 3 plies, its max_plies"),
        ("pairs", "moves", "move 3: the game is cut off after 3 plies"),
        ("end", "analyzeTurns", "turn 3: the game is cut off after 3 plies"),
    ] {
        let found: Vec<&Value> = replies.iter().filter(|reply| reply["id"] == id).collect();
        assert!(found.len() == 1 && found[0]["field"] == field, "{id}: {replies:?}");
        assert!(found[0]["error"].as_str().is_some_and(|error| error.contains(part)), "{id}: {replies:?}");
    }
    let of = |id: &str| replies.iter().find(|reply| reply["id"] == id).expect("a reply");
    assert_eq!((&of("before")["turnNumber"], &of("over")["noResults"]), (&json!(2), &json!(true)));
}

#[test]
fn queries_are_answered_by_priority_and_can_be_terminated() {
    let mut client = Client::start(Json, parts("othello", ""));
    let line = |client: &mut Client| -> Value { serde_json::from_str(&client.line()).expect("JSON") };
    let next = |client: &mut Client| loop {
        let reply = line(client);
        if reply["isDuringSearch"] != true {
            return reply;
        }
    };
    client.send(
        &json!({"id": "long", "moves": [], "maxTime": 3600, "reportDuringSearchEvery": 0.01}).to_string(),
    );
    let during = line(&mut client);
    assert!(during["isDuringSearch"] == true && during["rootInfo"]["visits"].as_u64() > Some(0), "{during}");
    for (id, priority) in [("low", -1), ("first", 5), ("second", 5), ("gone", 9)] {
        client.send(&json!({"id": id, "moves": [], "priority": priority, "maxVisits": 3}).to_string());
    }
    // Refused, and nothing ends.
    client.send(&json!({"id": "t", "action": "terminate_all", "turnNumbers": 0}).to_string());
    assert_eq!(next(&mut client)["field"], "turnNumbers");
    client.send(&json!({"id": "t", "action": "terminate", "terminateId": "gone"}).to_string());
    assert_eq!(
        next(&mut client),
        json!({"id": "gone", "turnNumber": 0, "isDuringSearch": false, "noResults": true})
    );
    assert_eq!(next(&mut client)["action"], "terminate");
    client.send(&json!({"id": "v", "action": "query_version"}).to_string());
    client.send(&json!({"id": "t", "action": "terminate", "terminateId": "long"}).to_string());
    let mut ids = Vec::new();
    while ids.len() < 6 {
        ids.push(next(&mut client)["id"].as_str().expect("an id").to_string());
    }
    assert_eq!(ids, ["v", "t", "long", "first", "second", "low"]);
    assert_eq!(client.end(), Vec::<String>::new());
}
