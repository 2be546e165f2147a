//! The parameters of a search: the configuration's values, resolved for one game. Kernels take them as they are.

use crate::config::{Algorithm, SearchConfig};
use crate::device_struct::{device_enum, device_struct};
use crate::game::Sizes;
use bytemuck::NoUninit;

device_struct! {
    /// Parameters of a search, resolved for one game. Where the arrays live is not among them.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub struct SearchParams {
        /// PUCT or Gumbel; rows of `Afterstate` have no tree.
        pub algorithm: Algorithm,
        /// S: simulations of one ply.
        pub simulations: u32,
        /// L: leaves that a row selects in one pass.
        pub leaves: u32,
        /// c_init of PUCT.
        pub c_init: f32,
        /// c_base of PUCT.
        pub c_base: f32,
        /// The reduction of first-play urgency, the Q of an edge without visits, from the node's mean value.
        pub fpu_reduction: f32,
        /// Share of Dirichlet noise in the root's priors.
        pub dirichlet_epsilon: f32,
        /// Dirichlet alpha; 0 stands for 10 / legal actions.
        pub dirichlet_alpha: f32,
        /// Maximum number of actions that sequential halving considers.
        pub max_num_considered_actions: u32,
        /// Visits from which a node below the root of a Gumbel search selects by PUCT.
        pub puct_visits: u32,
        /// c_visit of Gumbel.
        pub c_visit: f32,
        /// c_scale of Gumbel, for Q mapped to [0, 1].
        pub c_scale: f32,
        /// Whether proven values are backed up.
        pub solver: MctsSolver,
        /// The share of `simulations` up to which inherited visits replace new simulations.
        pub inherit_cap: f32,
        /// Fewest new simulations of one ply.
        pub min_simulations: u32,
        /// Turns that rows of `Afterstate` look ahead.
        pub turns: u32,
    }
}

device_enum! {
    /// Whether values are proven (MCTS-Solver).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
    pub enum MctsSolver: u32 {
        /// Every value is an estimate.
        Off,
        /// MCTS-Solver, for two-player zero-sum games without chance and hidden information.
        On,
    }
}

impl SearchParams {
    /// The parameters of a configuration for a game of these sizes. The solver is on where the configuration sets it and the game
    /// allows it.
    pub fn new(config: &SearchConfig, sizes: &Sizes) -> Self {
        let solvable = sizes.is_zero_sum_pair() && sizes.num_chance == 0 && !sizes.hidden_information;
        Self {
            algorithm: config.algorithm,
            simulations: config.simulations,
            leaves: config.leaves,
            c_init: config.c_init,
            c_base: config.c_base,
            fpu_reduction: config.fpu_reduction,
            dirichlet_epsilon: config.dirichlet_epsilon,
            dirichlet_alpha: config.dirichlet_alpha,
            max_num_considered_actions: config.max_num_considered_actions.min(sizes.tree_edges() as u32),
            puct_visits: config.puct_visits,
            c_visit: config.c_visit,
            c_scale: config.c_scale,
            solver: if config.solver && solvable { MctsSolver::On } else { MctsSolver::Off },
            inherit_cap: config.inherit_cap,
            min_simulations: config.min_simulations,
            turns: 1,
        }
    }
}
