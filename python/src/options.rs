//! Settings from Python: keyword arguments as TOML, and the games of this package.

use crate::errors::{exception, wrong};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use std::sync::Arc;
use vecaz::config::DEFAULT_GAME;
use vecaz::registry::{AnyGame, Registry};

/// The built-in games of vecaz and those of `vecaz_games`.
///
/// # Errors
/// None: the names are checked in the tests of those crates.
pub fn registry() -> PyResult<Registry> {
    vecaz_games::registry().and_then(|registry| registry.with_default(DEFAULT_GAME)).map_err(exception)
}

/// The game `name` with these options.
///
/// # Errors
/// `ValueError` for an unknown game, option or value.
pub fn game(name: &str, options: &Bound<'_, PyDict>) -> PyResult<Arc<dyn AnyGame>> {
    registry()?.game(name, &table(options)?).map_err(exception)
}

/// Keyword arguments as a table.
///
/// # Errors
/// `ValueError` for a value that is neither a bool, a number nor a text.
pub fn table(options: &Bound<'_, PyDict>) -> PyResult<toml::Table> {
    options
        .iter()
        .map(|(key, value)| {
            let key: String = key.extract()?;
            let value = value_of(&key, &value)?;
            Ok((key, value))
        })
        .collect()
}

fn value_of(key: &str, value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(toml::Value::Boolean(value.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        let number = value.extract::<i64>();
        return number.map(toml::Value::Integer).map_err(|_| wrong(key, value, "a whole number of 64 bits"));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(toml::Value::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(toml::Value::String(value.extract()?));
    }
    // NumPy's numbers.
    if let Ok(number) = value.call_method0("item")
        && !number.is(value)
        && !number.hasattr("item")?
    {
        return value_of(key, &number);
    }
    Err(wrong(key, value.get_type().name()?, "a bool, a number or a text"))
}
