//! The ladder of a run's networks as a table, in the terminal and on a page.

use super::charts::ladder_chart;
use super::layout::{Column, Table};
use crate::error::Result;
use crate::eval::elo::signed;
use crate::eval::ladder::{Ladder, LadderRung, Measure};
use crate::words::count;
use std::fmt::Write;

/// The table for a terminal of this width.
pub fn table(ladder: &Ladder, width: usize) -> String {
    let has_positions = ladder.rungs.iter().any(|rung| rung.search_outcome_error.is_some());
    let mut columns = vec![
        Column::new("epoch", 6, 0),
        Column::new("updates", 8, 3),
        Column::new(ladder.measure.name(), 7, 0),
        Column::new("95 % interval", 20, 0),
        Column::new("gain", 7, 1),
        Column::new("95 % interval", 18, 4),
        Column::new("games", 6, 2),
    ];
    if has_positions {
        columns.push(Column::new("search err %", 12, 1));
        columns.push(Column::new("policy err %", 12, 2));
    }
    let table = Table::fitting(&columns, width);
    let rows = ladder.rungs.iter().map(|rung| table.line(&cells(ladder.measure, rung)) + "\n");
    std::iter::once(table.header(&columns) + "\n").chain(rows).collect()
}

/// The cells of a network, with those of solved positions.
fn cells(measure: Measure, rung: &LadderRung) -> Vec<String> {
    let decimals = measure.decimals();
    let number = |value: f64| match measure {
        Measure::Elo | Measure::Points => signed(value, decimals),
        Measure::Score => format!("{value:.decimals$}"),
    };
    let change = |value: f64| signed(value, decimals);
    let percent = |share: Option<f64>| share.map(|share| format!("{:.1}", 100.0 * share)).unwrap_or_default();
    let interval = |ends: Option<[f64; 2]>, text: &dyn Fn(f64) -> String| {
        ends.map(|[low, high]| format!("[{} to {}]", text(low), text(high))).unwrap_or_default()
    };
    vec![
        rung.epoch.to_string(),
        rung.updates.to_string(),
        number(rung.strength),
        interval(rung.interval, &number),
        rung.gain.map(change).unwrap_or_default(),
        interval(rung.gain_interval, &change),
        rung.games.to_string(),
        percent(rung.search_outcome_error),
        percent(rung.policy_outcome_error),
    ]
}

/// A sentence about what the strengths are.
fn meaning(ladder: &Ladder) -> String {
    let what = match ladder.measure {
        Measure::Elo => "Elo differences to the first network, by maximum likelihood",
        Measure::Points => "Leads in points per game over the first network, by least squares",
        Measure::Score => "Mean scores per game",
    };
    format!(
        "{what}, from {} between networks of this run, at {} per ply.",
        count(ladder.matches.len(), "match").replace("matchs", "matches"),
        count(ladder.simulations, "simulation")
    )
}

/// The section of a page: a chart and a table. `escape` makes text fit for HTML.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the plotting library's message.
pub(super) fn section(ladder: &Ladder, escape: fn(&str) -> String) -> Result<String> {
    let mut html = format!("<h2>Ladder of the run's networks</h2>\n<p>{}</p>\n", escape(&meaning(ladder)));
    html += &ladder_chart(ladder, escape)?;
    let _ = writeln!(
        html,
        "<div class=\"wide\"><table class=\"ladder\">\n<tr><th>epoch<th>updates<th>{}<th>95 % interval<th>gain<th>95 % interval\
         <th>games<th>search err %<th>policy err %</tr>",
        ladder.measure.name()
    );
    for rung in &ladder.rungs {
        let _ = writeln!(html, "<tr><td>{}</tr>", cells(ladder.measure, rung).join("<td>"));
    }
    Ok(html + "</table></div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::ladder::Conditions;
    use crate::eval::matches::MatchOutcome;
    use crate::eval::ratings::Pairing;

    /// A ladder of three networks, of which the last was measured on solved positions.
    pub fn example() -> Ladder {
        let won = |margins: &[f32]| {
            let mut outcome = MatchOutcome { scores: vec![0.0; margins.len()], ..MatchOutcome::default() };
            margins.iter().for_each(|&margin| outcome.result.add(margin));
            outcome
        };
        let rung = |epoch| LadderRung { epoch, updates: 7 * epoch, ..LadderRung::default() };
        let last =
            LadderRung { search_outcome_error: Some(0.125), policy_outcome_error: Some(0.25), ..rung(20) };
        let matches = [
            Pairing { first: 1, second: 0, result: won(&[1.0, 1.0, 0.0, -1.0]) },
            Pairing { first: 2, second: 1, result: won(&[1.0, 1.0, 1.0, -1.0]) },
        ];
        let conditions = Conditions { measure: Measure::Elo, simulations: 16, opening_plies: 4, seed: 1 };
        Ladder::new(conditions, vec![rung(1), rung(10), last], &matches)
    }

    #[test]
    fn a_table_has_a_line_for_each_network() {
        let text = table(&example(), 200);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect())
            .collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0][..3], ["epoch", "updates", "Elo"]);
        assert_eq!(lines[1], ["1", "7", "+0", "4"]);
        assert_eq!((lines[2][0], lines[2][2]), ("10", "+70"));
        assert_eq!(lines[3][lines[3].len() - 2..], ["12.5", "25.0"]);
        assert!(table(&example(), 60).lines().all(|line| line.chars().count() <= 60));
    }

    #[test]
    fn a_page_shows_the_same_figures() {
        let html = section(&example(), |text| text.replace('<', "&lt;")).expect("made");
        assert!(
            html.contains("from 2 matches between networks of this run, at 16 simulations per ply."),
            "{html}"
        );
        assert!(html.contains("<tr><td>20<td>140<td>") && html.contains("<td>12.5<td>25.0</tr>"), "{html}");
        assert_eq!(html.contains("<svg"), cfg!(feature = "charts"));
    }
}
