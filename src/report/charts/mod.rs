//! Charts of a run's report, as SVG. Only in builds with the feature `charts`.

mod chart;
mod epochs;
mod ladder;
mod page;

pub(super) use chart::page_style;
pub(super) use ladder::{ladder_chart, ladders_chart};
pub(super) use page::{comparison_charts, page_charts};
