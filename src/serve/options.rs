//! A game's options between JSON and TOML.

use super::refusal::{Refusal, Served};
use crate::config::KeyInfo;
use serde_json::{Map, Value};

/// A game's options as JSON.
pub fn json_options(options: &toml::Table) -> Value {
    serde_json::to_value(options).unwrap_or_default()
}

/// Options from JSON for a game with these `keys`.
///
/// # Errors
/// 400 for a value that TOML does not have. Unknown keys and wrong values are the game's to refuse.
pub fn game_options(options: &Map<String, Value>, keys: &[KeyInfo]) -> Served<toml::Table> {
    let is_text =
        |key: &str| keys.iter().any(|info| info.name == key && info.default.starts_with(['"', '\'']));
    options.iter().map(|(key, value)| Ok((key.clone(), toml_value(key, value, is_text(key))?))).collect()
}

/// The value of an option. A form sends text, which is read as TOML where the option is no text.
fn toml_value(key: &str, value: &Value, is_text: bool) -> Served<toml::Value> {
    let wrong = |what: String| Refusal::bad(format!("option {key}: got {value}, {what}"));
    if let (Value::String(text), false) = (value, is_text) {
        let table: toml::Table =
            format!("value = {}", text.trim()).parse().map_err(|_| wrong("expected a TOML value".into()))?;
        // More than one line would be more than one value.
        let mut values = table.into_iter();
        return match (values.next(), values.next()) {
            (Some((_, value)), None) => Ok(value),
            _ => Err(wrong("expected one TOML value".into())),
        };
    }
    toml::Value::try_from(value).map_err(|e| wrong(e.to_string()))
}
