//! The ways to select edges that tests of searches go through.

use vecaz::config::Algorithm;

/// A search algorithm, and the visits from which nodes below the root of a Gumbel search select by PUCT (`search.puct_visits`).
pub type Selection = (Algorithm, u32);

/// PUCT in the whole tree.
pub const PUCT: Selection = (Algorithm::Puct, 0);
/// The improved policy in the whole tree below the root.
pub const GUMBEL: Selection = (Algorithm::Gumbel, 1_000_000);
/// The improved policy, then PUCT, both within searches of a few dozen simulations.
pub const GUMBEL_AND_PUCT: Selection = (Algorithm::Gumbel, 5);
/// All of them.
#[allow(dead_code, reason = "slow tests take some of them")]
pub const SELECTIONS: [Selection; 3] = [PUCT, GUMBEL, GUMBEL_AND_PUCT];
