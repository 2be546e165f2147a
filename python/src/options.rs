//! Settings from Python as TOML, and the games of this package.

use crate::errors::{exception, wrong};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use std::sync::Arc;
use vecaz::config::DEFAULT_GAME;
use vecaz::registry::{AnyGame, Registry};

/// Maximum depth of mappings and lists in one another; that of a configuration is two.
const MAX_DEPTH: usize = 8;

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
/// `ValueError` for a value that is no bool, number, text or list of them.
pub fn table(options: &Bound<'_, PyDict>) -> PyResult<toml::Table> {
    options
        .iter()
        .map(|(key, value)| {
            let key: String = key.extract()?;
            let value = value_of(&key, &value, MAX_DEPTH)?;
            Ok((key, value))
        })
        .collect()
}

/// Settings as `section.key=value`, from `{"search.leaves": 4}` or `{"search": {"leaves": 4}}`; none from None.
///
/// # Errors
/// As [`table`]; `TypeError` for a key that is no text.
pub fn assignments(settings: Option<&Bound<'_, PyMapping>>) -> PyResult<Vec<String>> {
    let mut out = Vec::new();
    if let Some(settings) = settings {
        add_assignments("", settings, MAX_DEPTH, &mut out)?;
    }
    Ok(out)
}

/// Adds the assignments of `settings`, with at most `depth` levels of mappings, below the key `prefix`.
fn add_assignments(
    prefix: &str,
    settings: &Bound<'_, PyMapping>,
    depth: usize,
    out: &mut Vec<String>,
) -> PyResult<()> {
    if depth == 0 {
        return Err(too_deep(prefix));
    }
    for item in settings.items()? {
        let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value.cast::<PyMapping>() {
            Ok(inner) => add_assignments(&key, inner, depth - 1, out)?,
            Err(_) => out.push(format!("{key}={}", value_of(&key, &value, MAX_DEPTH)?)),
        }
    }
    Ok(())
}

fn too_deep(key: &str) -> PyErr {
    let first = key.split('.').next().unwrap_or_default();
    wrong(first, format!("more than {MAX_DEPTH} levels"), "a value, or a section of keys and values")
}

/// A value with at most `depth` levels of lists as TOML.
fn value_of(key: &str, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<toml::Value> {
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
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        if depth == 0 {
            return Err(too_deep(key));
        }
        let values = value.try_iter()?.map(|inner| value_of(key, &inner?, depth - 1));
        return values.collect::<PyResult<Vec<_>>>().map(toml::Value::Array);
    }
    // NumPy's numbers.
    if let Ok(number) = value.call_method0("item")
        && !number.is(value)
        && !number.hasattr("item")?
    {
        return value_of(key, &number, depth);
    }
    Err(wrong(key, value.get_type().name()?, "a bool, a number, a text or a list of them"))
}
