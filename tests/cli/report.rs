//! The figures of `report.html` are those of `metrics.jsonl`.

use super::*;
use std::collections::BTreeMap;

/// The texts between `open` and `close`, in their order.
pub(super) fn between<'a>(page: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    page.split(open).skip(1).filter_map(|rest| Some(rest.split_once(close)?.0)).collect()
}

/// The value of a figure, and half a unit of its last digit: 12.3k is 12,300 plus or minus 50.
fn read(figure: &str) -> (f64, f64) {
    let plain = figure.replace(',', "");
    let plain = plain.trim_end_matches(" %");
    let (digits, unit) = match plain.strip_suffix(['k', 'M', 'G']) {
        Some(digits) => (
            digits,
            if plain.ends_with('k') {
                1e3
            } else if plain.ends_with('M') {
                1e6
            } else {
                1e9
            },
        ),
        None => (plain, 1.0),
    };
    let value: f64 = digits.parse().unwrap_or_else(|_| panic!("{figure} is not a number"));
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    // A final zero may have been removed, so the precision may be one digit more.
    (value * unit, 0.5 * unit * 0.1_f64.powi(decimals as i32) + 1e-9)
}

#[track_caller]
fn assert_is(figure: &str, expected: &Value, what: &str) {
    let (value, margin) = read(figure);
    let expected = expected.as_f64().unwrap_or_else(|| panic!("{what} is {expected} in metrics.jsonl"));
    assert!((value - expected).abs() <= margin, "{what}: {figure} on the page, {expected} in metrics.jsonl");
}

fn percent(share: &Value) -> Value {
    share.as_f64().map_or(Value::Null, |share| json!(100.0 * share))
}

/// The report of the tests' run and the lines of its metrics.
fn page_and_records() -> (String, Vec<Value>) {
    let folder = PathBuf::from(run());
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("read");
    (text("report.html"), records(&text("metrics.jsonl")))
}

fn minutes(record: &Value) -> Value {
    json!(record["seconds"].as_f64().expect("a time") / 60.0)
}

/// The outcome error as the page shows it, with its interval.
fn search_error(record: &Value) -> String {
    let strength = &record["strength"];
    let per_cent = |value: &Value| format!("{:.1}", 100.0 * value.as_f64().expect("a share"));
    let [low, high] = [0, 1].map(|end| per_cent(&strength["search_outcome_interval"][end]));
    format!("{} % err ({low}-{high})", per_cent(&strength["search_outcome_error"]))
}

#[test]
fn the_facts_of_the_report_are_those_of_metrics_jsonl() {
    let (page, records) = page_and_records();
    let last = records.last().expect("an epoch");
    let sum = |key: &str| json!(records.iter().filter_map(|record| record[key].as_u64()).sum::<u64>());
    let of_cache =
        |key: &str| records.iter().filter_map(|record| record["root_cache"][key].as_u64()).sum::<u64>();
    assert!(
        of_cache("inherited_visits") > of_cache("simulations"),
        "trees cost more than games get from them"
    );
    let error = |record: &&Value| record["strength"]["search_outcome_error"].as_f64().expect("a number");
    let best = records.iter().rev().min_by(|a, b| error(a).total_cmp(&error(b))).expect("an epoch");
    let facts: BTreeMap<&str, &str> = between(&page, "<li><b>", "</li>")
        .into_iter()
        .filter_map(|fact| fact.trim_end_matches("</span>").split_once("</b><span>"))
        .map(|(value, name)| (name, value))
        .collect();
    let expected = BTreeMap::from([
        ("epochs", json!(records.len())),
        ("minutes", minutes(last)),
        ("games", sum("games")),
        ("positions", sum("positions")),
        ("simulations", sum("simulations")),
        ("simulations for root caches", json!(of_cache("simulations"))),
        ("visits inherited from them", json!(of_cache("inherited_visits"))),
        ("updates", last["updates"].clone()),
        ("measured in epoch", last["epoch"].clone()),
        ("best epoch", best["epoch"].clone()),
    ]);
    let mut names = facts;
    for (name, record) in
        [("latest outcome error with search (95 % interval)", last), ("of the best epoch", best)]
    {
        assert_eq!(names.remove(name), Some(search_error(record).as_str()), "{name}");
    }
    assert_eq!(names.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    names.iter().for_each(|(name, figure)| assert_is(figure, &expected[name], name));
}

#[test]
fn the_table_of_the_report_is_that_of_metrics_jsonl() {
    let (page, records) = page_and_records();
    let table = between(&page, "<table class=\"epochs\">", "</table>")[0];
    let rows = between(table, "<tr", "</tr>");
    let names: Vec<&str> = rows[0].split("<th>").skip(1).map(str::trim).collect();
    assert_eq!(rows.len(), records.len() + 1, "all epochs");
    for (row, record) in rows[1..].iter().zip(records.iter().rev()) {
        let cells: Vec<&str> = row.split("<td>").skip(1).collect();
        let (losses, strength) = (&record["losses"], &record["strength"]);
        let expected = [
            ("epoch", record["epoch"].clone()),
            ("minutes", minutes(record)),
            ("games", record["games"].clone()),
            ("positions/s", record["positions_per_second"].clone()),
            ("simulations/s", record["simulations_per_second"].clone()),
            ("updates", record["updates"].clone()),
            ("policy", losses["policy"].clone()),
            ("KL", losses["policy_kl"].clone()),
            ("value", losses["value"].clone()),
            ("strength", Value::Null),
            ("policy err %", percent(&strength["policy_outcome_error"])),
            ("length", record["mean_game_length"].clone()),
            ("draws %", percent(&record["draw_share"])),
        ];
        assert_eq!(names, expected.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (cell, (name, value)) in cells.iter().zip(&expected) {
            match value {
                _ if *name == "strength" => assert_eq!(*cell, search_error(record)),
                Value::Null => assert_eq!(*cell, "", "{name}"),
                value => assert_is(cell, value, name),
            }
        }
    }
}

/// A line has a point for each epoch that has its metric, over minutes and over epochs.
#[test]
fn the_charts_of_the_report_have_the_points_of_metrics_jsonl() {
    let (page, records) = page_and_records();
    let charts = between(&page, "<figure>", "</figure>");
    let points = |title: &str| -> usize {
        let titled = charts.iter().filter(|chart| chart.contains(title));
        titled.map(|chart| chart.matches("<circle").count()).sum()
    };
    let with = |key: &str| records.iter().filter(|record| record[key].is_object()).count();
    assert_eq!(points("\nLosses\n"), 2 * 3 * with("losses"));
    assert_eq!(points("\nErrors on solved positions, %\n"), 2 * 4 * with("strength"));
    assert_eq!(points("\nSeconds an epoch\n"), 2 * 3 * records.len());
}

/// A copy of the tests' run, whose report another test reads.
fn copy_of_run(name: &str) -> String {
    let target = sibling_path(name);
    verify::copy(Path::new(&run()), &target);
    target.display().to_string()
}

#[test]
fn a_report_of_one_run_has_games_to_step_through() {
    let own = copy_of_run("reported");
    let text = stdout(&mut vecaz(&["report", &own]));
    let path = Path::new(&own).join("report.html");
    assert_eq!(text.replace("\n  ", " ").trim_end(), format!("the report is in {}", path.display()));
    let page = std::fs::read_to_string(&path).expect("written");
    let list = between(&page, "<script type=\"application/json\">", "</script>");
    let games: Value = serde_json::from_str(list[0]).expect("JSON");
    assert_eq!(games.as_array().map(Vec::len), Some(3));
    for game in games.as_array().expect("games") {
        let [moves, changes] = ["moves", "changes"].map(|key| game[key].as_array().expect("a list").len());
        assert!(moves == changes && (5..=9).contains(&moves), "{game}");
        assert_eq!(game["first"]["board"]["kind"], "grid");
        assert!(
            game["result"].as_str().is_some_and(|text| text.contains("wins") || text == "a draw"),
            "{game}"
        );
        assert!(game["title"].as_str().is_some_and(|title| title.starts_with("epoch 2, slot ")), "{game}");
    }
    for link in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(link), "{link}");
    }
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    stdout(&mut vecaz(&["report", &own, "--samples", "0"]));
    assert!(!std::fs::read_to_string(&path).expect("written").contains("<script"));
    stdout(&mut vecaz(&["verify", &own]));
}

#[test]
fn a_report_of_several_runs_has_their_curves_matches_and_differences() {
    let (first, other) = (copy_of_run("first_of_two"), sibling_path("second_of_two").display().to_string());
    let mut command =
        vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "1", "--seed", "9", "--out", &other]);
    TINY.iter().for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let out = sibling_path("both.html").display().to_string();
    let args = ["report", &first, &other, "--out", &out, "--games", "20", "--sims", "4"];
    stdout(&mut vecaz(&args));
    let page = std::fs::read_to_string(&out).expect("written");
    let table = between(&page, "<table class=\"differences\">", "</table>")[0];
    assert!(
        table.contains("<td>run.seed<td>1<td>9") && table.contains("<td>run.epochs<td>2<td>1"),
        "{table}"
    );
    assert_eq!(table.matches("<tr><td>").count(), 2, "{table}");
    let standings = between(&page, "<table class=\"standings\">", "</table>")[0];
    assert_eq!(standings.matches("<td>20</tr>").count(), 2, "{standings}");
    let result = between(&page, "<li>second_of_two against first_of_two: ", "</li>")[0];
    let counts: u64 = result.split([' ', ',']).filter_map(|word| word.parse::<u64>().ok()).sum();
    assert_eq!(counts, 20, "{result}");
    assert_eq!(page.matches("class=\"games\"").count(), 2);
    assert_eq!(page.contains("\nsecond_of_two\n"), cfg!(feature = "charts"));
    // The same again, with other threads.
    stdout(vecaz(&args).args(["--threads", "1"]));
    assert!(std::fs::read_to_string(&out).expect("written") == page);
}

/// The networks of a report's matches are searched by the settings of their own runs, as in a match of `vecaz eval`.
#[test]
fn matches_of_a_report_are_those_of_eval() {
    let [own, other] = ["by_gumbel", "by_puct"].map(|name| sibling_path(name).display().to_string());
    for (out, algorithm) in [(&own, "eval.algorithm=gumbel"), (&other, "eval.algorithm=puct")] {
        let mut command =
            vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "1", "--seed", "9", "--out", out]);
        TINY.iter().chain([&algorithm]).for_each(|setting| {
            command.args(["--set", setting]);
        });
        stdout(&mut command);
    }
    let out = sibling_path("matches.html").display().to_string();
    let plan = ["--games", "100", "--sims", "4", "--opening-plies", "4"];
    stdout(vecaz(&["report", &own, &other, "--out", &out]).args(plan));
    let page = std::fs::read_to_string(&out).expect("written");
    let result = between(&page, "<li>by_puct against by_gumbel: ", "</li>")[0];
    let printed = stdout(vecaz(&["eval", &other, "--against", &own]).args(plan));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains(result), "{result} in the report, {printed}");
}

#[test]
fn reports_that_cannot_be_made_are_refused() {
    let own = run();
    let hex = sibling_path("hex_run").display().to_string();
    let mut command =
        vecaz(&["run", "--game", "hex", "--epochs", "1", "--out", &hex, "--set", "game.size=3"]);
    TINY.iter().for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let out = sibling_path("refused.html").display().to_string();
    let nine: Vec<&str> = std::iter::repeat_n(own.as_str(), 9).collect();
    let weights = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/connect_four.safetensors");
    for (runs, more, code, part) in [
        (vec![own.as_str(), &hex], vec![], 1, "hex_run: found hex, expected tic_tac_toe, that of "),
        (nine, vec![], 1, "a report of 9 runs: at most 8 are shown together"),
        (vec![&own], vec!["--games", "4"], 2, "--games: got one run, expected two runs or more"),
        (vec!["none"], vec![], 1, "reading none: "),
        (vec![weights], vec![], 1, "not a run"),
        (vec![], vec![], 2, "<RUN>"),
    ] {
        let mut command = vecaz(&["report", "--out", &out]);
        let (found, line) = refusal(command.args(&runs).args(&more));
        assert!(found == code && line.contains(part), "{runs:?}: {found} {line}");
    }
    assert!(!Path::new(&out).exists(), "a file is whole or absent");
    let games = format!("{own}/games/mine.html");
    let (_, line) = refusal(&mut vecaz(&["report", &own, &own, "--out", &games]));
    assert!(line.contains("belongs to the run in "), "{line}");
    let damaged = copy_of_run("damaged_ladder");
    std::fs::write(Path::new(&damaged).join("ladder.json"), "[]").expect("written");
    let (code, line) = refusal(&mut vecaz(&["report", &damaged, "--out", &out]));
    assert!(code == 1 && line.contains("ladder.json: no ladder: "), "{line}");
}
