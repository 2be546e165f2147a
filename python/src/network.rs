//! `vecaz.Network`: a network of vecaz, as a function of observations.

use crate::errors::exception;
use crate::numpy_input::{Kind, read};
use crate::options::registry;
use crate::resource::Resource;
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use std::path::PathBuf;
use vecaz::net::{IoShape, Network};
use vecaz::source::Source;

/// A network from a file: logits and values of observations.
#[pyclass(frozen, module = "vecaz", name = "Network")]
pub struct PyNetwork {
    network: Resource<Box<dyn Network>>,
    shape: IoShape,
    game: &'static str,
    label: String,
}

/// Logits `[M, A]` and values `[M, P]`.
type Outputs<'py> = (Bound<'py, PyArrayDyn<f32>>, Bound<'py, PyArrayDyn<f32>>);

#[pymethods]
impl PyNetwork {
    #[new]
    #[pyo3(signature = (path, settings))]
    fn new(py: Python<'_>, path: Option<PathBuf>, settings: Vec<String>) -> PyResult<Self> {
        let registry = registry()?;
        let made = py.detach(|| {
            let source = Source::open(path.as_deref(), &registry, &settings)?;
            Ok::<_, vecaz::Error>((source.network()?, source))
        });
        let (network, source) = made.map_err(exception)?;
        let (shape, game) = (network.shape(), source.game.name());
        Ok(Self { network: Resource::new("the network", network), shape, game, label: source.label })
    }

    #[getter]
    fn game(&self) -> &'static str {
        self.game
    }

    fn __call__<'py>(&self, py: Python<'py>, obs: &Bound<'py, PyAny>) -> PyResult<Outputs<'py>> {
        let IoShape { obs_len, num_actions, num_players } = self.shape;
        let rows = obs.len().unwrap_or(0);
        let mut input: Vec<f32> = Vec::new();
        read("observations", obs, Kind::Floats, &[&[rows, obs_len]], &mut input)?;
        let mut network = self.network.hold()?;
        let network = network.as_mut();
        let (mut logits, mut values) = (vec![0.0; rows * num_actions], vec![0.0; rows * num_players]);
        py.detach(|| network.forward(&input, &mut logits, &mut values)).map_err(exception)?;
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
    /// Another evaluator on the same weights.
    ///
    /// # Errors
    /// Those of [`Resource::hold`].
    pub fn fork(&self) -> PyResult<Box<dyn Network>> {
        Ok(self.network.hold()?.fork())
    }
}
