//! `report.html`: a self-contained page about a run, rewritten after each epoch from all its records.

use super::charts::{page_charts, page_style};
use super::compact::compact;
use super::games::{GameSections, ReportGame};
use super::ladder;
use super::learning;
use super::metrics::{EpochLosses, EpochRecord, RootCacheUse, Strength, head_names};
use super::tallies::Tallies;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::eval::ladder::Ladder;
use crate::files::write_atomic;
use indicatif::HumanCount;
use std::fmt::Write;
use std::path::Path;

/// The file's name in the folder of a run.
pub const FILE_NAME: &str = "report.html";

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #333; --axis: #3c3c3c; --faint: #777; --page: #fafafa; --paper: #fff; --head: #f4f4f4;
  --line: #e4e4e4; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --axis: #c8c8c8; --faint: #999; --page: #161616; --paper: #202020;
  --head: #2a2a2a; --line: #3a3a3a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto; max-width: 1240px;
  padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; padding: 0; list-style: none; }
.facts li { background: var(--paper); border: 1px solid var(--line); border-radius: 6px; padding: .4rem .9rem; }
.facts b { display: block; font-size: 1.15rem; } .facts span, figcaption { color: var(--faint); font-size: .85rem; }
.warning { background: var(--paper); border: 1px solid var(--line); border-left: 4px solid #c60; border-radius: 6px; padding: .4rem .9rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(380px, 100%), 1fr)); gap: .9rem; }
@media (max-width: 500px) { body { padding: .6rem; } figcaption { padding: 0 .6rem; } }
details { margin: 0 0 1rem; } summary { color: var(--faint); cursor: pointer; }
figure { margin: 0; padding: 0 0 .6rem; background: var(--paper); border: 1px solid var(--line); border-radius: 6px; }
figcaption { padding: 0 1rem; } .single { max-width: 660px; margin: 0 0 .75rem; } svg { width: 100%; height: auto; }
fieldset { border: 0; padding: 0; margin: 0 0 .6rem; } label { margin-right: 1rem; }
body:has(#by-minutes:checked) .by-epochs, body:has(#by-epochs:checked) .by-minutes { display: none; }
.wide { overflow-x: auto; } @media print { .wide { overflow-x: visible; } }
table { border-collapse: collapse; background: var(--paper); font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: .15rem .5rem; text-align: right; } .epochs td { white-space: nowrap; }
th { background: var(--head); font-weight: 600; } .best td { font-weight: 600; }
.settings td, .settings th { text-align: left; overflow-wrap: anywhere; }
.settings { columns: 3 300px; } .settings table { break-inside: avoid; width: 100%; margin-bottom: .75rem; }
";

/// The content of the page.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The settings.
    pub config: &'a Config,
    /// All epochs, oldest first.
    pub records: &'a [EpochRecord],
    /// Fraction of the solved positions where uniformly random play changes the outcome, if there are positions.
    pub random_outcome_error: Option<f64>,
    /// The ladder of the run's networks, if it has one.
    pub ladder: Option<&'a Ladder>,
    /// Games to step through.
    pub games: &'a [ReportGame],
    /// What players count in besides points, if the game has a table of it.
    pub tallies: Option<&'a Tallies>,
}

impl Report<'_> {
    /// Writes the page to `path`.
    ///
    /// # Errors
    /// Those of [`Report::page`]; [`crate::Error::Io`]; the previous page is then unchanged.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_atomic(path, self.page()?.as_bytes())
    }

    /// The page: facts, charts over minutes or epochs, a table of epochs, the settings.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the plotting library's message; those of [`Config::file_text`].
    pub fn page(&self) -> Result<String> {
        let mut page = page_head(&title(self.config));
        page += &facts(self.records);
        page += &self.warnings();
        page += &page_charts(self.records, self.random_outcome_error, escape)?;
        if let Some(ladder) = self.ladder {
            page += &ladder::section(ladder, escape)?;
        }
        let mut games = GameSections::default();
        games.add("Games", self.games, escape);
        page += &games.html();
        page += &self.tallies.map_or_else(String::new, |tallies| tallies.html("", escape));
        page += &epoch_table(self.records);
        if let Some(workers) = self.records.last().and_then(|record| record.workers.as_ref()) {
            page += &workers.html(escape);
        }
        page += &settings(self.config)?;
        page += "</body>\n</html>\n";
        Ok(page)
    }

    /// What the metrics say about a network that learns nothing, if they do.
    fn warnings(&self) -> String {
        let sentences = learning::warnings(self.config, self.records)
            .into_iter()
            .map(|warning| warning.sentence(self.config));
        sentences
            .map(|sentence| format!("<p class=\"warning\">Warning: {}.</p>\n", escape(&sentence)))
            .collect()
    }
}

/// The beginning of a page with this title: head and heading.
pub(super) fn page_head(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
        page_style()
    )
}

/// The title: the game with its settings.
fn title(config: &Config) -> String {
    let settings = config.game_options().into_iter().map(|(key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        format!(", {} {value}", key.replace('_', " "))
    });
    format!("vecaz: {}{}", config.game_name(), settings.collect::<String>())
}

/// The epoch of the network in `best.safetensors`, and its strength.
fn best_epoch(records: &[EpochRecord]) -> Option<(u64, Strength)> {
    let mut best: Option<(f64, u64, Strength)> = None;
    for record in records {
        let succeeds = |strength: Strength| {
            let before = best.filter(|(.., before)| strength.is_comparable_to(before));
            Some((strength.succeeds(before.map(|before| before.0))?, record.epoch, strength))
        };
        best = record.strength.and_then(succeeds).or(best);
    }
    best.map(|(_, epoch, strength)| (epoch, strength))
}

/// Duration, strength and totals in a row of boxes; below it the counts of the root cache.
fn facts(records: &[EpochRecord]) -> String {
    let Some(last) = records.last() else { return "<p>No epoch is finished yet.</p>\n".to_string() };
    let sum = |count: fn(&EpochRecord) -> u64| HumanCount(records.iter().map(count).sum()).to_string();
    let mut facts = vec![("minutes", format!("{:.1}", last.minutes()))];
    if let Some((epoch, strength)) =
        records.iter().rev().find_map(|record| Some((record.epoch, record.strength?)))
    {
        facts.push((measured_as(&strength), strength.to_string()));
        facts.push(("measured in epoch", epoch.to_string()));
    }
    if let Some((epoch, strength)) = best_epoch(records) {
        facts.extend([("best epoch", epoch.to_string()), ("of the best epoch", strength.to_string())]);
    }
    facts.extend(last.findings.map(|count| ("findings", HumanCount(count).to_string())));
    facts.extend([
        ("epochs", last.epoch.to_string()),
        ("games", sum(|r| r.games)),
        ("positions", sum(|r| r.positions)),
        ("simulations", sum(|r| r.simulations)),
        // A running total, unlike the counts above.
        ("updates", HumanCount(last.updates).to_string()),
    ]);
    let mut html = boxes(&facts);
    let caches: Vec<RootCacheUse> = records.iter().filter_map(|r| r.root_cache).collect();
    if !caches.is_empty() {
        let count = |count: fn(&RootCacheUse) -> u64| HumanCount(caches.iter().map(count).sum()).to_string();
        let counts = [
            ("simulations for root caches", count(|c| c.simulations)),
            ("visits inherited from them", count(|c| c.inherited_visits)),
        ];
        html += &format!("<details><summary>Root caches</summary>\n{}</details>\n", boxes(&counts));
    }
    html
}

/// What the strength of the last measurement is, as the name of its box.
fn measured_as(strength: &Strength) -> &'static str {
    if strength.mean_score.is_some() {
        return "latest mean score (95 % interval)";
    }
    match (strength.search_outcome_error, strength.lead) {
        (Some(_), _) => "latest outcome error with search (95 % interval)",
        (None, Some(_)) => "latest lead in points against (95 % interval)",
        (None, None) => "latest score against (95 % interval)",
    }
}

fn boxes(facts: &[(&str, String)]) -> String {
    let items: String = facts
        .iter()
        .map(|(name, value)| format!("<li><b>{}</b><span>{name}</span></li>\n", escape(value)))
        .collect();
    format!("<ul class=\"facts\">\n{items}</ul>\n")
}

/// A table of all epochs.
fn epoch_table(records: &[EpochRecord]) -> String {
    if records.is_empty() {
        return String::new();
    }
    let number = |value: Option<f64>| value.map(compact).unwrap_or_default();
    let names = head_names(records);
    let heads: String = names.iter().map(|name| format!("<th>{} loss", escape(name))).collect();
    let mut html = format!(
        "<h2>Epochs, the latest first</h2>\n<div class=\"wide\"><table class=\"epochs\">\n<tr><th>epoch<th>minutes<th>games<th>positions/s\
         <th>simulations/s<th>updates<th>policy<th>KL<th>value{heads}<th>strength<th>policy err %\
         <th>length<th>draws %</tr>\n",
    );
    let best = best_epoch(records).map(|(epoch, _)| epoch);
    for r in records.iter().rev() {
        let (losses, strength) = (r.losses.as_ref(), r.strength.unwrap_or_default());
        let policy = losses.and_then(EpochLosses::of_policy);
        let percent = |share: Option<f64>| share.map(|s| format!("{:.1}", 100.0 * s)).unwrap_or_default();
        let nats = |loss: Option<f64>| loss.map(|l| format!("{l:.4}")).unwrap_or_default();
        let of_head = |name: &String| losses.and_then(|l| l.heads.get(name).copied());
        let further: String = names.iter().map(|name| format!("<td>{}", nats(of_head(name)))).collect();
        let cells = [
            r.epoch.to_string(),
            format!("{:.1}", r.minutes()),
            r.games.to_string(),
            compact(r.positions_per_second),
            compact(r.simulations_per_second),
            r.updates.to_string(),
            nats(policy.map(|[entropy, _]| entropy)),
            nats(policy.map(|[_, divergence]| divergence)),
            nats(losses.map(|l| l.value)) + &further,
            r.strength.map(|strength| escape(&strength.to_string())).unwrap_or_default(),
            percent(strength.policy_outcome_error),
            number(r.mean_game_length),
            percent(r.draw_share),
        ];
        let class = if best == Some(r.epoch) { " class=\"best\"" } else { "" };
        let _ = writeln!(html, "<tr{class}><td>{}</tr>", cells.join("<td>"));
    }
    html + "</table></div>\n"
}

/// The configuration as a table of sections. The values are read from its text, which has the digits of `config.toml`: converted to a
/// table, the f32 0.2 would be 0.20000000298023224.
pub(super) fn parsed(config: &Config) -> Result<toml::Table> {
    let not_read = |e: toml::de::Error| Error::ConfigText {
        origin: "the configuration".into(),
        what: e.message().replace('\n', " "),
    };
    config.file_text()?.parse().map_err(not_read)
}

/// All keys of the configuration, one table per section.
fn settings(config: &Config) -> Result<String> {
    let sections = parsed(config)?;
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
    Ok(html + "</div>\n")
}

/// `text` as HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(all(test, feature = "charts"))]
mod tests {
    use super::super::metrics::sample_records;
    use super::super::workers::{WorkerCounts, WorkerShare};
    use super::*;
    use crate::config::Layers;
    use crate::eval::opponent::{Opponent, Rung};

    fn config(assignment: &str) -> Config {
        Layers::default().set(assignment).and_then(Layers::resolve).expect("valid")
    }

    fn page(config: &Config, records: &[EpochRecord]) -> String {
        Report {
            config,
            records,
            random_outcome_error: Some(0.4321),
            ladder: None,
            games: &[],
            tallies: None,
        }
        .page()
        .expect("made")
    }

    /// Sets the strength of `records` to the score of matches against these `opponents`.
    fn against(records: &mut [EpochRecord], opponents: &[Opponent]) {
        for (record, (number, &opponent)) in records.iter_mut().zip((0..).zip(opponents)) {
            let rung = Some(Rung { number, opponent });
            record.strength = Some(Strength { match_score: Some(0.6), rung, ..Strength::default() });
        }
    }

    #[test]
    fn the_page_is_self_contained_and_shows_all_present_metrics() {
        let page = page(&config("train.batch=321"), &sample_records(45));
        let parts = [
            "Losses",
            "Errors on solved",
            "Mean game length",
            "<td>batch<td>321",
            "outcome error with search",
        ];
        for part in parts {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(!page.contains("Match score"), "a chart without a point");
        let links = ["src=", "href=", "@import", "<script"];
        assert!(links.iter().all(|link| !page.contains(link)));
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn a_network_that_learns_nothing_is_named_before_the_charts() {
        let mut records = sample_records(5);
        let config = config("search.algorithm='puct'");
        assert!(!page(&config, &records).contains("<p class=\"warning\">"));
        for losses in records.iter_mut().skip(1).filter_map(|record| record.losses.as_mut()) {
            losses.value_constant = Some(losses.value);
        }
        let page = page(&config, &records);
        let (before, after) = page.split_once("<p class=\"warning\">Warning: ").expect("a warning");
        assert!(after.starts_with("the network learns nothing about results: in epochs 2 to 5 "), "{after}");
        assert!(before.contains("class=\"facts\"") && after.contains("<svg"));
        assert!(!after.contains("<p class=\"warning\">"), "one sign only");
    }

    #[test]
    fn every_chart_has_a_sentence_and_that_of_errors_a_line_for_random_play() {
        let mut records = sample_records(5);
        let page_of_errors = page(&config("train.batch=321"), &records);
        let sentences: Vec<&str> = page_of_errors
            .split("<figcaption>")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once("</figcaption>")?.0))
            .collect();
        assert_eq!(sentences.len(), page_of_errors.matches("<svg").count());
        assert!(sentences.iter().all(|text| text.ends_with('.') && text.matches(". ").count() == 0));
        assert_eq!(page_of_errors.matches("random play, outcome").count(), 2, "over minutes and over epochs");
        let weakest = Opponent::Random;
        let lines = |records: &[EpochRecord]| {
            let page = page(&config("game.name=hex"), records);
            let names =
                ["\nrandom play\n", "\nequal strength\n", "\nOpponents beaten\n", "against rollouts:9"];
            names.map(|name| page.matches(name).count())
        };
        against(&mut records, &[weakest; 5]);
        assert_eq!(lines(&records), [2, 0, 0, 0]);
        against(
            &mut records,
            &[weakest, weakest, Opponent::Rollouts(9), Opponent::Epoch(3), Opponent::Epoch(3)],
        );
        assert_eq!(lines(&records), [0, 2, 2, 2]);
        let page = page(&config("game.name=hex"), &records);
        assert!(
            page.contains("<b>60 % epoch 3</b><span>latest score against (95 % interval)</span>"),
            "{page}"
        );
    }

    #[test]
    fn the_best_epoch_is_the_one_whose_network_is_kept() {
        let mut records = sample_records(4);
        let errors = [0.3, 0.1, 0.1, 0.2];
        for (record, error) in records.iter_mut().zip(errors) {
            record.strength = Some(Strength { search_outcome_error: Some(error), ..Strength::default() });
        }
        let page = page(&config("train.batch=321"), &records);
        assert!(page.contains("<b>3</b><span>best epoch</span>"), "the later of two equal ones");
        assert!(page.contains("<b>10.0 % err</b><span>of the best epoch</span>"));
        assert!(page.contains("<tr class=\"best\"><td>3<td>"));
        assert!(
            page.contains("<b>468</b><span>updates</span>"),
            "the total after four epochs, not a sum of totals"
        );
    }

    #[test]
    fn a_run_of_no_epochs_or_one_has_a_page() {
        let config = config("train.batch=321");
        let none = page(&config, &[]);
        assert!(none.contains("No epoch is finished yet") && !none.contains("<svg"));
        let one = page(&config, &sample_records(1));
        assert!(one.contains("<svg") && !one.contains("Losses") && !one.contains("NaN"));
        assert!(
            one.matches("<tr>").count() > 1
                && page(&config, &sample_records(99)).contains("<td>1<td>0.4<td>")
        );
    }

    #[test]
    fn workers_of_the_last_epoch_are_listed_by_name() {
        let mut records = sample_records(2);
        let share = WorkerShare { name: "a<b".into(), games: 12, lag: 0.5, ..WorkerShare::default() };
        let counts = WorkerCounts { refused: 3, each: vec![share], ..WorkerCounts::default() };
        assert!(!page(&config("train.batch=321"), &records).contains("Workers"));
        records[1].workers = Some(counts);
        let page = page(&config("train.batch=321"), &records);
        for part in
            ["Workers in the last epoch", "3 were refused", "<tr><td>a&lt;b<td>0<td>12<td>0<td>0.50</tr>"]
        {
            assert!(page.contains(part), "{part} is missing");
        }
    }

    #[test]
    fn settings_have_the_digits_that_were_typed_and_are_escaped() {
        let page_of = |assignment: &str| page(&config(assignment), &sample_records(2));
        assert!(page_of("train.lr=0.00001").contains("<td>lr<td>0.00001</tr>"));
        assert!(page_of("train.lr=0.001").contains("<td>lr<td>0.001</tr>"));
        assert!(page_of("search.fpu_reduction=0.3").contains("<td>fpu_reduction<td>0.3</tr>"));
        let page = page_of("game.name=\"<b>&\"");
        assert!(page.contains("&lt;b&gt;&amp;") && !page.contains("<b>&<"));
    }

    #[test]
    fn colours_follow_the_preference_of_the_reader() {
        let page = page(&config("train.batch=321"), &sample_records(3));
        assert_eq!(page.matches("@media (prefers-color-scheme: dark)").count(), 2);
        let (style, body) = page.split_once("</style>").expect("a style");
        let drawn = body.split(['"', ' ']).filter(|word| word.len() == 7 && word.starts_with('#'));
        for colour in drawn {
            assert!(style.contains(&format!("=\"{colour}\"]")), "{colour} is the same in the dark");
        }
    }

    #[test]
    fn the_page_is_written_whole() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(FILE_NAME);
        let (config, records) = (config("train.batch=321"), sample_records(3));
        let report = Report {
            config: &config,
            records: &records,
            random_outcome_error: None,
            ladder: None,
            games: &[],
            tallies: None,
        };
        report.write(&path).expect("written");
        assert!(std::fs::read_to_string(&path).expect("read").ends_with("</html>\n"));
    }
}
