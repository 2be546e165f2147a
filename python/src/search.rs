//! The search of all environments at once, by a network or by a function of Python.

use crate::detach::detached;
use crate::envs::State;
use crate::errors::{exception, wrong};
use crate::interrupt::interruptible_in;
use crate::options::table;
use crate::python_network::{Outputs, Players, evaluate};
use crate::trees::Trees;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use vecaz::config::{Algorithm, Layers, SearchConfig};
use vecaz::engine::Settings;
use vecaz::net::double_buffer::NetOutputs;
use vecaz::net::{IoShape, Network, UniformNet};
use vecaz::registry::AnyGame;
use vecaz::search::SearchParams;
use vecaz::search::root::{Exploration, RootSummary};
use vecaz::stop::Stop;

/// Maximum number of deals that are searched of one position.
const MAX_DETERMINISATIONS: usize = 1024;

/// Environments whose trees one thread searches under a function of Python: with fewer, waking another at every pass costs more than it saves.
const ENVS_PER_THREAD: usize = 32;

/// What a search was asked for.
pub struct SearchArguments {
    /// `[search]` of a configuration.
    pub config: SearchConfig,
    /// Its rules, with D.
    pub settings: Settings,
    /// Whether the roots have noise.
    pub exploration: Exploration,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Whether some player does not see the whole state.
    pub is_hidden: bool,
    /// Whether batches always have the most rows.
    pad: bool,
}

impl SearchArguments {
    /// Checks the arguments. `settings` are keys of `[search]`.
    ///
    /// # Errors
    /// `ValueError` for unknown keys and wrong values.
    pub fn new(
        game: &Arc<dyn AnyGame>,
        settings: &Bound<'_, PyDict>,
        noise: bool,
        determinisations: usize,
        seed: u64,
        pad: bool,
    ) -> PyResult<Self> {
        let sizes = game.sizes();
        let layers = table(settings)?.into_iter().try_fold(Layers::default(), |layers, (key, value)| {
            layers.assign(&format!("search.{key}"), &value.to_string())
        });
        let config = layers.and_then(Layers::resolve).map_err(exception)?;
        if config.search.algorithm == Algorithm::Afterstate {
            return Err(wrong("algorithm", "afterstate", "gumbel or puct"));
        }
        if !(1..=MAX_DETERMINISATIONS).contains(&determinisations) {
            return Err(wrong("determinisations", determinisations, format!("1 to {MAX_DETERMINISATIONS}")));
        }
        let search = config.search.clone();
        let params = SearchParams::new(&search, &sizes);
        let settings = Settings {
            params,
            leaves: search.leaves,
            determinisations: if sizes.hidden_information { determinisations } else { 1 },
            ..Settings::new(&config, &sizes)
        };
        let exploration = if noise { Exploration::Noisy } else { Exploration::Plain };
        Ok(Self { config: search, settings, exploration, seed, is_hidden: sizes.hidden_information, pad })
    }
}

/// The results of a search, each for all environments: best actions `[N]`, visits `[N, A]`, policy `[N, A]`, Q `[N, A]`, values `[N, P]`,
/// whether the value is proven `[N]`.
#[derive(IntoPyObject)]
pub struct SearchOutput(
    Py<PyArray1<i64>>,
    Py<PyArray2<i32>>,
    Py<PyArray2<f32>>,
    Py<PyArray2<f32>>,
    Py<PyArray2<f32>>,
    Py<PyArray1<bool>>,
);

/// Takes the trees of the last search if they fit, or makes new ones, and begins the search. An error later on leaves none.
fn begin(
    py: Python<'_>,
    game: &Arc<dyn AnyGame>,
    state: &mut State,
    arguments: &SearchArguments,
    network: &dyn Network,
    envs_per_thread: usize,
) -> PyResult<Trees> {
    let (pool, envs, kept) = (state.pool.clone(), &state.envs, state.trees.take());
    let threads = pool.current_num_threads().min(envs.len().div_ceil(envs_per_thread));
    let network = network.fork();
    let make = move || {
        let mut trees = match kept.filter(|trees| trees.fit(arguments, envs.len(), threads)) {
            Some(mut trees) => {
                trees.set_network(network.as_ref()).map_err(exception)?;
                trees
            }
            None => Trees::new(game, arguments, envs.len(), threads, network.as_ref())?,
        };
        trees.begin(envs, arguments).map_err(exception)?;
        Ok(trees)
    };
    detached(py, move || pool.install(make))
}

/// Searches with a network of vecaz, or without one: uniform priors, all values 0.
///
/// # Errors
/// Those of the network; the exception of a signal's handler.
pub fn by_network(
    py: Python<'_>,
    game: &Arc<dyn AnyGame>,
    state: &mut State,
    arguments: &SearchArguments,
    network: Option<Box<dyn Network>>,
) -> PyResult<SearchOutput> {
    let network = network.unwrap_or_else(|| Box::new(UniformNet(IoShape::of(&game.sizes()))));
    let mut trees = begin(py, game, state, arguments, network.as_ref(), 1)?;
    let (pool, stop) = (state.pool.clone(), Stop::default());
    trees.stop_by(&stop);
    interruptible_in(&pool, py, &stop, || trees.finish())?.map_err(exception)?;
    end(py, game, state, trees)
}

/// Searches with a function of Python, which gets all leaves of a pass as one batch. It is called in the calling thread.
///
/// # Errors
/// The exception that the function raises; `ValueError` for wrong outputs; the exception of a signal's handler.
pub fn by_function(
    function: &Bound<'_, PyAny>,
    game: &Arc<dyn AnyGame>,
    state: &mut State,
    arguments: &SearchArguments,
) -> PyResult<SearchOutput> {
    let (py, shape, pool) = (function.py(), IoShape::of(&game.sizes()), state.pool.clone());
    let players = Players::of(&game.sizes());
    if !function.is_callable() {
        return Err(wrong("evaluate", function.get_type().name()?, "a function, a vecaz.Network or None"));
    }
    let mut trees = begin(py, game, state, arguments, &UniformNet(shape), ENVS_PER_THREAD)?;
    let shards = trees.num_shards();
    let max_rows =
        state.envs.len() * arguments.settings.determinisations * arguments.settings.leaves.max(1) as usize;
    let (mut outputs, mut is_first) = (Outputs::default(), true);
    loop {
        let of = (!is_first).then_some(NetOutputs { logits: &outputs.logits, values: &outputs.values });
        let mut next = || trees.next_pass(of);
        let pass = detached(py, || if shards > 1 { pool.install(next) } else { next() });
        let Some(leaves) = pass.map_err(exception)? else { break };
        is_first = false;
        py.check_signals()?;
        if leaves > 0 {
            let rows = if arguments.pad { max_rows } else { leaves };
            let obs = PyArray2::<f32>::zeros(py, [rows, shape.obs_len], false);
            trees.copy_observations(obs.readwrite().as_slice_mut()?);
            outputs = evaluate(function, obs, leaves, (shape, players))?;
        }
    }
    end(py, game, state, trees)
}

/// Reads the results, and keeps the trees' arrays for the next search.
fn end(
    py: Python<'_>,
    game: &Arc<dyn AnyGame>,
    state: &mut State,
    mut trees: Trees,
) -> PyResult<SearchOutput> {
    let (pool, envs, sizes) = (state.pool.clone(), &state.envs, game.sizes());
    let results = detached(py, || pool.install(|| trees.summarise(envs))).map_err(exception)?;
    state.trees = Some(trees);
    let (n, a, p) = (results.len(), sizes.num_actions, sizes.num_players);
    let best = results.iter().map(|result| result.as_ref().map_or(-1, |r| i64::from(r.actions[r.best])));
    let proven = results.iter().map(|result| result.as_ref().is_some_and(|r| r.proven));
    let mut value = vec![0.0; n * p];
    for (row, result) in value.chunks_exact_mut(p).zip(&results) {
        if let Some(result) = result {
            row.copy_from_slice(&result.value);
        }
    }
    Ok(SearchOutput(
        PyArray1::from_vec(py, best.collect()).unbind(),
        PyArray1::from_vec(py, dense(&results, a, 0, |r| &r.visits)).reshape([n, a])?.unbind(),
        PyArray1::from_vec(py, dense(&results, a, 0.0, |r| &r.policy)).reshape([n, a])?.unbind(),
        PyArray1::from_vec(py, dense(&results, a, f32::NAN, |r| &r.q)).reshape([n, a])?.unbind(),
        PyArray1::from_vec(py, value).reshape([n, p])?.unbind(),
        PyArray1::from_vec(py, proven.collect()).unbind(),
    ))
}

/// Numbers of legal actions as rows over all actions. `[N, A]`
fn dense<T: Copy>(
    results: &[Option<RootSummary>],
    num_actions: usize,
    other: T,
    of: impl Fn(&RootSummary) -> &Vec<T>,
) -> Vec<T> {
    let mut out = vec![other; results.len() * num_actions];
    for (row, result) in out.chunks_exact_mut(num_actions).zip(results) {
        if let Some(result) = result {
            result.actions.iter().zip(of(result)).for_each(|(&action, &x)| row[usize::from(action)] = x);
        }
    }
    out
}
