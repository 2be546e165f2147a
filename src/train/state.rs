//! A trainer's state as named arrays, as checkpoints hold it.

use crate::error::{Error, Result};
use crate::model::{Array, Model, Weights};

/// Everything that the next step depends on in addition to the configuration; arrays flat as in [`Model::flatten`].
#[derive(Clone, Debug, PartialEq)]
pub struct TrainerSnapshot {
    /// The parameters.
    pub parameters: Vec<f32>,
    /// First moments of the gradient.
    pub first: Vec<f32>,
    /// Second moments of the gradient.
    pub second: Vec<f32>,
    /// Running means and variances.
    pub statistics: Vec<f32>,
    /// Updates made so far.
    pub updates: u64,
    /// The loss scale and the updates since it changed, where there is one.
    pub loss_scale: Option<(f32, u32)>,
}

const DIGIT: u64 = 0xFF_FFFF;
const LOSS_SCALE: &str = "loss_scale";

impl TrainerSnapshot {
    /// `weights.*`, `first.*`, `second.*` by tensor name, `updates` as two 24-bit digits, and `loss_scale` where there is one.
    pub fn to_arrays(&self, model: &Model) -> Weights {
        let mut state = prefixed("weights", model.unflatten(&self.parameters, &self.statistics));
        for (prefix, flat) in [("first", &self.first), ("second", &self.second)] {
            let mut named = model.unflatten(flat, &self.statistics);
            named.retain(|name, _| model.trained().any(|param| param.name == *name));
            state.extend(prefixed(prefix, named));
        }
        let digits = [self.updates & DIGIT, self.updates >> 24 & DIGIT];
        state.insert("updates".into(), pair(digits.map(|d| d as f32)));
        if let Some((scale, age)) = self.loss_scale {
            state.insert(LOSS_SCALE.into(), pair([scale, age as f32]));
        }
        state
    }

    /// The result of [`TrainerSnapshot::to_arrays`].
    ///
    /// # Errors
    /// [`Error::Mismatch`] where an array is missing, surplus or of another shape.
    pub fn from_arrays(model: &Model, state: &Weights) -> Result<Self> {
        let part = |prefix: &str| -> Weights {
            let names = state
                .iter()
                .filter_map(|(name, a)| Some((name.strip_prefix(prefix)?.to_string(), a.clone())));
            names.collect()
        };
        let (weights, mut first, mut second) = (part("weights."), part("first."), part("second."));
        let scaled = usize::from(state.contains_key(LOSS_SCALE));
        let known = weights.len() + first.len() + second.len() + 1 + scaled;
        if state.len() > known {
            return Err(Error::mismatch(
                "arrays of a trainer",
                state.len(),
                format_args!("only the {known} of weights, moments and updates"),
            ));
        }
        let (parameters, statistics) = model.flatten(&weights)?;
        for param in model.statistics() {
            for moments in [&mut first, &mut second] {
                let array = Array { shape: param.shape.clone(), data: vec![0.0; param.range.len()] };
                if moments.insert(param.name.clone(), array).is_some() {
                    return Err(Error::mismatch(
                        "arrays of a trainer",
                        format_args!("moments of {}", param.name),
                        "those of weights that gradients move",
                    ));
                }
            }
        }
        let (first, second) = (model.flatten(&first)?.0, model.flatten(&second)?.0);
        let [low, high] = numbers(state, "updates")?;
        let loss_scale = match scaled {
            0 => None,
            _ => numbers(state, LOSS_SCALE).map(|[scale, age]| Some((scale, age as u32)))?,
        };
        let updates = low as u64 | (high as u64) << 24;
        Ok(Self { parameters, first, second, statistics, updates, loss_scale })
    }
}

/// The two numbers of an array.
fn numbers(state: &Weights, name: &str) -> Result<[f32; 2]> {
    let found = state.get(name).map(|array| array.data.as_slice());
    let Some(&[a, b]) = found else {
        let found = found.map_or("nothing".into(), |d| format!("{} numbers", d.len()));
        let what = format!("{name} of a trainer");
        return Err(Error::mismatch(what, found, "2 numbers"));
    };
    Ok([a, b])
}

fn pair(data: [f32; 2]) -> Array {
    Array { shape: vec![2], data: data.to_vec() }
}

fn prefixed(prefix: &str, weights: Weights) -> Weights {
    weights.into_iter().map(|(name, array)| (format!("{prefix}.{name}"), array)).collect()
}
