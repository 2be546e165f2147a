//! `vecaz.Engine`: a player and analyst of one position. The Python layer makes objects of the results of an analysis.

use crate::detach::detached;
use crate::dict::dict;
use crate::errors::{Raised, exception, wrong};
use crate::interrupt::interruptible;
use crate::options::{assignments, registry, table};
use crate::python_network::{Players, PythonNetwork, SharedFunction};
use crate::resource::Resource;
use crate::threads::num_threads;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyBool, PyDict, PyList, PyMapping, PyTuple};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vecaz::batch::Playthrough;
use vecaz::config::Layers;
use vecaz::engine::{Analysis, EndCause, Engine, Limit, Settings};
use vecaz::game::Turn;
use vecaz::game::view::Viewer;
use vecaz::net::{IoShape, Network, UniformNet};
use vecaz::registry::{AnyGame, Registry};
use vecaz::run::memory::engine_mib;
use vecaz::source::{Source, assigned_leaves, built_in_layers};
use vecaz::stop::Stop;
use vecaz::weights::EvaluatedPositions;

/// Maximum MiB of trees.
const MAX_MEMORY_MIB: usize = 1 << 24;
/// Maximum number of simulations of one analysis.
const MAX_SIMULATIONS: u64 = 1 << 40;

/// An engine at one position.
#[pyclass(frozen, subclass, module = "vecaz._vecaz", name = "Engine")]
pub struct PyEngine {
    state: Resource<State>,
    /// The function in place of a network; none where there is a network.
    function: SharedFunction,
    game: Arc<dyn AnyGame>,
    label: String,
}

struct State {
    engine: Engine,
    /// The exception of the function.
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
        let of_game = |assignment: &&String| assignment.trim_start().to_lowercase().starts_with("game.");
        if let Some(assignment) = set.iter().find(of_game) {
            let expected = "no setting of the game: those are keyword arguments, as in size=7";
            return Err(vecaz::Error::config("settings", assignment, expected));
        }
        let game = registry.game(name, options)?;
        let mut config = built_in_layers(registry, name)?.on_cpu().resolve()?;
        EvaluatedPositions::Decisions.fit(&mut config);
        let layers = Layers::default().config(&config)?;
        let over = |base| set.iter().try_fold(base, |layers: Layers, assignment| layers.set(assignment));
        let config = over(layers)?.with_format_of_device(&over(Layers::default())?).resolve()?;
        let sizes = game.sizes();
        let leaves = assigned_leaves(set, &config).unwrap_or(0);
        let settings = Settings { threads, leaves, ..Settings::new(&config, &sizes) };
        let network = Box::new(UniformNet(IoShape::of(&sizes)));
        Ok(Self { game, network, settings, label: "a uniform network".into() })
    }
}

#[pymethods]
impl PyEngine {
    #[new]
    #[pyo3(signature = (source=None, *, evaluate=None, settings=None, threads=0, memory_mib=512, seed=1, **options))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        source: Option<PathBuf>,
        evaluate: Option<Bound<'_, PyAny>>,
        settings: Option<Bound<'_, PyMapping>>,
        threads: usize,
        memory_mib: usize,
        seed: u64,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (registry, settings) = (registry()?, assignments(settings.as_ref())?);
        let table = options.map_or_else(|| Ok(toml::Table::new()), table)?;
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
        let made = detached(py, || match name {
            Some(name) => Parts::of_game(name, &table, &registry, &settings, threads),
            None => Parts::of_file(source.as_deref(), &registry, &settings, threads),
        });
        let Parts { game, mut network, settings, mut label } = made.map_err(exception)?;
        let (mut function, raised) = (SharedFunction::default(), Raised::default());
        if let Some(evaluate) = evaluate {
            if !evaluate.is_callable() {
                return Err(wrong("evaluate", evaluate.get_type().name()?, "a function"));
            }
            (function, label) = (SharedFunction::new(evaluate), "a function of Python".into());
            network = Box::new(PythonNetwork::new(
                function.clone(),
                network.shape(),
                Players::of(&game.sizes()),
                raised.clone(),
            ));
        }
        let settings = Settings { memory_mib: engine_mib(memory_mib), seed, ..settings };
        let rules = game.clone();
        let engine =
            detached(py, move || Engine::new(rules, network.as_ref(), settings)).map_err(exception)?;
        Ok(Self { state: Resource::new("the engine", State { engine, raised }), function, game, label })
    }

    /// The name of the game.
    #[getter]
    fn game(&self) -> &'static str {
        self.game.name()
    }

    /// Its network in messages.
    #[getter]
    fn label(&self) -> &str {
        &self.label
    }

    /// A.
    #[getter]
    fn num_actions(&self) -> usize {
        self.game.sizes().num_actions
    }

    /// P.
    #[getter]
    fn num_players(&self) -> usize {
        self.game.sizes().num_players
    }

    /// The actions and outcomes so far.
    #[getter]
    fn actions(&self) -> PyResult<Vec<u16>> {
        Ok(self.state.hold()?.engine.playthrough().actions().to_vec())
    }

    /// The player to move; None where chance is, and once the game is over.
    #[getter]
    fn player(&self) -> PyResult<Option<u8>> {
        Ok(match self.state.hold()?.engine.playthrough().turn() {
            Turn::Player(player) => Some(player),
            Turn::Chance | Turn::Over => None,
        })
    }

    /// True where an outcome of chance is next: `play` it.
    #[getter]
    fn is_chance(&self) -> PyResult<bool> {
        Ok(self.state.hold()?.engine.playthrough().turn() == Turn::Chance)
    }

    /// True once the game is over.
    #[getter]
    fn is_over(&self) -> PyResult<bool> {
        Ok(self.state.hold()?.engine.playthrough().turn() == Turn::Over)
    }

    /// The result of every player in [-1, 1] once the game is over, before that None: [P].
    #[getter]
    fn returns(&self) -> PyResult<Option<Vec<f32>>> {
        let state = self.state.hold()?;
        let play = state.engine.playthrough();
        Ok((play.turn() == Turn::Over).then(|| play.game().returns(play.state())))
    }

    /// The legal actions, or outcomes of chance, with their names.
    fn legal_actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.state.hold()?;
        let play = state.engine.playthrough();
        let legal = PyDict::new(py);
        for action in play.legal() {
            legal.set_item(action, play.game().action_name(play.state(), action))?;
        }
        Ok(legal)
    }

    /// The outcomes of chance with their probabilities; empty where a player is to move.
    fn chance_probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.state.hold()?;
        let play = state.engine.playthrough();
        let probabilities = PyDict::new(py);
        if play.turn() == Turn::Chance {
            let outcomes = play.legal();
            let found = play.game().chance_probs(play.state(), &outcomes);
            for (outcome, probability) in outcomes.into_iter().zip(found) {
                probabilities.set_item(outcome, probability)?;
            }
        }
        Ok(probabilities)
    }

    /// The position as text, as `player` sees it, or with all that is hidden.
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

    /// Plays an action, or deals an outcome, by its number or name.
    ///
    /// Raises ValueError if it is not legal, with the legal ones.
    fn play(&self, action: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = action_of(action)?.text();
        let mut state = self.state.hold()?;
        let play = state.engine.playthrough();
        let found = play.find(&text).ok_or_else(|| exception(play.illegal(text.trim())))?;
        state.engine.play(found).map_err(exception)
    }

    /// Sets the position after `actions` from the start of the game. If it continues the present one, the tree is kept.
    fn set_position(&self, actions: &Bound<'_, PyAny>) -> PyResult<()> {
        let actions = actions.try_iter()?;
        let texts = actions.map(|action| Ok(action_of(&action?)?.text())).collect::<PyResult<Vec<_>>>()?;
        let mut play = Playthrough::new(self.game.clone());
        texts.iter().try_for_each(|text| play.step_text(text)).map_err(exception)?;
        self.state.hold()?.engine.set_position(&play).map_err(exception)
    }

    /// Sets the start of the game.
    fn reset(&self) -> PyResult<()> {
        let start = Playthrough::new(self.game.clone());
        self.state.hold()?.engine.set_position(&start).map_err(exception)
    }

    /// The analysis as a dict of the fields of `vecaz.Analysis`.
    #[pyo3(name = "_analyse", signature = (simulations, seconds))]
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
        let interrupted = interruptible(py, &stop, || engine.analyse(&limit));
        let raised = raised.take();
        let found = interrupted?;
        raised.map_or(Ok(()), Err)?;
        analysis(py, &found.map_err(exception)?)
    }

    /// Frees the trees; every later use is an error.
    fn close(&self) -> PyResult<()> {
        drop(self.state.close()?);
        drop(self.function.take());
        Ok(())
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.function.traverse(&visit)
    }

    fn __clear__(&self) {
        drop(self.state.close());
        drop(self.function.take());
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
        moves.append(dict!(
            py,
            action = found.action,
            name = &found.name,
            visits = found.visits,
            prior = found.prior,
            policy = found.policy,
            value = found.value,
            line = PyTuple::new(py, &found.line)?,
            line_names = PyTuple::new(py, &found.line_names)?,
        ))?;
    }
    Ok(dict!(
        py,
        player = found.player,
        value = PyTuple::new(py, &found.value)?,
        outcome = found.outcome.map(|[win, draw, loss]| (win, draw, loss)),
        proven = found.proven,
        visits = found.visits,
        simulations = found.simulations,
        evaluations = found.evaluations,
        seconds = found.seconds,
        nodes = found.nodes,
        end = end_name(found.end),
        moves = moves,
    ))
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
