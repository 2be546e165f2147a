//! The chart of a ladder: strength over epochs, with the ends of the intervals.

use super::chart::{Axis, LineChart, Series};
use crate::error::Result;
use crate::eval::ladder::{Ladder, LadderRung, Measure};

/// The chart as a figure. `escape` makes text fit for HTML.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the plotting library's message.
pub(in crate::report) fn ladder_chart(ladder: &Ladder, escape: fn(&str) -> String) -> Result<String> {
    let line = |name: &str, pick: fn(&LadderRung) -> Option<f64>| Series {
        name: name.to_string(),
        points: ladder.rungs.iter().filter_map(|rung| Some((rung.epoch as f64, pick(rung)?))).collect(),
    };
    let (title, caption) = match ladder.measure {
        Measure::Elo => ("Elo above the first network", "400 Elo are odds of ten to one"),
        Measure::Points => ("Points above the first network", "Points per game of a seat over the others"),
        Measure::Score => ("Mean score", "Mean score of a game"),
    };
    let chart = LineChart {
        title,
        x_label: "epoch",
        x_axis: Axis::Whole,
        y_axis: Axis::FromZero,
        series: vec![
            line(ladder.measure.name(), |rung| Some(rung.strength)),
            line("95 % interval, lower end", |rung| Some(rung.interval?[0])),
            line("upper end", |rung| Some(rung.interval?[1])),
        ],
        reference: None,
        size: (640, 320),
    };
    let caption = escape(&format!("{caption}; more is stronger."));
    Ok(format!("<figure class=\"single\">\n{}<figcaption>{caption}</figcaption>\n</figure>\n", chart.svg()?))
}
