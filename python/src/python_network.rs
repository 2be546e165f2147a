//! A function of Python as a network.

use crate::errors::{Raised, wrong};
use crate::numpy_input::{Kind, read};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use std::sync::{Arc, Mutex, PoisonError};
use vecaz::Error;
use vecaz::game::Sizes;
use vecaz::net::{IoShape, Network};

/// What stands for the logit -inf of an action that the function excludes.
const EXCLUDED: f32 = -1e30;
/// How far rounding may take a value beyond [-1, 1].
const TOLERANCE: f32 = 1e-3;

/// Outputs for M observations.
#[derive(Default)]
pub struct Outputs {
    /// `[M, A]`
    pub logits: Vec<f32>,
    /// `[M, P]`, in seats relative to the observer.
    pub values: Vec<f32>,
}

/// How the values of the players of a game belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Players {
    /// There are two, and the value of one is minus that of the other.
    Opponents,
    /// Any others.
    Others,
}

impl Players {
    /// Those of a game of these sizes.
    pub fn of(sizes: &Sizes) -> Self {
        if sizes.is_zero_sum_pair() { Self::Opponents } else { Self::Others }
    }
}

/// Calls `function` with `obs [rows, F]`, of which those from `leaves` on are padding. Checks what it returns, `(logits [rows, A],
/// values [rows, P])`, or values `[rows]` of the player to move in games for one or for two `Opponents`. Returns the rows of the leaves.
///
/// # Errors
/// The exception that the function raises; `ValueError` for other shapes, dtypes or numbers.
pub fn evaluate<'py>(
    function: &Bound<'py, PyAny>,
    obs: Bound<'py, PyArray2<f32>>,
    leaves: usize,
    (shape, players): (IoShape, Players),
) -> PyResult<Outputs> {
    let rows = obs.shape()[0];
    let found = function.call1((obs,))?;
    let (Ok(2), Ok(logits), Ok(values)) = (found.len(), found.get_item(0), found.get_item(1)) else {
        return Err(wrong("evaluate", found.get_type().name()?, "a pair (logits, values)"));
    };
    let IoShape { num_actions, num_players, .. } = shape;
    let mut logits: Vec<f32> = read("logits", &logits, Kind::Floats, &[&[rows, num_actions]])?;
    let shapes: [&[usize]; 2] = [&[rows, num_players], &[rows]];
    let has_one_value = num_players == 1 || players == Players::Opponents;
    let shapes = if has_one_value { &shapes[..] } else { &shapes[..1] };
    let mut values: Vec<f32> = read("values", &values, Kind::Floats, shapes)?;
    if num_players == 2 && values.len() == rows {
        values = values.iter().flat_map(|&value| [value, -value]).collect();
    }
    logits.truncate(leaves * num_actions);
    values.truncate(leaves * num_players);
    check_logits(&mut logits, num_actions)?;
    check_values(&mut values, num_players)?;
    Ok(Outputs { logits, values })
}

fn check_logits(logits: &mut [f32], num_actions: usize) -> PyResult<()> {
    for (i, logit) in logits.iter_mut().enumerate() {
        if *logit == f32::NEG_INFINITY {
            *logit = EXCLUDED;
        } else if !logit.is_finite() {
            let what = format!("logit of row {}, action {}", i / num_actions, i % num_actions);
            return Err(wrong(&what, *logit, "a finite number, or -inf for an action that is never chosen"));
        }
    }
    Ok(())
}

fn check_values(values: &mut [f32], num_players: usize) -> PyResult<()> {
    for (i, value) in values.iter_mut().enumerate() {
        if value.is_nan() || value.abs() > 1.0 + TOLERANCE {
            let what = format!("value of row {}, seat {}", i / num_players, i % num_players);
            return Err(wrong(&what, *value, "a number from -1 to 1"));
        }
        *value = value.clamp(-1.0, 1.0);
    }
    Ok(())
}

/// The function of an engine, which the engine and all forks of its network share: together they hold one reference, which the engine shows to
/// Python's garbage collector. The mutex is locked only by threads that have the interpreter's lock, and without running Python meanwhile.
#[derive(Clone, Default)]
pub struct SharedFunction(Arc<Mutex<Option<Py<PyAny>>>>);

impl SharedFunction {
    /// The only reference that vecaz keeps.
    pub fn new(function: Bound<'_, PyAny>) -> Self {
        Self(Arc::new(Mutex::new(Some(function.unbind()))))
    }

    /// Removes the function.
    pub fn take(&self) -> Option<Py<PyAny>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Shows the function to the garbage collector. A function that is not shown counts as used.
    ///
    /// # Errors
    /// Those of the collector.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(function) => visit.call(&*function),
            Err(_) => Ok(()),
        }
    }

    /// A reference for one call.
    fn bind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let function = shared.as_ref().map(|function| function.bind(py).clone());
        function.ok_or_else(|| wrong("the engine", "one that is closed", "an open one"))
    }
}

/// A function of Python behind the interface of networks, which takes the interpreter's lock for its call.
pub struct PythonNetwork {
    function: SharedFunction,
    shape: IoShape,
    players: Players,
    raised: Raised,
}

impl PythonNetwork {
    /// `function` for a game of these sizes. What it raises is kept in `raised`.
    pub fn new(function: SharedFunction, shape: IoShape, players: Players, raised: Raised) -> Self {
        Self { function, shape, players, raised }
    }
}

impl Network for PythonNetwork {
    fn shape(&self) -> IoShape {
        self.shape
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> vecaz::Result<()> {
        let evaluated = Python::attach(|py| {
            let rows = obs.len() / self.shape.obs_len;
            let obs = PyArray1::from_slice(py, obs).reshape([rows, self.shape.obs_len])?;
            evaluate(&self.function.bind(py)?, obs, rows, (self.shape, self.players))
        });
        let out = evaluated.map_err(|raised| {
            let error = Error::Unsupported { what: "evaluate".into(), why: raised.to_string() };
            self.raised.set(raised);
            error
        })?;
        logits.copy_from_slice(&out.logits);
        values.copy_from_slice(&out.values);
        Ok(())
    }

    fn fork(&self) -> Box<dyn Network> {
        let Self { function, shape, players, raised } = self;
        Box::new(Self {
            function: function.clone(),
            shape: *shape,
            players: *players,
            raised: raised.clone(),
        })
    }
}
