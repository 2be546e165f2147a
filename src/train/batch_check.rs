//! The check of a batch against the network that it is for.

use crate::error::{Error, Result};
use crate::model::{Model, VALUES};
use crate::replay::TrainBatch;

impl TrainBatch {
    /// The number of samples.
    ///
    /// # Errors
    /// [`Error::Mismatch`] where an array has the wrong length, there are no samples, or their weights have no positive
    /// sum.
    pub(super) fn check(&self, model: &Model) -> Result<usize> {
        let rows = self.weight.len();
        let arrays = [
            ("observations".to_string(), self.obs.len(), model.obs().len()),
            ("legal masks".to_string(), self.legal.len(), model.num_actions()),
        ];
        let learned = model.heads.iter().map(|head| (head.target.as_str(), model.target_len(head)));
        // The metrics have the error of the values, whatever the value head learns.
        let targets = learned.chain([(VALUES, model.num_players)]).map(|(name, len)| {
            let found = self.targets.get(name).map_or(0, <[f32]>::len);
            (format!("targets called {name}"), found, len)
        });
        for (what, found, per_row) in arrays.into_iter().chain(targets) {
            if found != rows * per_row {
                let what = format!("{what} of a training batch of {rows}");
                let expected = format!("{} numbers", rows * per_row);
                return Err(Error::mismatch(what, format_args!("{found} numbers"), expected));
            }
        }
        if rows == 0 {
            return Err(Error::mismatch("samples of a training batch", rows, "at least 1"));
        }
        let total = self.total_weight();
        if !(total.is_finite() && total > 0.0 && self.weight.iter().all(|&w| w >= 0.0)) {
            return Err(Error::mismatch(
                "weights of a training batch",
                format_args!("a sum of {total}"),
                "weights from 0 on with a positive sum",
            ));
        }
        Ok(rows)
    }

    /// The sum of all samples' weights.
    pub(super) fn total_weight(&self) -> f64 {
        self.weight.iter().map(|&w| f64::from(w)).sum()
    }
}
