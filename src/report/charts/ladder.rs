//! Charts of ladders: strength over epochs, with the ends of the intervals for one run, and a line for each of several.

use super::chart::{Axis, LineChart, Series};
use crate::error::Result;
use crate::eval::ladder::{Ladder, LadderRung, Measure};

/// The chart as a figure. `escape` makes text fit for HTML.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the plotting library's message.
pub(in crate::report) fn ladder_chart(ladder: &Ladder, escape: fn(&str) -> String) -> Result<String> {
    let lines = vec![
        line(ladder.measure.name(), ladder, |rung| Some(rung.strength)),
        line("95 % interval, lower end", ladder, |rung| Some(rung.interval?[0])),
        line("upper end", ladder, |rung| Some(rung.interval?[1])),
    ];
    figure(ladder.measure, lines, "", escape)
}

/// The ladders of several runs by name, each relative to its own first network; nothing without a ladder. `escape` makes text fit for HTML.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the plotting library's message.
pub(in crate::report) fn ladders_chart(
    ladders: &[(&str, &Ladder)],
    escape: fn(&str) -> String,
) -> Result<String> {
    let Some((_, first)) = ladders.first() else { return Ok(String::new()) };
    let lines = ladders.iter().map(|(name, ladder)| line(name, ladder, |rung| Some(rung.strength)));
    figure(first.measure, lines.collect(), ", of its own run", escape)
}

fn line(name: &str, ladder: &Ladder, strength: fn(&LadderRung) -> Option<f64>) -> Series {
    let points = ladder.rungs.iter().filter_map(|rung| Some((rung.epoch as f64, strength(rung)?)));
    Series { name: name.to_string(), points: points.collect() }
}

fn figure(measure: Measure, series: Vec<Series>, whose: &str, escape: fn(&str) -> String) -> Result<String> {
    let (title, caption) = match measure {
        Measure::Elo => ("Elo above the first network", "400 Elo are odds of ten to one"),
        Measure::Points => ("Points above the first network", "Points per game of a seat over the others"),
        Measure::Score => ("Mean score", "Mean score of a game"),
    };
    let title = format!("{title}{whose}");
    let chart = LineChart {
        title: &title,
        x_label: "epoch",
        x_axis: Axis::Whole,
        series,
        reference: None,
        size: (640, 320),
    };
    let caption = escape(&format!("{caption}; more is stronger."));
    Ok(format!("<figure class=\"single\">\n{}<figcaption>{caption}</figcaption>\n</figure>\n", chart.svg()?))
}
