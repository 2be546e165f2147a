//! The rows of `vecaz bench-scaling` and their output as JSON.

use crate::device::kernel_times::KernelTime;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

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
    /// Kernel times of some passes, each launch timed individually, the longest first.
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
    let lines = rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
    let lines = lines.map_err(|error| Error::unsupported("writing a row", error.to_string()))?;
    Ok(format!("[{}]\n", lines.join(",\n ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn json_reads_back() {
        let row = |net: &str, games| ScalingRow {
            net: net.into(),
            games,
            share: Share { select: 0.25, forward: 0.5, expand: 0.125, backup: 0.0625, other: 0.0625 },
            commit: "a \"dirty\", tree".into(),
            ..ScalingRow::default()
        };
        let rows = vec![row("uniform", 1), row("2x32", 512)];
        let text = scaling_json(&rows).expect("written");
        assert_eq!(serde_json::from_str::<Vec<ScalingRow>>(&text).expect("read"), rows);
        let first = &serde_json::from_str::<Value>(&text).expect("read")[0];
        assert_eq!(first["share"]["forward"], 0.5);
        assert_eq!(scaling_json(&[]).expect("written"), "[]\n");
    }
}
