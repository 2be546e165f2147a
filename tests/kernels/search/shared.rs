//! Results that several tests compare with, made once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Results by a text that says all that they depend on.
pub struct Shared<T>(Mutex<BTreeMap<String, Arc<OnceLock<T>>>>);

impl<T: Clone> Shared<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The result of the first `make` for `key`.
    pub fn get(&self, key: String, make: impl FnOnce() -> T) -> T {
        let result = self.0.lock().expect("nothing fails under the lock").entry(key).or_default().clone();
        result.get_or_init(make).clone()
    }
}
