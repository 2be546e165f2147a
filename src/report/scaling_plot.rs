//! The rows of `vecaz bench-scaling` and their output as JSON and CSV.

use crate::device::kernel_times::KernelTime;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One measurement with all settings that it depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScalingRow {
    /// The game's name.
    pub game: String,
    /// N: games at once.
    pub games: usize,
    /// S: simulations per ply.
    pub sims: u32,
    /// L: leaves a game selects per pass.
    pub leaves: u32,
    /// T: nodes of a game's tree.
    pub nodes: u32,
    /// Threads; fewer than allowed where there are fewer games.
    pub threads: usize,
    /// Threads that were allowed.
    pub max_threads: usize,
    /// Device of games, trees and network.
    pub device: String,
    /// The network: "uniform", blocks x channels, or blocks x channels @ updates for a trained one.
    pub net: String,
    /// The implementation of the forward: instruction set or kernels.
    pub path: String,
    /// Maximum number of simulations of a tree of the root cache; 0 where games began without one.
    pub root_cache: u32,
    /// New simulations per second, all games together.
    pub simulations_per_second: f64,
    /// Plies per second, all games together.
    pub moves_per_second: f64,
    /// Mean number of plies decided by a search in finished games; null if no game finished.
    pub plies_per_game: Option<f64>,
    /// Games per second: plies per second over plies per game; null if no game finished.
    pub games_per_second: Option<f64>,
    /// Mean batch size of one forward of one thread.
    pub positions_per_batch: f64,
    /// Positions per second that the network evaluated.
    pub positions_per_second: f64,
    /// Simulations per second relative to the smallest N, all else equal.
    pub speedup: f64,
    /// Time fractions of the stages of a pass.
    pub share: Share,
    /// Positions per second of the forward alone at the same batch size.
    pub forward_positions_per_second: f64,
    /// Positions per second of the search relative to the forward alone.
    pub forward_fraction: f64,
    /// Mean number of edges from root to leaf.
    pub mean_depth: f64,
    /// Number of edges of the deepest descent.
    pub max_depth: u32,
    /// Mean number of game slots that were idle in a pass.
    pub idle_rows: f64,
    /// Bytes copied between host and device within passes, both directions.
    pub copied_in_passes: u64,
    /// Bytes copied between host and device in total, per ply.
    pub copied_per_move: f64,
    /// Fraction of the time in which the device had passes to make or, with trees on the CPU and the network on a GPU, in which a
    /// kernel runs; null on the CPU.
    pub device_busy: Option<f64>,
    /// Fraction of the time in copies between host and device, individually timed, with trees on the CPU and the network on
    /// a GPU; null otherwise.
    pub transfers: Option<f64>,
    /// Peak memory of the process, MiB; null where the system does not report it (outside of Linux).
    pub peak_memory_mib: Option<f64>,
    /// The seed.
    pub seed: u64,
    /// The git commit measured.
    pub commit: String,
    /// Kernel times of some passes, each launch timed individually, the longest first; not in the CSV.
    pub kernels: Vec<KernelTime>,
}

/// Fractions of the time of a pass; they sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Selection of leaves.
    pub select: f64,
    /// The network's forward.
    pub forward: f64,
    /// Expansion of nodes.
    pub expand: f64,
    /// Backup of values.
    pub backup: f64,
    /// The rest: acting, stepping, refilling.
    pub other: f64,
}

/// The rows as a JSON array, one object per line.
///
/// # Errors
/// [`Error::Unsupported`] with the serialiser's message.
pub fn scaling_json(rows: &[ScalingRow]) -> Result<String> {
    let lines = rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>().map_err(not_written)?;
    Ok(format!("[{}]\n", lines.join(",\n ")))
}

/// The rows as CSV with a header line; the parts of `share` are columns `share_select` and so on.
///
/// # Errors
/// [`Error::Unsupported`] with the serialiser's message.
pub fn scaling_csv(rows: &[ScalingRow]) -> Result<String> {
    let names = columns(&ScalingRow::default())?.into_iter().map(|(name, _)| name);
    let mut csv = names.collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        let cells: Vec<String> = columns(row)?.into_iter().map(|(_, value)| cell(&value)).collect();
        csv += &(cells.join(",") + "\n");
    }
    Ok(csv)
}

/// The fields of a row; nested fields have their parent's name as prefix.
fn columns(row: &ScalingRow) -> Result<Vec<(String, Value)>> {
    let Value::Object(fields) = serde_json::to_value(row).map_err(not_written)? else { return Ok(vec![]) };
    let flat = fields.into_iter().flat_map(|(name, value)| match value {
        Value::Object(parts) => {
            parts.into_iter().map(|(part, value)| (format!("{name}_{part}"), value)).collect()
        }
        Value::Array(_) => vec![],
        value => vec![(name, value)],
    });
    Ok(flat.collect())
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn not_written(error: serde_json::Error) -> Error {
    Error::unsupported("writing a row", error.to_string())
}

/// Rows of two networks and some numbers of games and threads.
#[cfg(test)]
pub(super) fn example_rows() -> Vec<ScalingRow> {
    let mut rows = vec![];
    for (net, rate) in [("uniform", 30_000.0), ("2x32", 900.0)] {
        for (threads, games) in [(1, 1), (1, 16), (1, 512), (2, 512), (2, 16)] {
            rows.push(ScalingRow {
                game: "connect_four".into(),
                games,
                sims: 800,
                leaves: 4,
                threads: threads.min(games),
                max_threads: threads,
                device: "cpu".into(),
                net: net.into(),
                simulations_per_second: (rate * (threads * games) as f64 / (1.0 + games as f64 / 100.0))
                    .round(),
                share: Share { select: 0.25, forward: 0.5, expand: 0.125, backup: 0.0625, other: 0.0625 },
                commit: "a \"dirty\", tree".into(),
                ..ScalingRow::default()
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_reads_back() {
        let text = scaling_json(&example_rows()).expect("written");
        assert_eq!(serde_json::from_str::<Vec<ScalingRow>>(&text).expect("read"), example_rows());
        let first = &serde_json::from_str::<Value>(&text).expect("read")[0];
        assert_eq!(first["share"]["forward"], 0.5);
        assert_eq!(scaling_json(&[]).expect("written"), "[]\n");
    }

    #[test]
    fn csv_has_a_column_for_every_field() {
        let text = scaling_csv(&example_rows()).expect("written");
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
        assert_eq!(header.len(), 35);
        let column = |name: &str| header.iter().position(|h| *h == name).expect("a column");
        let first = lines.next().expect("a row");
        let cells: Vec<&str> = first.split(',').collect();
        assert_eq!((cells[column("games")], cells[column("share_forward")]), ("1", "0.5"));
        assert!(first.ends_with(",\"a \"\"dirty\"\", tree\""), "{first}");
        assert_eq!(lines.count() + 1, example_rows().len());
    }
}
