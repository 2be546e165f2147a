//! The trees of a search of many environments, divided over threads.

use crate::errors::exception;
use crate::search::SearchArguments;
use pyo3::PyResult;
use rayon::prelude::*;
use std::sync::Arc;
use vecaz::Result;
use vecaz::backend::plan::{BackendPlan, Reuse};
use vecaz::backend::{Placement, PlyPlan};
use vecaz::batch::{EnvPosition, Envs};
use vecaz::config::SearchConfig;
use vecaz::net::Network;
use vecaz::net::double_buffer::{NetOutputs, ObsBuffer};
use vecaz::play::act::sum_determinisations;
use vecaz::registry::AnyGame;
use vecaz::rng::Purpose;
use vecaz::run::memory::check_search;
use vecaz::search::root::{RootSummary, RowKey};
use vecaz::searcher::Searcher;
use vecaz::stop::Stop;

/// Trees of N environments, D for each, in one [`Searcher`] for each thread.
pub struct Trees {
    game: Arc<dyn AnyGame>,
    shards: Vec<Shard>,
    /// Environments of a shard; the last may have fewer.
    per_shard: usize,
    /// D.
    determinisations: usize,
    config: SearchConfig,
}

/// Some rows.
struct Shard {
    searcher: Searcher,
    /// Leaves of the present pass; None where no row has simulations left.
    leaves: Option<usize>,
    /// Their observations. `[M, F]`
    obs: Vec<f32>,
}

impl Shard {
    /// Ends the pass that was begun with `outputs`, and begins the next one.
    fn next_pass(&mut self, outputs: Option<NetOutputs<'_>>) -> Result<()> {
        if let (Some(outputs), Some(_)) = (outputs, self.leaves) {
            self.searcher.end_pass(outputs)?;
        }
        self.leaves = None;
        if self.is_done()? {
            return Ok(());
        }
        let leaves = self.searcher.begin_pass()?;
        self.leaves = Some(leaves);
        self.obs.resize(leaves * self.searcher.backend.sizes().obs.len(), 0.0);
        match leaves {
            0 => Ok(()),
            _ => self.searcher.observe(ObsBuffer::F32(&mut self.obs)),
        }
    }

    /// True where no row has simulations left.
    fn is_done(&mut self) -> Result<bool> {
        for row in 0..self.searcher.backend.rows() {
            if !self.searcher.backend.is_done(row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Trees {
    /// Trees for `num_envs` environments, evaluated by `network`. Call it in the pool of the search.
    ///
    /// # Errors
    /// `ValueError` for more memory than is free.
    pub fn new(
        game: &Arc<dyn AnyGame>,
        arguments: &SearchArguments,
        num_envs: usize,
        threads: usize,
        network: &dyn Network,
    ) -> PyResult<Self> {
        let determinisations = arguments.settings.determinisations;
        check_search(game.as_ref(), arguments.settings, num_envs).map_err(exception)?;
        let per_shard = num_envs.div_ceil(threads);
        let params = arguments.settings.batch_params();
        let nodes = BackendPlan::nodes_for(params.simulations, &game.sizes());
        let shard = |first: usize| {
            let rows = per_shard.min(num_envs - first) * determinisations;
            let plan = BackendPlan { rows, nodes, params, reuse: Reuse::Drop };
            let searcher = Searcher::new(game.as_ref(), network.fork(), plan, Placement::default())?;
            Ok(Shard { searcher, leaves: None, obs: Vec::new() })
        };
        let shards = (0..num_envs).step_by(per_shard).map(shard).collect::<Result<_>>().map_err(exception)?;
        Ok(Self { game: game.clone(), shards, per_shard, determinisations, config: arguments.config.clone() })
    }

    /// True if these are the trees of such a search of `num_envs` environments on `threads` threads.
    pub fn fit(&self, arguments: &SearchArguments, num_envs: usize, threads: usize) -> bool {
        self.per_shard == num_envs.div_ceil(threads)
            && self.config == arguments.config
            && self.determinisations == arguments.settings.determinisations
    }

    /// Replaces the network.
    ///
    /// # Errors
    /// Those of the network.
    pub fn set_network(&mut self, network: &dyn Network) -> Result<()> {
        self.shards.iter_mut().try_for_each(|shard| shard.searcher.set_network(network))
    }

    /// From now on searches end once `stop` is requested.
    pub fn stop_by(&mut self, stop: &Stop) {
        self.shards.iter_mut().for_each(|shard| shard.searcher.stop_by(stop));
    }

    /// Plants a new tree for every environment whose game is not over, and begins its search.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn begin(&mut self, envs: &Envs, arguments: &SearchArguments) -> Result<()> {
        let (d, per_shard, game) = (self.determinisations, self.per_shard, &self.game);
        self.shards.par_iter_mut().enumerate().try_for_each(|(index, shard)| {
            shard.leaves = None;
            let (shard, first) = (&mut shard.searcher, index * per_shard);
            for env in first..envs.len().min(first + per_shard) {
                let position = envs.position(env);
                let Some(player) = position.player else { continue };
                for determinisation in 0..d {
                    let key = key_of(&position, env, determinisation, arguments.seed);
                    let drawn = (d > 1 || arguments.is_hidden).then(|| {
                        game.determinise(position.state, player, &mut key.key(Purpose::Determinise).stream())
                    });
                    let row = (env - first) * d + determinisation;
                    shard.backend.set_root(
                        row,
                        drawn.as_deref().unwrap_or(position.state),
                        position.history,
                    )?;
                    let simulations = arguments.settings.params.simulations;
                    shard
                        .backend
                        .begin(row, PlyPlan { simulations, exploration: arguments.exploration, key })?;
                }
            }
            Ok(())
        })
    }

    /// Makes all passes with the network of the trees.
    ///
    /// # Errors
    /// Those of the network; [`vecaz::Error::Stopped`].
    pub fn finish(&mut self) -> Result<()> {
        self.shards.par_iter_mut().try_for_each(|shard| shard.searcher.finish())
    }

    /// The number of shards, each for one thread.
    pub fn num_shards(&self) -> usize {
        self.shards.len()
    }

    /// Ends the pass that was begun with `outputs`, logits `[M, A]` and values `[M, P]`, and begins the next one. Returns its M; None where no
    /// tree has simulations left.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn next_pass(&mut self, outputs: Option<NetOutputs<'_>>) -> Result<Option<usize>> {
        let sizes = self.game.sizes();
        let mut first = 0;
        let mut part = |shard: &Shard| {
            let rows = first..first + shard.leaves.unwrap_or(0);
            first = rows.end;
            outputs.map(|of| NetOutputs {
                logits: &of.logits[rows.start * sizes.num_actions..rows.end * sizes.num_actions],
                values: &of.values[rows.start * sizes.num_players..rows.end * sizes.num_players],
            })
        };
        let parts: Vec<Option<NetOutputs<'_>>> = self.shards.iter().map(&mut part).collect();
        match (self.shards.as_mut_slice(), parts.as_slice()) {
            ([shard], [outputs]) => shard.next_pass(*outputs)?,
            (shards, _) => {
                shards.par_iter_mut().zip(parts).try_for_each(|(shard, outputs)| shard.next_pass(outputs))?;
            }
        }
        let leaves: Vec<usize> = self.shards.iter().filter_map(|shard| shard.leaves).collect();
        Ok((!leaves.is_empty()).then(|| leaves.iter().sum()))
    }

    /// Copies the observations of the pass to the front of `obs`. `[M, F]`
    pub fn copy_observations(&self, obs: &mut [f32]) {
        let mut rest = obs;
        for shard in self.shards.iter().filter(|shard| shard.leaves.is_some()) {
            let (part, after) = rest.split_at_mut(shard.obs.len());
            part.copy_from_slice(&shard.obs);
            rest = after;
        }
    }

    /// The results of the environments that have a tree; None for the others. `[N]`
    ///
    /// # Errors
    /// Those of the backend.
    pub fn summarise(&mut self, envs: &Envs) -> Result<Vec<Option<RootSummary>>> {
        let (d, per_shard) = (self.determinisations, self.per_shard);
        let of_shard = |(index, shard): (usize, &mut Shard)| {
            let (shard, first) = (&mut shard.searcher, index * per_shard);
            let of_env = |env: usize| {
                if envs.position(env).player.is_none() {
                    return Ok(None);
                }
                let mut parts = vec![RootSummary::default(); d];
                for (determinisation, part) in parts.iter_mut().enumerate() {
                    shard.backend.summarise((env - first) * d + determinisation, part)?;
                }
                if d > 1 {
                    let mut sum = RootSummary::default();
                    sum_determinisations(&parts, &mut sum);
                    return Ok(Some(sum));
                }
                Ok(parts.pop())
            };
            (first..envs.len().min(first + per_shard)).map(of_env).collect::<Result<Vec<_>>>()
        };
        let parts = self.shards.par_iter_mut().enumerate().map(of_shard).collect::<Result<Vec<_>>>()?;
        Ok(parts.into_iter().flatten().collect())
    }
}

/// The random numbers of a search.
fn key_of(position: &EnvPosition<'_>, env: usize, determinisation: usize, seed: u64) -> RowKey {
    RowKey {
        seed,
        slot: env as u64,
        game: position.game,
        determinisation: determinisation as u64,
        ply: u64::from(position.plies),
    }
}
