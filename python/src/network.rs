//! `vecaz.Network`: a network of vecaz, as a function of observations.

use crate::detach::detached;
use crate::errors::{exception, wrong};
use crate::numpy_input::{Kind, read};
use crate::options::{assignments, registry};
use crate::resource::Resource;
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::path::PathBuf;
use vecaz::game::ObsShape;
use vecaz::net::{IoShape, Network, Weights};
use vecaz::registry::AnyGame;
use vecaz::source::Source;
use vecaz::weights::{EvaluatedPositions, NetFile};

/// The network of a run, a checkpoint or a file, as a function of observations: `network(obs) -> (logits [M, A], values [M, P])`, with `obs`
/// `[M, F]` or `[M, channels, height, width]`.
///
/// Values are in seats relative to the observer: entry k is for player (observer + k) mod n, of n players. `vecaz.search` calls it without Python.
///
/// Args:
///     path: None for the network of Connect Four that vecaz brings along.
///     settings: configuration keys, such as `{"net.precision": "bf16"}`.
#[pyclass(frozen, module = "vecaz", name = "Network")]
pub struct PyNetwork {
    network: Resource<Box<dyn Network>>,
    shape: IoShape,
    obs: ObsShape,
    game: &'static str,
    /// Without the weights.
    file: NetFile,
    label: String,
}

/// Logits `[M, A]` and values `[M, P]`.
type Outputs<'py> = (Bound<'py, PyArrayDyn<f32>>, Bound<'py, PyArrayDyn<f32>>);

#[pymethods]
impl PyNetwork {
    #[new]
    #[pyo3(signature = (path=None, *, settings=None))]
    fn new(py: Python<'_>, path: Option<PathBuf>, settings: Option<Bound<'_, PyMapping>>) -> PyResult<Self> {
        let (registry, settings) = (registry()?, assignments(settings.as_ref())?);
        let made = detached(py, || {
            let source = Source::open(path.as_deref(), &registry, &settings)?;
            Ok::<_, vecaz::Error>((source.network()?, source))
        });
        let (network, source) = made.map_err(exception)?;
        let (shape, obs, game) = (network.shape(), source.game.sizes().obs, source.game.name());
        let file = NetFile { weights: Weights::default(), ..source.file };
        Ok(Self {
            network: Resource::new("the network", network),
            shape,
            obs,
            game,
            file,
            label: source.label,
        })
    }

    /// The name of the game.
    #[getter]
    fn game(&self) -> &'static str {
        self.game
    }

    /// Observations `[M, F]` or `[M, channels, height, width]` -> logits `[M, A]`, values `[M, P]` in seats relative to the observer.
    fn __call__<'py>(&self, py: Python<'py>, obs: &Bound<'py, PyAny>) -> PyResult<Outputs<'py>> {
        let IoShape { obs_len, num_actions, num_players } = self.shape;
        let ObsShape { channels, height, width } = self.obs;
        let rows = obs.len().unwrap_or(0);
        let shapes: [&[usize]; 2] = [&[rows, obs_len], &[rows, channels, height, width]];
        let input: Vec<f32> = read("observations", obs, Kind::Floats, &shapes)?;
        let mut network = self.network.hold()?;
        let network = network.as_mut();
        let (mut logits, mut values) = (vec![0.0; rows * num_actions], vec![0.0; rows * num_players]);
        detached(py, || network.forward(&input, &mut logits, &mut values)).map_err(exception)?;
        Ok((
            PyArray1::from_vec(py, logits).reshape(vec![rows, num_actions])?,
            PyArray1::from_vec(py, values).reshape(vec![rows, num_players])?,
        ))
    }

    fn __repr__(&self) -> String {
        format!("<vecaz.Network for {}: {}>", self.game, self.label)
    }
}

impl PyNetwork {
    /// Another evaluator on the same weights, for a search in `game`.
    ///
    /// # Errors
    /// `ValueError` for a network of other rules or another size, or of other positions than those in which a player decides; those of
    /// [`Resource::hold`].
    pub fn fork_for(&self, game: &dyn AnyGame) -> PyResult<Box<dyn Network>> {
        if self.file.header.evaluates == EvaluatedPositions::Afterstates {
            let expected =
                "one of positions in which a player decides: this one knows those after a whole turn";
            return Err(wrong("evaluate", &self.label, expected));
        }
        // An edge network serves games of other sizes, but this evaluator was made for one.
        if self.file.spec_for(game).map_err(exception)?.io() != self.shape {
            let found = format!("{} for another size of {}", self.label, self.game);
            let expected =
                "one for the environments' size, which `settings` set, as in settings={\"game.n\": 8}";
            return Err(wrong("evaluate", found, expected));
        }
        Ok(self.network.hold()?.fork())
    }
}
