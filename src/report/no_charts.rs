//! What takes the charts' place in a build without the feature `charts`.

use super::metrics::EpochRecord;
use crate::error::{Error, Result};
use crate::eval::ladder::Ladder;

/// No style rules.
pub(super) fn page_style() -> String {
    String::new()
}

/// A sentence that says why the page has no charts.
pub(super) fn page_charts(_: &[EpochRecord], _: Option<f64>, escape: fn(&str) -> String) -> Result<String> {
    Ok(format!("<p>{}</p>\n", escape(&Error::without_feature("charts", "charts").to_string())))
}

/// A sentence that says why the page has no charts.
pub(super) fn comparison_charts(
    _: &[(&str, &[EpochRecord])],
    _: Option<f64>,
    escape: fn(&str) -> String,
) -> Result<String> {
    page_charts(&[], None, escape)
}

/// No chart of the ladders.
pub(super) fn ladders_chart(_: &[(&str, &Ladder)], _: fn(&str) -> String) -> Result<String> {
    Ok(String::new())
}

/// No chart; the table of the ladder has its figures.
pub(super) fn ladder_chart(_: &Ladder, _: fn(&str) -> String) -> Result<String> {
    Ok(String::new())
}
