//! `vecaz.train`: a run, as `vecaz run` makes it, with a call for every epoch.

use crate::detach::detached;
use crate::errors::{Raised, exception, wrong};
use crate::interrupt::interruptible_in;
use crate::options::{assignments, registry};
use crate::threads::{num_threads, pool};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::path::PathBuf;
use vecaz::Error;
use vecaz::cli::ConfigArgs;
use vecaz::cli::run::{RunArgs, start};
use vecaz::report::metrics::EpochRecord;
use vecaz::report::progress::{Progress, Verbosity};
use vecaz::run::Run;
use vecaz::stop::Stop;

/// The folder of the run, its finished epochs, and whether it reached its limit.
type Outcome = (PathBuf, u64, bool);

/// Runs or resumes a run: `config` is a file or a built-in name, `keys` and then `settings` are laid over it.
#[pyfunction]
#[pyo3(signature = (config, keys, settings, out, resume, verbose, on_epoch))]
#[allow(clippy::too_many_arguments, reason = "the Python layer names them")]
pub fn train(
    py: Python<'_>,
    config: Option<PathBuf>,
    keys: Option<Bound<'_, PyMapping>>,
    settings: Option<Bound<'_, PyMapping>>,
    out: Option<PathBuf>,
    resume: Option<PathBuf>,
    verbose: bool,
    on_epoch: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    if let Some(function) = on_epoch.as_ref().map(|function| function.bind(py))
        && !function.is_callable()
    {
        return Err(wrong("on_epoch", function.get_type().name()?, "a function or None"));
    }
    let (registry, stop) = (registry()?, Stop::default());
    let mut set = assignments(keys.as_ref())?;
    set.extend(assignments(settings.as_ref())?);
    let args = arguments(ConfigArgs { game: None, config, set }, out, resume);
    let settings = detached(py, || args.run_layers(&registry)?.resolve()).map_err(exception)?;
    let (pool, threads) = (pool(settings.run.threads)?, num_threads(settings.run.threads)?);
    let verbosity = if verbose { Verbosity::Normal } else { Verbosity::Quiet };
    let raised = Raised::default();
    let calls = Calls { function: on_epoch, stop: stop.clone(), raised: raised.clone() };
    let work = || {
        let mut progress = Progress::new(verbosity);
        let mut run = start(&args, &registry, &progress, &|_| Ok(threads))?;
        run.on_epoch(calls.into_call());
        let ended = run.run_epochs(&mut progress, &stop);
        outcome(&run, ended)
    };
    let interrupted = interruptible_in(&pool, py, &stop, work);
    let raised = raised.take();
    let ended = interrupted?;
    raised.map_or(Ok(()), Err)?;
    ended.map_err(exception)
}

/// The arguments of `vecaz run`.
fn arguments(config: ConfigArgs, out: Option<PathBuf>, resume: Option<PathBuf>) -> RunArgs {
    RunArgs {
        config,
        games: None,
        sims: None,
        epochs: None,
        minutes: None,
        out,
        resume,
        start: None, // a setting, `run.start`
        threads: None,
        device: None,
        cluster: None,
        play: 1,
        password_file: None,
        metrics: None,
        seed: None,
    }
}

/// What is left of a run. One that was stopped has its last checkpoint.
fn outcome(run: &Run, ended: vecaz::Result<()>) -> vecaz::Result<Outcome> {
    let is_finished = match ended {
        Ok(()) => true,
        Err(Error::Stopped(_)) => false,
        Err(error) => return Err(error),
    };
    Ok((run.dir().to_path_buf(), run.epoch(), is_finished))
}

/// The calls of a function of Python after every epoch.
struct Calls {
    function: Option<Py<PyAny>>,
    /// Requested when the function returns False or raises.
    stop: Stop,
    /// The exception that it raised.
    raised: Raised,
}

impl Calls {
    /// What the run calls.
    fn into_call(self) -> impl FnMut(&EpochRecord) + Send + 'static {
        move |record| {
            let Some(function) = &self.function else { return };
            match Python::attach(|py| call(function.bind(py), record)) {
                Ok(true) => {}
                Ok(false) => self.stop.cancel(),
                Err(raised) => {
                    self.raised.set(raised);
                    self.stop.cancel();
                }
            }
        }
    }
}

/// Calls `function` with the metrics as a dict; False if it returns False, Python's own or NumPy's.
fn call(function: &Bound<'_, PyAny>, record: &EpochRecord) -> PyResult<bool> {
    let py = function.py();
    let text = serde_json::to_string(record).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let metrics = py.import("json")?.call_method1("loads", (text,))?;
    let returned = function.call1((metrics,))?;
    // What is no bool, such as None, is no wish to stop.
    Ok(returned.extract::<bool>().unwrap_or(true))
}
