//! Changes between JSON values: the positions of a game differ in little, and a page has thousands of them.
//!
//! A change is `["=", value]`, the new value; `["object", {key: change}, [removed keys]]`; or `["list", {index: change}]` for lists of equal
//! length. `page/viewer.js` applies them.

use serde_json::{Map, Value, json};

/// The change that makes `new` of `old`.
pub(super) fn change(old: &Value, new: &Value) -> Value {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(*value));
            let entry = |(key, value): (&String, &Value)| {
                let change = old.get(key).map_or_else(|| json!(["=", value]), |before| change(before, value));
                (key.clone(), change)
            };
            let entries: Map<String, Value> = changed.map(entry).collect();
            let removed: Vec<&String> = old.keys().filter(|key| !new.contains_key(*key)).collect();
            match removed.is_empty() {
                true => json!(["object", entries]),
                false => json!(["object", entries, removed]),
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let changed = old.iter().zip(new).enumerate().filter(|(_, (before, value))| before != value);
            let entries: Map<String, Value> =
                changed.map(|(index, (before, value))| (index.to_string(), change(before, value))).collect();
            json!(["list", entries])
        }
        _ => json!(["=", new]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `page/viewer.js` applies it.
    fn changed(old: &Value, change: &Value) -> Value {
        let entries = || change[1].as_object().expect("entries").iter();
        match change[0].as_str().expect("a kind") {
            "=" => change[1].clone(),
            "list" => {
                let mut made = old.as_array().expect("a list").clone();
                entries().for_each(|(index, entry)| {
                    let index: usize = index.parse().expect("an index");
                    made[index] = changed(&made[index], entry);
                });
                Value::Array(made)
            }
            _ => {
                let mut made = old.as_object().expect("an object").clone();
                for (key, entry) in entries() {
                    let new = made.get(key).map_or_else(|| entry[1].clone(), |before| changed(before, entry));
                    made.insert(key.clone(), new);
                }
                let removed = change[2].as_array().into_iter().flatten();
                removed.for_each(|key| drop(made.remove(key.as_str().expect("a key"))));
                Value::Object(made)
            }
        }
    }

    #[test]
    fn a_change_makes_the_new_value_of_the_old_one() {
        let values = [
            json!({"cells": [null, 1, null, 0], "last": [{"place": 1}], "kind": "grid"}),
            json!({"cells": [null, 1, 1, 0], "last": [{"place": 2}, {"place": 3}], "kind": "grid"}),
            json!({"cells": [null, 1, 1, 0, 4], "kind": "grid", "notes": ["check"]}),
            json!({"cells": {"a": [1, [2, 3]]}, "kind": null}),
            json!({"cells": {"a": [1, [2, 4]]}, "kind": null}),
            json!([1]),
        ];
        for old in &values {
            for new in &values {
                assert_eq!(changed(old, &change(old, new)), *new, "{old} {new}");
            }
        }
        let small = change(&values[0], &values[1]);
        assert_eq!(small["2"], Value::Null);
        assert_eq!(small[1]["cells"], json!(["list", {"2": ["=", 1]}]), "only what differs");
        assert!(small[1]["kind"].is_null());
    }
}
