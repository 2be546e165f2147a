//! `vecaz.games`: what can be played.

use crate::errors::exception;
use crate::options::registry;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The games by name, as dicts: name, players, actions, observation shape, properties, options with meaning, values and default.
#[pyfunction]
pub fn games(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let registry = registry()?;
    let list = PyList::empty(py);
    for name in registry.names() {
        let game = registry.game(name, &toml::Table::new()).map_err(exception)?;
        let sizes = game.sizes();
        let entry = PyDict::new(py);
        entry.set_item("name", name)?;
        entry.set_item("num_players", sizes.num_players)?;
        entry.set_item("num_actions", sizes.num_actions)?;
        entry.set_item("observation_shape", (sizes.obs.channels, sizes.obs.height, sizes.obs.width))?;
        entry.set_item("max_plies", sizes.max_plies)?;
        entry.set_item("has_chance", sizes.num_chance > 0)?;
        entry.set_item("hidden_information", sizes.hidden_information)?;
        entry.set_item("zero_sum", sizes.zero_sum)?;
        let options = PyDict::new(py);
        for key in game.keys() {
            options
                .set_item(key.name, format!("{}: {}, default {}", key.meaning, key.values, key.default))?;
        }
        entry.set_item("options", options)?;
        list.append(entry)?;
    }
    Ok(list)
}
