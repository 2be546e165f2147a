//! A trained network inside a larger one that computes the same function, from which training goes on (Net2Net: Chen, Goodfellow and Shlens
//! 2016).
//!
//! New channels are drawn as first weights are, and what was there before reads them with weights 0. New residual blocks end in a linear map
//! of 0, so that they add nothing at first. Gradients reach both from the first update on.

use super::array::{Array, Weights};
use super::{Model, NetSpec};
use crate::config::{Arch, PolicyHead};
use crate::error::{Error, Result};
use crate::game::ObsShape;

/// The linear maps whose outputs a residual block adds, by the ends of their names.
const BLOCK_ENDS: [&str; 3] = [".conv2.weight", ".linear2.weight", ".out.weight"];

impl NetSpec {
    /// Checks that a network of these sizes can begin as one of the sizes `trained`: the same inputs, outputs and kinds of layers, and no size
    /// smaller. Networks whose blocks pool over the board or the edges keep their number of channels.
    ///
    /// # Errors
    /// [`Error::Config`] with the key of the first size that differs; [`Error::Mismatch`] for another observation or other outputs.
    pub fn check_start(&self, trained: &Self) -> Result<()> {
        for ((key, found), (_, trained)) in self.kinds().into_iter().zip(trained.kinds()) {
            if found != trained {
                return Err(differs(key, found, &trained));
            }
        }
        for ((key, found), (_, trained)) in self.grown_sizes().into_iter().zip(trained.grown_sizes()) {
            if found < trained {
                return Err(differs(key, found, &format!("at least {trained}")));
            }
        }
        if self.pools() && self.channels != trained.channels {
            let expected = format!("{} where blocks pool over the board or the edges", trained.channels);
            return Err(differs("channels", self.channels, &expected));
        }
        let shapes = |spec: &Self| {
            let (ObsShape { channels, height, width }, values) = (spec.obs, spec.num_values());
            format!("{channels}x{height}x{width} inputs, {} logits, {values} values", spec.num_actions)
        };
        match shapes(self) == shapes(trained) {
            true => Ok(()),
            false => Err(Error::Mismatch {
                what: "inputs and outputs of the network of run.start".into(),
                found: shapes(trained),
                expected: shapes(self),
            }),
        }
    }

    /// What a larger network has in common with the one inside it, by key.
    fn kinds(&self) -> [(&'static str, String); 5] {
        let policy_head = if self.point_actions.is_some() { PolicyHead::Points } else { PolicyHead::Dense };
        [
            ("arch", self.arch.to_string()),
            ("policy_head", policy_head.to_string()),
            ("value_head", self.value_head.to_string()),
            ("global_pool", self.global_pool.to_string()),
            ("se", self.se.to_string()),
        ]
    }

    /// The sizes that may be larger, by key.
    fn grown_sizes(&self) -> [(&'static str, usize); 5] {
        [
            ("blocks", self.blocks),
            ("channels", self.channels),
            ("policy_channels", self.policy_channels),
            ("value_channels", self.value_channels),
            ("value_hidden", self.value_hidden),
        ]
    }

    /// True if blocks have layers whose weights are not one row for each output channel and one column for each input channel.
    fn pools(&self) -> bool {
        self.arch == Arch::Edge || self.global_pool > 0 || self.se > 0
    }
}

/// The error for a value of `net.KEY` other than the `expected` one.
fn differs(key: &str, found: impl ToString, expected: &str) -> Error {
    Error::config(
        format!("net.{key}"),
        found.to_string(),
        format!("{expected}, as run.start has a trained network"),
    )
}

impl Model {
    /// First weights that compute the function of `trained`, the weights of a network that [`NetSpec::check_start`] accepts. What is new is a
    /// function of the model and `seed`.
    pub fn grown_weights(&self, trained: &Weights, seed: u64) -> Weights {
        let mut grown = self.initial_weights(seed);
        for (name, array) in &mut grown {
            match trained.get(name) {
                Some(old) => place(old, array),
                None if name.starts_with("blocks.") && BLOCK_ENDS.iter().any(|end| name.ends_with(end)) => {
                    array.data.fill(0.0);
                }
                None => {}
            }
        }
        grown
    }
}

/// Places `old`, of shape `[O, I, ...]`, in the first rows and columns of `new`, `[O', I', ...]`. The first O rows are 0 elsewhere, so that
/// their outputs do not depend on new inputs.
fn place(old: &Array, new: &mut Array) {
    let [(old_rows, old_row), (rows, row)] = [&old.shape, &new.shape].map(|shape| {
        let rows = shape[0].max(1);
        (rows, shape[1..].iter().product::<usize>())
    });
    for i in 0..old_rows.min(rows) {
        let (kept, added) = new.data[i * row..(i + 1) * row].split_at_mut(old_row);
        kept.copy_from_slice(&old.data[i * old_row..(i + 1) * old_row]);
        added.fill(0.0);
    }
}
