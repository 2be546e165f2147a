//! A self-contained page about several runs of one game: their curves together, their strengths, and the settings that differ.

use super::charts::{comparison_charts, ladders_chart};
use super::games::{GameSections, ReportGame};
use super::html::{escape, page_head};
use super::metrics::EpochRecord;
use super::tallies::Tallies;
use crate::config::Config;
use crate::error::Result;
use crate::eval::elo::signed;
use crate::eval::ladder::{Ladder, LadderMatch, Measure};
use crate::words::count;
use indicatif::HumanCount;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Maximum number of runs of a page: as many as there are colours.
pub const MAX_RUNS: usize = 8;

/// A run of the page.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    /// Its name, different from those of the others.
    pub name: String,
    /// Its settings.
    pub config: Config,
    /// All epochs, oldest first.
    pub records: Vec<EpochRecord>,
    /// Its ladder, if it has one.
    pub ladder: Option<Ladder>,
    /// Games for the page.
    pub games: Vec<ReportGame>,
    /// What players count in besides points, if the game has a table of it.
    pub tallies: Option<Tallies>,
}

/// The content of the page.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The runs, of one game.
    pub runs: &'a [ComparedRun],
    /// Fraction of the solved positions where uniformly random play changes the outcome, if there are positions.
    pub random_outcome_error: Option<f64>,
    /// The matches between the best networks of the runs, if they were played: a rung for each run, in their order, and a match for each
    /// two.
    pub matches: Option<&'a Ladder>,
}

impl Comparison<'_> {
    /// The page.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] with the plotting library's message; those of [`Config::file_text`].
    pub fn page(&self) -> Result<String> {
        let game = self.runs.first().map_or("", |run| run.config.game_name());
        let mut page = page_head(&format!("vecaz: {} of {game}", count(self.runs.len(), "run")));
        page += &self.overview();
        if let Some(matches) = self.matches {
            page += &self.standings(matches);
        }
        page += &self.ladders()?;
        let records: Vec<(&str, &[EpochRecord])> =
            self.runs.iter().map(|run| (run.name.as_str(), run.records.as_slice())).collect();
        page += &comparison_charts(&records, self.random_outcome_error, escape)?;
        page += &self.differences()?;
        let mut games = GameSections::default();
        for run in self.runs {
            games.add(&format!("Games of {}", run.name), &run.games, escape);
        }
        page += &games.html();
        for run in self.runs {
            let of = format!(" of {}", run.name);
            page += &run.tallies.as_ref().map_or_else(String::new, |tallies| tallies.html(&of, escape));
        }
        Ok(page + "</body>\n</html>\n")
    }

    /// A table with a line for each run.
    fn overview(&self) -> String {
        let mut html = String::from(
            "<div class=\"wide\"><table class=\"runs\">\n<tr><th>run<th>epochs<th>minutes<th>games<th>simulations<th>updates\
             <th>latest strength</tr>\n",
        );
        for run in self.runs {
            let sum = |of: fn(&EpochRecord) -> u64| HumanCount(run.records.iter().map(of).sum()).to_string();
            let last = run.records.last();
            let strength = run.records.iter().rev().find_map(|record| record.strength);
            let cells = [
                escape(&run.name),
                last.map_or(0, |record| record.epoch).to_string(),
                format!("{:.1}", last.map_or(0.0, EpochRecord::minutes)),
                sum(|record| record.games),
                sum(|record| record.simulations),
                HumanCount(last.map_or(0, |record| record.updates)).to_string(),
                strength.map(|strength| escape(&strength.to_string())).unwrap_or_default(),
            ];
            let _ = writeln!(html, "<tr><td>{}</tr>", cells.join("<td>"));
        }
        html + "</table></div>\n"
    }

    /// The strengths by matches between the runs, and the results of the matches.
    fn standings(&self, matches: &Ladder) -> String {
        let decimals = matches.measure.decimals();
        let show = |value: f64| match matches.measure {
            Measure::Elo | Measure::Points => signed(value, decimals),
            Measure::Score => format!("{value:.decimals$}"),
        };
        let mut html = format!(
            "<h2>Matches between the best networks</h2>\n<p>{} of {} per ply; {}.</p>\n\
             <div class=\"wide\"><table class=\"standings\">\n<tr><th>run<th>epoch<th>{}<th>95 % interval<th>games</tr>\n",
            count(matches.matches.iter().map(|of| of.games).sum::<u64>(), "game"),
            count(matches.simulations, "simulation"),
            match matches.measure {
                Measure::Elo | Measure::Points => "strengths relative to the first run",
                Measure::Score => "mean scores of the runs",
            },
            matches.measure.name()
        );
        for (run, rung) in self.runs.iter().zip(&matches.rungs) {
            let interval = rung.interval.map(|[low, high]| format!("[{} to {}]", show(low), show(high)));
            let epoch = if rung.epoch == 0 { String::new() } else { rung.epoch.to_string() };
            let cells = [
                escape(&run.name),
                epoch,
                show(rung.strength),
                interval.unwrap_or_default(),
                rung.games.to_string(),
            ];
            let _ = writeln!(html, "<tr><td>{}</tr>", cells.join("<td>"));
        }
        html += "</table></div>\n<ul>\n";
        let pairs = (1..self.runs.len()).flat_map(|later| (0..later).map(move |earlier| (later, earlier)));
        for ((later, earlier), of) in pairs.zip(&matches.matches) {
            let names = [later, earlier].map(|run| escape(&self.runs[run].name));
            let _ = writeln!(html, "<li>{} against {}: {}</li>", names[0], names[1], result(of));
        }
        html + "</ul>\n"
    }

    /// The ladders of those runs that have one.
    fn ladders(&self) -> Result<String> {
        let ladders: Vec<(&str, &Ladder)> =
            self.runs.iter().filter_map(|run| Some((run.name.as_str(), run.ladder.as_ref()?))).collect();
        match ladders.is_empty() {
            true => Ok(String::new()),
            false => {
                let names = ladders.iter().map(|(name, _)| escape(name)).collect::<Vec<_>>().join(", ");
                Ok(format!("<h2>Ladders of {names}</h2>\n{}", ladders_chart(&ladders, escape)?))
            }
        }
    }

    /// The keys of the configurations that differ.
    fn differences(&self) -> Result<String> {
        let keys = self.runs.iter().map(|run| keys_of(&run.config)).collect::<Result<Vec<_>>>()?;
        let names: BTreeSet<&String> = keys.iter().flat_map(BTreeMap::keys).collect();
        let differs = |name: &&String| keys.iter().any(|run| run.get(*name) != keys[0].get(*name));
        let differing: Vec<&String> = names.into_iter().filter(differs).collect();
        if differing.is_empty() {
            return Ok("<h2>Settings</h2>\n<p>All settings are equal.</p>\n".into());
        }
        let heads: String = self.runs.iter().map(|run| format!("<th>{}", escape(&run.name))).collect();
        let mut html = format!(
            "<h2>Settings that differ</h2>\n<div class=\"wide\"><table class=\"differences\">\n<tr><th>key{heads}</tr>\n"
        );
        for name in differing {
            let cell = |run: &BTreeMap<String, String>| {
                format!("<td>{}", run.get(name).map(|value| escape(value)).unwrap_or_default())
            };
            let _ =
                writeln!(html, "<tr><td>{}{}</tr>", escape(name), keys.iter().map(cell).collect::<String>());
        }
        Ok(html + "</table></div>\n")
    }
}

/// The result of a match in words.
fn result(of: &LadderMatch) -> String {
    let counts = of.result.map(|r| format!("{} won, {} drawn, {} lost", r.wins, r.draws, r.losses));
    let lead = of.lead.map(|lead| format!("lead {lead}"));
    counts.into_iter().chain(lead).collect::<Vec<_>>().join("; ")
}

/// All keys of a configuration with their values, as in `config.toml`.
fn keys_of(config: &Config) -> Result<BTreeMap<String, String>> {
    let sections: toml::Table = super::html::parsed(config)?;
    let mut keys = BTreeMap::new();
    for (section, table) in &sections {
        for (key, value) in table.as_table().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            keys.insert(format!("{section}.{key}"), value);
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::super::metrics::sample_records;
    use super::*;
    use crate::config::Layers;
    use crate::eval::ladder::{Conditions, LadderRung};
    use crate::eval::matches::MatchOutcome;
    use crate::eval::ratings::Pairing;

    fn run(name: &str, assignment: &str, epochs: u64) -> ComparedRun {
        let config = Layers::default().set(assignment).and_then(Layers::resolve).expect("valid");
        ComparedRun {
            name: name.into(),
            config,
            records: sample_records(epochs),
            ladder: None,
            games: Vec::new(),
            tallies: None,
        }
    }

    fn page(runs: &[ComparedRun], matches: Option<&Ladder>) -> String {
        Comparison { runs, random_outcome_error: Some(0.4), matches }.page().expect("made")
    }

    fn played(rungs: usize) -> Ladder {
        let conditions = Conditions { measure: Measure::Elo, simulations: 8, opening_plies: 4, seed: 1 };
        let rungs = (0..rungs).map(|i| LadderRung { epoch: 3 * i as u64, ..LadderRung::default() }).collect();
        let mut outcome = MatchOutcome { scores: vec![0.0; 3], ..MatchOutcome::default() };
        [1.0, 1.0, -1.0].into_iter().for_each(|margin| outcome.result.add(margin));
        Ladder::new(conditions, rungs, &[Pairing { first: 1, second: 0, result: outcome }])
    }

    #[test]
    fn settings_that_differ_are_listed_and_no_others() {
        let runs = [run("a", "train.lr=0.001", 3), run("b <i>", "train.lr=0.003", 5)];
        let page = page(&runs, None);
        let table = page.split("Settings that differ").nth(1).and_then(|rest| rest.split("</table>").next());
        let rows: Vec<&str> =
            table.expect("a table").lines().filter(|line| line.starts_with("<tr><td>")).collect();
        assert_eq!(rows, ["<tr><td>train.lr<td>0.001<td>0.003</tr>"]);
        assert!(page.contains("<th>b &lt;i&gt;") && !page.contains("<i>"));
        assert!(!page.contains("Matches between") && !page.contains("Ladders") && !page.contains("<script"));
        let equal = [run("a", "train.lr=0.001", 3), run("b", "train.lr=0.001", 5)];
        assert!(self::page(&equal, None).contains("All settings are equal."));
    }

    #[cfg(feature = "charts")]
    #[test]
    fn a_chart_has_a_line_for_each_run() {
        let runs = [run("first", "train.lr=0.001", 3), run("second", "train.lr=0.001", 5)];
        let page = page(&runs, None);
        let figures: Vec<&str> = page.split("<figure>").skip(1).collect();
        assert!(
            figures.len() > 20
                && figures.iter().all(|figure| figure.contains("\nfirst\n") && figure.contains("\nsecond\n"))
        );
        let of = |title: &str| figures.iter().filter(|figure| figure.contains(title)).count();
        assert_eq!(of("Errors on solved positions, %: search, outcome"), 2, "over minutes and over epochs");
    }

    #[test]
    fn strengths_are_those_of_matches_and_each_ladder_is_its_runs_own() {
        let mut runs = [run("a", "train.lr=0.001", 3), run("b", "train.lr=0.001", 5)];
        runs[1].ladder = Some(played(2));
        let page = page(&runs, Some(&played(2)));
        assert!(page.contains("<tr><td>a<td><td>+0<td><td>3</tr>"), "the reference has no interval");
        assert!(page.contains("<tr><td>b<td>3<td>+") && page.contains("b against a: 2 won, 0 drawn, 1 lost"));
        assert!(page.contains("<h2>Ladders of b</h2>"));
        assert_eq!(page.contains("of its own run"), cfg!(feature = "charts"));
    }
}
