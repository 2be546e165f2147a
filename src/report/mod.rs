//! What people see of a run: the table and bars in the terminal, `metrics.jsonl`, TensorBoard events, `report.html`, the
//! plot of a scaling benchmark.
//!
//! In: finished figures. Out: text and files. Knows no game, no tree and no network.

pub mod metrics;
pub mod progress;
pub mod tensorboard;
pub mod html;
pub mod scaling_plot;

mod chart;
