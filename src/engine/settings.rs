//! How an engine searches.

use crate::backend::Placement;
use crate::config::Config;
use crate::game::Sizes;
use crate::machine::default_threads;
use crate::search::SearchParams;

/// How an engine searches. The result of a limit in simulations repeats exactly for equal settings, `threads` included.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The rules of the search. Its L is not read, and its simulations by [`super::PositionBatch`] alone: an engine has limits.
    pub params: SearchParams,
    /// L: leaves that a tree selects per pass; 0 for as many as keep the threads busy, and few while the tree is small.
    pub leaves: u32,
    /// D: deals that are searched of a position with hidden information.
    pub determinisations: usize,
    /// Threads on a CPU; 0 for all cores, on Apple's processors all performance cores.
    pub threads: usize,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The limit of memory for trees, in MiB.
    pub memory_mib: usize,
    /// Where trees are.
    pub placement: Placement,
}

impl Settings {
    /// MiB of trees by default.
    const MEMORY_MIB: usize = 512;

    /// The settings of `config` for a game of these sizes: its search and devices, `eval.algorithm` and its determinisations.
    pub fn new(config: &Config, sizes: &Sizes) -> Self {
        let mut params = SearchParams::new(&config.search, sizes);
        (params.algorithm, params.simulations) = (config.eval_algorithm(), config.eval.simulations);
        params.turns = config.eval.turns;
        Self {
            params,
            leaves: 0,
            determinisations: if sizes.hidden_information { config.eval_determinisations() } else { 1 },
            threads: 0,
            seed: 1,
            memory_mib: Self::MEMORY_MIB,
            placement: Placement::of_run(config).on_first_device(),
        }
    }

    /// The rules of the search of many positions at once.
    pub fn batch_params(&self) -> SearchParams {
        SearchParams { leaves: self.leaves.max(1), ..self.params }
    }

    /// D in a game of these sizes: 1 where nothing is hidden.
    pub(super) fn deals(&self, sizes: &Sizes) -> usize {
        if sizes.hidden_information { self.determinisations.max(1) } else { 1 }
    }

    /// The number of threads.
    pub(super) fn num_threads(&self) -> usize {
        match self.threads {
            0 => default_threads(),
            threads => threads,
        }
    }
}
