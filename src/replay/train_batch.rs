//! The arrays that one training update reads.

use std::ops::{Index, IndexMut};

/// Samples for one update, `train.batch` of them. Arrays are row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainBatch {
    /// Observations. `[B, F]`
    pub obs: Vec<f32>,
    /// 1 where legal, 0 elsewhere. `[B, A]`
    pub legal: Vec<u8>,
    /// What the heads learn: "policy" `[B, A]`, probabilities that are 0 where illegal; "values" `[B, P]` in [-1, 1], seats relative to the
    /// observer; and further columns by name.
    pub targets: TargetColumns,
    /// Weights of the samples, not negative. `[B]`
    pub weight: Vec<f32>,
}

/// Named arrays with a row for each sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetColumns(Vec<(String, Vec<f32>)>);

impl TargetColumns {
    /// The column called `name`.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, column)| &column[..])
    }

    /// The column called `name`, which is added if there is none.
    pub fn column_mut(&mut self, name: &str) -> &mut Vec<f32> {
        let at = self.0.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.0.push((name.to_string(), Vec::new()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// All columns.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[f32])> {
        self.0.iter().map(|(name, column)| (name.as_str(), &column[..]))
    }
}

impl Index<&str> for TargetColumns {
    type Output = [f32];

    /// # Panics
    /// If there is no such column.
    fn index(&self, name: &str) -> &[f32] {
        self.get(name).unwrap_or_else(|| panic!("no target called {name}"))
    }
}

impl IndexMut<&str> for TargetColumns {
    /// As [`TargetColumns::column_mut`].
    fn index_mut(&mut self, name: &str) -> &mut [f32] {
        self.column_mut(name)
    }
}
