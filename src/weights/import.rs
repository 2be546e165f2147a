//! Weights that another program wrote, as the network of a game.

use super::arrays::{parse_tensors, read};
use super::evaluated::EvaluatedPositions;
use super::net_file::{FileTemplate, NetFile, NetworkHeader, OBS, SelfCheck, checking_network, is_check};
use crate::batch::ErasedRules;
use crate::error::{Error, Result};
use crate::model::{Array, Model, NetSpec, Role, Weights};
use std::path::{Path, PathBuf};

/// The end of the names of counters that PyTorch keeps beside the statistics of a BatchNorm, and vecaz does not.
const COUNTER: &str = ".num_batches_tracked";

/// The tensors of a safetensors file, and what it says about them.
#[derive(Debug)]
pub struct Import {
    path: PathBuf,
    weights: Weights,
    header: Option<NetworkHeader>,
}

/// A network whose weights another program wrote.
#[derive(Debug)]
pub struct ImportedFile {
    /// The network's file.
    pub file: NetFile,
    /// The largest difference to the outputs that the program stored for observations of its own, if it stored any.
    pub difference: Option<f32>,
}

impl Import {
    /// Reads `path`, a safetensors file of any program.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a file that is damaged, numbers other than f32, f16 and bf16, and metadata of vecaz that are not
    /// those of a network.
    pub fn read(path: &Path) -> Result<Self> {
        let (weights, metadata) = parse_tensors(path, &read(path)?, |name| !name.ends_with(COUNTER))?;
        let header = metadata.map(|text| NetworkHeader::parse(path, &text)).transpose()?;
        Ok(Self { path: path.to_path_buf(), weights, header })
    }

    /// The game and the sizes that the file itself names, as one does that vecaz exported.
    pub fn header(&self) -> Option<&NetworkHeader> {
        self.header.as_ref()
    }

    /// The file of the network `net` for `game` with these weights. If the file has self-check tensors, `selfcheck.obs [n, F]`,
    /// `selfcheck.logits [n, A]` and `selfcheck.values [n, P]`, the network's outputs are compared with them.
    ///
    /// # Errors
    /// [`Error::Format`] for a tensor that is missing, foreign, misshapen or not finite, and for outputs that differ from the self-check;
    /// those of [`FileTemplate::new`] and [`FileTemplate::file`].
    pub fn into_file(
        mut self,
        game: &dyn ErasedRules,
        net: &NetSpec,
        evaluates: EvaluatedPositions,
    ) -> Result<ImportedFile> {
        let located = |e: Error| Error::format(&self.path, e.to_string());
        let check = match self.weights.get(OBS).map(|obs| obs.shape.first().copied().unwrap_or(0)) {
            Some(0) => {
                let what = format!("tensor {OBS} has no rows, expected the shape [n, {}]", net.obs.len());
                return Err(Error::format(&self.path, what));
            }
            Some(rows) => Some(SelfCheck::take(&self.path, &mut self.weights, net, rows)?),
            None => None,
        };
        if let Some(name) = self.weights.keys().find(|name| is_check(name)) {
            return Err(Error::format(&self.path, format!("it has tensor {name} but no {OBS}")));
        }
        let model = net.model()?;
        model.check(&self.weights).and_then(|()| check_variances(&model, &self.weights)).map_err(located)?;
        let mut network = checking_network(net, &self.weights)?;
        let difference = check.map(|check| check.verify(net, &mut network)).transpose().map_err(located)?;
        let updates = self.header.map_or(0, |header| header.updates);
        let file = FileTemplate::new(game, net)?.evaluating(evaluates).file(self.weights, updates)?;
        Ok(ImportedFile { file, difference })
    }
}

/// Refuses running variances below 0, of which there is no root.
fn check_variances(model: &Model, weights: &Weights) -> Result<()> {
    for param in model.params.iter().filter(|param| param.role == Role::RunningVariance) {
        let Array { data, .. } = &weights[&param.name];
        if let Some(variance) = data.iter().find(|x| **x < 0.0) {
            return Err(Error::mismatch(format_args!("tensor {}", param.name), variance, "variances from 0"));
        }
    }
    Ok(())
}
