//! `report.html`: a self-contained page about a run, rewritten after each epoch from all its records.

use super::chart::{Axis, LineChart, Series, compact};
use super::metrics::{EpochRecord, Losses, Strength};
use crate::config::Config;
use crate::error::Result;
use crate::files::write_atomic;
use std::fmt::Write;
use std::path::Path;

/// The file's name in the folder of a run.
pub const FILE_NAME: &str = "report.html";

const STYLE: &str = "
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #333; background: #fafafa; margin: 0 auto; max-width: 1240px;
  padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; padding: 0; list-style: none; }
.facts li { background: #fff; border: 1px solid #e4e4e4; border-radius: 6px; padding: .4rem .9rem; }
.facts b { display: block; font-size: 1.15rem; } .facts span { color: #777; font-size: .85rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(460px, 100%), 1fr)); gap: .9rem; }
.charts svg { width: 100%; height: auto; background: #fff; border: 1px solid #e4e4e4; border-radius: 6px; }
fieldset { border: 0; padding: 0; margin: 0 0 .6rem; } label { margin-right: 1rem; }
body:has(#by-minutes:checked) .by-epochs, body:has(#by-epochs:checked) .by-minutes { display: none; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; background: #fff; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid #e4e4e4; padding: .15rem .5rem; text-align: right; white-space: nowrap; }
th { background: #f4f4f4; font-weight: 600; } .settings td, .settings th { text-align: left; }
.settings { columns: 3 300px; } .settings table { break-inside: avoid; width: 100%; margin-bottom: .75rem; }
";

/// Writes the page for a run to `path`.
///
/// # Errors
/// [`crate::Error::Io`]; the previous page is then unchanged.
pub fn write_report(path: &Path, config: &Config, records: &[EpochRecord]) -> Result<()> {
    write_atomic(path, report(config, records)?.as_bytes())
}

/// The page: facts, charts over minutes or epochs, a table of epochs, the settings.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the plotting library's message.
pub fn report(config: &Config, records: &[EpochRecord]) -> Result<String> {
    let title = format!("vecaz: {}", escape(config.game_name()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    page += &facts(records);
    page += "<fieldset>Over\n\
        <label><input type=\"radio\" name=\"over\" id=\"by-minutes\" checked> minutes</label>\n\
        <label><input type=\"radio\" name=\"over\" id=\"by-epochs\"> epochs</label>\n</fieldset>\n";
    page += &charts("by-minutes", "minutes", records, EpochRecord::minutes)?;
    page += &charts("by-epochs", "epoch", records, |record| record.epoch as f64)?;
    page += &epoch_table(records);
    page += &settings(config);
    page += "</body>\n</html>\n";
    Ok(page)
}

/// Totals and latest results, in a row of boxes.
fn facts(records: &[EpochRecord]) -> String {
    let Some(last) = records.last() else { return "<p>No epoch is finished yet.</p>\n".to_string() };
    let sum = |count: fn(&EpochRecord) -> u64| records.iter().map(count).sum::<u64>() as f64;
    let mut facts = vec![
        ("epochs", last.epoch.to_string()),
        ("minutes", format!("{:.1}", last.minutes())),
        ("games", compact(sum(|r| r.games))),
        ("positions", compact(sum(|r| r.positions))),
        ("simulations", compact(sum(|r| r.simulations))),
        ("updates", compact(sum(|r| r.updates))),
        ("games a day", compact(last.games_per_day)),
    ];
    if let Some(strength) = records.iter().rev().find_map(|record| record.strength) {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        facts.extend([
            ("outcome error, search", strength.search_outcome_error.map(percent).unwrap_or_default()),
            ("outcome error, policy", strength.policy_outcome_error.map(percent).unwrap_or_default()),
            ("match score", strength.match_score.map(percent).unwrap_or_default()),
        ]);
    }
    facts.extend(last.findings.map(|count| ("findings", compact(count as f64))));
    let present = facts.iter().filter(|(_, value)| !value.is_empty());
    let items: String =
        present.map(|(name, value)| format!("<li><b>{value}</b><span>{name}</span></li>\n")).collect();
    format!("<ul class=\"facts\">\n{items}</ul>\n")
}

/// A metric of an epoch, if present.
type Pick<'a> = &'a dyn Fn(&EpochRecord) -> Option<f64>;
/// A line of a chart: name and metric.
type Line<'a> = (&'a str, Pick<'a>);

/// All charts over `x`; those without a point are omitted.
fn charts(class: &str, x_label: &str, records: &[EpochRecord], x: fn(&EpochRecord) -> f64) -> Result<String> {
    let loss = |pick: fn(&Losses) -> f64| move |r: &EpochRecord| r.losses.as_ref().map(pick);
    let percent = |pick: fn(&Strength) -> Option<f64>| {
        move |r: &EpochRecord| r.strength.as_ref().and_then(pick).map(|share| 100.0 * share)
    };
    let share = |pick: fn(&EpochRecord) -> Option<f64>| move |r: &EpochRecord| pick(r).map(|s| 100.0 * s);
    let plain = |pick: fn(&EpochRecord) -> f64| move |r: &EpochRecord| Some(pick(r));
    let all: [(&str, &[Line<'_>]); 10] = [
        (
            "Losses",
            &[
                ("policy", &loss(|l| l.policy)),
                ("policy, KL", &loss(|l| l.policy_kl)),
                ("value", &loss(|l| l.value)),
            ],
        ),
        (
            "Errors on solved positions, %",
            &[
                ("search, outcome", &percent(|s| s.search_outcome_error)),
                ("policy, outcome", &percent(|s| s.policy_outcome_error)),
                ("search, exact", &percent(|s| s.search_exact_error)),
                ("policy, exact", &percent(|s| s.policy_exact_error)),
            ],
        ),
        ("Match score, %", &[("score", &percent(|s| s.match_score))]),
        ("Positions per second", &[("positions", &plain(|r| r.positions_per_second))]),
        ("Simulations per second", &[("simulations", &plain(|r| r.simulations_per_second))]),
        ("Mean game length, plies", &[("plies", &|r| r.mean_game_length)]),
        (
            "Outcomes, % of games",
            &[
                ("first player wins", &share(|r| r.first_player_win_share)),
                ("draws", &share(|r| r.draw_share)),
            ],
        ),
        (
            "Seconds an epoch",
            &[
                ("self-play", &plain(|r| r.selfplay_seconds)),
                ("training", &plain(|r| r.train_seconds)),
                ("evaluation", &plain(|r| r.eval_seconds)),
            ],
        ),
        ("Gradient norm", &[("norm", &loss(|l| l.grad_norm))]),
        ("Learning rate", &[("rate", &loss(|l| l.lr))]),
    ];
    let mut html = format!("<div class=\"charts {class}\">\n");
    for (title, lines) in all {
        let chart = LineChart {
            title,
            x_label,
            x_axis: Axis::Linear,
            y_axis: Axis::FromZero,
            series: lines.iter().filter_map(|(name, pick)| series(name, records, x, pick)).collect(),
            size: (560, 320),
        };
        if !chart.is_empty() {
            html += &chart.svg()?;
        }
    }
    Ok(html + "</div>\n")
}

/// A line through the epochs that have the metric; None if no epoch has it.
fn series(name: &str, records: &[EpochRecord], x: fn(&EpochRecord) -> f64, pick: Pick<'_>) -> Option<Series> {
    let points: Vec<(f64, f64)> = records.iter().filter_map(|r| pick(r).map(|y| (x(r), y))).collect();
    (!points.is_empty()).then(|| Series { name: name.to_string(), points })
}

/// A table of the latest epochs.
fn epoch_table(records: &[EpochRecord]) -> String {
    const ROWS: usize = 30;
    if records.is_empty() {
        return String::new();
    }
    let number = |value: Option<f64>| value.map(compact).unwrap_or_default();
    let mut html = String::from(
        "<h2>Epochs, the latest first</h2>\n<div class=\"wide\"><table>\n<tr><th>epoch<th>minutes<th>games<th>positions/s\
         <th>simulations/s<th>games/day<th>updates<th>policy<th>KL<th>value<th>search err %<th>policy err %\
         <th>match %<th>length<th>draws %</tr>\n",
    );
    for r in records.iter().rev().take(ROWS) {
        let (losses, strength) = (r.losses, r.strength.unwrap_or_default());
        let percent = |share: Option<f64>| share.map(|s| format!("{:.1}", 100.0 * s)).unwrap_or_default();
        let nats = |loss: Option<f64>| loss.map(|l| format!("{l:.4}")).unwrap_or_default();
        let cells = [
            r.epoch.to_string(),
            format!("{:.1}", r.minutes()),
            r.games.to_string(),
            compact(r.positions_per_second),
            compact(r.simulations_per_second),
            compact(r.games_per_day),
            r.updates.to_string(),
            nats(losses.map(|l| l.policy)),
            nats(losses.map(|l| l.policy_kl)),
            nats(losses.map(|l| l.value)),
            percent(strength.search_outcome_error),
            percent(strength.policy_outcome_error),
            percent(strength.match_score),
            number(r.mean_game_length),
            percent(r.draw_share),
        ];
        let _ = writeln!(html, "<tr><td>{}</tr>", cells.join("<td>"));
    }
    html + "</table></div>\n"
}

/// All keys of the configuration, one table per section.
fn settings(config: &Config) -> String {
    let sections = toml::Table::try_from(config).unwrap_or_default();
    let mut html = String::from("<h2>Settings</h2>\n<div class=\"settings\">\n");
    for (name, section) in &sections {
        let Some(keys) = section.as_table().filter(|keys| !keys.is_empty()) else { continue };
        let _ = writeln!(html, "<table><tr><th colspan=\"2\">{}</tr>", escape(name));
        for (key, value) in keys {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            let _ = writeln!(html, "<tr><td>{}<td>{}</tr>", escape(key), escape(&value));
        }
        html += "</table>\n";
    }
    html + "</div>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::metrics::sample_records;
    use super::*;
    use crate::config::Layers;

    fn config(assignment: &str) -> Config {
        Layers::default().set(assignment).and_then(Layers::resolve).expect("valid")
    }

    #[test]
    fn the_page_is_self_contained_and_shows_all_present_metrics() {
        let page = report(&config("train.batch=321"), &sample_records(45)).expect("made");
        for part in
            ["Losses", "Errors on solved", "Mean game length", "<td>batch<td>321", "outcome error, search"]
        {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(!page.contains("Match score"), "a chart without a point");
        let links = ["src=", "href=", "@import", "<script"];
        assert!(links.iter().all(|link| !page.contains(link)));
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn a_run_of_no_epochs_or_one_has_a_page() {
        let none = report(&config("train.batch=321"), &[]).expect("made");
        assert!(none.contains("No epoch is finished yet") && !none.contains("<svg"));
        let one = report(&config("train.batch=321"), &sample_records(1)).expect("made");
        assert!(one.contains("<svg") && !one.contains("Losses") && !one.contains("NaN"));
    }

    #[test]
    fn settings_are_escaped() {
        let page = report(&config("game.name=\"<b>&\""), &sample_records(2)).expect("made");
        assert!(page.contains("&lt;b&gt;&amp;") && !page.contains("<b>&<"));
    }

    #[test]
    fn the_page_is_written_whole() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(FILE_NAME);
        write_report(&path, &config("train.batch=321"), &sample_records(3)).expect("written");
        assert!(std::fs::read_to_string(&path).expect("read").ends_with("</html>\n"));
    }
}
