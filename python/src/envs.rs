//! `vecaz.Envs`: N environments of one game.

use crate::buffer::Buffer;
use crate::detach::detached;
use crate::errors::{exception, wrong};
use crate::network::PyNetwork;
use crate::numpy_input::{Kind, read, read_bools};
use crate::options::game;
use crate::resource::Resource;
use crate::search::{self, SearchArguments, SearchOutput};
use crate::threads::{num_threads, pool};
use crate::trees::Trees;
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPool;
use std::sync::Arc;
use vecaz::batch::{Actions, AutoReset, Envs};
use vecaz::game::view::Viewer;
use vecaz::game::{History, Sizes};
use vecaz::registry::AnyGame;

/// Maximum number of environments.
const MAX_ENVS: usize = 1 << 20;
/// Environments that one thread steps: with fewer, waking another costs more than it saves, and so does giving up the interpreter's lock.
const ENVS_PER_THREAD: usize = 256;

/// N environments of one game, stepped together. Made by `vecaz.make`.
#[pyclass(frozen, module = "vecaz", name = "Envs")]
pub struct PyEnvs {
    state: Resource<State>,
    game: Arc<dyn AnyGame>,
    sizes: Sizes,
    num_envs: usize,
}

/// What an operation works with.
pub struct State {
    /// The games.
    pub envs: Envs,
    /// The threads of operations on several shards.
    pub pool: Arc<ThreadPool>,
    /// The seed of the last reset.
    pub seed: u64,
    /// Trees of the last search.
    pub trees: Option<Trees>,
    buffers: Buffers,
}

/// The arrays that Python sees.
struct Buffers {
    /// `[N, P]`
    rewards: Buffer<f32>,
    /// `[N]`
    terminated: Buffer<bool>,
    /// `[N]`
    players: Buffer<i8>,
    /// `[N]`
    sampled: Buffer<i64>,
    /// `[N, channels, height, width]`, made by the first observation.
    obs: Option<Buffer<f32>>,
    /// `[N, A]`, made with the first mask.
    mask: Option<Buffer<bool>>,
}

impl Buffers {
    fn show_players(&mut self, py: Python<'_>, envs: &Envs) -> PyResult<()> {
        self.players.elements(py)?.copy_from_slice(envs.players());
        Ok(())
    }
}

impl State {
    /// Calls `work`: without the interpreter's lock for more than [`ENVS_PER_THREAD`] environments, and where they have several shards in the
    /// pool.
    fn install<R: Send>(
        pool: &ThreadPool,
        envs: &mut Envs,
        py: Python<'_>,
        work: impl FnOnce(&mut Envs) -> R + Send,
    ) -> R {
        if envs.len() <= ENVS_PER_THREAD {
            return work(envs);
        }
        detached(py, || match envs.num_shards() {
            0 | 1 => work(envs),
            _ => pool.install(|| work(envs)),
        })
    }
}

/// Rewards `[N, P]`, and where a game ended `[N]`.
type StepResult<'py> = (Bound<'py, PyArrayDyn<f32>>, Bound<'py, PyArrayDyn<bool>>);

#[pymethods]
impl PyEnvs {
    #[new]
    #[pyo3(signature = (name, num_envs, options, seed, threads, auto_reset))]
    fn new(
        py: Python<'_>,
        name: &str,
        num_envs: usize,
        options: &Bound<'_, PyDict>,
        seed: u64,
        threads: usize,
        auto_reset: &str,
    ) -> PyResult<Self> {
        let auto_reset = match auto_reset {
            "same_step" => AutoReset::SameStep,
            "next_step" => AutoReset::NextStep,
            "off" => AutoReset::Off,
            other => return Err(wrong("autoreset", other, "same_step, next_step or off")),
        };
        if !(1..=MAX_ENVS).contains(&num_envs) {
            return Err(wrong("num_envs", num_envs, format!("1 to {MAX_ENVS}")));
        }
        let game = game(name, options)?;
        let sizes = game.sizes();
        let (pool, threads) = (pool(threads)?, num_threads(threads)?);
        let shards = threads.min(num_envs.div_ceil(ENVS_PER_THREAD));
        let rules = game.clone();
        let envs = detached(py, || {
            pool.install(|| {
                let mut envs = Envs::new(rules, num_envs, shards, auto_reset);
                envs.reset(seed);
                envs
            })
        });
        let mut buffers = Buffers {
            rewards: Buffer::zeros(py, &[num_envs, sizes.num_players])?,
            terminated: Buffer::zeros(py, &[num_envs])?,
            players: Buffer::zeros(py, &[num_envs])?,
            sampled: Buffer::zeros(py, &[num_envs])?,
            obs: None,
            mask: None,
        };
        buffers.show_players(py, &envs)?;
        let state = State { envs, pool, seed, trees: None, buffers };
        Ok(Self { state: Resource::new("the environments", state), game, sizes, num_envs })
    }

    /// The name of the game.
    #[getter]
    fn game(&self) -> &'static str {
        self.game.name()
    }

    /// N.
    #[getter]
    fn num_envs(&self) -> usize {
        self.num_envs
    }

    /// P.
    #[getter]
    fn num_players(&self) -> usize {
        self.sizes.num_players
    }

    /// A.
    #[getter]
    fn num_actions(&self) -> usize {
        self.sizes.num_actions
    }

    /// (channels, height, width); a plain vector is (F, 1, 1).
    #[getter]
    fn observation_shape(&self) -> (usize, usize, usize) {
        (self.sizes.obs.channels, self.sizes.obs.height, self.sizes.obs.width)
    }

    /// True where some player does not see the whole state.
    #[getter]
    fn hidden_information(&self) -> bool {
        self.sizes.hidden_information
    }

    /// The player to move in each environment, -1 where the game is over: int8 [N], overwritten by steps, resets and restarts.
    #[getter]
    fn players<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<i8>>> {
        Ok(self.state.hold()?.buffers.players.view(py))
    }

    /// What the last step returned first, zeros after `reset`: float32 [N, P].
    #[getter]
    fn rewards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        Ok(self.state.hold()?.buffers.rewards.view(py))
    }

    /// What the last step returned second, False after `reset`: bool [N].
    #[getter]
    fn terminated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<bool>>> {
        Ok(self.state.hold()?.buffers.terminated.view(py))
    }

    /// Starts the games of `seed` in all environments; without it, those of the seed after the last one. Sets `rewards` to zeros and
    /// `terminated` to False.
    #[pyo3(signature = (seed=None))]
    fn reset(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<()> {
        let mut state = self.state.hold()?;
        let seed = seed.unwrap_or(state.seed.wrapping_add(1));
        let State { envs, pool, buffers, .. } = &mut *state;
        State::install(pool, envs, py, |envs| envs.reset(seed));
        buffers.rewards.elements(py)?.fill(0.0);
        buffers.terminated.elements(py)?.fill(false);
        buffers.show_players(py, envs)?;
        state.seed = seed;
        Ok(())
    }

    /// Starts the next game in the environments that `chosen`, bool [N], marks. `rewards` and `terminated` stay those of the last step.
    fn restart(&self, py: Python<'_>, chosen: &Bound<'_, PyAny>) -> PyResult<()> {
        let chosen = read_bools("environments to restart", chosen, self.num_envs)?;
        let mut state = self.state.hold()?;
        let State { envs, pool, buffers, .. } = &mut *state;
        State::install(pool, envs, py, |envs| envs.restart(&chosen)).map_err(exception)?;
        buffers.show_players(py, envs)
    }

    /// Plays `actions`, integers [N], and deals chance until a player is to move. With `chosen`, bool [N], only the environments that it marks are
    /// stepped.
    ///
    /// Returns (rewards, terminated): float32 [N, P] with the result of every player in [-1, 1] where a game ended, otherwise 0, and bool [N].
    /// Both arrays belong to the environments, and the next step overwrites them. Actions where the game is over are not read.
    ///
    /// Raises ValueError for another shape or dtype, and for an action that is not legal, with its environment; then no game is stepped.
    #[pyo3(signature = (actions, chosen=None))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        chosen: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<StepResult<'py>> {
        let mut state = self.state.hold()?;
        let State { envs, pool, buffers, .. } = &mut *state;
        let actions: Vec<i64> = read("actions", actions, Kind::Integers, &[&[self.num_envs]])?;
        let chosen =
            chosen.map(|chosen| read_bools("environments to step", chosen, self.num_envs)).transpose()?;
        let actions = Actions { actions: &actions, chosen: chosen.as_deref() };
        let (rewards, ended) = (buffers.rewards.elements(py)?, buffers.terminated.elements(py)?);
        State::install(pool, envs, py, |envs| envs.step_chosen(actions, rewards, ended))
            .map_err(exception)?;
        buffers.show_players(py, envs)?;
        Ok((buffers.rewards.view(py), buffers.terminated.view(py)))
    }

    /// A uniformly random legal action of each environment, -1 where the game is over: int64 [N], overwritten by the next call. The draws
    /// depend on the seed, the environment, its game's number and the ply alone.
    fn sample_actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<i64>>> {
        let mut state = self.state.hold()?;
        let State { envs, pool, buffers, .. } = &mut *state;
        let actions = buffers.sampled.elements(py)?;
        State::install(pool, envs, py, |envs| envs.sample(actions));
        Ok(buffers.sampled.view(py))
    }

    /// The legal actions: bool [N, A], overwritten by the next call.
    fn legal_actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<bool>>> {
        let mut state = self.state.hold()?;
        let State { envs, pool, buffers, .. } = &mut *state;
        let mask = match &mut buffers.mask {
            Some(mask) => mask,
            empty => empty.insert(Buffer::zeros(py, &[self.num_envs, self.sizes.num_actions])?),
        };
        let elements = mask.elements(py)?;
        State::install(pool, envs, py, |envs| envs.write_legal(elements));
        Ok(mask.view(py))
    }

    /// The observation of the player to move in each environment (of player 0 where the game is over), or that of `player`:
    /// float32 [N, channels, height, width], overwritten by the next call. It has nothing that the observer does not know.
    #[pyo3(signature = (player=None))]
    fn observe<'py>(&self, py: Python<'py>, player: Option<i64>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let player = player.map(|player| self.player(player)).transpose()?;
        let mut state = self.state.hold()?;
        let State { envs, pool, buffers, .. } = &mut *state;
        let obs = match &mut buffers.obs {
            Some(obs) => obs,
            empty => {
                let shape = self.sizes.obs;
                empty.insert(Buffer::zeros(py, &[self.num_envs, shape.channels, shape.height, shape.width])?)
            }
        };
        let elements = obs.elements(py)?;
        State::install(pool, envs, py, |envs| envs.observe(player, elements));
        Ok(obs.view(py))
    }

    /// The legal actions of environment `env`, ascending.
    fn legal_list(&self, env: i64) -> PyResult<Vec<u16>> {
        let env = self.env(env)?;
        Ok(self.state.hold()?.envs.legal(env).to_vec())
    }

    /// The name of a legal action of environment `env`.
    fn action_name(&self, env: i64, action: i64) -> PyResult<String> {
        let env = self.env(env)?;
        let state = self.state.hold()?;
        let action = u16::try_from(action).ok().filter(|action| state.envs.legal(env).contains(action));
        let action = action.ok_or_else(|| {
            wrong("action", "one that is not legal", format!("a legal action of environment {env}"))
        })?;
        Ok(self.game.action_name(state.envs.position(env).state, action))
    }

    /// The position of environment `env` as text, as `player` sees it, or with all that is hidden.
    #[pyo3(signature = (env, player=None))]
    fn text(&self, env: i64, player: Option<i64>) -> PyResult<String> {
        let env = self.env(env)?;
        let viewer = match player {
            Some(player) => Viewer::Player(self.player(player)?),
            None => Viewer::All,
        };
        let state = self.state.hold()?;
        let position = state.envs.position(env);
        let history = History { played: position.history, path: &[] };
        Ok(vecaz::view::text(&self.game.view(position.state, history, viewer)))
    }

    /// The games that environment `env` began before the present one, and the plies of that one.
    fn game_number(&self, env: i64) -> PyResult<(u64, u32)> {
        let env = self.env(env)?;
        let state = self.state.hold()?;
        let position = state.envs.position(env);
        Ok((position.game, position.plies))
    }

    /// See `vecaz.search`.
    #[pyo3(signature = (evaluate, settings, noise, determinisations, seed, pad))]
    #[allow(clippy::too_many_arguments, reason = "the Python layer names them")]
    fn search(
        &self,
        py: Python<'_>,
        evaluate: &Bound<'_, PyAny>,
        settings: &Bound<'_, PyDict>,
        noise: bool,
        determinisations: usize,
        seed: u64,
        pad: bool,
    ) -> PyResult<SearchOutput> {
        let arguments = SearchArguments::new(&self.game, settings, noise, determinisations, seed, pad)?;
        let mut state = self.state.hold()?;
        if evaluate.is_none() {
            return search::by_network(py, &self.game, &mut state, &arguments, None);
        }
        match evaluate.cast::<PyNetwork>() {
            Ok(network) => {
                let network = network.get().fork_for(self.game.as_ref())?;
                search::by_network(py, &self.game, &mut state, &arguments, Some(network))
            }
            Err(_) => search::by_function(evaluate, &self.game, &mut state, &arguments),
        }
    }

    /// Frees the games; every later use is an error.
    fn close(&self) -> PyResult<()> {
        self.state.close().map(drop)
    }

    fn __len__(&self) -> usize {
        self.num_envs
    }

    fn __repr__(&self) -> String {
        format!("<vecaz.Envs: {} of {}>", self.num_envs, self.game.name())
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close()
    }
}

impl PyEnvs {
    fn env(&self, env: i64) -> PyResult<usize> {
        let found = usize::try_from(env).ok().filter(|&env| env < self.num_envs);
        found.ok_or_else(|| wrong("environment", env, format!("0 to {}", self.num_envs - 1)))
    }

    fn player(&self, player: i64) -> PyResult<u8> {
        let found = u8::try_from(player).ok().filter(|&player| usize::from(player) < self.sizes.num_players);
        found.ok_or_else(|| wrong("player", player, format!("0 to {}", self.sizes.num_players - 1)))
    }
}
