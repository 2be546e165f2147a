//! A list of actions in a request: a text with commas between them, or a list of names and numbers.

use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged, expecting = "actions: expected a text with commas, or a list of names and numbers")]
enum Actions {
    Text(String),
    List(Vec<Action>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Action {
    Number(u16),
    Name(String),
}

/// The actions of a request as the text that [`play_list`](crate::batch::play_list) takes; None for null.
///
/// # Errors
/// Those of `deserializer`, for any other value.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = |action: Action| match action {
        Action::Number(number) => number.to_string(),
        Action::Name(name) => name,
    };
    Ok(Option::<Actions>::deserialize(deserializer)?.map(|actions| match actions {
        Actions::Text(text) => text,
        Actions::List(list) => list.into_iter().map(name).collect::<Vec<_>>().join(","),
    }))
}
