//! The charts of `report.html`.

use super::chart::{Axis, LineChart};
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
    let charts = Charts { records, random_outcome_error, escape };
    let minutes =
        Horizontal { class: "by-minutes", label: "minutes", axis: Axis::FromZero, of: EpochRecord::minutes };
    let epochs = Horizontal { class: "by-epochs", label: "epoch", axis: Axis::Whole, of: |r| r.epoch as f64 };
    let choice = "<fieldset>Over\n\
        <label><input type=\"radio\" name=\"over\" id=\"by-minutes\" checked> minutes</label>\n\
        <label><input type=\"radio\" name=\"over\" id=\"by-epochs\"> epochs</label>\n</fieldset>\n";
    Ok(choice.to_string() + &charts.over(&minutes)? + &charts.over(&epochs)?)
}

/// What the charts show.
struct Charts<'a> {
    records: &'a [EpochRecord],
    random_outcome_error: Option<f64>,
    escape: fn(&str) -> String,
}

impl Charts<'_> {
    /// All charts over `x`, each with a sentence about its meaning; those without a point are omitted.
    fn over(&self, x: &Horizontal) -> Result<String> {
        let mut html = format!("<div class=\"charts {}\">\n", x.class);
        for spec in epoch_charts(self.records, self.random_outcome_error, &head_names(self.records)) {
            let chart = LineChart {
                title: spec.title,
                x_label: x.label,
                x_axis: x.axis,
                y_axis: Axis::FromZero,
                series: spec.series(self.records, x.of),
                reference: spec.reference,
                size: (420, 300),
            };
            if !chart.is_empty() {
                let (svg, caption) = (chart.svg()?, (self.escape)(&spec.meaning));
                let _ = write!(html, "<figure>\n{svg}<figcaption>{caption}</figcaption>\n</figure>\n");
            }
        }
        Ok(html + "</div>\n")
    }
}

/// The horizontal axis of all charts.
struct Horizontal {
    class: &'static str,
    label: &'static str,
    axis: Axis,
    of: fn(&EpochRecord) -> f64,
}
