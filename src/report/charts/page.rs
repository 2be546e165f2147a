//! The charts of `report.html`, and of a page about several runs.

use super::chart::{Axis, LineChart, Series};
use super::epochs::epoch_charts;
use crate::error::Result;
use crate::report::metrics::{EpochRecord, head_names};
use std::fmt::Write;

/// The charts over minutes and over epochs, and the choice between them. `random_outcome_error` as in [`crate::report::html::Report`];
/// `escape` makes text fit for HTML.
///
/// # Errors
/// [`crate::Error::Unsupported`] with the plotting library's message.
pub(in crate::report) fn page_charts(
    records: &[EpochRecord],
    random_outcome_error: Option<f64>,
    escape: fn(&str) -> String,
) -> Result<String> {
    over_both(escape, |x| {
        let specs = epoch_charts(records, random_outcome_error, &head_names(records));
        let figure = |spec: super::epochs::ChartSpec| Figure {
            title: spec.title.into(),
            series: spec.series(records, x.of),
            reference: spec.reference,
            meaning: spec.meaning,
        };
        specs.into_iter().map(figure).collect()
    })
}

/// The charts of several runs, by name: one for each metric, with a line for each run that has it.
///
/// # Errors
/// Those of [`page_charts`].
pub(in crate::report) fn comparison_charts(
    runs: &[(&str, &[EpochRecord])],
    random_outcome_error: Option<f64>,
    escape: fn(&str) -> String,
) -> Result<String> {
    over_both(escape, |x| {
        let mut figures: Vec<Figure> = Vec::new();
        for (name, records) in runs {
            for spec in epoch_charts(records, random_outcome_error, &head_names(records)) {
                for line in spec.series(records, x.of) {
                    let title = format!("{}: {}", spec.title, line.name);
                    let series = Series { name: name.to_string(), points: line.points };
                    match figures.iter_mut().find(|figure| figure.title == title) {
                        Some(figure) => figure.series.push(series),
                        None => figures.push(Figure {
                            title,
                            meaning: spec.meaning.clone(),
                            series: vec![series],
                            reference: spec.reference,
                        }),
                    }
                }
            }
        }
        figures
    })
}

/// A chart with a sentence about its meaning.
struct Figure {
    title: String,
    meaning: String,
    series: Vec<Series>,
    reference: Option<(&'static str, f64)>,
}

/// The figures over minutes and over epochs, and the choice between them; those without a point are omitted.
fn over_both(escape: fn(&str) -> String, figures: impl Fn(&Horizontal) -> Vec<Figure>) -> Result<String> {
    let minutes =
        Horizontal { class: "by-minutes", label: "minutes", axis: Axis::Any, of: EpochRecord::minutes };
    let epochs = Horizontal { class: "by-epochs", label: "epoch", axis: Axis::Whole, of: |r| r.epoch as f64 };
    let mut html = "<fieldset>Over\n\
        <label><input type=\"radio\" name=\"over\" id=\"by-minutes\" checked> minutes</label>\n\
        <label><input type=\"radio\" name=\"over\" id=\"by-epochs\"> epochs</label>\n</fieldset>\n"
        .to_string();
    for x in [minutes, epochs] {
        let _ = writeln!(html, "<div class=\"charts {}\">", x.class);
        for figure in figures(&x) {
            let chart = LineChart {
                title: &figure.title,
                x_label: x.label,
                x_axis: x.axis,
                series: figure.series,
                reference: figure.reference,
                size: (420, 300),
            };
            if !chart.is_empty() {
                let (svg, caption) = (chart.svg()?, escape(&figure.meaning));
                let _ = write!(html, "<figure>\n{svg}<figcaption>{caption}</figcaption>\n</figure>\n");
            }
        }
        html += "</div>\n";
    }
    Ok(html)
}

/// The horizontal axis of all charts.
struct Horizontal {
    class: &'static str,
    label: &'static str,
    axis: Axis,
    of: fn(&EpochRecord) -> f64,
}
