//! `vecaz.Engine`: a player and analyst of one position. The Python layer names the arguments and makes objects of the results.

use crate::errors::{exception, wrong};
use crate::interrupt::interruptible;
use crate::options::{registry, table};
use crate::python_network::{PythonNetwork, Raised};
use crate::resource::Resource;
use crate::threads::num_threads;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use vecaz::batch::Playthrough;
use vecaz::config::Layers;
use vecaz::engine::{Analysis, EndCause, Engine, Limit, Settings};
use vecaz::game::Turn;
use vecaz::game::view::Viewer;
use vecaz::net::{IoShape, Network, UniformNet};
use vecaz::registry::{AnyGame, Registry};
use vecaz::source::Source;
use vecaz::stop::Stop;

/// The most MiB of trees.
const MAX_MEMORY_MIB: usize = 1 << 24;
/// The most simulations of one analysis.
const MAX_SIMULATIONS: u64 = 1 << 40;

/// An engine at one position.
#[pyclass(frozen, module = "vecaz._vecaz", name = "Engine")]
pub struct PyEngine {
    state: Resource<State>,
    game: Arc<dyn AnyGame>,
    label: String,
}

struct State {
    engine: Engine,
    /// The exception of a network in Python.
    raised: Raised,
}

/// An action as it was passed: its number or its name.
#[derive(FromPyObject)]
enum Action {
    Number(i64),
    Name(String),
}

impl Action {
    /// As people type it.
    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Name(name) => name,
        }
    }
}

/// What an engine is made of.
struct Parts {
    game: Arc<dyn AnyGame>,
    network: Box<dyn Network>,
    settings: Settings,
    label: String,
}

impl Parts {
    /// The network of a run or a file, or the embedded one.
    fn of_file(
        path: Option<&Path>,
        registry: &Registry,
        set: &[String],
        threads: usize,
    ) -> vecaz::Result<Self> {
        let source = Source::open(path, registry, set)?;
        let settings = source.settings(None, threads);
        Ok(Self { game: source.game.clone(), network: source.network()?, settings, label: source.label })
    }

    /// A game without a network of its own: uniform priors and values of 0, or a function of Python.
    fn of_game(
        name: &str,
        options: &toml::Table,
        registry: &Registry,
        set: &[String],
        threads: usize,
    ) -> vecaz::Result<Self> {
        let game = registry.game(name, options)?;
        let layers = match registry.config(name) {
            Some(text) => Layers::default().text(text, name)?,
            None => Layers::default(),
        };
        let config =
            set.iter().try_fold(layers.on_cpu(), |layers, assignment| layers.set(assignment))?.resolve()?;
        let sizes = game.sizes();
        let shape = IoShape {
            obs_len: sizes.obs.len(),
            num_actions: sizes.num_actions,
            num_players: sizes.num_players,
        };
        let settings = Settings { threads, ..Settings::new(&config, &sizes) };
        Ok(Self { game, network: Box::new(UniformNet(shape)), settings, label: "a uniform network".into() })
    }
}

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (source, options, evaluate, settings, threads, memory_mib, seed))]
    #[allow(clippy::too_many_arguments, reason = "the Python layer names them")]
    fn new(
        py: Python<'_>,
        source: Option<PathBuf>,
        options: &Bound<'_, PyDict>,
        evaluate: Option<Bound<'_, PyAny>>,
        settings: Vec<String>,
        threads: usize,
        memory_mib: usize,
        seed: u64,
    ) -> PyResult<Self> {
        let (registry, table) = (registry()?, table(options)?);
        num_threads(threads)?;
        if !(1..=MAX_MEMORY_MIB).contains(&memory_mib) {
            return Err(wrong("memory_mib", memory_mib, format!("1 to {MAX_MEMORY_MIB}")));
        }
        // A function of Python gets one batch a pass; threads would divide it, and take turns.
        let threads = if evaluate.is_some() { 1 } else { threads };
        let name = source.as_deref().and_then(Path::to_str).filter(|name| registry.names().contains(name));
        if let Some(path) = source.as_deref().filter(|path| name.is_none() && !path.exists()) {
            let games = registry.names().join(", ");
            return Err(wrong(
                "source",
                path.display(),
                format!("the path of a run or a network, or a game: {games}"),
            ));
        }
        if name.is_none() && !table.is_empty() {
            let found = table.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(wrong("options", found, "none: a network's file has the options of its game"));
        }
        let made = py.detach(|| match name {
            Some(name) => Parts::of_game(name, &table, &registry, &settings, threads),
            None => Parts::of_file(source.as_deref(), &registry, &settings, threads),
        });
        let Parts { game, mut network, settings, mut label } = made.map_err(exception)?;
        let mut raised = Raised::default();
        if let Some(function) = evaluate {
            if !function.is_callable() {
                return Err(wrong("evaluate", function.get_type().name()?, "a function"));
            }
            let python = PythonNetwork::new(function, network.shape());
            (raised, label) = (python.raised(), "a function of Python".into());
            network = Box::new(python);
        }
        let settings = Settings { memory_mib, seed, ..settings };
        let rules = game.clone();
        let engine = py.detach(move || Engine::new(rules, network.as_ref(), settings)).map_err(exception)?;
        Ok(Self { state: Resource::new("the engine", State { engine, raised }), game, label })
    }

    #[getter]
    fn game(&self) -> &'static str {
        self.game.name()
    }

    #[getter]
    fn label(&self) -> &str {
        &self.label
    }

    #[getter]
    fn num_actions(&self) -> usize {
        self.game.sizes().num_actions
    }

    #[getter]
    fn num_players(&self) -> usize {
        self.game.sizes().num_players
    }

    /// The actions so far.
    #[getter]
    fn actions(&self) -> PyResult<Vec<u16>> {
        Ok(self.state.hold()?.engine.playthrough().actions().to_vec())
    }

    /// The player to move; None at chance nodes and after the end.
    #[getter]
    fn player(&self) -> PyResult<Option<u8>> {
        Ok(match self.state.hold()?.engine.playthrough().turn() {
            Turn::Player(player) => Some(player),
            Turn::Chance | Turn::Over => None,
        })
    }

    #[getter]
    fn is_chance(&self) -> PyResult<bool> {
        Ok(self.state.hold()?.engine.playthrough().turn() == Turn::Chance)
    }

    #[getter]
    fn is_over(&self) -> PyResult<bool> {
        Ok(self.state.hold()?.engine.playthrough().turn() == Turn::Over)
    }

    /// The returns of a finished game, else None.
    #[getter]
    fn returns(&self) -> PyResult<Option<Vec<f32>>> {
        let state = self.state.hold()?;
        let play = state.engine.playthrough();
        Ok((play.turn() == Turn::Over).then(|| play.game().returns(play.state())))
    }

    /// The legal actions with their names.
    fn legal(&self) -> PyResult<Vec<(u16, String)>> {
        let state = self.state.hold()?;
        let play = state.engine.playthrough();
        Ok(play
            .legal()
            .into_iter()
            .map(|action| (action, play.game().action_name(play.state(), action)))
            .collect())
    }

    /// Probabilities of the outcomes of a chance node, in the order of `legal`.
    fn chance_probs(&self) -> PyResult<Vec<f32>> {
        let state = self.state.hold()?;
        let play = state.engine.playthrough();
        Ok(match play.turn() {
            Turn::Chance => play.game().chance_probs(play.state(), &play.legal()),
            Turn::Player(_) | Turn::Over => Vec::new(),
        })
    }

    #[pyo3(signature = (player=None))]
    fn text(&self, player: Option<i64>) -> PyResult<String> {
        let players = self.game.sizes().num_players;
        let viewer = match player {
            None => Viewer::All,
            Some(player) => match u8::try_from(player).ok().filter(|&player| usize::from(player) < players) {
                Some(player) => Viewer::Player(player),
                None => return Err(wrong("player", player, format!("0 to {}", players - 1))),
            },
        };
        Ok(vecaz::view::text(&self.state.hold()?.engine.playthrough().view(viewer)))
    }

    fn play(&self, action: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = action_of(action)?.text();
        let mut state = self.state.hold()?;
        let play = state.engine.playthrough();
        let found = play.find(&text).ok_or_else(|| exception(play.illegal(text.trim())))?;
        state.engine.play(found).map_err(exception)
    }

    fn set_position(&self, actions: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let texts =
            actions.iter().map(|action| Ok(action_of(action)?.text())).collect::<PyResult<Vec<_>>>()?;
        let mut play = Playthrough::new(self.game.clone());
        texts.iter().try_for_each(|text| play.step_text(text)).map_err(exception)?;
        self.state.hold()?.engine.set_position(&play).map_err(exception)
    }

    #[pyo3(signature = (simulations, seconds))]
    fn analyse<'py>(
        &self,
        py: Python<'py>,
        simulations: Option<u64>,
        seconds: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let stop = Stop::default();
        let limit = limit(simulations, seconds)?.or_stop(&stop);
        let mut state = self.state.hold()?;
        let State { engine, raised } = &mut *state;
        let found = interruptible(py, &stop, || engine.analyse(&limit));
        if let Some(raised) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(raised);
        }
        analysis(py, &found?.map_err(exception)?)
    }

    fn close(&self) -> PyResult<()> {
        self.state.close().map(drop)
    }

    fn __repr__(&self) -> String {
        format!("<vecaz.Engine for {}: {}>", self.game.name(), self.label)
    }
}

/// An action from Python. A bool is none.
fn action_of(action: &Bound<'_, PyAny>) -> PyResult<Action> {
    let found = if action.is_instance_of::<PyBool>() { None } else { action.extract().ok() };
    found.ok_or_else(|| {
        let found =
            action.get_type().name().map_or_else(|_| "something else".into(), |name| name.to_string());
        wrong("action", found, "a whole number or a name")
    })
}

/// The limit of an analysis.
fn limit(simulations: Option<u64>, seconds: Option<f64>) -> PyResult<Limit> {
    let mut limit = Limit::default();
    match simulations {
        Some(simulations @ 1..=MAX_SIMULATIONS) => limit.simulations = Some(simulations),
        Some(other) => return Err(wrong("simulations", other, format!("1 to {MAX_SIMULATIONS}"))),
        None if seconds.is_none() => return Err(wrong("limit", "none", "simulations, seconds or both")),
        None => {}
    }
    if let Some(seconds) = seconds {
        let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
        limit.time = Some(time.ok_or_else(|| wrong("seconds", seconds, "a positive number"))?);
    }
    Ok(limit)
}

/// An analysis as a dict, whose keys are the fields of the class in Python.
fn analysis<'py>(py: Python<'py>, found: &Analysis) -> PyResult<Bound<'py, PyDict>> {
    let moves = PyList::empty(py);
    for found in &found.moves {
        let entry = PyDict::new(py);
        entry.set_item("action", found.action)?;
        entry.set_item("name", &found.name)?;
        entry.set_item("visits", found.visits)?;
        entry.set_item("prior", found.prior)?;
        entry.set_item("policy", found.policy)?;
        entry.set_item("value", found.value)?;
        entry.set_item("line", &found.line)?;
        entry.set_item("line_names", &found.line_names)?;
        moves.append(entry)?;
    }
    let out = PyDict::new(py);
    out.set_item("player", found.player)?;
    out.set_item("value", &found.value)?;
    out.set_item("outcome", found.outcome)?;
    out.set_item("proven", found.proven)?;
    out.set_item("visits", found.visits)?;
    out.set_item("simulations", found.simulations)?;
    out.set_item("evaluations", found.evaluations)?;
    out.set_item("seconds", found.seconds)?;
    out.set_item("nodes", found.nodes)?;
    out.set_item("end", end_name(found.end))?;
    out.set_item("moves", moves)?;
    Ok(out)
}

fn end_name(end: EndCause) -> &'static str {
    match end {
        EndCause::Running => "running",
        EndCause::Simulations => "simulations",
        EndCause::Time => "time",
        EndCause::Stopped => "stopped",
        EndCause::Proven => "proven",
        EndCause::Memory => "memory",
    }
}
