//! `vecaz.games`: what can be played.

use crate::dict::dict;
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
        let options = PyDict::new(py);
        for key in game.keys() {
            options
                .set_item(key.name, format!("{}: {}, default {}", key.meaning, key.values, key.default))?;
        }
        list.append(dict!(
            py,
            name = name,
            num_players = sizes.num_players,
            num_actions = sizes.num_actions,
            observation_shape = (sizes.obs.channels, sizes.obs.height, sizes.obs.width),
            max_plies = sizes.max_plies,
            has_chance = sizes.num_chance > 0,
            hidden_information = sizes.hidden_information,
            zero_sum = sizes.zero_sum,
            options = options,
        ))?;
    }
    Ok(list)
}
