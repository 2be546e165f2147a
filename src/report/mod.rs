//! Output of runs: the table, progress bars and lines in the terminal, `metrics.jsonl`, TensorBoard events, `report.html`, a page about
//! several runs, metrics for Prometheus, the rows of a scaling benchmark.
//!
//! Input: metrics. Output: text and files. Depends on no tree or network.

pub mod comparison;
pub mod games;
pub mod ladder;
pub mod layout;
pub mod learning;
mod epoch_record;
pub mod metrics;
pub mod plan;
pub mod progress;
pub mod prometheus;
pub mod tensorboard;
pub mod tallies;
pub mod terminal;
pub mod html;
pub mod scaling_rows;
pub mod workers;

#[cfg(feature = "charts")]
pub mod charts;
#[cfg(not(feature = "charts"))]
#[path = "no_charts.rs"]
pub mod charts;
mod bundle;
mod changes;
mod compact;
#[cfg(feature = "http")]
pub mod exporter;
#[cfg(not(feature = "http"))]
#[path = "no_exporter.rs"]
pub mod exporter;
mod strength;
mod work;

pub use html::FILE_NAME as REPORT;
