//! Tests and openings of matches, and the ladder of a run's networks.

use super::*;

fn eval(arguments: &[&str]) -> Value {
    let own = run();
    let fixed = ["eval", own.as_str(), "--sims", "8", "--json", "-"];
    records(&stdout(vecaz(&fixed).args(arguments))).remove(0)
}

fn file(name: &str, text: &str) -> String {
    let path = sibling_path(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

#[test]
fn a_test_decides_alike_with_any_number_of_threads() {
    let test = ["--against", "random", "--sprt", "0,100", "--seed", "4"];
    let rows: Vec<Value> =
        ["1", "2", "3"].iter().map(|threads| eval(&[&test[..], &["--threads", threads]].concat())).collect();
    assert!(rows[0] == rows[1] && rows[0] == rows[2], "{rows:?}");
    let (row, sprt) = (&rows[0], &rows[0]["sprt"]);
    assert_eq!((&sprt["accepted"], &sprt["elo0"], &sprt["elo1"]), (&json!("H1"), &json!(0.0), &json!(100.0)));
    let pairs: u64 = sprt["pairs"].as_array().expect("counts").iter().filter_map(Value::as_u64).sum();
    assert!(row["games"] == 2 * pairs && pairs < 1000, "{row}");
    let bound = sprt["bounds"][1].as_f64().expect("a bound");
    assert!(
        (bound - 19f64.ln()).abs() < 1e-12 && sprt["llr"].as_f64().is_some_and(|llr| llr >= bound),
        "{row}"
    );
    let text = stdout(&mut vecaz(&[&["eval", &run(), "--sims", "8"], &test[..]].concat()));
    assert!(text.contains("\n  SPRT      H1 accepted: Elo +100 or more, not +0; LLR +"), "{text}");
    let undecided = eval(&["--against", "random", "--sprt", "-1,1", "--games", "3"]);
    assert!(undecided["sprt"]["accepted"].is_null() && undecided["games"] == 4, "whole pairs: {undecided}");
}

#[test]
fn matches_begin_with_the_openings_of_a_file() {
    let openings = file("openings.txt", "# the corner and a border cell\na1 b1\n0,1,2\n");
    let row = eval(&["--against", &run(), "--openings", &openings]);
    assert_eq!(
        (&row["games"], &row["opening_plies"], &row["openings"]),
        (&json!(4), &json!(0), &json!(openings))
    );
    let many = ["eval", &run(), "--against", &run(), "--openings", &openings, "--games", "5"];
    let (code, line) = refusal(&mut vecaz(&many));
    assert!(
        code == 2 && line.contains("--games: got 5, expected at most 4, 2 for each of 2 openings"),
        "{line}"
    );
    for (text, part) in [
        ("", "has no openings, expected at least one line"),
        ("a1\ne2e4\n", "line 2: ply 0: action e2e4 is not legal here"),
        ("a1 a1\n", "line 1: ply 1: action a1 is not legal here"),
        ("0,3,1,4,2\n", "line 1: the game is over after these actions"),
    ] {
        let path = file("wrong_openings.txt", text);
        let (code, line) = refusal(&mut vecaz(&["eval", &run(), "--against", "random", "--openings", &path]));
        assert!(code == 1 && line.contains("wrong_openings.txt: ") && line.contains(part), "{line}");
    }
    let (_, line) = refusal(&mut vecaz(&["eval", &run(), "--against", "random", "--openings", "none.txt"]));
    assert!(line.starts_with("error: reading none.txt: ") && line.contains("(os error 2)"), "{line}");
}

#[test]
fn malformed_tests_are_refused() {
    for (text, code) in [("20,0", 2), ("many", 2), ("0", 2), ("0,nan", 2)] {
        let (found, line) = refusal(&mut vecaz(&["eval", &run(), "--against", "random", "--sprt", text]));
        assert_eq!(found, code);
        assert!(
            line.starts_with(&format!("error: --sprt: got {text}, expected two Elo differences")),
            "{line}"
        );
    }
    let repeated = ["eval", &run(), "--against", &run(), "--sprt", "0,20", "--opening-plies", "0"];
    let (_, line) = refusal(&mut vecaz(&repeated));
    assert!(line.contains("--opening-plies: got 0, expected 1 or more, or --openings"), "{line}");
}

#[test]
fn perfect_play_never_loses_and_seats_are_counted_apart() {
    let perfect = ["--against", "solver", "--opening-plies", "0", "--games", "60", "--seed", "4"];
    let row = eval(&perfect);
    assert_eq!((&row["wins"], &row["against"]), (&json!(0), &json!("solver")), "{row}");
    let [first, second] = [0, 1].map(|seat| {
        let counts = row["by_seat"][seat].as_array().expect("counts").iter().filter_map(Value::as_u64);
        counts.collect::<Vec<u64>>()
    });
    let sum: Vec<u64> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
    let total = ["wins", "draws", "losses"].map(|count| row[count].as_u64().expect("a count"));
    assert!(sum == total && second[2] > first[2], "{row}");
    let text = stdout(&mut vecaz(&[&["eval", &run(), "--sims", "8"], &perfect[..]].concat()));
    assert!(text.contains("\n  first     0 won, ") && text.contains("\n  second    0 won, "), "{text}");
}

#[test]
fn repeated_games_and_options_without_a_program_are_refused() {
    let repeated = ["--against", &run(), "--opening-plies", "0"];
    assert_eq!(eval(&repeated)["games"], json!(2), "as many as differ");
    for (more, part) in [
        (
            vec!["--against", &run(), "--opening-plies", "0", "--games", "4"],
            "--games: got 4, expected at most 2",
        ),
        (
            vec!["--against", "random", "--opponent-nodes", "7"],
            "--against: got random, expected gtp:COMMAND or uci:",
        ),
        (
            vec!["--against", "random", "--reply-timeout", "2"],
            "--against: got random, expected exec:COMMAND, ",
        ),
        (vec!["--against", &run(), "--opponent-seconds", "2"], ", expected gtp:COMMAND or uci:COMMAND with"),
    ] {
        let (code, line) = refusal(vecaz(&["eval", &run(), "--sims", "8"]).args(&more));
        assert!(code == 2 && line.contains(part), "{more:?}: {line}");
    }
}

/// One of several players may win few games and lead in points.
#[test]
fn several_players_are_measured_by_their_lead_and_have_no_elo() {
    let run = sibling_path("several").display().to_string();
    let mut command = vecaz(&["run", "--game", "blob", "--epochs", "1", "--out", &run]);
    TINY.iter().chain(&["game.cards=2", "eval.match_games=8"]).for_each(|setting| {
        command.args(["--set", setting]);
    });
    let printed = stdout(&mut command);
    assert!(printed.contains("strength: lead over the other seats in points"), "{printed}");
    let arguments = ["eval", &run, "--against", "random", "--games", "8", "--sims", "2"];
    let text = stdout(&mut vecaz(&arguments));
    assert!(text.contains("  lead  ") && !text.contains("Elo") && !text.contains("  score  "), "{text}");
    let row = records(&stdout(vecaz(&arguments).args(["--json", "-"]))).remove(0);
    assert!(row["elo"].is_null() && row["lead_per_game"].is_f64(), "{row}");
    let report = std::fs::read_to_string(Path::new(&run).join("report.html")).expect("read");
    assert!(
        report.contains("Lead in points") && !report.contains("Match score"),
        "a chart of the lead alone"
    );
    let other_game = ["eval", &run, "--ladder", "--every", "1", "--set", "game.cards=3"];
    let (_, line) = refusal(&mut vecaz(&other_game));
    assert!(line.contains("a ladder with these settings of the game: the file of a ladder is its"), "{line}");
    let text = stdout(vecaz(&["play", &run, "--sims", "3"]).write_stdin("quit\n")).replace("\n  ", " ");
    assert!(text.contains(", 3 simulations in each of 16 deals a move by "), "{text}");
}

/// Both players of `ramsey` get the same return: no network beats another.
#[test]
fn players_who_do_not_compete_have_a_return_and_no_elo() {
    let run = sibling_path("together").display().to_string();
    let mut command = vecaz(&["run", "--game", "clique", "--epochs", "2", "--out", &run]);
    TINY.iter().chain(&["game.n=5", "game.mode=ramsey", "eval.match_games=8"]).for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let metrics = std::fs::read_to_string(Path::new(&run).join("metrics.jsonl")).expect("read");
    let strength = records(&metrics).remove(0)["strength"].take();
    assert!(strength["mean_score"]["mean"].is_f64() && strength["match_score"].is_null(), "{strength}");
    let arguments = ["eval", &run, "--against", "random", "--games", "8", "--sims", "2"];
    let text = stdout(&mut vecaz(&arguments));
    assert!(text.contains("\n  return    "), "{text}");
    for absent in ["Elo", "win rate", "  score  ", " drawn"] {
        assert!(!text.contains(absent), "{text}");
    }
    let row = records(&stdout(vecaz(&arguments).args(["--json", "-"]))).remove(0);
    assert!(row["elo"].is_null() && row["score"].is_null() && row["win_rate"].is_null(), "{row}");
    assert!(row["draws"] == 0 && row["return_per_game"].is_f64(), "{row}");
    for (more, part) in [
        (vec!["--against", "random", "--sprt", "0,20"], "got 0,20 for clique with 2 players who do not"),
        (vec!["--ladder", "--every", "1"], "a ladder of clique, whose players do not compete"),
    ] {
        let (_, line) = refusal(vecaz(&["eval", &run, "--sims", "2"]).args(more));
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn a_ladder_ranks_later_networks_above_the_first_and_the_report_keeps_it() {
    let run = sibling_path("climbing").display().to_string();
    let mut command = vecaz(&["run", "--game", "hex", "--epochs", "6", "--out", &run]);
    let learning = [
        "game.size=4",
        "search.simulations=32",
        "train.replay_ratio=8.0",
        "selfplay.games=16",
        "selfplay.samples_per_epoch=600",
        "replay.capacity=10000",
    ];
    TINY.iter().chain(&learning).for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let path = Path::new(&run).join("ladder.json");
    let play = |more: &[&str]| {
        let ladder = ["eval", &run, "--ladder", "--every", "1", "--games", "40", "--sims", "2"];
        stdout(vecaz(&ladder).args(more))
    };
    let text = play(&[]);
    let written = std::fs::read_to_string(&path).expect("written");
    let ladder: Value = serde_json::from_str(&written).expect("JSON");
    let rungs = ladder["rungs"].as_array().expect("networks");
    let epochs: Vec<u64> = rungs.iter().filter_map(|rung| rung["epoch"].as_u64()).collect();
    // The first one, the checkpoints that are kept, and the best one.
    assert!(epochs[0] == 1 && epochs.ends_with(&[4, 5, 6]) && (4..=5).contains(&epochs.len()), "{epochs:?}");
    assert_eq!((&rungs[0]["strength"], &rungs[0]["interval"]), (&json!(0.0), &Value::Null));
    for rung in &rungs[rungs.len() - 3..] {
        assert!(rung["interval"][0].as_f64().is_some_and(|low| low > 50.0), "{ladder}");
    }
    let matches = ladder["matches"].as_array().expect("matches");
    assert_eq!(matches.len(), 2 * epochs.len() - 3, "neighbours and next but one");
    assert!(
        text.contains(&format!(": {} networks\n", epochs.len())) && text.contains("ladder.json"),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.starts_with("     ")).count(), epochs.len(), "{text}");
    // The same matches with other threads.
    let row: Value = serde_json::from_str(&play(&["--threads", "1", "--json", "-"])).expect("JSON");
    assert_eq!(row, ladder);
    let limited = play(&["--minutes", "0.000001"]);
    assert!(limited.contains(": 2 networks\n"), "{limited}");
    // The next epoch's report has it.
    stdout(&mut vecaz(&["run", "--resume", &run, "--epochs", "7"]));
    let page = std::fs::read_to_string(Path::new(&run).join("report.html")).expect("read");
    assert!(page.contains("<table class=\"ladder\">") && page.contains("Ladder of the run"), "no ladder");
    stdout(&mut vecaz(&["verify", &run]));
    std::fs::write(&path, "{}").expect("written");
    let resumed = vecaz(&["run", "--resume", &run, "--epochs", "8"]).output().expect("runs");
    assert!(resumed.status.success());
    let warning = String::from_utf8(resumed.stderr).expect("UTF-8");
    assert!(
        warning.contains("the report has no ladder: ") && warning.contains("no ladder: missing field"),
        "{warning}"
    );
}

/// Tic-tac-toe has solved positions, and the run of the tests the networks of three epochs: without updates, first and second.
#[test]
fn a_ladder_has_the_errors_on_solved_positions_beside_it() {
    let copy = sibling_path("laddered").display().to_string();
    verify::copy(Path::new(&run()), Path::new(&copy));
    let args = ["eval", &copy, "--ladder", "--every", "1", "--games", "4", "--sims", "8", "--json", "-"];
    let ladder: Value = serde_json::from_str(&stdout(&mut vecaz(&args))).expect("JSON");
    let metrics = records(&std::fs::read_to_string(Path::new(&copy).join("metrics.jsonl")).expect("read"));
    for (rung, epoch) in ladder["rungs"].as_array().expect("networks").iter().zip(0..) {
        assert_eq!(rung["epoch"], epoch);
        if let Some(record) = metrics.iter().find(|record| record["epoch"] == epoch) {
            let of = |row: &Value| row["search_outcome_error"].clone();
            assert_eq!(of(rung), of(&record["strength"]), "as the run has measured it: {rung}");
        }
    }
    assert_eq!(ladder["rungs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_ladder_without_networks_is_refused() {
    let own = sibling_path("one_epoch").display().to_string();
    let mut command = vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "1", "--out", &own]);
    TINY.iter().chain(&["run.keep_networks=0", "run.keep_checkpoints=1"]).for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let (code, line) = refusal(&mut vecaz(&["eval", &own, "--ladder"]));
    assert!(
        code == 1
            && line.contains("a ladder needs the networks of two epochs or more, the run has 1 network"),
        "{line}"
    );
    let weights = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");
    for (path, part) in [(weights, "not a run"), ("none", "reading none: ")] {
        let (code, line) = refusal(&mut vecaz(&["eval", path, "--ladder"]));
        assert!(code == 1 && line.contains(part), "{line}");
    }
    let (code, line) = refusal(&mut vecaz(&["eval", &own, "--ladder", "--minutes", "0"]));
    assert!(code == 2 && line.contains("--minutes: got 0, expected more than 0"), "{line}");
}

/// Networks that observe different things of the same game play each other, and are compared in a report.
#[test]
fn networks_that_see_other_things_play_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let runs = ["stones", "threats"].map(|sees| {
        let out = path(sees);
        let set = format!("game.network_sees={sees}");
        let mut run = vecaz(&["run", "--quiet", "--game", "connect_four", "--epochs", "1", "--games", "4"]);
        run.args([
            "--out",
            &out,
            "--seed",
            "3",
            "--set",
            &set,
            "--set",
            "net.channels=8",
            "--set",
            "eval.every=0",
        ]);
        run.args(["--set", "selfplay.samples_per_epoch=50", "--set", "train.min_samples=100000"]);
        stdout(&mut run);
        out
    });
    let [stones, threats] = [[0, 1], [1, 0]].map(|[own, other]| {
        let json = path("result.json");
        let sims = ["--sims", "8", "--games", "20", "--seed", "4", "--json", &json];
        stdout(vecaz(&["eval", &runs[own], "--against", &runs[other]]).args(sims));
        let row = records(&std::fs::read_to_string(json).expect("written")).remove(0);
        assert!(row["games"].as_u64() > Some(10), "{row}");
        row["score"].as_f64().expect("a score")
    });
    // The same games, seen from either side.
    assert!((stones + threats - 1.0).abs() < 1e-9, "{stones} and {threats}");
    let refused = ["eval", &runs[0], "--against", "random", "--set", "game.network_sees=threats"];
    let (code, line) = refusal(&mut vecaz(&refused));
    assert!(code == 1 && line.contains("network_sees = \"stones\""), "{line}");
    stdout(&mut vecaz(&[
        "report",
        &runs[0],
        &runs[1],
        "--games",
        "2",
        "--sims",
        "4",
        "--out",
        &path("page.html"),
    ]));
}
