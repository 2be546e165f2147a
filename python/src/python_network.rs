//! A function of Python as a network.

use crate::errors::wrong;
use crate::numpy_input::{Kind, read};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use vecaz::net::{IoShape, Network};
use vecaz::{Error, Result};

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

/// Calls `function` with `obs [rows, F]` and checks what it returns: `(logits [rows, A], values [rows, P])`, or values `[rows]` of the player
/// to move in games for two or one.
///
/// # Errors
/// The exception that the function raises; `ValueError` for other shapes, dtypes or numbers.
pub fn evaluate<'py>(
    function: &Bound<'py, PyAny>,
    obs: Bound<'py, PyArray2<f32>>,
    rows: usize,
    shape: IoShape,
    out: &mut Outputs,
) -> PyResult<()> {
    let found = function.call1((obs,))?;
    let Ok((logits, values)) = found.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return Err(wrong("evaluate", found.get_type().name()?, "a pair (logits, values)"));
    };
    let IoShape { num_actions, num_players, .. } = shape;
    out.logits.clear();
    read("logits", &logits, Kind::Floats, &[&[rows, num_actions]], &mut out.logits)?;
    out.values.clear();
    let shapes: [&[usize]; 2] = [&[rows, num_players], &[rows]];
    let shapes = if num_players <= 2 { &shapes[..] } else { &shapes[..1] };
    if read("values", &values, Kind::Floats, shapes, &mut out.values)? == 1 && num_players == 2 {
        out.values = out.values.iter().flat_map(|&value| [value, -value]).collect();
    }
    check_logits(&mut out.logits, num_actions)?;
    check_values(&mut out.values, num_players)
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

/// A function of Python behind the interface of networks, which takes the interpreter's lock for its call.
pub struct PythonNetwork {
    function: Arc<Py<PyAny>>,
    shape: IoShape,
    /// The exception that the function raised last.
    raised: Raised,
}

/// The exception that ended a search.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

impl PythonNetwork {
    /// `function` for a game of these sizes.
    pub fn new(function: Bound<'_, PyAny>, shape: IoShape) -> Self {
        Self { function: Arc::new(function.unbind()), shape, raised: Raised::default() }
    }

    /// Where an exception of the function is kept.
    pub fn raised(&self) -> Raised {
        self.raised.clone()
    }
}

impl Network for PythonNetwork {
    fn shape(&self) -> IoShape {
        self.shape
    }

    fn forward(&mut self, obs: &[f32], logits: &mut [f32], values: &mut [f32]) -> Result<()> {
        let mut out = Outputs::default();
        let evaluated = Python::attach(|py| {
            let rows = obs.len() / self.shape.obs_len;
            let obs = PyArray1::from_slice(py, obs).reshape([rows, self.shape.obs_len])?;
            evaluate(self.function.bind(py), obs, rows, self.shape, &mut out)
        });
        evaluated.map_err(|raised| {
            let error = Error::Unsupported { what: "evaluate".into(), why: raised.to_string() };
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            error
        })?;
        logits.copy_from_slice(&out.logits);
        values.copy_from_slice(&out.values);
        Ok(())
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(Self { function: self.function.clone(), shape: self.shape, raised: self.raised.clone() })
    }
}
