//! The figures of `report.html` are those of `metrics.jsonl`.

use super::*;
use std::collections::BTreeMap;

/// The texts between `open` and `close`, in their order.
fn between<'a>(page: &'a str, open: &str, close: &str) -> Vec<&'a str> {
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
